//! Requests in somebody else's name: fixed sessions, foreign pages, fields that nobody offered, foreign addresses.

use danlu_testkit::wire::{Answer, send};
use serde_json::{Value, json};

use crate::site::{PASSWORD, Site, value};
use crate::walk::operations;

const JSON: (&str, &str) = ("content-type", "application/json");

fn session(answer: &Answer) -> String {
    answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_somebody_else_chose_is_not_taken_over() {
    let site = Site::new(&[]).await;
    let fixed = "danlu_session=danlu_1111111111111111111111111111111111111111111111111111111111111111";
    let body = json!({ "name": "ada", "password": PASSWORD }).to_string();
    let sign_in = async || {
        send(&site.address, "POST", "/api/v1/session", &[JSON, ("cookie", fixed)], body.as_bytes()).await
    };
    let (one, two) = (session(&sign_in().await), session(&sign_in().await));
    assert!(one != fixed && two != one, "each sign-in makes its own");
    let whoami = async |cookie: &str| {
        send(&site.address, "GET", "/api/v1/whoami", &[("cookie", cookie)], b"").await.status
    };
    assert_eq!((whoami(fixed).await, whoami(&one).await), (401, 200));
    // A session of the attacker's that the browser already had is not the victim's afterwards.
    let mias = session(&site.sign_in("mia", PASSWORD).await);
    let headers = [JSON, ("cookie", mias.as_str()), ("x-danlu-console", "1")];
    let adas = session(&send(&site.address, "POST", "/api/v1/session", &headers, body.as_bytes()).await);
    let name = send(&site.address, "GET", "/api/v1/whoami", &[("cookie", &mias)], b"").await;
    assert!(adas != mias && value(&name)["account"]["name"] == "mia");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_operation_that_changes_something_is_done_for_another_page() {
    let site = Site::new(&[]).await;
    let cookie = session(&site.sign_in("otto", PASSWORD).await);
    let forms = [
        vec![],
        vec![("origin", "http://localhost")],
        vec![("x-danlu-console", "1"), ("origin", "http://evil.example")],
        vec![("x-danlu-console", "1"), ("origin", "http://localhost.evil.example")],
        vec![("x-danlu-console", "1"), ("origin", "null")],
        vec![("content-type", "text/plain")],
        vec![("content-type", "application/x-www-form-urlencoded")],
    ];
    let mut tried = 0;
    for operation in operations(&site).await {
        if matches!(operation.method.as_str(), "GET" | "HEAD") {
            continue;
        }
        for form in &forms {
            let headers = [&[("cookie", cookie.as_str())], &form[..]].concat();
            let path = format!("/api/v1{}", operation.filled("1"));
            let answer = send(&site.address, &operation.method, &path, &headers, b"{}").await;
            assert_eq!(answer.status, 403, "{} {path} {form:?}: {}", operation.method, answer.body);
            tried += 1;
        }
    }
    assert!(tried > 100, "only {tried} were tried");
    // A terminal is opened with GET, and reads and writes: it wants the same origin, too.
    let job = site.job(false).await;
    let path = format!("/api/v1/jobs/{job}/workers/0/session");
    let upgrade = [
        ("cookie", cookie.as_str()),
        ("upgrade", "websocket"),
        ("connection", "upgrade"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    for origin in ["http://evil.example", "null", "http://localhost:1"] {
        let headers = [&upgrade[..], &[("origin", origin)]].concat();
        assert_eq!(send(&site.address, "GET", &path, &headers, b"").await.status, 403, "{origin}");
    }
    assert_eq!(send(&site.address, "GET", &path, &upgrade, b"").await.status, 403, "no origin at all");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_signs_others_in_from_a_foreign_page() {
    let site = Site::new(&[]).await;
    let body = json!({ "name": "mia", "password": PASSWORD }).to_string();
    for form in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let answer =
            send(&site.address, "POST", "/api/v1/session", &[("content-type", form)], body.as_bytes()).await;
        assert_eq!(answer.status, 415, "a form could send this");
    }
    // JSON needs the browser to ask first, and nobody here says yes.
    let preflight = [("origin", "http://evil.example"), ("access-control-request-method", "POST")];
    let answer = send(&site.address, "OPTIONS", "/api/v1/session", &preflight, b"").await;
    assert!(!answer.head.to_lowercase().contains("access-control-allow"), "{}", answer.head);
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_nobody_offered_are_refused() {
    let site = Site::new(&["--registration", "open"]).await;
    let job = site.job(true).await;
    let own = format!("/jobs/{job}/clone");
    let key = json!({ "key": "x", "account": "admin" });
    for (who, method, path, body) in [
        ("nobody", "POST", "/registration", json!({ "name": "eve", "password": PASSWORD, "admin": true })),
        (
            "nobody",
            "POST",
            "/registration",
            json!({ "name": "eve", "password": PASSWORD, "standing": "active" }),
        ),
        ("nobody", "POST", "/registration", json!({ "name": "eve", "password": PASSWORD, "role": "owner" })),
        ("nobody", "POST", "/session", json!({ "name": "ada", "password": PASSWORD, "scope": "all" })),
        ("admin", "POST", "/accounts", json!({ "name": "eve", "admin": true })),
        ("ada", "PATCH", "/accounts/ada", json!({ "name": "admin" })),
        ("ada", "PATCH", "/accounts/ada", json!({ "password": PASSWORD })),
        ("ada", "PATCH", "/accounts/ada", json!({ "created_at": "2020-01-01T00:00:00Z" })),
        ("ada", "POST", "/tokens", json!({ "name": "x", "scope": "read", "account": "admin" })),
        ("ada", "POST", "/tokens", json!({ "name": "x", "scope": "read", "kind": "session" })),
        ("ada", "POST", "/accounts/ada/ssh_keys", key),
        ("ada", "POST", "/accounts/ada/s3_keys", json!({ "name": "x", "access_key": "CHOSEN" })),
        ("ada", "POST", "/jobs", json!({ "command": "true", "owner": "admin" })),
        ("ada", "POST", "/jobs", json!({ "command": "true", "id": 1 })),
        ("ada", "POST", own.as_str(), json!({ "owner": "admin" })),
        ("otto", "PUT", "/workspaces/lab/members/mia", json!({ "role": "owner", "workspace": "other" })),
        ("otto", "POST", "/workspaces/lab/invitations", json!({ "role": "member", "workspace": "other" })),
    ] {
        let answer = site.ask(who, method, path, &body).await;
        assert_eq!(answer.status, 422, "{method} {path} {body}: {}", answer.body);
    }
    for body in [
        json!({ "admin": true }),
        json!({ "standing": "active" }),
        json!({ "standing": "disabled", "jobs": "stop" }),
    ] {
        assert_eq!(site.ask("ada", "PATCH", "/accounts/ada", &body).await.status, 403, "{body}");
    }
    assert_eq!(site.ask("admin", "GET", "/accounts/eve", &Value::Null).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_sent_to_a_foreign_address() {
    let site = Site::new(&[]).await;
    let evil = "//evil.example/%2f..";
    let paths = [
        "//evil.example".to_owned(),
        "//evil.example/..".to_owned(),
        "/\\evil.example".to_owned(),
        format!("/sign-in?next={evil}"),
        format!("/api/v1/oidc/start?redirect={evil}"),
        format!("/api/v1/oidc/callback?state=x&code=y&redirect_uri={evil}"),
        format!("/api/v1//{evil}"),
    ];
    for path in &paths {
        let headers = [("x-forwarded-host", "evil.example")];
        let answer = send(&site.address, "GET", path, &headers, b"").await;
        let to = answer.header("location").unwrap_or_default().to_owned();
        assert!(
            !to.contains("evil") && !(300..400).contains(&answer.status),
            "{path}: {} {to}",
            answer.status
        );
    }
    for operation in operations(&site).await.iter().filter(|operation| operation.method == "GET") {
        let path = format!("/api/v1{}?next={evil}&redirect={evil}", operation.filled("1"));
        let bearer = format!("Bearer {}", site.token("ada").unwrap());
        let answer = send(&site.address, "GET", &path, &[("authorization", &bearer)], b"").await;
        assert_eq!(answer.header("location"), None, "{path}");
    }
}
