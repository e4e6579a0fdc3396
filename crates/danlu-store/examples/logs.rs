//! How long it takes to look at a log of five million lines.
//!
//! ```text
//! cargo run --release -p danlu-store --example logs [LINES]
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for the one who measures")]

use std::io::{BufWriter, Write};
use std::time::Instant;

use danlu_store::logs::{self, LineCounts, LogPage, LogSource, Pattern};
use danlu_types::api::LogStream;
use danlu_types::{AttemptNumber, Rank, WorkerIndex};
use jiff::{SignedDuration, Timestamp};

fn main() {
    let count: u64 = std::env::args().nth(1).map_or(5_000_000, |lines| lines.parse().unwrap());
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = folder.path().join("rank-0.log");
    let megabytes = write(&path, count);
    println!("{count} lines, {megabytes} MB");

    let sources = [LogSource { path, attempt: AttemptNumber(1), worker: WorkerIndex(0), rank: Rank(0) }];
    let counts = LineCounts::new();
    time("the last 1000 lines, first time", || logs::tail(&sources, None, 1000, &counts).unwrap());
    time("the last 1000 lines, again", || logs::tail(&sources, None, 1000, &counts).unwrap());
    time("the first 1000 lines", || logs::page(&sources, None, 1000).unwrap());
    let needle = format!("step {} ", count - 2);
    time("a text that is near the end", || search_all(&sources, &Pattern::text(&needle)));
    let expression = Pattern::regex(&format!("step {}.*loss", count - 2)).unwrap();
    time("the same by a regular expression", || search_all(&sources, &expression));
}

/// Writes the log; its size in MB.
fn write(path: &std::path::Path, count: u64) -> u64 {
    let mut file = BufWriter::new(std::fs::File::create(path).unwrap());
    let mut at: Timestamp = "2026-11-15T08:50:22Z".parse().unwrap();
    let mut line = Vec::new();
    for number in 0..count {
        line.clear();
        at += SignedDuration::from_millis(1);
        let text = format!("epoch 3 step {number} loss 0.31 accuracy 0.97");
        danlu_core::log::encode(&mut line, at, LogStream::Stdout, text.as_bytes());
        file.write_all(&line).unwrap();
    }
    file.into_inner().unwrap().metadata().unwrap().len() >> 20
}

fn search_all(sources: &[LogSource], pattern: &Pattern) -> LogPage {
    let mut page = logs::search(sources, pattern, None, 1000).unwrap();
    while page.more {
        let next = logs::search(sources, pattern, Some(&page.next), 1000).unwrap();
        page.lines.extend(next.lines);
        (page.next, page.more) = (next.next, next.more);
    }
    page
}

fn time(what: &str, work: impl FnOnce() -> LogPage) {
    let began = Instant::now();
    let page = work();
    println!("  {what}: {:.1} ms, {} lines", began.elapsed().as_secs_f64() * 1e3, page.lines.len());
}
