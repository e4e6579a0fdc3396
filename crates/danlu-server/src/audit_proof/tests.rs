//! What is noticed, and that nothing is where nothing was done.

use std::sync::Arc;

use danlu_store::StoredSecret;

use super::*;

struct Bench {
    folder: tempfile::TempDir,
    store: Arc<dyn Store>,
    trail: Trail,
}

impl Bench {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store =
            danlu_store::open(&format!("sqlite:{}", folder.path().join("danlu.db").display())).await.unwrap();
        let trail = trail_of(folder.path());
        Bench { folder, store, trail }
    }

    async fn change(&self, key: &str, value: &str) {
        self.trail.change(&*self.store, &change(key, value)).await.unwrap();
    }

    /// Without what vouches for it, as somebody would who can write to the database and knows how seals are made.
    async fn forge(&self, key: &str, value: &str) {
        self.store.directory_change(&change(key, value)).await.unwrap();
    }

    async fn findings(&self) -> Vec<String> {
        self.trail.verify(&*self.store, 0).await.unwrap().findings
    }

    /// The same by a server that starts now.
    async fn findings_at_start(&self) -> Vec<String> {
        let found = trail_of(self.folder.path()).look_at_start(&*self.store).await.unwrap();
        found.unwrap_or_default()
    }
}

fn trail_of(folder: &Path) -> Trail {
    Trail::new(folder, &Encryptor::open(folder).unwrap())
}

/// Of a secret, because any text may be in one; the empty value takes it away.
fn change(key: &str, value: &str) -> DirectoryChange {
    let secret = (!value.is_empty()).then(|| StoredSecret {
        sealed: value.to_owned(),
        changed_at: Timestamp::UNIX_EPOCH,
        changed_by: "root".to_owned(),
    });
    let rows = vec![DirectoryRow::Secret(key.to_owned(), "wandb".to_owned(), secret)];
    let audit = AuditEntry {
        number: 0,
        at: Timestamp::UNIX_EPOCH,
        by: "root".to_owned(),
        from: "127.0.0.1".to_owned(),
        action: "account.change".to_owned(),
        subject: key.to_owned(),
        before: None,
        after: None,
        seal: String::new(),
    };
    DirectoryChange { rows, audit }
}

#[tokio::test]
async fn nothing_is_found_where_nothing_was_done() {
    let bench = Bench::new().await;
    assert!(bench.trail.look_at_start(&*bench.store).await.unwrap().is_none(), "the first start");
    for (key, value) in [("ada", "1"), ("eve", "丹2"), ("ada", "3"), ("eve", "")] {
        bench.change(key, value).await;
    }
    assert_eq!(bench.findings().await, [""; 0]);
    assert_eq!(bench.findings_at_start().await, [""; 0]);
    let again = trail_of(bench.folder.path());
    again.begin(&*bench.store, false).await;
    again.change(&*bench.store, &change("mia", "4")).await.unwrap();
    assert_eq!(again.verify(&*bench.store, 0).await.unwrap().findings, [""; 0]);
}

#[tokio::test]
async fn an_audit_from_before_there_was_a_key_still_verifies() {
    let bench = Bench::new().await;
    for number in 0..3 {
        bench.forge("ada", &number.to_string()).await;
    }
    assert_eq!(bench.findings_at_start().await, [""; 0]);
    // What `begin` does through the guarded store.
    let begun = bench.trail.look_at_start(&*bench.store).await.unwrap();
    assert_eq!(begun, Some(Vec::new()), "an entry is written with which vouching begins");
    bench.change("ada", "9").await;
    let verified = bench.trail.verify(&*bench.store, 0).await.unwrap();
    assert_eq!((verified.entries, verified.findings), (4, Vec::new()));
}

#[tokio::test]
async fn a_server_that_was_killed_before_it_counted_is_vouched_for_by_the_head() {
    let bench = Bench::new().await;
    bench.change("ada", "1").await;
    let file = bench.folder.path().join(COUNT_FILE);
    let before = std::fs::read(&file).unwrap();
    bench.change("ada", "2").await;
    bench.change("ada", "3").await;
    std::fs::write(&file, before).unwrap();
    assert_eq!(bench.findings_at_start().await, [""; 0]);
    assert_eq!(bench.findings().await, [""; 0]);
}

#[tokio::test]
async fn entries_and_rows_without_the_key_are_noticed() {
    let bench = Bench::new().await;
    bench.change("ada", "{\"admin\":false}").await;
    bench.forge("ada", "{\"admin\":true}").await;
    for findings in [bench.findings().await, bench.findings_at_start().await] {
        assert!(findings.iter().any(|it| it.contains("without an entry")), "{findings:?}");
        assert!(
            findings.iter().any(|it| it.contains("not the one that this server wrote last")),
            "{findings:?}"
        );
    }
    // What changes next does not hide it: it is vouched for by what this server knows, not by what it finds.
    bench.change("mia", "1").await;
    let findings = bench.findings().await;
    assert!(findings.iter().any(|it| it.contains("without an entry")), "{findings:?}");
}

#[tokio::test]
async fn a_missing_count_and_another_key_are_noticed() {
    let bench = Bench::new().await;
    bench.change("ada", "1").await;
    let file = bench.folder.path().join(COUNT_FILE);
    let text = std::fs::read_to_string(&file).unwrap();
    for (count, word) in
        [(None, "is missing"), (Some(text.replace(":1,", ":7,")), "is not as this server wrote it")]
    {
        match count {
            Some(text) => std::fs::write(&file, text).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        let findings = bench.findings_at_start().await;
        assert!(findings[0].contains(word), "{findings:?}");
    }
    std::fs::write(&file, text).unwrap();
    assert_eq!(bench.findings_at_start().await, [""; 0]);
    std::fs::remove_file(bench.folder.path().join(crate::encryption::KEY_FILE)).unwrap();
    let findings = bench.findings_at_start().await;
    assert_eq!(findings.len(), 3, "{findings:?}");
}
