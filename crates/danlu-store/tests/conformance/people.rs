//! Accounts and the audit.

use danlu_core::audit::{FIRST_SEAL, verify};
use danlu_store::{AuditFilter, DirectoryChange, DirectoryRow, EventFilter, JobFilter};
use danlu_types::JobId;
use danlu_types::api::AuditEntry;

use crate::database::Database;
use crate::jobs::{inserts, job_with, time};

fn change(by: &str, key: &str, value: Option<&str>) -> DirectoryChange {
    let row =
        DirectoryRow { kind: "account".to_owned(), key: key.to_owned(), value: value.map(str::to_owned) };
    let audit = AuditEntry {
        number: 0,
        at: time(1),
        by: by.to_owned(),
        from: "127.0.0.1".to_owned(),
        action: "account.change".to_owned(),
        subject: key.to_owned(),
        before: None,
        after: value.map(|text| serde_json::json!(text)),
        seal: String::new(),
    };
    DirectoryChange { rows: vec![row], audit }
}

pub(crate) async fn people_are_kept_replaced_and_taken_away(database: &Database) {
    let store = database.open().await;
    for (key, value) in [("ada", Some("1")), ("grace", Some("\u{0}丹")), ("ada", Some("2")), ("grace", None)]
    {
        store.directory_change(&change("root", key, value)).await.unwrap();
    }
    let left =
        DirectoryRow { kind: "account".to_owned(), key: "ada".to_owned(), value: Some("2".to_owned()) };
    assert_eq!(store.directory().await.unwrap(), std::slice::from_ref(&left));
    assert_eq!(database.open().await.directory().await.unwrap(), [left]);
}

pub(crate) async fn the_audit_is_sealed_whoever_writes_at_once(database: &Database) {
    let store = database.open().await;
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..20 {
        let store = store.clone();
        writers.spawn(async move {
            store.directory_change(&change("root", &format!("p{number}"), Some("x"))).await.unwrap();
        });
    }
    writers.join_all().await;
    let all = AuditFilter { limit: 100, ..AuditFilter::default() };
    let mut entries = store.audit_list(&all).await.unwrap();
    assert_eq!(entries.len(), 20);
    assert_eq!(verify(FIRST_SEAL, 1, &entries), Ok(entries[19].seal.clone()));
    entries[7].by.push('!');
    assert_eq!(verify(FIRST_SEAL, 1, &entries), Err(8));

    let of_one = AuditFilter { subject: Some("p3".to_owned()), ..all.clone() };
    assert_eq!(store.audit_list(&of_one).await.unwrap().len(), 1);
    assert!(
        store
            .audit_list(&AuditFilter { by: Some("ada".to_owned()), ..all.clone() })
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(store.audit_list(&AuditFilter { after: 18, ..all }).await.unwrap().len(), 2);
}

pub(crate) async fn what_vouches_for_an_entry_is_written_with_it(database: &Database) {
    let store = database.open().await;
    for number in 1..=3_u64 {
        let prove = |entry: &AuditEntry| DirectoryRow {
            kind: "head".to_owned(),
            key: String::new(),
            value: Some(format!("{} {}", entry.number, entry.seal)),
        };
        let entry =
            store.directory_change_proven(&change("root", "\u{0}ada", Some("1")), &prove).await.unwrap();
        assert_eq!(entry.number, number);
        let directory = store.directory().await.unwrap();
        let head = directory.iter().find(|row| row.kind == "head").unwrap();
        assert_eq!(head.value, Some(format!("{number} {}", entry.seal)));
    }
    let rows = store.audit_rows(1, 10).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), [2, 3]);
    assert_eq!((rows[0].by.as_str(), rows[0].subject.as_str()), ("root", "\u{fffd}ada"));
    let read: AuditEntry = serde_json::from_str(&rows[1].entry).unwrap();
    assert_eq!((read.number, read.subject.as_str()), (3, "\u{0}ada"));
    assert_eq!(store.audit_rows(0, 2).await.unwrap().len(), 2);
}

pub(crate) async fn only_what_is_visible_is_listed(database: &Database) {
    let store = database.open().await;
    let in_workspace = |id, name: &str| job_with(id, |spec| spec.workspace = name.into());
    store
        .commit(inserts([&in_workspace(1, "vision"), &in_workspace(2, "speech"), &in_workspace(3, "vision")]))
        .await
        .unwrap();
    let visible = Some(vec!["vision".to_owned(), "nowhere".to_owned()]);
    let jobs = JobFilter { visible: visible.clone(), limit: 10, ..JobFilter::default() };
    let ids: Vec<JobId> = store.jobs_list(&jobs).await.unwrap().iter().map(|job| job.id).collect();
    assert_eq!(ids, [JobId(3), JobId(1)]);
    let nothing = JobFilter { visible: Some(Vec::new()), limit: 10, ..JobFilter::default() };
    assert!(store.jobs_list(&nothing).await.unwrap().is_empty());
    let events = EventFilter { job: None, visible, after: 0, limit: 10 };
    let seen: Vec<_> = store.events_list(&events).await.unwrap().iter().map(|event| event.job).collect();
    assert_eq!(seen, [Some(JobId(1)), Some(JobId(3))]);
}
