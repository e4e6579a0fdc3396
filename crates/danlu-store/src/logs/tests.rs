//! The invariants of the module's doc, on files of every shape; and what hostile clients and files may try.

use std::path::Path;

use danlu_core::log::{LONGEST_LINE, encode};
use danlu_types::api::{LogLine, LogStream};
use danlu_types::{AttemptNumber, Rank, WorkerIndex};
use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A line of a file.
#[derive(Debug, Clone)]
enum Piece {
    /// After so many microseconds; fewer than none where the clock is set back.
    Line(i64, LogStream, Vec<u8>),
    /// So many bytes that are no record.
    Damaged(usize),
}

/// A rank's file, and what it ends with that is not a complete line.
type RankFile = (Vec<Piece>, Vec<u8>);

fn text() -> impl Strategy<Value = Vec<u8>> {
    let letters = vec(prop_oneof![Just(b'a'), Just(b'b'), Just(0xff), Just(b' ')], 0..12);
    prop_oneof![
        20 => letters,
        1 => (8_000..40_000_usize).prop_map(|length| vec![b'x'; length]),
        1 => Just(vec![b'y'; LONGEST_LINE]),
    ]
}

fn rank_file(earliest: i64) -> impl Strategy<Value = RankFile> {
    let stream = prop_oneof![Just(LogStream::Stdout), Just(LogStream::Stderr), Just(LogStream::Danlu)];
    let piece = prop_oneof![
        20 => (earliest..5_i64, stream, text()).prop_map(|(wait, stream, text)| Piece::Line(wait, stream, text)),
        1 => (0..40_usize).prop_map(Piece::Damaged),
        1 => (LONGEST_LINE..LONGEST_LINE * 3).prop_map(Piece::Damaged),
    ];
    let half_line = prop_oneof![Just(Vec::new()), Just(b"2026-11".to_vec()), Just(vec![b'z'; 100_000])];
    (vec(piece, 0..30), half_line)
}

/// Files whose clocks only go forward.
fn steady() -> impl Strategy<Value = Vec<RankFile>> {
    vec(rank_file(0), 0..4)
}

/// Files whose clocks also go back.
fn jumping() -> impl Strategy<Value = Vec<RankFile>> {
    vec(rank_file(-5), 0..4)
}

struct Logs {
    _folder: tempfile::TempDir,
    sources: Vec<LogSource>,
    /// What is in each file, in its order.
    of_rank: Vec<Vec<LogLine>>,
}

fn write(files: &[RankFile]) -> Logs {
    let folder = tempfile::tempdir().unwrap();
    let mut sources = Vec::new();
    let mut of_rank = Vec::new();
    for (rank, (pieces, half_line)) in (0..).zip(files) {
        let path = folder.path().join(format!("rank-{rank}.log"));
        let source =
            LogSource { path, attempt: AttemptNumber(1), worker: WorkerIndex(rank / 2), rank: Rank(rank) };
        let mut bytes = Vec::new();
        let mut lines = Vec::new();
        let mut micros = 1_800_000_000_000_000;
        for (number, piece) in (0..).zip(pieces) {
            match piece {
                Piece::Line(wait, stream, text) => {
                    micros += wait;
                    let at = Timestamp::from_microsecond(micros).unwrap();
                    encode(&mut bytes, at, *stream, text);
                    lines.push(source.line(number, at, *stream, text));
                }
                Piece::Damaged(length) => {
                    bytes.extend(std::iter::repeat_n(b'?', *length));
                    bytes.push(b'\n');
                }
            }
        }
        bytes.extend_from_slice(half_line);
        std::fs::write(&source.path, bytes).unwrap();
        sources.push(source);
        of_rank.push(lines);
    }
    Logs { _folder: folder, sources, of_rank }
}

fn all_pages(sources: &[LogSource], limit: usize) -> Vec<LogLine> {
    let mut lines = Vec::new();
    let mut cursor = None;
    loop {
        let page = page(sources, cursor.as_deref(), limit).unwrap();
        assert!(page.lines.len() <= limit);
        lines.extend(page.lines);
        cursor = Some(page.next);
        if !page.more {
            return lines;
        }
    }
}

fn of_rank(lines: &[LogLine], rank: usize) -> Vec<LogLine> {
    lines.iter().filter(|line| line.rank.0 as usize == rank).cloned().collect()
}

fn in_order(logs: &Logs) -> Vec<LogLine> {
    let mut lines = logs.of_rank.concat();
    lines.sort_by_key(|line| (line.at, line.rank, line.number));
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_give_every_line_once_in_its_ranks_order(files in jumping(), limit in 1..20_usize) {
        let logs = write(&files);
        let lines = all_pages(&logs.sources, limit);
        for (rank, expected) in logs.of_rank.iter().enumerate() {
            prop_assert_eq!(&of_rank(&lines, rank), expected);
        }
        prop_assert_eq!(lines, all_pages(&logs.sources, usize::MAX), "pages cut one order");
    }

    #[test]
    fn ranks_are_merged_by_time(files in steady(), limit in 1..20_usize) {
        let logs = write(&files);
        prop_assert_eq!(all_pages(&logs.sources, limit), in_order(&logs));
    }

    #[test]
    fn the_tail_is_the_end_of_the_pages(files in steady(), count in 0..40_usize) {
        let logs = write(&files);
        let counts = LineCounts::new();
        let all = in_order(&logs);
        for count in [count, 3, count] {
            let tail = tail(&logs.sources, None, count, &counts).unwrap();
            prop_assert_eq!(&tail.lines, &all[all.len().saturating_sub(count)..]);
            let after = page(&logs.sources, Some(&tail.next), 10).unwrap();
            prop_assert_eq!((after.lines, after.next, after.more), (vec![], tail.next, false));
        }
    }

    #[test]
    fn the_tail_ends_each_rank_whatever_the_clocks(files in jumping(), count in 0..40_usize) {
        let logs = write(&files);
        let tail = tail(&logs.sources, None, count, &LineCounts::new()).unwrap().lines;
        prop_assert_eq!(tail.len(), count.min(logs.of_rank.iter().map(Vec::len).sum()));
        for (rank, all) in logs.of_rank.iter().enumerate() {
            let own = of_rank(&tail, rank);
            prop_assert_eq!(&own[..], &all[all.len() - own.len()..]);
        }
    }

    #[test]
    fn tails_before_tails_give_every_line_once(files in jumping(), count in 1..20_usize) {
        let logs = write(&files);
        let counts = LineCounts::new();
        let mut lines = Vec::new();
        let mut before = None;
        loop {
            let tail = tail(&logs.sources, before.as_deref(), count, &counts).unwrap();
            lines.splice(0..0, tail.lines);
            if tail.before.is_none() {
                break;
            }
            prop_assert_ne!(&tail.before, &before, "each answer gets nearer to the beginning");
            before = tail.before;
        }
        for (rank, expected) in logs.of_rank.iter().enumerate() {
            prop_assert_eq!(&of_rank(&lines, rank), expected);
        }
    }

    #[test]
    fn a_page_begins_at_the_line_that_is_named(files in steady(), number in 0..30_u64) {
        let logs = write(&files);
        for (source, lines) in logs.sources.iter().zip(&logs.of_rank) {
            let page = page_at(source, number, usize::MAX).unwrap();
            let expected: Vec<LogLine> = lines.iter().filter(|line| line.number >= number).cloned().collect();
            prop_assert_eq!(page.lines, expected);
        }
    }

    #[test]
    fn a_search_is_a_filter_of_the_pages(files in steady(), limit in 1..10_usize) {
        let logs = write(&files);
        for pattern in [Pattern::text("ab"), Pattern::regex("^a+ ?b").unwrap(), Pattern::text("")] {
            let mut found = Vec::new();
            let mut cursor = None;
            loop {
                let page = search(&logs.sources, &pattern, cursor.as_deref(), limit).unwrap();
                found.extend(page.lines);
                cursor = Some(page.next);
                if !page.more {
                    break;
                }
            }
            let matches = |line: &LogLine| pattern.is_match(line.text.as_bytes());
            prop_assert_eq!(found, in_order(&logs).into_iter().filter(matches).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_follower_gives_every_line_once_however_it_is_written(
        files in jumping(), cuts in vec(0..200_usize, 0..30), limit in 1..20_usize,
    ) {
        let logs = write(&files);
        let contents: Vec<_> = logs.sources.iter().map(|source| std::fs::read(&source.path).unwrap()).collect();
        for source in &logs.sources {
            std::fs::remove_file(&source.path).unwrap();
        }
        let mut follower = LogFollower::new(Vec::new(), None).unwrap();
        for source in &logs.sources {
            follower.add(source.clone());
        }
        let mut lines = Vec::new();
        let mut ends = vec![0; contents.len()];
        for cut in cuts.into_iter().chain([usize::MAX]) {
            for ((source, content), end) in logs.sources.iter().zip(&contents).zip(&mut ends) {
                *end = content.len().min(cut.saturating_add(*end));
                std::fs::write(&source.path, &content[..*end]).unwrap();
            }
            loop {
                let new = follower.poll(limit).unwrap();
                if new.is_empty() {
                    break;
                }
                lines.extend(new);
            }
            follower = LogFollower::new(logs.sources.clone(), Some(&follower.cursor())).unwrap();
        }
        for (rank, expected) in logs.of_rank.iter().enumerate() {
            prop_assert_eq!(&of_rank(&lines, rank), expected);
        }
    }

    #[test]
    fn no_cursor_makes_us_panic_or_lie(cursor in "(1~)?[0-9a-z.~-]{0,40}", files in jumping()) {
        let logs = write(&files);
        if let Ok(page) = page(&logs.sources, Some(&cursor), 100) {
            for line in page.lines {
                let known = logs.of_rank.iter().flatten().any(|known| known.text == line.text && known.at == line.at);
                prop_assert!(known);
            }
        }
    }
}

fn one_rank(lines: u32) -> Logs {
    let line = |number: u32| Piece::Line(1, LogStream::Stdout, format!("line {number}").into_bytes());
    write(&[((0..lines).map(line).collect(), Vec::new())])
}

#[test]
fn cursors_are_taken_only_where_a_line_begins() {
    let logs = one_rank(3);
    let first = page(&logs.sources, None, 1).unwrap();
    assert_eq!(first.next, "1~1.0.11.1", "37 bytes and one line behind us");
    assert_eq!(page(&logs.sources, Some(&first.next), 1).unwrap().lines[0].text, "line 1");
    for bad in [
        "",
        "0",
        "2",
        "1~",
        "1~1",
        "1~1.0.11",
        "1~1.0.11.1.1",
        "1~1.0.10.1",
        "1~1.0.12.1",
        "1~1.0.zz.1",
        "1~1.0.1y2p0ij32e8e7.1",
        "1~1.0.3w5e11264sgsf.1",
        "1~1.0.3w5e11264sgsg.1",
        "1~1.0.-1.1",
        "1~1.0.11.zzz",
        "炉",
    ] {
        assert!(matches!(page(&logs.sources, Some(bad), 1), Err(LogError::BadCursor)), "{bad}");
    }
    // Other sources' places are of no interest.
    assert_eq!(page(&logs.sources, Some("1~9.9.zzz.1"), 1).unwrap().lines[0].text, "line 0");
    let elsewhere = LogSource { path: "/nonexistent/rank-0.log".into(), ..logs.sources[0].clone() };
    assert!(matches!(page(&[elsewhere], Some(&first.next), 1), Err(LogError::BadCursor)));
}

#[test]
fn links_and_devices_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "2026-11-15T08:50:22.123456Z o password\n").unwrap();
    let link = folder.path().join("rank-0.log");
    std::os::unix::fs::symlink(&secret, &link).unwrap();
    let pipe = folder.path().join("rank-1.log");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for path in [link.as_path(), pipe.as_path(), Path::new("/dev/zero"), folder.path()] {
        let source = LogSource {
            path: path.to_owned(),
            attempt: AttemptNumber(1),
            worker: WorkerIndex(0),
            rank: Rank(0),
        };
        let refused = tail(std::slice::from_ref(&source), None, 5, &LineCounts::new());
        assert!(matches!(refused, Err(LogError::NotAFile { .. })), "{refused:?}");
        assert!(page(&[source], None, 5).is_err());
    }
}

#[test]
fn a_hostile_regular_expression_is_refused() {
    assert!(matches!(Pattern::regex("("), Err(LogError::BadPattern { .. })));
    assert!(matches!(Pattern::regex(r"(?:\pL{1000}){1000}"), Err(LogError::BadPattern { .. })));
}

#[test]
fn a_page_of_long_lines_stays_small() {
    let long = || Piece::Line(1, LogStream::Stdout, vec![b'x'; LONGEST_LINE]);
    let logs = write(&[((0..300).map(|_| long()).collect(), Vec::new())]);
    let first = page(&logs.sources, None, 1000).unwrap();
    assert!(first.more && first.lines.len() < 200);
    assert!(tail(&logs.sources, None, 1000, &LineCounts::new()).unwrap().lines.len() < 200);
    assert_eq!(all_pages(&logs.sources, 1000).len(), 300);
}
