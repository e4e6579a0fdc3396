//! Search by a part of the name: what the index finds is what a look at every name would.

use danlu_core::{Job, Trigger};
use danlu_store::{Batch, JobFilter, Store};
use danlu_types::JobId;

use crate::database::Database;
use crate::jobs::{ended_job, inserts, job_with, step};

const NAMES: [&str; 9] =
    ["a", "ab", "ABC", "abab", "baba", "ResNet-50.v2_final", "resnet", "x.y-z_0", "ünïcode and \u{1f9ea}"];

fn named(id: u64, name: &str, owner: &str, workspace: &str) -> Job {
    let job = job_with(id, |spec| (spec.name, spec.workspace) = (name.into(), workspace.into()));
    Job { owner: owner.to_owned(), ..job }
}

fn search(part: &str) -> JobFilter {
    JobFilter { search: Some(part.to_owned()), limit: 100, ..JobFilter::default() }
}

async fn found(store: &dyn Store, filter: &JobFilter) -> Vec<u64> {
    store.jobs_list(filter).await.unwrap().iter().map(|job| job.id.0).collect()
}

/// As a look at every name would find.
fn looked_up(jobs: &[Job], filter: &JobFilter) -> Vec<u64> {
    let part = filter.search.clone().unwrap_or_default().to_ascii_lowercase();
    let mut ids: Vec<u64> = jobs
        .iter()
        .filter(|job| job.spec.name.to_ascii_lowercase().contains(&part))
        .filter(|job| filter.owner.as_ref().is_none_or(|owner| *owner == job.owner))
        .filter(|job| filter.visible.as_ref().is_none_or(|names| names.contains(&job.spec.workspace)))
        .map(|job| job.id.0)
        .collect();
    ids.reverse();
    ids
}

pub(crate) async fn every_part_of_every_name_is_found(database: &Database) {
    let store = database.open().await;
    let people = ["ada", "grace"].into_iter().cycle().zip(["vision", "text", "wá"].into_iter().cycle());
    let jobs: Vec<Job> = (1..)
        .zip(NAMES)
        .zip(people)
        .map(|((id, name), (owner, workspace))| named(id, name, owner, workspace))
        .collect();
    store.commit(inserts(&jobs)).await.unwrap();
    let mut parts: Vec<String> =
        vec!["aba".into(), "bab".into(), "abc".into(), "zz".into(), "AbAb".into(), "\0".into()];
    parts.extend(["\" OR a", "a*", "abab NOT b", "nothing", "w766973696F6E"].map(str::to_owned));
    for name in NAMES {
        let characters: Vec<char> = name.chars().collect();
        for start in 0..characters.len() {
            parts.extend(
                (start + 1..=characters.len()).map(|end| characters[start..end].iter().collect::<String>()),
            );
        }
    }
    let visible = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    for part in &parts {
        let all = search(part);
        for filter in [
            all.clone(),
            JobFilter { owner: Some("ada".to_owned()), ..all.clone() },
            JobFilter { visible: visible(&["vision", "wá"]), ..all.clone() },
            JobFilter { visible: visible(&[]), ..all.clone() },
            JobFilter { owner: Some("grace".to_owned()), visible: visible(&["text"]), ..all.clone() },
        ] {
            let expected = looked_up(&jobs, &filter);
            assert_eq!(found(&*store, &filter).await, expected, "{filter:?}");
            let counted: u64 = store.jobs_count(&filter).await.unwrap().by_state.values().sum();
            assert_eq!(counted, expected.len() as u64, "{filter:?}");
        }
    }
}

pub(crate) async fn search_follows_changes_and_deletions(database: &Database) {
    let store = database.open().await;
    let first = named(1, "resnet", "ada", "vision");
    let ended = |id| {
        let job = ended_job(id, danlu_core::WorkerEnd::Succeeded, 9);
        let spec = danlu_types::JobSpec { name: "resnet".into(), ..(*job.spec).clone() };
        Job { spec: spec.into(), ..job }
    };
    store.commit(inserts([&first, &ended(2), &ended(3)])).await.unwrap();
    assert_eq!(found(&*store, &search("esne")).await, [3, 2, 1]);
    assert_eq!(found(&*store, &JobFilter { limit: 1, before: Some(JobId(3)), ..search("esne") }).await, [2]);

    let mut spec = danlu_types::JobSpec::clone(&first.spec);
    (spec.name, spec.workspace) = ("bert".into(), "text".to_owned());
    let event = Trigger::Change { by: "ada".to_owned(), spec: spec.into(), approval: None, seen: 1 };
    store.commit(Batch { inserts: vec![], updates: vec![step(&first, event, 10)] }).await.unwrap();
    assert_eq!(found(&*store, &search("esne")).await, [3, 2]);
    let in_workspace = |name: &str| JobFilter { visible: Some(vec![name.to_owned()]), ..search("ert") };
    assert_eq!(found(&*store, &in_workspace("text")).await, [1]);
    assert_eq!(found(&*store, &in_workspace("vision")).await, [0; 0]);

    assert_eq!(store.jobs_delete(&[JobId(3)]).await.unwrap(), 1);
    assert_eq!(found(&*store, &search("r")).await, [2, 1]);
    let store = database.open().await;
    assert_eq!(found(&*store, &search("esne")).await, [2]);
    store.integrity_check().await.unwrap();
}

pub(crate) async fn names_from_before_there_was_an_index_are_found(database: &Database) {
    danlu_store::open_at_version(&database.url, 1).await.unwrap().close().await;
    database.execute(include_str!("../../fixtures/v1.sql")).await.unwrap();
    let store = database.open().await;
    let all = store.jobs_list(&JobFilter { limit: 100, ..JobFilter::default() }).await.unwrap();
    assert!(!all.is_empty());
    for job in &all {
        assert!(found(&*store, &search(&job.spec.name)).await.contains(&job.id.0), "{}", job.spec.name);
    }
}

/// Newer databases have the columns, so these statements do as a disk would that forgets a sector.
pub(crate) async fn a_row_that_cannot_be_read_is_one_jobs_trouble(database: &Database) {
    let store = database.open().await;
    let jobs: Vec<Job> = (1..=9).map(|id| named(id, "resnet", "ada", "vision")).collect();
    store.commit(inserts(&jobs)).await.unwrap();
    database.execute("UPDATE jobs SET spec = '{\"command\":' WHERE id IN (3, 8)").await.unwrap();
    database.execute("UPDATE jobs SET life = 'nothing that was ever written' WHERE id = 4").await.unwrap();
    let store = database.open().await;
    let readable = [9, 7, 6, 5, 2, 1];
    assert_eq!(store.unreadable_jobs(), []);
    assert_eq!(store.jobs_live().await.unwrap().len(), 6);
    let told: Vec<u64> = store.unreadable_jobs().iter().map(|(id, _)| id.0).collect();
    assert_eq!(told, [3, 4, 8]);
    for filter in [
        JobFilter { search: None, ..search("") },
        search("net"),
        JobFilter { workspace: Some("vision".into()), ..search("") },
    ] {
        assert_eq!(found(&*store, &filter).await, readable, "{filter:?}");
        // Pages of any size end with the last one, and none of them before it.
        for limit in 1..=7 {
            let mut pages: Vec<u64> = Vec::new();
            loop {
                let before = pages.last().copied().map(JobId);
                let page = found(&*store, &JobFilter { limit, before, ..filter.clone() }).await;
                pages.extend(&page);
                if page.len() < limit as usize {
                    break;
                }
            }
            assert_eq!(pages, readable, "{filter:?} by {limit}");
        }
    }
    let error = store.job_fetch(JobId(3)).await.unwrap_err();
    assert!(error.to_string().contains("job 3 cannot be read"), "{error}");
    assert_eq!(store.job_fetch(JobId(5)).await.unwrap().map(|job| job.id), Some(JobId(5)));
    // What the others do is written, and read.
    let update = step(&jobs[4], crate::jobs::hold("ada"), 20);
    assert_eq!(store.commit(Batch { inserts: vec![], updates: vec![update] }).await.unwrap().stale, []);
    assert_eq!(store.jobs_count(&search("")).await.unwrap().by_state["held"], 1);
}
