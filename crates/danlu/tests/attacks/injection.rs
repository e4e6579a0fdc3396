//! Text that would like to be something else: paths, headers, lines of a log.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use danlu_testkit::wire::send;
use serde_json::{Value, json};

use crate::site::{PASSWORD, Site, proof};
use crate::walk::operations;

fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
            found.insert(entry.path());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn no_parameter_of_a_path_leads_out_of_its_place() {
    let site = Site::new(&[]).await;
    let bearer = format!("Bearer {}", site.token("admin").unwrap());
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let hostile = [
        "..%2f..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e%2f%2e%2e%2ftoken",
        "..%5c..%5ctoken",
        "%2fetc%2fpasswd",
        "..",
        "%2e%2e",
        ".",
        "token",
        "secret.key",
        "sha256:..%2f..%2ftoken",
        "a%00b",
        "a%0d%0aset-cookie:%20x=1",
        "%ff%fe",
        "%25%32%65%25%32%65",
        "-1",
        "99999999999999999999",
        "$(id)",
        "';DROP TABLE directory;--",
        &"a".repeat(5000),
    ];
    let before = files(site.server.folder());
    let mut tried = 0;
    for operation in operations(&site).await.iter().filter(|operation| operation.has_parameters()) {
        // A workspace may have such a name: it is a word in the database, and no file is made for it.
        let is_allowed =
            |value: &str| operation.path == "/workspaces/{name}" && danlu_types::spec::is_name(value);
        for value in hostile.into_iter().filter(|value| !is_allowed(value)) {
            let path = format!("/api/v1{}", operation.filled(value));
            let body: &[u8] = if operation.takes_body { b"{}" } else { b"" };
            let answer = send(&site.address, &operation.method, &path, &headers, body).await;
            let what = format!("{} {path}: {} {}", operation.method, answer.status, answer.body);
            // Lists of what does not exist are empty; all else is refused.
            let is_empty_list = answer.status == 200 && answer.body.starts_with("{\"items\":[]");
            assert!((400..500).contains(&answer.status) || is_empty_list, "{what}");
            assert!(!answer.body.contains("root:") && answer.header("set-cookie").is_none(), "{what}");
            tried += 1;
        }
    }
    assert!(tried > 300, "only {tried} were tried");
    let made: Vec<_> = files(site.server.folder()).difference(&before).cloned().collect();
    assert!(made.is_empty(), "{made:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_writes_lines_of_the_log_or_headers_of_an_answer() {
    let site = Site::new(&["--registration", "open", "--behind-proxy"]).await;
    let forged = "x\r\n2026-01-01T00:00:00Z ERROR danlu: FORGED\r\nset-cookie: forged=1";
    for (who, method, path, body) in [
        ("nobody", "POST", "/session", json!({ "name": forged, "password": forged })),
        ("nobody", "POST", "/session", json!({ "link": forged })),
        ("nobody", "POST", "/registration", json!({ "name": forged, "password": PASSWORD })),
        (
            "nobody",
            "POST",
            "/registration",
            json!({ "name": "eve", "password": PASSWORD, "display_name": forged }),
        ),
        (
            "nobody",
            "POST",
            "/registration",
            json!({ "name": "eve", "password": PASSWORD, "workspace": forged }),
        ),
        ("ada", "PATCH", "/accounts/ada", json!({ "email": forged })),
        ("ada", "POST", "/tokens", json!({ "name": forged, "scope": "read", "proof": proof() })),
        ("ada", "POST", "/accounts/ada/s3_keys", json!({ "name": forged, "proof": proof() })),
        ("ada", "POST", "/jobs", json!({ "command": "true", "name": forged })),
        ("ada", "POST", "/jobs", json!({ "command": "true", "workspace": forged })),
        ("admin", "PUT", "/workspaces/a%0d%0aFORGED/members/ada", json!({ "role": "viewer" })),
    ] {
        let answer = site.ask(who, method, path, &body).await;
        assert!((400..500).contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.body);
        assert_eq!(answer.header("set-cookie"), None, "{}", answer.head);
    }
    // Headers that are written into the log or the audit.
    let body = json!({ "name": "ada", "password": PASSWORD }).to_string();
    for forwarded in ["FORGED", "203.0.113.7 FORGED", "\"><script>FORGED", "203.0.113.7, FORGED"] {
        let headers = [("content-type", "application/json"), ("x-forwarded-for", forwarded)];
        send(&site.address, "POST", "/api/v1/session", &headers, body.as_bytes()).await;
    }
    let audit = site.ask("admin", "GET", "/audit?limit=1000", &Value::Null).await;
    assert!(!audit.body.contains("FORGED"), "{}", audit.body);
    let log = site.server.log();
    assert!(!log.lines().any(|line| line.contains("FORGED") && !line.contains("\\r\\n")), "{log}");
}

/// PostgreSQL takes it in no text, so a filter that holds it must not reach the database.
#[tokio::test(flavor = "multi_thread")]
async fn filters_that_hold_nul_are_refused_by_name() {
    let site = Site::new(&[]).await;
    for (path, field) in [
        ("/jobs?name=a%00", "name"),
        ("/jobs?search=%00", "search"),
        ("/jobs?workspace=lab%00", "workspace"),
        ("/jobs?owner=%00ada", "owner"),
        ("/jobs?label=a%3Db%00", "label"),
        ("/jobs/counts?label=%00%3Db", "label"),
        ("/audit?by=%00", "by"),
        ("/audit?subject=%00", "subject"),
    ] {
        let answer = site.ask("admin", "GET", path, &Value::Null).await;
        assert_eq!(answer.status, 422, "{path}: {}", answer.body);
        assert!(answer.body.contains(&format!("`{field}`: may not hold NUL")), "{path}: {}", answer.body);
    }
}
