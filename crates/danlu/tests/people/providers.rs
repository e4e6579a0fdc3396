//! Sign-in through a provider, tested against a process that is one (`provider.py`).

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use danlu_testkit::TestServer;
use danlu_testkit::wire::{Answer, send};
use serde_json::{Value, json};

use crate::site::{DANLU, PASSWORD, Site, value};

pub(crate) struct Provider {
    process: Child,
    address: String,
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Provider {
    pub(crate) fn start() -> Self {
        let mut process = Command::new("python3")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/people/provider.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Provider { process, address: format!("http://127.0.0.1:{}", port.trim()) }
    }

    /// Says who sits at the keyboard.
    pub(crate) async fn person(&self, claims: Value) {
        send(&self.address, "POST", "/person", &[], claims.to_string().as_bytes()).await;
    }
}

/// A server that knows the provider, and a workspace of its group.
pub(crate) async fn site(provider: &Provider) -> Site {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "a shared secret\n").unwrap();
    let settings = folder.path().join("oidc.yaml");
    let text = json!({
        "issuer": provider.address,
        "client_id": "danlu",
        "client_secret_file": secret,
        "groups": { "vision-team": [{ "workspace": "vision", "role": "owner" }] },
    });
    std::fs::write(&settings, text.to_string()).unwrap();
    let flags = ["--oidc", settings.to_str().unwrap()];
    let site = Site::of(TestServer::start_in(DANLU, &flags, folder, &[]).await);
    for workspace in ["vision", "lab"] {
        let made = site.ask("admin", "PUT", &format!("/workspaces/{workspace}"), &json!({})).await;
        assert!([200, 201].contains(&made.status), "{}", made.body);
    }
    site
}

pub(crate) fn cookie(answer: &Answer, name: &str) -> String {
    let cookies = answer.head.lines().filter_map(|line| line.strip_prefix("set-cookie: "));
    let found = cookies.filter_map(|cookie| cookie.split(';').next()).find(|pair| pair.starts_with(name));
    found.unwrap_or_else(|| panic!("no cookie {name} in {}", answer.head)).to_owned()
}

/// What a browser does: to the server, to the provider, and back.
async fn browse(site: &Site, cookies: &[&str]) -> Answer {
    let begin = send(&site.address, "GET", "/api/v1/oidc/start", &[], b"").await;
    assert_eq!(begin.status, 303, "{}", begin.body);
    let address = begin.header("location").unwrap().to_owned();
    come_back(site, &begin, &address, cookies, None).await
}

/// From a beginning that sends one to this address of the provider, back to the server.
pub(crate) async fn come_back(
    site: &Site,
    begin: &Answer,
    address: &str,
    cookies: &[&str],
    token: Option<&str>,
) -> Answer {
    let (provider, path) = split(address);
    let there = send(&provider, "GET", &path, &[], b"").await;
    assert_eq!(there.status, 302, "{}", there.body);
    let (_, back) = split(there.header("location").unwrap());
    let state = cookie(begin, "danlu_oidc");
    let cookies = [&[state.as_str()], cookies].concat().join("; ");
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("cookie", cookies.as_str())];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    send(&site.address, "GET", &back, &headers, b"").await
}

pub(crate) fn split(address: &str) -> (String, String) {
    let start = "http://".len();
    let slash = start + address[start..].find('/').unwrap();
    (address[..slash].to_owned(), address[slash..].to_owned())
}

pub(crate) async fn whoami(site: &Site, answer: &Answer) -> Value {
    assert_eq!(answer.status, 303, "{}", answer.body);
    assert_eq!(answer.header("location"), Some("/"));
    let cookie = cookie(answer, "danlu_session");
    value(&send(&site.address, "GET", "/api/v1/whoami", &[("cookie", &cookie)], b"").await)["account"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_the_provider_vouches_for_gets_an_account_and_the_roles_of_their_groups() {
    let provider = Provider::start();
    let site = site(&provider).await;
    let ways = value(&site.ask("nobody", "GET", "/ways_in", &Value::Null).await);
    assert_eq!(ways, json!({ "registration": "closed", "oidc": true }));

    let nina =
        json!({ "sub": "7", "preferred_username": "Nina.L@lab.example", "groups": ["vision-team", "other"] });
    provider.person(nina).await;
    let account = whoami(&site, &browse(&site, &[]).await).await;
    assert_eq!(account["name"], "nina-l");
    assert_eq!(account["workspaces"], json!([{ "workspace": "vision", "role": "owner" }]));
    // Out of the group, under another name: the same person, and no owner any more.
    provider.person(json!({ "sub": "7", "preferred_username": "nina.married", "groups": [] })).await;
    let account = whoami(&site, &browse(&site, &[]).await).await;
    assert_eq!((&account["name"], &account["workspaces"]), (&json!("nina-l"), &json!([])));
    // What was given by hand stays.
    site.ask("admin", "PUT", "/workspaces/lab/members/nina-l", &json!({ "role": "viewer" })).await;
    let account = whoami(&site, &browse(&site, &[]).await).await;
    assert_eq!(account["workspaces"], json!([{ "workspace": "lab", "role": "viewer" }]));
    site.ask("admin", "PATCH", "/accounts/nina-l", &json!({ "standing": "disabled" })).await;
    assert_eq!(browse(&site, &[]).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_elsewhere_is_not_an_account_here() {
    let provider = Provider::start();
    let site = site(&provider).await;
    site.ask("admin", "POST", "/accounts", &json!({ "name": "ada", "password": PASSWORD })).await;
    provider.person(json!({ "sub": "1", "preferred_username": "ada" })).await;
    let taken = browse(&site, &[]).await;
    assert!(taken.status == 409 && taken.body.contains("link the two"), "{}", taken.body);
    provider.person(json!({ "sub": "2", "preferred_username": "admin" })).await;
    assert_eq!(browse(&site, &[]).await.status, 409, "nobody becomes admin by a name");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_that_was_not_begun_here_leads_nowhere() {
    let provider = Provider::start();
    let site = site(&provider).await;
    provider.person(json!({ "sub": "7", "preferred_username": "nina" })).await;
    let begin = send(&site.address, "GET", "/api/v1/oidc/start", &[], b"").await;
    let (there, path) = split(begin.header("location").unwrap());
    let sent_back = send(&there, "GET", &path, &[], b"").await;
    let (_, back) = split(sent_back.header("location").unwrap());
    let come =
        async |cookies: &str| send(&site.address, "GET", &back, &[("cookie", cookies)], b"").await.status;
    assert_eq!(come("").await, 401, "in another browser");
    assert_eq!(come("danlu_oidc=made-up").await, 401);
    let state = cookie(&begin, "danlu_oidc");
    assert_eq!(come(&state).await, 303);
    assert_eq!(come(&state).await, 401, "twice");
    let refused =
        format!("/api/v1/oidc/callback?error=access_denied&{}", state.replace("danlu_oidc", "state"));
    let refused = send(&site.address, "GET", &refused, &[("cookie", &state)], b"").await;
    assert!(refused.status == 401 && refused.body.contains("access_denied"), "{}", refused.body);

    for wrong in [
        json!({ "nonce": "another" }),
        json!({ "aud": "another" }),
        json!({ "exp": 1 }),
        json!({ "iss": "http://x" }),
    ] {
        let mut claims = json!({ "sub": "8", "preferred_username": "eve" });
        claims.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        provider.person(claims).await;
        assert_eq!(browse(&site, &[]).await.status, 401, "{wrong}");
    }
    assert_eq!(site.ask("admin", "GET", "/accounts/eve", &Value::Null).await.status, 404);
}
