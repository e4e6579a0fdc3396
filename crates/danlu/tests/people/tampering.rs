//! What somebody does to the database who can write to it: `danlu admin audit verify` tells, before a restart and after.

use std::path::Path;
use std::process::Command;

use danlu_testkit::TestServer;
use serde_json::{Value, json};

use crate::site::{DANLU, Site, proof, run_danlu, value};

/// Makes all seals anew, as anybody can who has read how they are made.
const SEAL_ANEW: &str = r#"
import hashlib, json
seal = "0" * 64
for number, entry in db.execute("select number, entry from audit order by number").fetchall():
    entry = json.loads(entry)
    entry["seal"] = ""
    if number == 3: entry["by"] = "somebody-else"
    text = json.dumps(entry, separators=(",", ":"), ensure_ascii=False)
    seal = hashlib.sha256((seal + text).encode()).hexdigest()
    entry["seal"] = seal
    db.execute("update audit set by_whom = ?, entry = ? where number = ?",
        (entry["by"], json.dumps(entry, separators=(",", ":"), ensure_ascii=False), number))
"#;

const TAMPERING: [(&str, &str, &str); 10] = [
    (
        "the end was cut off",
        "db.execute('delete from audit where number > (select max(number) - 2 from audit)')",
        "was cut off",
    ),
    ("nothing is left", "db.execute('delete from audit')", "the audit is empty"),
    ("one is missing", "db.execute('delete from audit where number = 3')", "entries before it are missing"),
    (
        "one was changed",
        "db.execute(\"update audit set entry = replace(entry, '127.0.0.1', '10.9.9.9') where number = 2\")",
        "entry 2 was changed",
    ),
    (
        "another column",
        "db.execute(\"update audit set by_whom = 'nobody' where number = 3\")",
        "entry 3 is filed under another",
    ),
    (
        "another subject",
        "db.execute(\"update audit set subject = 'nobody' where number = 2\")",
        "entry 2 is filed under another",
    ),
    ("all seals anew", SEAL_ANEW, "entries were replaced"),
    (
        "an administrator without an entry",
        "n = db.execute(\"update accounts set admin = 1 where name = 'ada'\").rowcount\nassert n == 1, n",
        "changed in the database without an entry",
    ),
    (
        "a token without an entry",
        "db.execute(\"insert into tokens (secret_hash, id, account, kind, name, scope, created_at) \
         values ('abc', '1', 'ada', 'api', 'mine', 'all', '2026-11-19T00:00:00Z')\")",
        "changed in the database without an entry",
    ),
    ("the proof is gone", "db.execute('delete from audit_head')", "the proof of the last entry is missing"),
];

pub(crate) fn tamper(data: &Path, script: &str) {
    let program = format!(
        "import sqlite3\ndb = sqlite3.connect({:?}, timeout=60)\n{script}\ndb.commit()\n",
        data.join("danlu.db").display().to_string()
    );
    let done = Command::new("python3").args(["-c", &program]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

pub(crate) async fn verify(data: &Path, more: &[&str]) -> (bool, String) {
    let data = data.display().to_string();
    let home = tempfile::tempdir().unwrap();
    let arguments = [&["--data", &data, "admin", "audit", "verify"], more].concat();
    let (code, seal, said) = run_danlu(home.path(), &arguments, "").await;
    (code == Some(0), seal + &said)
}

/// A stopped server with accounts, roles and an audit of them.
async fn stopped() -> TestServer {
    let mut site = Site::new(&[]).await;
    site.ask("ada", "POST", "/tokens", &json!({ "name": "script", "scope": "read", "proof": proof() })).await;
    let (well, said) = verify(&site.server.data(), &[]).await;
    assert!(well, "{said}");
    site.server.terminate();
    site.server
}

/// Puts a stopped server's database and count back to what was kept of them. In place: a copy of a data folder is another one.
fn put_back(server: &TestServer, kept: &Path) {
    for left in ["danlu.db-wal", "danlu.db-shm"] {
        let _ = std::fs::remove_file(server.data().join(left));
    }
    for name in ["danlu.db", "audit.count"] {
        std::fs::copy(kept.join(name), server.data().join(name)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_done_to_the_database_behind_the_servers_back_is_told() {
    let mut server = stopped().await;
    let kept = tempfile::tempdir().unwrap();
    for name in ["danlu.db", "audit.count"] {
        std::fs::copy(server.data().join(name), kept.path().join(name)).unwrap();
    }
    for (what, script, word) in TAMPERING {
        // Under a running server.
        put_back(&server, kept.path());
        server.restart().await;
        let (well, said) = verify(&server.data(), &[]).await;
        assert!(well, "before: {said}");
        tamper(&server.data(), script);
        let (well, said) = verify(&server.data(), &[]).await;
        assert!(!well && said.contains(word), "{what}, while it ran: {said}");
        // And after its restart, whose own entries must not hide it.
        server.terminate();
        server.restart().await;
        let (well, said) = verify(&server.data(), &[]).await;
        let told = said.contains("found when the server started") || said.contains(word);
        assert!(!well && told, "{what}, after a restart: {said}");
        server.terminate();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_state_of_the_whole_database_is_told_and_what_is_known_is_not_told_again() {
    let mut server = stopped().await;
    let older = tempfile::tempdir().unwrap();
    std::fs::copy(server.data().join("danlu.db"), older.path().join("danlu.db")).unwrap();
    server.restart().await;
    let site = Site::of(server);
    assert_eq!(
        site.ask("admin", "PATCH", "/accounts/ada", &json!({ "standing": "disabled" })).await.status,
        200
    );
    let mut server = site.server;
    server.terminate();
    for left in ["danlu.db-wal", "danlu.db-shm"] {
        let _ = std::fs::remove_file(server.data().join(left));
    }
    std::fs::copy(older.path().join("danlu.db"), server.data().join("danlu.db")).unwrap();
    server.restart().await;
    let (well, said) = verify(&server.data(), &[]).await;
    assert!(!well && said.contains("was cut off"), "{said}");
    let site = Site::of(server);
    let verified: Value = value(&site.ask("admin", "GET", "/audit/verification", &Value::Null).await);
    let known = verified["entries"].to_string();
    let (well, said) = verify(&site.server.data(), &["--known", &known]).await;
    assert!(well, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_is_named_and_keeps_the_server_from_starting() {
    let mut server = stopped().await;
    server.restart().await;
    tamper(&server.data(), "db.execute(\"update accounts set status = 'flying' where name = 'ada'\")");
    let (well, said) = verify(&server.data(), &[]).await;
    let named = "the account `ada` cannot be read from the database: unknown variant `flying`";
    assert!(!well && said.contains(named), "{said}");
    server.terminate();
    let up = Command::new(DANLU)
        .args(["up", "--listen", "127.0.0.1:0", "--data"])
        .arg(server.data())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&up.stderr).into_owned();
    assert!(!up.status.success() && said.contains(named) && said.contains("restore the database"), "{said}");
    tamper(&server.data(), "db.execute(\"update accounts set status = 'active' where name = 'ada'\")");
    server.restart().await;
    let (well, said) = verify(&server.data(), &[]).await;
    assert!(well, "as it was: {said}");
}
