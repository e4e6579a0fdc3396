//! Lists: what each filter finds, and that pages have no holes.

use danlu_core::{Job, WorkerEnd};
use danlu_store::{Batch, JobFilter, Store};
use danlu_types::JobId;
use danlu_types::api::{JobOutcome, JobState};

use crate::database::Database;
use crate::jobs::{ended_job, failed, hold, insert_keyed, inserts, job, job_with, place, running, step};

const NOTHING: [u64; 0] = [];

fn all() -> JobFilter {
    JobFilter { limit: 100, ..JobFilter::default() }
}

async fn found(store: &dyn Store, filter: &JobFilter) -> Vec<u64> {
    store.jobs_list(filter).await.unwrap().iter().map(|job| job.id.0).collect()
}

/// One job for each thing that can be asked for.
fn zoo() -> Vec<Job> {
    let named = |id, name: &str, workspace: &str| {
        job_with(id, |spec| {
            spec.name = name.into();
            spec.workspace = workspace.into();
            spec.labels.insert("project".to_owned(), name.to_lowercase());
            spec.labels.insert("workspace".to_owned(), workspace.to_owned());
        })
    };
    vec![
        named(1, "ResNet50", "vision"),
        step(&named(2, "resnet", "vision"), hold("ada"), 5).job,
        step(&named(3, "bert", "text"), place(), 5).job,
        step(&step(&named(4, "bert", "vision"), place(), 5).job, running(1), 6).job,
        ended_job(5, WorkerEnd::Succeeded, 7),
        ended_job(6, failed("x"), 8),
    ]
}

pub(crate) async fn each_filter_finds_its_jobs(database: &Database) {
    let store = database.open().await;
    store.commit(inserts(&zoo())).await.unwrap();
    let store = &*store;
    assert_eq!(found(store, &all()).await, [6, 5, 4, 3, 2, 1], "newest first");
    assert_eq!(found(store, &JobFilter { limit: 2, ..all() }).await, [6, 5]);
    assert_eq!(found(store, &JobFilter { limit: 0, ..all() }).await, NOTHING);
    assert_eq!(found(store, &JobFilter { before: Some(JobId(3)), ..all() }).await, [2, 1]);

    let states = |states: &[JobState]| JobFilter { states: states.to_vec(), ..all() };
    assert_eq!(found(store, &states(&[JobState::Queued])).await, [1]);
    assert_eq!(found(store, &states(&[JobState::Held, JobState::Running])).await, [4, 2]);
    assert_eq!(found(store, &states(&[JobState::Ended])).await, [6, 5]);
    assert_eq!(found(store, &states(&[JobState::Stopping])).await, NOTHING);
    assert_eq!(found(store, &states(&JobState::ALL)).await.len(), 6);

    let outcome = JobFilter { outcomes: vec![JobOutcome::Failed], ..all() };
    assert_eq!(found(store, &outcome).await, [6]);
    let either = JobFilter { states: vec![JobState::Held], outcomes: vec![JobOutcome::Succeeded], ..all() };
    assert_eq!(found(store, &either).await, [5, 2], "a state or an outcome");

    let workspace = |name: &str| JobFilter { workspace: Some(name.to_owned()), ..all() };
    assert_eq!(found(store, &workspace("vision")).await, [4, 2, 1]);
    assert_eq!(found(store, &workspace("Vision")).await, NOTHING);
    let name = |name: &str| JobFilter { name: Some(name.to_owned()), ..all() };
    assert_eq!(found(store, &name("bert")).await, [4, 3]);
    assert_eq!(found(store, &name("ber")).await, NOTHING);
    let label =
        |key: &str, value: &str| JobFilter { label: Some((key.to_owned(), value.to_owned())), ..all() };
    assert_eq!(found(store, &label("project", "bert")).await, [4, 3]);
    assert_eq!(found(store, &label("bert", "project")).await, NOTHING);
    let search = |part: &str| JobFilter { search: Some(part.to_owned()), ..all() };
    assert_eq!(found(store, &search("ESNET")).await, [2, 1], "ignoring case");
    assert_eq!(found(store, &search("esnet5")).await, [1]);
    assert_eq!(found(store, &search("")).await.len(), 6);
}

pub(crate) async fn counts_are_those_of_the_lists(database: &Database) {
    let store = database.open().await;
    store.commit(inserts(&zoo())).await.unwrap();
    let counts = store.jobs_count(&JobFilter { limit: 1, ..all() }).await.unwrap();
    let lines: Vec<String> =
        counts.by_state.iter().map(|(state, number)| format!("{state} {number}")).collect();
    assert_eq!(lines, ["failed 1", "held 1", "queued 1", "running 1", "starting 1", "succeeded 1"]);
    let queued = JobFilter { states: vec![JobState::Queued], ..all() };
    let oldest = store.jobs_list(&queued).await.unwrap()[0].submitted_at;
    // Kept in microseconds where it is looked up.
    let oldest = oldest
        .round(jiff::TimestampRound::new().smallest(jiff::Unit::Microsecond).mode(jiff::RoundMode::Floor));
    assert_eq!(counts.oldest_queued_at, oldest.ok());
    let elsewhere = JobFilter { workspace: Some("text".to_owned()), ..all() };
    let counts = store.jobs_count(&elsewhere).await.unwrap();
    assert_eq!((counts.by_state.len(), counts.oldest_queued_at), (1, None));
}

/// What the store counts, beside what is in its lists.
async fn assert_counts_agree(store: &dyn Store, filter: &JobFilter) {
    let mut listed = std::collections::BTreeMap::new();
    for job in store.jobs_list(filter).await.unwrap() {
        let status = job.outcome().map_or(job.state().as_str(), JobOutcome::as_str);
        *listed.entry(status.to_owned()).or_insert(0) += 1;
    }
    assert_eq!(store.jobs_count(filter).await.unwrap().by_state, listed, "{filter:?}");
}

pub(crate) async fn counts_follow_every_change(database: &Database) {
    let store = database.open().await;
    let filters = [
        all(),
        JobFilter { workspace: Some("vision".to_owned()), ..all() },
        JobFilter { owner: Some("ada".to_owned()), ..all() },
        JobFilter { owner: Some("grace".to_owned()), ..all() },
        JobFilter { visible: Some(vec!["vision".to_owned(), "default".to_owned()]), ..all() },
        JobFilter { visible: Some(Vec::new()), ..all() },
        JobFilter { states: vec![JobState::Ended, JobState::Queued], ..all() },
        JobFilter { outcomes: vec![JobOutcome::Failed], search: Some("JOB".to_owned()), ..all() },
    ];
    let agree = async || {
        for filter in &filters {
            assert_counts_agree(&*store, filter).await;
        }
    };
    store.commit(inserts(&zoo())).await.unwrap();
    agree().await;
    // In one batch: a job that is inserted and placed, one that ends, and one whose update is stale.
    let new = job_with(7, |spec| spec.workspace = "vision".into());
    let placed = step(&new, place(), 9);
    let ends = step(&zoo()[3], crate::jobs::ended(1, WorkerEnd::Succeeded), 9);
    let stale = danlu_store::Update { seen_generation: 99, ..step(&zoo()[0], hold("ada"), 9) };
    let batch = Batch { updates: vec![placed, ends, stale], ..inserts([&new]) };
    assert_eq!(store.commit(batch).await.unwrap().stale, [JobId(1)]);
    agree().await;
    // A submission that was made before is not counted again, nor is a job that was deleted before.
    let keyed =
        Batch { inserts: vec![insert_keyed(&job(8), "k"), insert_keyed(&job(9), "k")], updates: vec![] };
    assert_eq!(store.commit(keyed).await.unwrap().duplicates.len(), 1);
    agree().await;
    for deleted in [2, 0] {
        assert_eq!(store.jobs_delete(&[JobId(4), JobId(5), JobId(7)]).await.unwrap(), deleted);
        agree().await;
    }
}

pub(crate) async fn lists_of_people_and_workspaces_have_no_holes(database: &Database) {
    let store = database.open().await;
    let owners = ["ada", "grace", "alan"];
    let workspaces = ["vision", "text"];
    let jobs: Vec<Job> = (1..=60_usize)
        .map(|id| {
            let mut job = match id % 4 {
                0 => ended_job(id as u64, WorkerEnd::Succeeded, 9),
                1 => ended_job(id as u64, failed("x"), 9),
                _ => job(id as u64),
            };
            owners[id % 3].clone_into(&mut job.owner);
            let spec = danlu_types::JobSpec { workspace: workspaces[id % 2].into(), ..(*job.spec).clone() };
            Job { spec: spec.into(), ..job }
        })
        .collect();
    store.commit(inserts(&jobs)).await.unwrap();
    let newest_first = |wanted: &dyn Fn(&Job) -> bool| -> Vec<u64> {
        jobs.iter().rev().filter(|job| wanted(job)).map(|job| job.id.0).collect()
    };
    let pages = async |filter: JobFilter| {
        let mut ids: Vec<u64> = Vec::new();
        loop {
            let before = ids.last().copied().map(JobId);
            let page = found(&*store, &JobFilter { before, limit: 7, ..filter.clone() }).await;
            if page.is_empty() {
                return ids;
            }
            ids.extend(page);
        }
    };
    let owned = JobFilter { owner: Some("grace".to_owned()), ..all() };
    assert_eq!(pages(owned.clone()).await, newest_first(&|job| job.owner == "grace"));
    let seen = JobFilter { visible: Some(vec!["text".to_owned(), "none".to_owned()]), ..owned.clone() };
    assert_eq!(
        pages(seen).await,
        newest_first(&|job| job.owner == "grace" && &*job.spec.workspace == "text")
    );
    let ended = JobFilter { states: vec![JobState::Ended], ..owned };
    assert_eq!(pages(ended).await, newest_first(&|job| job.owner == "grace" && job.ended_at().is_some()));
    let both = JobFilter { visible: Some(workspaces.map(str::to_owned).to_vec()), ..all() };
    assert_eq!(pages(both).await, newest_first(&|_| true));
    // More workspaces than there is one walk each for.
    let many = (0..100).map(|number| format!("workspace-{number}")).chain(["text".to_owned()]).collect();
    let many = JobFilter { visible: Some(many), outcomes: vec![JobOutcome::Failed], ..all() };
    assert_eq!(
        pages(many).await,
        newest_first(&|job| &*job.spec.workspace == "text" && job.outcome() == Some(JobOutcome::Failed))
    );
    let nothing = JobFilter { visible: Some(Vec::new()), ..all() };
    assert_eq!(pages(nothing).await, NOTHING);
}

pub(crate) async fn filters_combine(database: &Database) {
    let store = database.open().await;
    store.commit(inserts(&zoo())).await.unwrap();
    let filter = JobFilter {
        states: vec![JobState::Running, JobState::Queued, JobState::Starting],
        outcomes: vec![JobOutcome::Succeeded],
        workspace: Some("vision".to_owned()),
        owner: Some("ada".to_owned()),
        visible: Some(vec!["speech".to_owned(), "vision".to_owned()]),
        name: Some("bert".to_owned()),
        search: Some("ER".to_owned()),
        label: Some(("project".to_owned(), "bert".to_owned())),
        before: Some(JobId(6)),
        limit: 5,
    };
    assert_eq!(found(&*store, &filter).await, [4]);
    let earlier = JobFilter { before: Some(JobId(4)), ..filter };
    assert_eq!(found(&*store, &earlier).await, NOTHING);
}

pub(crate) async fn search_takes_every_character_literally(database: &Database) {
    let store = database.open().await;
    let named = |id, name: &str| job_with(id, |spec| spec.name = name.into());
    // Names such as these do not pass a job's check today; the store does not depend on that.
    let jobs =
        [named(1, "a_b"), named(2, "axb"), named(3, "100%"), named(4, r"back\slash"), named(5, "it's")];
    store.commit(inserts(&jobs)).await.unwrap();
    for (part, expected) in
        [("a_b", 1), ("A_B", 1), ("%", 3), ("0%", 3), (r"k\s", 4), (r"\", 4), ("'", 5), ("t'S", 5)]
    {
        let filter = JobFilter { search: Some(part.to_owned()), ..all() };
        assert_eq!(found(&*store, &filter).await, [expected], "{part}");
    }
    for part in ["a%b", "__", "\0", "' OR 1=1 --", "\u{202e}", &"x".repeat(10_000)] {
        let text = || Some(part.to_owned());
        assert_eq!(found(&*store, &JobFilter { search: text(), ..all() }).await, NOTHING);
        assert_eq!(found(&*store, &JobFilter { name: text(), ..all() }).await, NOTHING);
        assert_eq!(found(&*store, &JobFilter { workspace: text(), ..all() }).await, NOTHING);
        let label = Some((part.to_owned(), part.to_owned()));
        assert_eq!(found(&*store, &JobFilter { label, ..all() }).await, NOTHING);
    }
}

pub(crate) async fn pages_have_no_holes_while_jobs_arrive(database: &Database) {
    let store = database.open().await;
    store.commit(inserts(&(1..=50).map(job).collect::<Vec<_>>())).await.unwrap();
    let mut seen = Vec::new();
    let mut filter = JobFilter { limit: 7, ..all() };
    for newest in 51.. {
        let page = found(&*store, &filter).await;
        store.commit(inserts([&job(newest)])).await.unwrap();
        let Some(last) = page.last() else { break };
        filter.before = Some(JobId(*last));
        seen.extend(page);
    }
    assert_eq!(seen, (1..=50).rev().collect::<Vec<_>>());
}
