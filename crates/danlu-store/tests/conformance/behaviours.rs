//! Jobs go in, change under guard, and come out as they were.

use std::collections::BTreeMap;

use danlu_core::{Job, NodeOverride, Trigger, WorkerEnd};
use danlu_store::{Batch, Committed, EventFilter, JobFilter, NodeChange};
use danlu_types::api::{JobOutcome, JobState};
use danlu_types::{JobId, NodeName};

use crate::database::Database;
use crate::jobs::{
    ended, ended_job, failed, hold, insert, insert_keyed, inserts, job, job_with, place, record, running,
    step, stop, time,
};

pub(crate) async fn inserted_jobs_are_fetched_equal(database: &Database) {
    let store = database.open().await;
    let full = job_with(7, |spec| {
        spec.name = "resnet50".into();
        spec.workers = 3;
        spec.priority = Some(9);
        spec.env.insert("GREETING".to_owned(), "丹炉 \"quoted\" \\ \u{1}\n'; DROP TABLE jobs; --".to_owned());
        spec.labels.insert("project".to_owned(), "ocr".to_owned());
        spec.command = "x".repeat(50_000);
    });
    let committed = store.commit(inserts([&job(3), &full])).await.unwrap();
    assert_eq!(committed, Committed::default());
    assert_eq!(store.job_fetch(JobId(7)).await.unwrap(), Some(full));
    assert_eq!(store.job_fetch(JobId(3)).await.unwrap(), Some(job(3)));
}

pub(crate) async fn unknown_and_absurd_ids_are_found_nowhere(database: &Database) {
    let store = database.open().await;
    store.commit(inserts([&ended_job(1, WorkerEnd::Succeeded, 1)])).await.unwrap();
    for id in [JobId(0), JobId(2), JobId(u64::MAX)] {
        assert_eq!(store.job_fetch(id).await.unwrap(), None);
        assert_eq!(store.jobs_delete(&[id]).await.unwrap(), 0);
        let filter = EventFilter { job: Some(id), visible: None, after: 0, limit: 10 };
        assert_eq!(store.events_list(&filter).await.unwrap(), []);
    }
    let everything = JobFilter { before: Some(JobId(u64::MAX)), limit: u32::MAX, ..JobFilter::default() };
    assert_eq!(store.jobs_list(&everything).await.unwrap().len(), 1);
    let beyond = EventFilter { job: None, visible: None, after: u64::MAX, limit: u32::MAX };
    assert_eq!(store.events_list(&beyond).await.unwrap(), []);
    assert_eq!(store.submission_find("never used").await.unwrap(), None);
}

pub(crate) async fn a_changed_job_is_found_by_what_it_asks_for_now(database: &Database) {
    let code = |digit: &str| Some(format!("sha256:{}", digit.repeat(64)));
    let label = |value: &str| [("project".to_owned(), value.to_owned())].into();
    let store = database.open().await;
    let first = job_with(1, |spec| (spec.labels, spec.code) = (label("ocr"), code("1")));
    store.commit(inserts([&first, &job(2)])).await.unwrap();
    let mut spec = danlu_types::JobSpec::clone(&first.spec);
    (spec.name, spec.workspace, spec.priority) = ("bert".into(), "vision".to_owned(), Some(2));
    (spec.labels, spec.code) = (label("nlp"), code("2"));
    let event =
        Trigger::Change { by: "ada".to_owned(), spec: std::sync::Arc::new(spec), approval: None, seen: 1 };
    let update = step(&first, event, 10);
    let changed = update.job.clone();
    store.commit(Batch { inserts: vec![], updates: vec![update] }).await.unwrap();
    let store = database.open().await;
    assert_eq!(store.job_fetch(JobId(1)).await.unwrap(), Some(changed.clone()));
    let found = async |filter: JobFilter| {
        let filter = JobFilter { limit: 10, ..filter };
        store.jobs_list(&filter).await.unwrap().into_iter().map(|job| job.id.0).collect::<Vec<_>>()
    };
    let labelled = |value: &str| JobFilter {
        label: Some(("project".to_owned(), value.to_owned())),
        ..JobFilter::default()
    };
    assert_eq!(found(labelled("ocr")).await, [0; 0]);
    assert_eq!(found(labelled("nlp")).await, [1]);
    let named = |name: &str| JobFilter { name: Some(name.to_owned()), ..JobFilter::default() };
    assert_eq!(found(named("bert")).await, [1]);
    let workspace = JobFilter { workspace: Some("vision".to_owned()), ..JobFilter::default() };
    assert_eq!(found(workspace).await, [1]);
    // A later step that changes nothing of it leaves it as it is.
    let held = step(&changed, hold("ada"), 11);
    let update = held.clone();
    store.commit(Batch { inserts: vec![], updates: vec![update] }).await.unwrap();
    assert_eq!(store.job_fetch(JobId(1)).await.unwrap(), Some(held.job));
}

pub(crate) async fn every_state_of_a_life_round_trips(database: &Database) {
    let store = database.open().await;
    let first = job_with(1, |spec| spec.preemptible = true);
    store.commit(inserts([&first])).await.unwrap();
    let events = [
        hold("grace"),
        Trigger::Release { by: "grace".to_owned() },
        place(),
        running(1),
        Trigger::Preempt { for_job: JobId(99) },
        ended(1, WorkerEnd::Stopped),
        place(),
        running(2),
        stop(),
        ended(2, failed("killed by \"the\" kernel")),
    ];
    let mut seen = vec![JobState::Queued];
    let mut current = first;
    for (second, event) in (100..).zip(events) {
        let update = step(&current, event, second);
        current = update.job.clone();
        store.commit(Batch { inserts: vec![], updates: vec![update] }).await.unwrap();
        assert_eq!(store.job_fetch(JobId(1)).await.unwrap().as_ref(), Some(&current));
        seen.push(current.state());
    }
    for state in JobState::ALL {
        assert!(seen.contains(&state), "no event led to {state:?}");
    }
    for (id, exit) in [(2, WorkerEnd::Succeeded), (3, failed("")), (4, WorkerEnd::Stopped)] {
        let ended = ended_job(id, exit, 50);
        store.commit(inserts([&ended])).await.unwrap();
        assert_eq!(store.job_fetch(JobId(id)).await.unwrap(), Some(ended));
    }
}

pub(crate) async fn live_jobs_are_those_that_have_not_ended(database: &Database) {
    let store = database.open().await;
    let placed = step(&job(5), place(), 9).job;
    let held = step(&job(2), hold("ada"), 9).job;
    let over = ended_job(3, WorkerEnd::Succeeded, 9);
    store.commit(inserts([&placed, &held, &over, &job(4)])).await.unwrap();
    assert_eq!(store.jobs_live().await.unwrap(), [held, job(4), placed]);
}

pub(crate) async fn stale_updates_are_left_out_and_named(database: &Database) {
    let store = database.open().await;
    store.commit(inserts([&job(1), &job(2), &job(3)])).await.unwrap();
    let mut stale = step(&job(1), hold("late"), 10);
    stale.seen_generation = 9;
    let unknown = step(&job(77), hold("nobody"), 10);
    let good = step(&job(2), hold("ada"), 10);
    let batch = Batch { inserts: vec![insert(&job(4))], updates: vec![stale, unknown, good.clone()] };
    let committed = store.commit(batch).await.unwrap();
    assert_eq!(committed, Committed { stale: vec![JobId(1), JobId(77)], duplicates: vec![] });
    assert_eq!(store.jobs_live().await.unwrap(), [job(1), good.job.clone(), job(3), job(4)]);

    // The same write again has become stale itself, and its records are not written twice.
    let again = store.commit(Batch { inserts: vec![], updates: vec![good] }).await.unwrap();
    assert_eq!(again.stale, [JobId(2)]);
    let history = store
        .events_list(&EventFilter { job: Some(JobId(2)), visible: None, after: 0, limit: 10 })
        .await
        .unwrap();
    let kinds: Vec<_> = history.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["job_submitted", "job_held"]);
}

pub(crate) async fn a_batch_may_insert_and_update_one_job(database: &Database) {
    let store = database.open().await;
    let placed = step(&job(1), place(), 10);
    let begun = step(&placed.job, running(1), 11);
    let last = begun.job.clone();
    let batch = Batch { inserts: vec![insert(&job(1))], updates: vec![placed, begun] };
    assert_eq!(store.commit(batch).await.unwrap(), Committed::default());
    assert_eq!(store.job_fetch(JobId(1)).await.unwrap(), Some(last));
}

pub(crate) async fn a_submission_key_is_taken_once_in_a_batch(database: &Database) {
    let store = database.open().await;
    let keyed = vec![
        insert_keyed(&job(1), "a"),
        insert_keyed(&job(2), "b"),
        insert_keyed(&job(3), "a"),
        insert(&job(4)),
        insert(&job(5)),
    ];
    let committed = store.commit(Batch { inserts: keyed, updates: vec![] }).await.unwrap();
    assert_eq!(committed.duplicates, [(JobId(3), JobId(1))]);
    assert_eq!(ids(&store.jobs_live().await.unwrap()), [1, 2, 4, 5]);
    assert_eq!(store.submission_find("a").await.unwrap(), Some(JobId(1)));
    let digest = store.submission_digest("a").await.unwrap();
    assert_eq!(digest.as_deref(), Some("digest of job 1"), "the first one's");
    let history = store
        .events_list(&EventFilter { job: Some(JobId(3)), visible: None, after: 0, limit: 10 })
        .await
        .unwrap();
    assert_eq!(history, []);
}

pub(crate) async fn a_submission_key_is_taken_once_across_batches(database: &Database) {
    let store = database.open().await;
    let one = |inserts| Batch { inserts, updates: vec![] };
    store.commit(one(vec![insert_keyed(&job(1), "a")])).await.unwrap();
    let committed =
        store.commit(one(vec![insert_keyed(&job(2), "b"), insert_keyed(&job(3), "a")])).await.unwrap();
    assert_eq!(committed.duplicates, [(JobId(3), JobId(1))]);
    assert_eq!(ids(&store.jobs_live().await.unwrap()), [1, 2]);
    // An id that was not used may be given to the next job.
    store.commit(one(vec![insert(&job(3))])).await.unwrap();

    let over = step(&job(1), stop(), 10);
    store.commit(Batch { inserts: vec![], updates: vec![over] }).await.unwrap();
    assert_eq!(store.jobs_delete(&[JobId(1)]).await.unwrap(), 1);
    assert_eq!(store.submission_find("a").await.unwrap(), None, "a forgotten job's key is free");
    store.commit(one(vec![insert_keyed(&job(4), "a")])).await.unwrap();
    assert_eq!(store.submission_find("a").await.unwrap(), Some(JobId(4)));
}

pub(crate) async fn the_last_id_survives_deletes_and_reopening(database: &Database) {
    let store = database.open().await;
    assert_eq!(store.job_last_id().await.unwrap(), JobId(0));
    store.commit(inserts([&job(1), &ended_job(41, WorkerEnd::Succeeded, 2), &job(3)])).await.unwrap();
    assert_eq!(store.job_last_id().await.unwrap(), JobId(41));
    store.commit(inserts([&job(7)])).await.unwrap();
    assert_eq!(store.jobs_delete(&[JobId(41)]).await.unwrap(), 1);
    assert_eq!(store.job_last_id().await.unwrap(), JobId(41));
    store.close().await;
    assert_eq!(database.open().await.job_last_id().await.unwrap(), JobId(41));
}

pub(crate) async fn only_ended_jobs_are_deleted(database: &Database) {
    let store = database.open().await;
    let held = step(&job(2), hold("ada"), 9).job;
    let over = ended_job(3, failed("x"), 9);
    store.commit(inserts([&job(1), &held, &over])).await.unwrap();
    let history = EventFilter { job: None, visible: None, after: 0, limit: 100 };
    let before = store.events_list(&history).await.unwrap();
    let all = [JobId(1), JobId(2), JobId(3), JobId(4), JobId(3)];
    assert_eq!(store.jobs_delete(&all).await.unwrap(), 1);
    assert_eq!(store.jobs_delete(&all).await.unwrap(), 0);
    assert_eq!(store.job_fetch(JobId(3)).await.unwrap(), None);
    assert_eq!(store.jobs_live().await.unwrap(), [job(1), held]);
    let left: Vec<_> = before.into_iter().filter(|event| event.job != Some(JobId(3))).collect();
    assert_eq!(left.len(), 2);
    assert_eq!(store.events_list(&history).await.unwrap(), left, "history goes with its job, and not before");
}

pub(crate) async fn old_ends_are_found_oldest_first(database: &Database) {
    let store = database.open().await;
    let ends = [(1, 50), (2, 10), (3, 30), (4, 70)];
    let jobs: Vec<Job> = ends.iter().map(|(id, at)| ended_job(*id, WorkerEnd::Succeeded, *at)).collect();
    store.commit(inserts(&jobs)).await.unwrap();
    store.commit(inserts([&job(5)])).await.unwrap();
    let before = async |second, limit| store.jobs_ended_before(time(second), limit).await.unwrap();
    assert_eq!(before(70, 10).await, [JobId(2), JobId(3), JobId(1)]);
    assert_eq!(before(70, 2).await, [JobId(2), JobId(3)]);
    assert_eq!(before(10, 10).await, []);
}

pub(crate) async fn the_last_ends_are_found_latest_first(database: &Database) {
    let store = database.open().await;
    let ends = [(1, 50), (2, 10), (3, 30), (4, 70)];
    let jobs: Vec<Job> = ends.iter().map(|(id, at)| ended_job(*id, WorkerEnd::Succeeded, *at)).collect();
    store.commit(inserts(&jobs)).await.unwrap();
    store.commit(inserts([&job(5)])).await.unwrap();
    let last = store.jobs_ended_last(3).await.unwrap();
    assert_eq!(last, [jobs[3].clone(), jobs[0].clone(), jobs[2].clone()]);
    assert_eq!(store.jobs_ended_last(10).await.unwrap().len(), 4);
}

pub(crate) async fn code_is_named_until_its_last_job_is_deleted(database: &Database) {
    let store = database.open().await;
    let coded = |job: &Job, digest: &str| {
        let spec = danlu_types::JobSpec { code: Some(digest.to_owned()), ..(*job.spec).clone() };
        Job { spec: spec.into(), ..job.clone() }
    };
    let ended = |id| ended_job(id, WorkerEnd::Succeeded, 50);
    let jobs = [coded(&ended(1), "a"), coded(&ended(2), "a"), coded(&job(3), "b"), ended(4)];
    store.commit(inserts(&jobs)).await.unwrap();
    let named = async || {
        let mut digests = Vec::from_iter(store.codes_named().await.unwrap());
        digests.sort();
        digests
    };
    assert_eq!(named().await, ["a", "b"]);
    store.jobs_delete(&[JobId(1), JobId(3)]).await.unwrap();
    assert_eq!(named().await, ["a", "b"], "one job has it still, the other has not ended");
    store.jobs_delete(&[JobId(2)]).await.unwrap();
    assert_eq!(named().await, ["b"]);
}

pub(crate) async fn notes_of_nodes_are_kept_and_told_in_history(database: &Database) {
    let store = database.open().await;
    assert_eq!(store.node_notes().await.unwrap(), BTreeMap::new());
    let change = |node: &str, note: NodeOverride, second| NodeChange {
        node: NodeName(node.to_owned()),
        note,
        at: time(second),
        records: vec![record("cordoned: \"new fans\" \u{0}")],
    };
    let cordoned =
        NodeOverride { cordoned: Some("new \"fans\" 丹炉".to_owned()), ..NodeOverride::default() };
    let worn = NodeOverride { out_of_service: [(3, "why".to_owned())].into(), ..cordoned.clone() };
    store.commit(inserts([&job(1)])).await.unwrap();
    store.node_note_set(&change("a", cordoned.clone(), 1)).await.unwrap();
    store.node_note_set(&change("b", cordoned.clone(), 2)).await.unwrap();
    store.node_note_set(&change("a", worn.clone(), 3)).await.unwrap();
    store.node_note_set(&change("b", NodeOverride::default(), 4)).await.unwrap();
    drop(store);
    let store = database.open().await;
    assert_eq!(store.node_notes().await.unwrap(), BTreeMap::from([(NodeName("a".to_owned()), worn)]));
    let history =
        store.events_list(&EventFilter { job: None, visible: None, after: 0, limit: 10 }).await.unwrap();
    let jobs: Vec<Option<JobId>> = history.iter().map(|event| event.job).collect();
    assert_eq!(jobs, [Some(JobId(1)), None, None, None, None]);
    assert_eq!(history.iter().map(|event| event.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    store.commit(inserts([&job(2)])).await.unwrap();
    assert_eq!(store.job_last_id().await.unwrap(), JobId(2));
}

pub(crate) async fn large_batches_are_written_whole(database: &Database) {
    let store = database.open().await;
    let jobs: Vec<Job> = (1..=733)
        .map(|id| {
            job_with(id, |spec| {
                spec.labels.insert("n".to_owned(), id.to_string());
                spec.labels.insert("parity".to_owned(), (id % 2).to_string());
            })
        })
        .collect();
    let keyed = |job: &Job| insert_keyed(job, &format!("key {}", job.id));
    store.commit(Batch { inserts: jobs.iter().map(keyed).collect(), updates: vec![] }).await.unwrap();
    assert_eq!(store.jobs_live().await.unwrap(), jobs);
    let odd = JobFilter {
        label: Some(("parity".to_owned(), "1".to_owned())),
        outcomes: vec![],
        limit: 1000,
        ..JobFilter::default()
    };
    assert_eq!(store.jobs_list(&odd).await.unwrap().len(), 367);
    assert_eq!(store.submission_find("key 700").await.unwrap(), Some(JobId(700)));

    let stops = jobs.iter().map(|job| step(job, stop(), 999)).collect();
    store.commit(Batch { inserts: vec![], updates: stops }).await.unwrap();
    let stopped = JobFilter { outcomes: vec![JobOutcome::Stopped], limit: 1000, ..JobFilter::default() };
    assert_eq!(store.jobs_list(&stopped).await.unwrap().len(), 733);
    let all: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    assert_eq!(store.jobs_delete(&all).await.unwrap(), 733);
}

pub(crate) async fn fifty_committers_at_once_lose_nothing(database: &Database) {
    let store = database.open().await;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..50 {
        let store = store.clone();
        tasks.spawn(async move {
            for round in 0..4 {
                let new = job(task * 4 + round + 1);
                // All tasks fight for one key in each round.
                let keyed = insert_keyed(&job(1_000 + task * 4 + round), &format!("round {round}"));
                let batch = Batch { inserts: vec![insert(&new), keyed], updates: vec![] };
                store.commit(batch).await.unwrap();
                let held = step(&new, hold("ada"), 2_000);
                let committed = store.commit(Batch { inserts: vec![], updates: vec![held] }).await.unwrap();
                assert_eq!(committed.stale, []);
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    let live = store.jobs_live().await.unwrap();
    let (held, keyed): (Vec<_>, Vec<_>) = live.iter().partition(|job| job.state() == JobState::Held);
    assert_eq!(ids(held), (1..=200).collect::<Vec<_>>());
    assert_eq!(keyed.len(), 4, "one job for each key");
    let history =
        store.events_list(&EventFilter { job: None, visible: None, after: 0, limit: 1000 }).await.unwrap();
    assert_eq!(history.len(), 200 + 200 + 4);
}

fn ids<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Vec<u64> {
    jobs.into_iter().map(|job| job.id.0).collect()
}
