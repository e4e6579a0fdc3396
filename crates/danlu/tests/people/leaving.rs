//! What goes on ends with the role that it was opened with: terminals, followed logs, hints, downloads.

use std::collections::BTreeSet;

use danlu_client::{Client, SessionReceiver, SessionSender};
use danlu_testkit::DEADLINE;
use danlu_types::session::{Frame, FrameKind, OpenSession};
use danlu_types::{JobId, WorkerIndex};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::site::{PASSWORD, Site, proof, value};

/// More than sockets hold, so that a download is never over before somebody has read it.
const LARGE: u64 = 1 << 30;

/// A job of ada's in the lab that has written a large file and goes on.
async fn job_with_a_large_file(site: &Site) -> u64 {
    let spec = json!({
        "command": format!("truncate -s {LARGE} \"$DANLU_OUTPUT_DIR/large\"; echo ready; sleep 1000"),
        "workspace": "lab", "cpus": "10m", "grace": "0s",
    });
    let job = value(&site.ask("ada", "POST", "/jobs", &spec).await)["id"].as_u64().unwrap();
    danlu_testkit::eventually("the job to be ready", || async {
        let logs = site.ask("ada", "GET", &format!("/jobs/{job}/logs"), &Value::Null).await;
        logs.body.contains("ready").then_some(())
    })
    .await;
    job
}

/// Everything that somebody can have open at once.
struct Open {
    what: &'static str,
    stream: TcpStream,
}

impl Open {
    async fn new(site: &Site, token: &str, what: &'static str, path: &str) -> Option<Self> {
        let mut stream = TcpStream::connect(site.address.trim_start_matches("http://")).await.unwrap();
        let head = format!(
            "GET /api/v1{path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut said = Vec::new();
        while !said.windows(4).any(|four| four == b"\r\n\r\n") {
            let mut byte = [0];
            if stream.read(&mut byte).await.ok()? == 0 {
                return None;
            }
            said.push(byte[0]);
        }
        said.starts_with(b"HTTP/1.1 200").then_some(Open { what, stream })
    }

    /// Waits for its end, which must come before all of a large file has.
    async fn ends(mut self) {
        let read = async {
            let (mut part, mut all) = (vec![0; 1 << 20], 0);
            while let Ok(length @ 1..) = self.stream.read(&mut part).await {
                all += length as u64;
            }
            all
        };
        let read = tokio::time::timeout(DEADLINE, read).await;
        let read = read.unwrap_or_else(|_| panic!("{} goes on", self.what));
        assert!(read < LARGE, "{} came to its own end", self.what);
    }
}

struct Terminal(SessionSender, SessionReceiver);

impl Terminal {
    async fn new(site: &Site, token: &str, job: u64) -> Option<Self> {
        let open = OpenSession { command: vec!["cat".to_owned()], terminal: None, env: vec![] };
        let client = Client::trusting(&site.address, token, None);
        let (sender, receiver) = client.session_open(JobId(job), WorkerIndex(0), &open).await.ok()?;
        let mut terminal = Terminal(sender, receiver);
        terminal.echoes().await.then_some(terminal)
    }

    /// Whether what is typed comes back.
    async fn echoes(&mut self) -> bool {
        if self.0.send(Frame::new(FrameKind::Stdin, *b"hello\n")).await.is_err() {
            return false;
        }
        let answer = tokio::time::timeout(DEADLINE, self.1.next()).await.expect("an answer or the end");
        matches!(answer, Ok(Some(frame)) if frame.kind == FrameKind::Stdout)
    }

    async fn ends(mut self) {
        let end = async { while let Ok(Some(_)) = self.1.next().await {} };
        assert!(tokio::time::timeout(DEADLINE, end).await.is_ok(), "the terminal goes on");
    }
}

/// What is sent for as long as it takes, and is tried here.
const TRIED: [&str; 4] =
    ["/hints", "/jobs/{id}/files/content", "/jobs/{id}/logs/follow", "/jobs/{id}/workers/{worker}/session"];
/// And what is not.
const NOT_TRIED: [(&str, &str); 6] = [
    (
        "/migrations/{code}/reports/{report}",
        "ends with the account and the token as every stream does; no role is about it",
    ),
    ("/sidecar/allocations/{allocation}/files/{file}", "for the token of an attempt, in one piece"),
    ("/sidecar/workers/{worker}/code", "for the token of an attempt"),
    ("/sidecar/programs/{digest}", "this program itself, which is no secret"),
    ("/sidecar/workers/{worker}/files/{file}", "for the token of an attempt, in one piece"),
    ("/sidecar/workers/{worker}/trees/{area}/content", "for the token of an attempt"),
];

/// A stream that is new is opened in the test below, or somebody says why it need not be.
#[tokio::test(flavor = "multi_thread")]
async fn every_stream_that_is_described_is_one_that_ends_or_says_why_not() {
    let site = Site::of(danlu_testkit::TestServer::start(crate::site::DANLU, &[]).await);
    let document = value(&site.ask("admin", "GET", "/openapi.json", &Value::Null).await);
    let is_stream = |responses: &Value| {
        let content = responses["200"]["content"].as_object();
        let kinds = ["text/event-stream", "application/octet-stream"];
        responses.get("101").is_some()
            || content.is_some_and(|content| kinds.iter().any(|kind| content.contains_key(*kind)))
    };
    let described = document["paths"].as_object().unwrap().iter();
    let streams: BTreeSet<&str> = described
        .filter(|(_, methods)| methods.as_object().unwrap().values().any(|one| is_stream(&one["responses"])))
        .map(|(path, _)| path.as_str())
        .collect();
    let known: BTreeSet<&str> = TRIED.into_iter().chain(NOT_TRIED.map(|(path, _)| path)).collect();
    assert_eq!(streams, known);
}

/// An account of the lab's with a token of its own; the account and the token's secret and id.
async fn somebody(site: &Site, name: &str, role: &str, lasts: &str) -> (String, String) {
    let made = site.ask("admin", "POST", "/accounts", &json!({ "name": name, "password": PASSWORD })).await;
    assert!(made.status == 201 || made.status == 409, "{}", made.body);
    let path = format!("/workspaces/lab/members/{name}");
    assert_eq!(site.ask("admin", "PUT", &path, &json!({ "role": role })).await.status, 204);
    let session = value(&site.sign_in(name, PASSWORD).await)["secret"].as_str().unwrap().to_owned();
    let new = json!({ "name": "watch", "scope": "all", "lasts": lasts, "proof": proof() });
    let token = value(&site.ask_with(Some(&session), "POST", "/tokens", &new).await);
    let text = |pointer: &str| token.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
    (text("/secret"), text("/token/id"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_ends_with_the_role_the_account_and_the_token() {
    let site = Site::new(&[]).await;
    let job = job_with_a_large_file(&site).await;
    let follow = format!("/jobs/{job}/logs/follow");
    let download = format!("/jobs/{job}/files/content?area=output&path=large");
    // An owner may enter every job of the workspace; only the account and the token are about hints.
    for (name, method, path, body, ends_hints) in [
        ("member", "DELETE", "/workspaces/lab/members/member", Value::Null, false),
        ("role", "PUT", "/workspaces/lab/members/role", json!({ "role": "viewer" }), false),
        ("account", "PATCH", "/accounts/account", json!({ "standing": "disabled" }), true),
        ("deleted", "DELETE", "/accounts/deleted", Value::Null, true),
        ("token", "DELETE", "/accounts/token/tokens/{id}", Value::Null, true),
        ("over", "GET", "/whoami", Value::Null, true),
    ] {
        let is_over = name == "over";
        let (terminal, streams, id) = loop {
            // On a busy machine a token may be over before everything is open; then with another.
            let (secret, id) = somebody(&site, name, "owner", if is_over { "5s" } else { "1h" }).await;
            let terminal = Terminal::new(&site, &secret, job).await;
            let streams = [
                Open::new(&site, &secret, "the log", &follow).await,
                Open::new(&site, &secret, "the download", &download).await,
                Open::new(&site, &secret, "the hints", "/hints").await,
            ];
            if let (Some(terminal), [Some(log), Some(file), Some(hints)]) = (terminal, streams) {
                break (terminal, [log, file, hints], id);
            }
            assert!(is_over, "{name} could not open everything");
        };
        let answer = site.ask("admin", method, &path.replace("{id}", &id), &body).await;
        assert!(answer.status < 300, "{name}: {}", answer.body);
        terminal.ends().await;
        let [log, file, hints] = streams;
        file.ends().await;
        // A viewer reads on.
        if name != "role" {
            log.ends().await;
        }
        if ends_hints {
            hints.ends().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_who_is_none_any_more_sees_no_more_than_others() {
    let site = Site::new(&[]).await;
    let job = job_with_a_large_file(&site).await;
    let (secret, _) = somebody(&site, "chief", "viewer", "1h").await;
    let promoted = site.ask("admin", "PATCH", "/accounts/chief", &json!({ "admin": true })).await;
    assert_eq!(promoted.status, 200, "{}", promoted.body);
    site.ask("admin", "DELETE", "/workspaces/lab/members/chief", &Value::Null).await;
    let terminal = Terminal::new(&site, &secret, job).await.expect("an administrator may");
    let log = Open::new(&site, &secret, "the log", &format!("/jobs/{job}/logs/follow")).await.unwrap();
    let download = format!("/jobs/{job}/files/content?area=output&path=large");
    let file = Open::new(&site, &secret, "the download", &download).await.unwrap();
    let mut hints = Open::new(&site, &secret, "the hints", "/hints").await.unwrap();
    let demoted = site.ask("admin", "PATCH", "/accounts/chief", &json!({ "admin": false })).await;
    assert_eq!(demoted.status, 200, "{}", demoted.body);
    terminal.ends().await;
    log.ends().await;
    file.ends().await;
    // Hints of the lab's jobs are none of theirs now; that the stream goes on is told by one of their own.
    let of_lab = site.job(true).await;
    let own = json!({ "command": "true", "cpus": "10m" });
    let own = value(&site.ask_with(Some(&secret), "POST", "/jobs", &own).await)["id"].as_u64().unwrap();
    let mut said = String::new();
    let until = format!("\"id\":\"{own}\"");
    let read = async {
        while !said.contains(&until) {
            let mut part = vec![0; 1 << 16];
            let length = hints.stream.read(&mut part).await.unwrap();
            assert!(length > 0, "the hints ended: {said}");
            said.push_str(&String::from_utf8_lossy(&part[..length]));
        }
    };
    assert!(tokio::time::timeout(DEADLINE, read).await.is_ok());
    assert!(!said.contains(&format!("\"id\":\"{of_lab}\"")), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_ends_with_its_workspace() {
    let site = Site::new(&[]).await;
    site.ask("admin", "PUT", "/workspaces/closing", &json!({})).await;
    site.ask("admin", "PUT", "/workspaces/closing/members/ada", &json!({ "role": "member" })).await;
    let spec = json!({
        "command": format!("truncate -s {LARGE} \"$DANLU_OUTPUT_DIR/large\""), "workspace": "closing", "cpus": "10m",
    });
    let job = value(&site.ask("ada", "POST", "/jobs", &spec).await)["id"].as_u64().unwrap();
    site.server.wait_for_end(JobId(job)).await;
    let download = format!("/jobs/{job}/files/content?area=output&path=large");
    let open = Open::new(&site, site.token("ada").unwrap(), "the download", &download).await.unwrap();
    let deleted = site.ask("admin", "DELETE", "/workspaces/closing", &Value::Null).await;
    assert_eq!(deleted.status, 204, "{}", deleted.body);
    open.ends().await;
}
