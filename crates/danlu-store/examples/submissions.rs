//! How many durable submissions a second a store takes from many clients that share its commits.
//!
//! ```text
//! cargo run --release -p danlu-store --example submissions [SUBMISSIONS] [CLIENTS]
//! ```
//!
//! SQLite in a folder of the current one, so that the figure is of a disk and not of memory; PostgreSQL, where it is
//! installed, as the tests start it. Each client waits for its submission before it sends the next; whatever has gathered while a commit is under way
//! makes up the next one.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for the one who measures")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use danlu_core::transition::EventKind;
use danlu_core::{HistoryEvent, Job};
use danlu_store::{Batch, Insert, Store, SubmissionKey};
use danlu_types::{JobId, JobSpec};
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

const LARGEST_BATCH: usize = 256;

type Submission = (Insert, oneshot::Sender<()>);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let submissions: u64 = arguments.next().map_or(20_000, |count| count.parse().unwrap());
    let clients: u64 = arguments.next().map_or(64, |count| count.parse().unwrap());

    let folder = tempfile::tempdir_in(".").unwrap();
    measure(&format!("sqlite:{}", folder.path().join("bench.db").display()), submissions, clients).await;
    if let Some(server) = danlu_testkit::PostgresServer::shared() {
        measure(&server.create_database(), submissions, clients).await;
    }
}

async fn measure(url: &str, submissions: u64, clients: u64) {
    let store = danlu_store::open(url).await.unwrap();
    let first = store.job_last_id().await.unwrap().0 + 1;
    println!("{}", url.split(':').next().unwrap_or_default());
    one_batch(&*store, first).await;

    let (sender, receiver) = mpsc::channel(LARGEST_BATCH * 4);
    let committer = tokio::spawn(group_commit(store.clone(), receiver));
    let next = Arc::new(AtomicU64::new(first + 1000));
    let end = first + 1000 + submissions;
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..clients {
        let (sender, next) = (sender.clone(), next.clone());
        tasks.spawn(async move {
            loop {
                let id = next.fetch_add(1, Ordering::Relaxed);
                if id >= end {
                    break;
                }
                let (done, written) = oneshot::channel();
                sender.send((submission(id), done)).await.unwrap();
                written.await.unwrap();
            }
        });
    }
    drop(sender);
    tasks.join_all().await;
    let took = began.elapsed();
    let (commits, writing) = committer.await.unwrap();
    println!(
        "  {clients} clients, {submissions} submissions: {:.0}/s durable, {commits} commits of {:.0} on average, {:.1} ms each",
        submissions as f64 / took.as_secs_f64(),
        submissions as f64 / commits as f64,
        writing.as_secs_f64() * 1e3 / commits as f64,
    );
    store.close().await;
}

/// What one batch of 200 costs, with its wait for the disk.
async fn one_batch(store: &dyn Store, first: u64) {
    for round in 0..5 {
        let inserts = (0..200).map(|job| submission(first + round * 200 + job)).collect();
        let began = Instant::now();
        store.commit(Batch { inserts, updates: Vec::new() }).await.unwrap();
        println!("  a batch of 200: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    }
    let began = Instant::now();
    store.check().await.unwrap();
    println!("  a commit of one row: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
}

async fn group_commit(store: Arc<dyn Store>, mut receiver: mpsc::Receiver<Submission>) -> (u64, Duration) {
    let (mut commits, mut writing) = (0, Duration::ZERO);
    let mut waiting: Vec<Submission> = Vec::new();
    while receiver.recv_many(&mut waiting, LARGEST_BATCH).await > 0 {
        let (inserts, done): (Vec<_>, Vec<_>) = waiting.drain(..).unzip();
        let began = Instant::now();
        store.commit(Batch { inserts, updates: Vec::new() }).await.unwrap();
        writing += began.elapsed();
        commits += 1;
        for client in done {
            let _ = client.send(());
        }
    }
    (commits, writing)
}

fn submission(id: u64) -> Insert {
    let spec = Arc::new(JobSpec::of_command("python train.py --epochs 10"));
    let at = Timestamp::now();
    let record = HistoryEvent {
        kind: EventKind::JobSubmitted,
        attempt: None,
        actor: "ada".to_owned(),
        message: "submitted".to_owned(),
    };
    Insert {
        job: Job::submitted(JobId(id), "ada".to_owned(), spec, at),
        submission_key: Some(SubmissionKey { key: format!("submission {at} {id}"), digest: String::new() }),
        at,
        records: vec![record],
    }
}
