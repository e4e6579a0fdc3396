//! The event table: append-only, in the order of commits, without holes for a reader that follows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use danlu_store::{Batch, EventFilter, Insert, Store};
use danlu_types::JobId;
use danlu_types::api::EventView;
use jiff::Timestamp;

use crate::database::Database;
use crate::jobs::{hold, insert, inserts, job, job_with, place, record, step};

async fn page(store: &dyn Store, after: u64, limit: u32) -> Vec<EventView> {
    store.events_list(&EventFilter { job: None, visible: None, after, limit }).await.unwrap()
}

pub(crate) async fn events_come_in_order_and_pages(database: &Database) {
    let store = database.open().await;
    let three = Insert {
        records: vec![record("one"), record("two"), record("three")],
        ..insert(&job_with(1, |spec| spec.priority = Some(1)))
    };
    store.commit(Batch { inserts: vec![three, insert(&job(2))], updates: vec![] }).await.unwrap();
    store.commit(Batch { inserts: vec![], updates: vec![step(&job(2), place(), 9)] }).await.unwrap();

    let all = page(&*store, 0, 100).await;
    let messages: Vec<_> = all.iter().map(|event| event.message.as_str()).collect();
    assert_eq!(messages[..4], ["one", "two", "three", "job 2 submitted"]);
    assert_eq!((all[4].kind.as_str(), all[4].actor.as_str()), ("attempt_placed", "danlu"));
    assert_eq!(all[4].attempt.map(|attempt| attempt.0), Some(1));
    assert_eq!(all[4].job, Some(JobId(2)));
    assert_eq!(all[4].at, Timestamp::from_microsecond(crate::jobs::time(9).as_microsecond()).unwrap());
    assert!(all.is_sorted_by(|a, b| a.number < b.number));

    let mut paged = Vec::new();
    while let Some(event) = page(&*store, paged.last().map_or(0, |e: &EventView| e.number), 1).await.pop() {
        paged.push(event);
    }
    assert_eq!(paged, all);
}

pub(crate) async fn events_of_one_job_come_alone(database: &Database) {
    let store = database.open().await;
    store.commit(inserts([&job(1), &job(2), &job(3)])).await.unwrap();
    let held = step(&job(2), hold("ada"), 9);
    store.commit(Batch { inserts: vec![], updates: vec![held] }).await.unwrap();
    let filter = |after| EventFilter { job: Some(JobId(2)), visible: None, after, limit: 10 };
    let own = store.events_list(&filter(0)).await.unwrap();
    assert_eq!(
        own.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(),
        ["job_submitted", "job_held"]
    );
    assert_eq!(store.events_list(&filter(own[0].number)).await.unwrap(), own[1..]);
}

pub(crate) async fn events_are_append_only(database: &Database) {
    let store = database.open().await;
    store.commit(inserts([&job(1)])).await.unwrap();
    let before = page(&*store, 0, 10).await;
    let mut attempts = vec![
        "UPDATE events SET message = 'never happened'",
        "DELETE FROM events",
        "DELETE FROM events WHERE number = 1",
    ];
    if database.kind == "postgres" {
        attempts.push("TRUNCATE events");
    }
    for attempt in attempts {
        let error = database.execute(attempt).await.expect_err(attempt).to_string();
        assert!(error.contains("events are append-only"), "{attempt}: {error}");
    }
    assert_eq!(page(&*store, 0, 10).await, before);
}

/// Eight writers through two stores on the same database, while a reader follows: it sees every event, once, in order.
pub(crate) async fn a_reader_that_follows_misses_nothing(database: &Database) {
    let stores = [database.open().await, database.open().await];
    let done = Arc::new(AtomicBool::new(false));
    let follower = {
        let (store, done) = (stores[0].clone(), done.clone());
        tokio::spawn(async move {
            let mut seen: Vec<EventView> = Vec::new();
            loop {
                let was_done = done.load(Ordering::SeqCst);
                let new = page(&*store, seen.last().map_or(0, |event| event.number), 13).await;
                if new.is_empty() && was_done {
                    return seen;
                }
                seen.extend(new);
            }
        })
    };
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8_usize {
        let store = stores[writer % 2].clone();
        writers.spawn(async move {
            for round in 0..10 {
                let first = (writer * 1000 + round * 10 + 1) as u64;
                store.commit(inserts(&(first..first + 5).map(job).collect::<Vec<_>>())).await.unwrap();
            }
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    done.store(true, Ordering::SeqCst);
    let seen = follower.await.unwrap();
    assert_eq!(seen, page(&*stores[1], 0, 1000).await);
    assert_eq!(seen.len(), 8 * 10 * 5);
}

pub(crate) async fn hostile_texts_are_kept(database: &Database) {
    let store = database.open().await;
    let mut hostile = insert(&job_with(1, |spec| {
        spec.command = "a\0b".into();
        spec.labels.insert("nul\0".to_owned(), "\u{202e}evil".to_owned());
    }));
    hostile.records = vec![record("last words: \0\u{1b}[31m 炉 \u{10ffff}")];
    let expected = hostile.job.clone();
    store.commit(Batch { inserts: vec![hostile], updates: vec![] }).await.unwrap();
    assert_eq!(store.job_fetch(JobId(1)).await.unwrap(), Some(expected), "JSON keeps even a NUL");
    let message = &page(&*store, 0, 1).await[0].message;
    assert_eq!(message, "last words: \u{fffd}\u{1b}[31m 炉 \u{10ffff}");
}
