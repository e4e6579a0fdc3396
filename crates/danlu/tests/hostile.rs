//! Hostile requests: each is answered with a 4xx and a reason, and the server lives on.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use danlu_testkit::{TestServer, spec};
use danlu_types::Problem;
use danlu_types::api::JobOutcome;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

/// One raw HTTP request; its status and body.
async fn request(server: &TestServer, head: &str, body: &[u8]) -> (u16, String) {
    let address = server.client().address();
    let mut stream = TcpStream::connect(address.trim_start_matches("http://")).await.unwrap();
    let token = std::fs::read_to_string(server.data().join("token")).unwrap();
    let head = format!(
        "{head}\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        token.trim(),
        body.len()
    );
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    // The server may answer and hang up before it has read ten megabytes.
    let _ = stream.write_all(&bytes).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
    (status, body)
}

async fn submit(server: &TestServer, body: &[u8]) -> (u16, String) {
    request(server, "POST /api/v1/jobs HTTP/1.1\r\ncontent-type: application/json", body).await
}

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let with = |field: &str, value: Value| {
        let mut spec = json!({ "command": "true" });
        spec[field] = value;
        spec.to_string().into_bytes()
    };
    let deep = |depth: usize| {
        let mut text = String::from(r#"{"command":"true","env":"#);
        text.push_str(&"[".repeat(depth));
        text.into_bytes()
    };
    vec![
        ("empty body", vec![]),
        ("not JSON", b"command: true".to_vec()),
        ("not an object", b"[1, 2, 3]".to_vec()),
        ("null", b"null".to_vec()),
        ("cut off", br#"{"command": "tr"#.to_vec()),
        ("two documents", br#"{"command": "true"}{"command": "true"}"#.to_vec()),
        ("invalid UTF-8", b"{\"command\": \"\xff\xfe\"}".to_vec()),
        ("no command", b"{}".to_vec()),
        ("blank command", with("command", json!("  \n"))),
        ("NUL in the command", with("command", json!("true\u{0}; rm -rf /"))),
        ("command of a megabyte", with("command", json!("x".repeat(1 << 19)))),
        ("unknown field", with("comand", json!("true"))),
        ("field of a later version", with("inputs", json!({ "data": "s3://bucket/" }))),
        ("duplicate field", br#"{"command": "true", "command": "false"}"#.to_vec()),
        ("command as a list", with("command", json!(["true"]))),
        ("no workers", with("workers", json!(0))),
        ("negative workers", with("workers", json!(-1))),
        ("huge workers", with("workers", json!(18_446_744_073_709_551_615_u64))),
        ("more than a u64", br#"{"command": "true", "workers": 99999999999999999999999999}"#.to_vec()),
        ("workers as a fraction", with("workers", json!(1.5))),
        ("a billion devices", with("devices", json!({ "count": 1_000_000_000 }))),
        ("half a device", with("devices", json!({ "count": 0.5 }))),
        ("unknown kind", with("devices", json!({ "kind": "tpu", "count": 1 }))),
        ("devices that are not here", with("devices", json!({ "kind": "ascend", "count": 1 }))),
        ("endless model glob", with("devices", json!({ "model": "*".repeat(5000), "count": 1 }))),
        ("endless memory", with("memory", json!("99999999999999999999Gi"))),
        ("more memory than there is", with("memory", json!("900Ti"))),
        ("memory without sense", with("memory", json!("lots"))),
        ("not a number of cores", with("cpus", json!("NaN"))),
        ("infinite cores", with("cpus", json!("inf"))),
        ("negative cores", with("cpus", json!(-4))),
        ("a million cores", with("cpus", json!(1_000_000))),
        ("no cores", with("cpus", json!(0))),
        ("endless time", with("max_time", json!("99999999999999d"))),
        ("time backwards", with("max_time", json!("-5m"))),
        ("path as a name", with("name", json!("../../etc/passwd"))),
        ("name of ten megabytes", with("name", json!("x".repeat(10 << 20)))),
        ("name of half a megabyte", with("name", json!("x".repeat(1 << 19)))),
        ("empty name", with("name", json!(""))),
        ("name with a line feed", with("name", json!("a\nb"))),
        ("name that reads backwards", with("name", json!("gnp\u{202e}exe"))),
        ("name of look-alikes", with("name", json!("аdmin"))),
        ("name without width", with("name", json!("a\u{200b}b"))),
        ("escaping checkpoint", with("checkpoint", json!("../../../root"))),
        ("absolute checkpoint", with("checkpoint", json!("/etc"))),
        ("escaping setup", with("setup", json!("a/../../b"))),
        ("relative working directory", with("working_directory", json!("here"))),
        ("code that is a path", with("code", json!("/etc/passwd"))),
        ("code that was never uploaded", with("code", json!(format!("sha256:{}", "0".repeat(64))))),
        ("another image", with("image", json!("ubuntu:24.04"))),
        ("priority of ten", with("priority", json!(10))),
        ("priority of 300", with("priority", json!(300))),
        ("variable with an equals sign", with("env", json!({ "A=B": "c" }))),
        ("variable of our own", with("env", json!({ "DANLU_RANK": "0" }))),
        ("variable with a NUL", with("env", json!({ "A": "b\u{0}c" }))),
        ("nested variable", with("env", json!({ "A": { "B": "C" } }))),
        ("two thousand variables", {
            let many: serde_json::Map<String, Value> =
                (0..2000).map(|n| (format!("V{n}"), json!("x"))).collect();
            with("env", Value::Object(many))
        }),
        ("deep nesting", deep(200_000)),
        ("deep but closed", {
            let mut text = deep(5000);
            text.extend_from_slice("]".repeat(5000).as_bytes());
            text.push(b'}');
            text
        }),
        ("retry without end", with("retry", json!({ "limit": 4_000_000_000_u32 }))),
        ("retry on a whim", with("retry", json!({ "limit": 1, "on": ["whim"] }))),
        ("no ranks", with("ranks", json!(0))),
        ("a million ranks", with("ranks", json!(1_000_000))),
        ("parameter with a space", with("parameters", json!({ "a b": 1 }))),
    ]
}

#[tokio::test]
async fn hostile_job_files_are_refused_with_a_reason() {
    let server = TestServer::start(DANLU, &[]).await;
    for (what, body) in corpus() {
        let (status, text) = submit(&server, &body).await;
        assert!((400..500).contains(&status), "{what}: answered {status} {text}");
        let problem: Problem =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{what}: {error}: {text}"));
        assert!(!problem.detail.is_empty() && text.len() < 4096, "{what}: {text}");
    }
    let list = server.client().jobs_list(&danlu_types::api::JobQuery::default()).await.unwrap();
    assert_eq!(list.items.len(), 0, "nothing hostile may have been queued");
    assert_eq!(server.run(&spec("true")).await.outcome, Some(JobOutcome::Succeeded));
}

#[tokio::test]
async fn hostile_addresses_and_headers_are_refused_with_a_reason() {
    let server = TestServer::start(DANLU, &[]).await;
    for head in [
        "GET /api/v1/jobs/0 HTTP/1.1",
        "GET /api/v1/jobs/-1 HTTP/1.1",
        "GET /api/v1/jobs/99999999999999999999999 HTTP/1.1",
        "GET /api/v1/jobs/..%2f..%2fetc%2fpasswd HTTP/1.1",
        "GET /api/v1/jobs/1%00 HTTP/1.1",
        "GET /api/v1/jobs?cursor=%ff%fe HTTP/1.1",
        "GET /api/v1/jobs?cursor=abc HTTP/1.1",
        "GET /api/v1/jobs?state=dancing HTTP/1.1",
        "GET /api/v1/jobs?label=nonsense HTTP/1.1",
        "GET /api/v1/jobs?nonsense=1 HTTP/1.1",
        "GET /api/v1/jobs?limit=-5 HTTP/1.1",
        "GET /api/v1/jobs?search=%00 HTTP/1.1",
        "GET /api/v1/events?cursor=-1 HTTP/1.1",
        "GET /api/v1/jobs/1/logs?rank=x HTTP/1.1",
        "GET /api/v1/jobs/1/workers/0/session HTTP/1.1",
        "GET /api/v1/nothing HTTP/1.1",
        "GET /../../etc/passwd HTTP/1.1",
        "DELETE /api/v1/nodes HTTP/1.1",
        "PUT /api/v1/code/..%2f..%2fetc%2fpasswd HTTP/1.1",
        "PUT /api/v1/code/sha256:zz HTTP/1.1",
        "POST /api/v1/jobs HTTP/1.1\r\ncontent-type: text/plain",
        "POST /api/v1/jobs HTTP/1.1\r\ncontent-type: application/json\r\nidempotency-key: ",
    ] {
        let (status, text) = request(&server, head, b"{}").await;
        assert!((400..500).contains(&status), "{head}: answered {status} {text}");
        assert!(serde_json::from_str::<Problem>(&text).is_ok(), "{head}: {text}");
    }
}

#[tokio::test]
async fn without_the_token_nothing_is_told() {
    let server = TestServer::start(DANLU, &[]).await;
    let address = server.client().address();
    for token in ["", "wrong", &"0".repeat(64)] {
        let client = danlu_client::Client::new(&address, token);
        let error = client.nodes_list().await.unwrap_err().to_string();
        assert!(error.contains("token"), "{error}");
    }
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(server.data().join("token")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(danlu_client::Client::new(&address, "").health().await.unwrap().status, "ok");
}
