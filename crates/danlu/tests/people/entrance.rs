//! TLS, proxies, profiles: how requests come in, and whom clients trust.

use std::os::unix::fs::PermissionsExt as _;

use danlu_client::{Client, ServerFile};
use danlu_testkit::wire::{Answer, send, send_through};
use danlu_testkit::{TestServer, spec};
use danlu_types::api::JobState;
use serde_json::{Value, json};

use crate::site::{DANLU, PASSWORD, Site, run_danlu, value};

const JSON: (&str, &str) = ("content-type", "application/json");

async fn sign_in_through(client: &Client) -> Answer {
    let body = json!({ "name": "ada", "password": PASSWORD }).to_string();
    let connection = client.dial().await.unwrap();
    send_through(connection, "POST", "/api/v1/session", &[JSON], body.as_bytes()).await
}

async fn add_ada(client: &Client) {
    let new = danlu_types::api::NewAccount {
        name: "ada".parse().unwrap(),
        display_name: None,
        email: None,
        password: Some(PASSWORD.to_owned()),
    };
    client.account_create(&new).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_made_once_and_known_by_its_fingerprint() {
    let mut server = TestServer::start(DANLU, &["--tls"]).await;
    let file = ServerFile::read(&server.data()).unwrap();
    let fingerprint = file.fingerprint.unwrap();
    assert!(file.address.starts_with("https://"), "{}", file.address);
    assert!(server.log().contains(&fingerprint.to_string()), "it is shown");
    let mode = std::fs::metadata(server.data().join("tls.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.terminate();
    server.restart().await;
    assert_eq!(ServerFile::read(&server.data()).unwrap().fingerprint, Some(fingerprint));

    add_ada(server.client()).await;
    let signed_in = sign_in_through(server.client()).await;
    let cookie = signed_in.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    assert_eq!(signed_in.header("cache-control"), Some("no-store"), "it holds a secret");
    assert_eq!(signed_in.header("strict-transport-security"), Some("max-age=31536000"));
    let page = send_through(server.client().dial().await.unwrap(), "GET", "/", &[], b"").await;
    assert_eq!(page.header("strict-transport-security"), Some("max-age=31536000"));

    let address = server.client().address();
    let unknown = Client::new(&address, "").health().await.unwrap_err();
    assert!(unknown.is_unreachable(), "{unknown}");
    let other = "00".repeat(32).parse().unwrap();
    assert!(Client::trusting(&address, "", Some(other)).health().await.unwrap_err().is_unreachable());
    let plain = address.replace("https://", "http://");
    assert!(Client::new(&plain, "").health().await.is_err(), "nothing is said without TLS");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_from_files_is_shown_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let maker = TestServer::start(DANLU, &["--tls"]).await;
    for name in ["tls.crt", "tls.key"] {
        std::fs::copy(maker.data().join(name), folder.path().join(name)).unwrap();
    }
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (certificate, key) = (path("tls.crt"), path("tls.key"));
    let flags = ["--tls-certificate", &certificate, "--tls-key", &key];
    let server = TestServer::start(DANLU, &flags).await;
    let shown = |server: &TestServer| ServerFile::read(&server.data()).unwrap().fingerprint;
    assert_eq!(shown(&server), shown(&maker));

    let data = folder.path().join("data").display().to_string();
    let wrong =
        ["up", "--data", &data, "--listen", "127.0.0.1:0", "--tls-certificate", &key, "--tls-key", &key];
    let (code, _, said) = run_danlu(folder.path(), &wrong, "").await;
    assert!(code == Some(1) && said.contains("holds no certificate"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_works_through_tls_in_profiles() {
    let server = TestServer::start(DANLU, &["--tls"]).await;
    add_ada(server.client()).await;
    let home = tempfile::tempdir().unwrap();
    let run = async |arguments: &[&str], typed: &str| run_danlu(home.path(), arguments, typed).await;
    let address = server.client().address();
    let password = format!("{PASSWORD}\n");
    let login = ["login", "ada", "--server", &address, "--profile", "lab"];
    let (code, _, said) = run(&login, &password).await;
    assert!(code == Some(4) && said.contains("--fingerprint"), "{said}");
    let fingerprint = ServerFile::read(&server.data()).unwrap().fingerprint.unwrap().to_string();
    let (code, _, said) = run(&[&login[..], &["--fingerprint", &fingerprint]].concat(), &password).await;
    assert_eq!(code, Some(0), "{said}");

    let (_, whoami, said) = run(&["--profile", "lab", "whoami"], "").await;
    assert!(whoami.starts_with("ada\n"), "{said}");
    assert_eq!(run(&["whoami"], "").await.0, Some(4), "nobody is signed in by default");
    let (code, _, said) = run(&["--profile", "office", "whoami"], "").await;
    assert!(code == Some(1) && said.contains("profile `office` not found"), "{said}");
    let (_, listed, _) = run(&["profiles", "--json"], "").await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&listed[0]["name"], &listed[0]["account"]), (&json!("lab"), &json!("ada")));
    assert!(!listed.to_string().contains("danlu_"), "no tokens");

    // Sessions inside jobs go through the same TLS.
    let job = server.submit(&spec("sleep 1000")).await;
    server.wait_for(job, JobState::Running).await;
    let data = server.data().display().to_string();
    let exec = ["--data", &data, "exec", &job.to_string(), "--", "echo", "through"];
    let (code, output, said) = run(&exec, "").await;
    assert_eq!((code, output.as_str()), (Some(0), "through\n"), "{said}");
    assert_eq!(run(&["--profile", "lab", "logout"], "").await.0, Some(0));
    assert_eq!(run(&["--profile", "lab", "whoami"], "").await.0, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_known_proxy_says_where_a_request_came_from() {
    let from = async |site: &Site| {
        let body = json!({ "name": "ada", "password": PASSWORD }).to_string();
        let headers = [JSON, ("x-forwarded-for", "203.0.113.7")];
        let signed_in = send(&site.address, "POST", "/api/v1/session", &headers, body.as_bytes()).await;
        let audit = value(&site.ask("admin", "GET", "/audit?subject=ada", &Value::Null).await);
        let last = audit["items"].as_array().unwrap().last().unwrap()["from"].clone();
        (last, signed_in.header("set-cookie").unwrap().contains("; Secure"))
    };
    let behind = Site::new(&["--behind-proxy"]).await;
    assert_eq!(from(&behind).await, (json!("203.0.113.7"), true));
    let elsewhere = Site::new(&["--behind-proxy=192.0.2.1"]).await;
    assert_eq!(from(&elsewhere).await, (json!("127.0.0.1"), true));
    let alone = Site::new(&[]).await;
    assert_eq!(from(&alone).await, (json!("127.0.0.1"), false));
}
