//! Too much, or too slowly.

use std::os::unix::fs::PermissionsExt as _;

use danlu_testkit::wire::send;
use danlu_testkit::{DEADLINE, TestServer, spec};
use danlu_types::api::JobOutcome;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::site::{DANLU, PASSWORD, Site, proof, value};
use crate::walk::operations;

#[tokio::test(flavor = "multi_thread")]
async fn no_operation_takes_a_body_beyond_its_size() {
    let site = Site::new(&[]).await;
    let bearer = format!("Bearer {}", site.token("admin").unwrap());
    let body = [b"{\"name\":\"", "a".repeat(2 << 20).as_bytes(), b"\"}"].concat();
    let mut tried = 0;
    for operation in operations(&site).await.iter().filter(|operation| operation.takes_body) {
        let expected = match operation.path.as_str() {
            // Snapshots of code are streamed to the disk; what they are is checked on the way.
            path if path.starts_with("/code/") => 400,
            // Traces are longer than this.
            "/simulations" => 422,
            // Not for people.
            "/attempt/reports" => 403,
            path if path.starts_with("/sidecar/") => 403,
            _ => 413,
        };
        let path = format!("/api/v1{}", operation.plausible());
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let answer = send(&site.address, &operation.method, &path, &headers, &body).await;
        assert_eq!(answer.status, expected, "{} {path}: {}", operation.method, answer.body);
        tried += 1;
    }
    assert!(tried > 10, "only {tried} were tried");
    let long = "a".repeat(1 << 20);
    let answer = send(&site.address, "GET", "/healthz", &[("x-long", &long)], b"").await;
    assert_eq!(answer.status, 431);
    assert!([414, 431].contains(&send(&site.address, "GET", &format!("/{long}"), &[], b"").await.status));
    let deep = format!("{{\"env\":{}", "[".repeat(500_000));
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let answer = send(&site.address, "POST", "/api/v1/jobs", &headers, deep.as_bytes()).await;
    assert!([400, 422].contains(&answer.status), "{}", answer.body);
}

/// Sends the beginning of a request and no more; what the server said until it hung up.
async fn trickle(address: &str, beginning: &str) -> String {
    let mut stream = TcpStream::connect(address.trim_start_matches("http://")).await.unwrap();
    stream.write_all(beginning.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    // Ends when the server hangs up, which is what is tested.
    let hung_up = tokio::time::timeout(danlu_testkit::DEADLINE, stream.read_to_end(&mut said)).await;
    assert!(hung_up.is_ok(), "still listening after {beginning:?}");
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_get_to_the_point_is_let_go() {
    let site = Site::new(&["--request-timeout", "500ms"]).await;
    let bearer = site.token("ada").unwrap();
    assert_eq!(trickle(&site.address, "").await, "", "says nothing");
    let head = trickle(&site.address, "GET /healthz HTTP/1.1\r\nhost: x\r\n").await;
    assert!(head.is_empty() || head.starts_with("HTTP/1.1 408"), "half a head: {head}");
    let body = "POST /api/v1/session HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                content-length: 1000\r\n\r\n{\"name\":";
    let half = trickle(&site.address, body).await;
    assert!(half.starts_with("HTTP/1.1 408") && half.contains("too_slow"), "half a body: {half}");
    let digest = format!("sha256:{}", "0".repeat(64));
    let code = format!(
        "PUT /api/v1/code/{digest} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {bearer}\r\ncontent-length: 1000\r\n\r\nabc"
    );
    let upload = trickle(&site.address, &code).await;
    assert!(!upload.starts_with("HTTP/1.1 2"), "half an upload: {upload}");
    // The others are served meanwhile and after.
    assert_eq!(send(&site.address, "GET", "/healthz", &[], b"").await.status, 200);
}

/// A server that may open so many files and no more, as one may whose administrator said nothing.
async fn server_with_files(limit: u32) -> TestServer {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let program = folder.path().join("danlu-with-few-files");
    std::fs::write(&program, format!("#!/bin/sh\nulimit -n {limit}\nexec {DANLU} \"$@\"\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.display().to_string();
    TestServer::start_in(&program, &["--request-timeout", "120s"], folder, &[]).await
}

/// Opens a connection and says so much; what came back first, where anything did.
async fn occupy(address: &str, request: &str) -> Option<(TcpStream, String)> {
    let mut stream = TcpStream::connect(address.trim_start_matches("http://")).await.ok()?;
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut said = vec![0; 4096];
    let length = match request {
        // Nothing is answered to what is no request yet.
        request if !request.ends_with("\r\n\r\n") => 0,
        _ => tokio::time::timeout(DEADLINE, stream.read(&mut said))
            .await
            .expect("an answer or the end")
            .ok()?,
    };
    Some((stream, String::from_utf8_lossy(&said[..length]).into_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_opens_all_the_streams_there_are_keeps_nobody_else_out() {
    // This program opens both ends' worth of them.
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let site = Site::of(server_with_files(1024).await);
    assert_eq!(site.ask("admin", "PUT", "/workspaces/lab", &json!({})).await.status, 200);
    let mut tokens = Vec::new();
    for (name, role) in [("vera", "viewer"), ("ada", "member")] {
        let new = json!({ "name": name, "password": PASSWORD });
        assert_eq!(site.ask("admin", "POST", "/accounts", &new).await.status, 201);
        let path = format!("/workspaces/lab/members/{name}");
        assert_eq!(site.ask("admin", "PUT", &path, &json!({ "role": role })).await.status, 204);
        let session = value(&site.sign_in(name, PASSWORD).await)["secret"].as_str().unwrap().to_owned();
        let new =
            json!({ "name": "one", "scope": if name == "vera" { "read" } else { "jobs" }, "proof": proof() });
        let token = value(&site.ask_with(Some(&session), "POST", "/tokens", &new).await);
        tokens.push(token["secret"].as_str().unwrap().to_owned());
    }
    let [vera, ada] = &tokens[..] else { unreachable!("two were made") };
    let hints = format!("GET /api/v1/hints HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {vera}\r\n\r\n");
    let half = format!("GET /api/v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {vera}\r\n");
    for (request, what) in [(hints.as_str(), "streams"), ("", "silence"), (half.as_str(), "half a request")] {
        let mut open = Vec::new();
        let mut answers = std::collections::BTreeMap::<String, usize>::new();
        for _ in 0..1100 {
            let Some((stream, said)) = occupy(&site.address, request).await else { continue };
            if said.starts_with("HTTP/1.1 429") {
                let head = said.to_lowercase();
                assert!(head.contains("retry-after: 5") && head.contains("close some"), "{said}");
            }
            *answers.entry(said.chars().take(12).collect()).or_default() += 1;
            open.push(stream);
        }
        if what == "streams" {
            let granted = answers.get("HTTP/1.1 200").copied().unwrap_or_default();
            assert!((1..=96).contains(&granted), "{answers:?}");
            assert!(answers.get("HTTP/1.1 429").is_some_and(|refused| *refused >= 1000), "{answers:?}");
        }
        for _ in 0..5 {
            let answer = site.ask_with(Some(ada), "GET", "/jobs", &Value::Null).await;
            assert_eq!(answer.status, 200, "{what}: {}", answer.body);
        }
        let job = site.server.run(&spec("echo observed")).await;
        assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{what}");
        assert_eq!(site.server.texts(job.id).await, ["observed"]);
        drop(open);
    }
    let log = site.server.log();
    assert!(!log.contains("Too many open files"), "{log}");
}
