//! Secrets that were good once.

use danlu_client::Client;
use danlu_types::session::OpenSession;
use danlu_types::{JobId, WorkerIndex};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::site::{PASSWORD, Site, proof, value};

async fn token(site: &Site, lasts: Option<&str>) -> (String, String) {
    let new = json!({ "name": "x", "scope": "jobs", "lasts": lasts, "proof": proof() });
    let made = value(&site.ask("ada", "POST", "/tokens", &new).await);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&made["token"]["id"]), text(&made["secret"]))
}

/// An open stream, of which the first bytes have come.
async fn stream(site: &Site, path: &str, secret: &str) -> TcpStream {
    let mut stream = TcpStream::connect(site.address.trim_start_matches("http://")).await.unwrap();
    let request = format!("GET /api/v1{path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

/// Reads until the server says that nothing follows. Where streams do not end, neither does this: the test would hang, so
/// it is given a deadline that only a broken server meets.
async fn ends(mut stream: TcpStream) {
    let mut rest = Vec::new();
    let end = async {
        while !rest.ends_with(b"\r\n0\r\n\r\n") {
            let mut part = [0; 4096];
            match stream.read(&mut part).await {
                Ok(0) | Err(_) => return,
                Ok(length) => rest.extend_from_slice(&part[..length]),
            }
        }
    };
    tokio::time::timeout(danlu_testkit::DEADLINE, end).await.expect("the stream goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_with_the_token_that_opened_them() {
    let site = Site::new(&[]).await;
    let job = site.job(false).await;
    let follow = format!("/jobs/{job}/logs/follow");
    let paths = [follow.as_str(), "/hints"];
    for path in paths {
        let (id, secret) = token(&site, None).await;
        let open = stream(&site, path, &secret).await;
        site.ask("ada", "DELETE", &format!("/accounts/ada/tokens/{id}"), &Value::Null).await;
        ends(open).await;
        assert_eq!(site.ask_with(Some(&secret), "GET", "/whoami", &Value::Null).await.status, 401);

        let (id, secret) = token(&site, None).await;
        let open = stream(&site, path, &secret).await;
        let rotation = format!("/accounts/ada/tokens/{id}/rotation");
        assert_eq!(site.ask("ada", "POST", &rotation, &json!({ "proof": proof() })).await.status, 200);
        assert_eq!(site.ask_with(Some(&secret), "GET", "/whoami", &Value::Null).await.status, 401);
        ends(open).await;
        // One that ends by itself: nothing happens but time.
        let (_, secret) = token(&site, Some("3s")).await;
        ends(stream(&site, path, &secret).await).await;
    }
    let open = [
        stream(&site, paths[0], site.token("ada").unwrap()).await,
        stream(&site, paths[1], site.token("ada").unwrap()).await,
    ];
    let others = stream(&site, paths[1], site.token("mia").unwrap()).await;
    site.ask("admin", "PATCH", "/accounts/ada", &json!({ "standing": "disabled" })).await;
    for stream in open {
        ends(stream).await;
    }
    site.ask("admin", "DELETE", "/accounts/mia", &Value::Null).await;
    ends(others).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_ends_with_the_token_that_opened_it() {
    let site = Site::new(&[]).await;
    let job = JobId(site.job(false).await);
    let (id, secret) = token(&site, None).await;
    let open = OpenSession { command: vec!["cat".to_owned()], terminal: None, env: Vec::new() };
    let client = Client::new(&site.address, &secret);
    let (sender, mut receiver) = client.session_open(job, WorkerIndex(0), &open).await.unwrap();
    site.ask("ada", "DELETE", &format!("/accounts/ada/tokens/{id}"), &Value::Null).await;
    let end = async { while let Ok(Some(_)) = receiver.next().await {} };
    tokio::time::timeout(danlu_testkit::DEADLINE, end).await.expect("the terminal goes on");
    drop(sender);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_given_up_opens_nothing_again() {
    let site = Site::new(&[]).await;
    let whoami =
        async |secret: &str| site.ask_with(Some(secret), "GET", "/whoami", &Value::Null).await.status;
    let sign_in = async || value(&site.sign_in("mia", PASSWORD).await)["secret"].as_str().unwrap().to_owned();
    let signed_out = sign_in().await;
    site.ask_with(Some(&signed_out), "DELETE", "/session", &Value::Null).await;
    assert_eq!(whoami(&signed_out).await, 401);
    let before = sign_in().await;
    let another = "another password";
    let change = json!({ "account": "mia", "password": another, "current": PASSWORD });
    assert_eq!(site.ask("nobody", "POST", "/password", &change).await.status, 204);
    assert_eq!(whoami(&before).await, 401, "sessions end with the password");
    assert_eq!(site.sign_in("mia", PASSWORD).await.status, 401);
    let link = value(&site.ask("admin", "POST", "/accounts/mia/password_link", &Value::Null).await);
    let reset = json!({ "account": "mia", "password": PASSWORD, "link": link["password_link"] });
    assert_eq!(site.ask("nobody", "POST", "/password", &reset).await.status, 204);
    assert_eq!(site.ask("nobody", "POST", "/password", &reset).await.status, 401, "a link works once");
    let others = json!({ "account": "ada", "password": PASSWORD, "link": link["password_link"] });
    assert_eq!(site.ask("nobody", "POST", "/password", &others).await.status, 401);
}
