//! Too much, or too slowly.

use danlu_testkit::wire::send;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::site::Site;
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
            path if path.starts_with("/courier/") => 403,
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
