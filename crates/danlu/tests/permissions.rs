//! Who may do what: every operation of the API, asked for by everybody.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::fmt::Write as _;

use danlu_testkit::TestServer;
use danlu_testkit::wire::{Answer, send};
use serde_json::{Value, json};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
const PASSWORD: &str = "correct horse battery";
/// Of the workspace `lab`, where `ada` submits what all others ask about; nobody has no token, and root is the machine's.
const PEOPLE: [(&str, Option<&str>); 5] = [
    ("sam", None),
    ("vera", Some("viewer")),
    ("mia", Some("member")),
    ("ada", Some("member")),
    ("otto", Some("owner")),
];
const ASKERS: [&str; 7] = ["nobody", "sam", "vera", "mia", "ada", "otto", "admin"];

struct Site {
    server: TestServer,
    address: String,
    tokens: Vec<(String, String)>,
}

impl Site {
    async fn new(flags: &[&str]) -> Self {
        let server = TestServer::start(DANLU, flags).await;
        let address = server.client().address().to_owned();
        let token = std::fs::read_to_string(server.data().join("token")).unwrap().trim().to_owned();
        let mut site = Site { server, address, tokens: vec![("admin".to_owned(), token)] };
        for (name, role) in PEOPLE {
            let made =
                site.ask("admin", "POST", "/accounts", &json!({ "name": name, "password": PASSWORD })).await;
            assert_eq!(made.status, 201, "{}", made.body);
            if let Some(role) = role {
                let path = format!("/workspaces/lab/members/{name}");
                assert_eq!(site.ask("admin", "PUT", &path, &json!({ "role": role })).await.status, 204);
            }
            let signed_in = site.sign_in(name, PASSWORD).await;
            assert_eq!(signed_in.status, 200, "{}", signed_in.body);
            let secret = value(&signed_in)["secret"].as_str().unwrap().to_owned();
            site.tokens.push((name.to_owned(), secret));
        }
        site
    }

    async fn sign_in(&self, name: &str, password: &str) -> Answer {
        self.ask("nobody", "POST", "/session", &json!({ "name": name, "password": password })).await
    }

    fn token(&self, who: &str) -> Option<&str> {
        self.tokens.iter().find(|(name, _)| name == who).map(|(_, token)| token.as_str())
    }

    async fn ask(&self, who: &str, method: &str, path: &str, body: &Value) -> Answer {
        self.ask_with(self.token(who), method, path, body).await
    }

    async fn ask_with(&self, token: Option<&str>, method: &str, path: &str, body: &Value) -> Answer {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        if path.ends_with("/session") && path.contains("/workers/") {
            headers.extend([
                ("upgrade", "websocket"),
                ("sec-websocket-version", "13"),
                ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ]);
        }
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        send(&self.address, method, &format!("/api/v1{path}"), &headers, &body).await
    }

    /// A job of ada's in the lab that waits, or one that runs.
    async fn job(&self, held: bool) -> u64 {
        let spec = json!({ "command": "sleep 1000", "workspace": "lab", "cpus": "10m", "grace": "0s" });
        let job = value(&self.ask("ada", "POST", "/jobs", &spec).await)["id"].as_u64().unwrap();
        if held {
            self.ask("ada", "POST", &format!("/jobs/{job}/hold"), &Value::Null).await;
        } else {
            self.server.wait_for(danlu_types::JobId(job), danlu_types::api::JobState::Running).await;
        }
        job
    }
}

fn value(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{} {}", answer.head, answer.body))
}

/// How to ask for an operation so that it could be granted: the path's parts, and a body. `None`: nobody has thought about
/// it, and the test fails.
fn recipe(operation: &str, job: u64, account: &str, node: &str) -> Option<(String, Value)> {
    let (_, path) = operation.split_once(' ')?;
    let body = match operation {
        "POST /jobs" => json!({ "command": "true", "workspace": "lab", "cpus": "10m" }),
        "POST /session" => json!({ "name": "ada", "password": PASSWORD }),
        "POST /registration" => json!({ "name": format!("new-{account}"), "password": PASSWORD }),
        "POST /password" => json!({ "account": account, "password": PASSWORD, "current": PASSWORD }),
        "POST /accounts" => json!({ "name": format!("made-by-{account}"), "password": PASSWORD }),
        "PATCH /accounts/{name}" => json!({ "display_name": "Ada" }),
        "POST /tokens" => json!({ "name": "script", "scope": "read" }),
        "PUT /workspaces/{name}/members/{account}" => json!({ "role": "viewer" }),
        "POST /nodes/{name}/cordon" | "POST /nodes/{name}/drain" => json!({ "why": "new fans" }),
        "GET /jobs"
        | "GET /jobs/{id}"
        | "DELETE /jobs/{id}"
        | "POST /jobs/{id}/stop"
        | "POST /jobs/{id}/hold"
        | "POST /jobs/{id}/release"
        | "POST /jobs/{id}/clone"
        | "GET /jobs/{id}/why"
        | "GET /jobs/{id}/logs"
        | "GET /jobs/{id}/logs/follow"
        | "GET /jobs/{id}/workers/{worker}/session"
        | "GET /events"
        | "GET /nodes"
        | "POST /nodes/{name}/uncordon"
        | "POST /nodes/{name}/devices/{index}/restore"
        | "GET /devices"
        | "GET /workspaces"
        | "GET /hints"
        | "PUT /code/{digest}"
        | "HEAD /code/{digest}"
        | "DELETE /session"
        | "GET /whoami"
        | "GET /accounts"
        | "GET /accounts/{name}"
        | "DELETE /accounts/{name}"
        | "POST /accounts/{name}/password_link"
        | "GET /accounts/{name}/tokens"
        | "DELETE /accounts/{name}/tokens/{id}"
        | "GET /workspaces/{name}/members"
        | "DELETE /workspaces/{name}/members/{account}"
        | "GET /audit" => Value::Null,
        _ => return None,
    };
    let name = match path {
        path if path.starts_with("/nodes/") => node,
        path if path.starts_with("/workspaces/") => "lab",
        _ => account,
    };
    let filled = path
        .replace("{id}", &job.to_string())
        .replace("{worker}", "0")
        .replace("{index}", "0")
        .replace("{name}", name)
        .replace("{account}", account)
        .replace("{digest}", &format!("sha256:{}", "0".repeat(64)));
    Some((filled, body))
}

/// What an answer says about permission. A thing that is missing and a thing that is hidden look the same, as they should:
/// where the path names something that is really there, 404 means hidden.
fn word(operation: &str, status: u16) -> &'static str {
    let names_nothing = ["{digest}", "{index}"].iter().any(|part| operation.contains(part));
    match status {
        401 => "who?",
        403 => "no",
        // A workspace that one is not in is a wrong value of a field, like one that does not exist.
        422 if operation == "POST /jobs" => "hidden",
        404 if !names_nothing => "hidden",
        429 => "later",
        500.. => "BROKEN",
        _ => "yes",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_is_for_those_whom_the_policy_names() {
    let site = Site::new(&["--open-registration"]).await;
    let openapi: Value = value(&site.ask("admin", "GET", "/openapi.json", &Value::Null).await);
    let node = value(&site.ask("admin", "GET", "/nodes", &Value::Null).await)["items"][0]["name"].clone();
    let node = node.as_str().unwrap().to_owned();
    let mut matrix = String::new();
    let _ = writeln!(matrix, "{:<48}{}", "", ASKERS.map(|name| format!("{name:<8}")).concat().trim_end());
    for (path, methods) in openapi["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let operation = format!("{} {path}", method.to_uppercase());
            let mut words = String::new();
            for who in ASKERS {
                let word = ask_afresh(&site, &operation, who, &node).await;
                let _ = write!(words, "{word:<8}");
            }
            let _ = writeln!(matrix, "{operation:<48}{}", words.trim_end());
        }
    }
    insta::assert_snapshot!(matrix);
}

/// Asks on a thing of its own, so that what one is allowed to do does not change what the next one finds.
async fn ask_afresh(site: &Site, operation: &str, who: &str, node: &str) -> &'static str {
    let enters = operation.contains("/workers/");
    let job = if operation.contains("/jobs/{id}") { site.job(!enters).await } else { 0 };
    let subject = if operation.contains("/accounts/{name}")
        || operation.contains("{account}")
        || operation == "POST /password"
    {
        // For ada's own account she is its author; a copy of it for each, because some delete it.
        "ada"
    } else {
        who
    };
    let (path, body) = recipe(operation, job, subject, node).unwrap_or_else(|| {
        panic!("nobody has said how to ask for `{operation}`: add it to `recipe`, and to the policy")
    });
    let method = operation.split(' ').next().unwrap();
    // What would end the account or the session of the one who asks is asked for last, by refusing it a body.
    let answer = match operation {
        "DELETE /session" => {
            let fresh = value(
                &site.sign_in(if who == "nobody" || who == "admin" { "sam" } else { who }, PASSWORD).await,
            );
            let token = (who != "nobody").then(|| fresh["secret"].as_str().unwrap().to_owned());
            site.ask_with(token.as_deref(), method, &path, &body).await
        }
        "DELETE /accounts/{name}" => {
            let name = format!("gone-{who}");
            site.ask("admin", "POST", "/accounts", &json!({ "name": name, "password": PASSWORD })).await;
            site.ask(who, method, &format!("/accounts/{name}"), &body).await
        }
        "DELETE /accounts/{name}/tokens/{id}" => {
            let made =
                site.ask("ada", "POST", "/tokens", &json!({ "name": "script", "scope": "read" })).await;
            let id = value(&made)["token"]["id"].as_str().unwrap().to_owned();
            site.ask(who, method, &format!("/accounts/ada/tokens/{id}"), &body).await
        }
        "POST /password" => {
            // Sets the same password again; it ends sessions, so on an account that nobody asks with.
            let name = format!("pass-{who}");
            site.ask("admin", "POST", "/accounts", &json!({ "name": name, "password": PASSWORD })).await;
            let body = json!({ "account": name, "password": PASSWORD, "current": PASSWORD });
            site.ask(who, method, &path, &body).await
        }
        "PUT /workspaces/{name}/members/{account}" | "DELETE /workspaces/{name}/members/{account}" => {
            let name = format!("role-{who}-{}", method.to_lowercase());
            site.ask("admin", "POST", "/accounts", &json!({ "name": name, "password": PASSWORD })).await;
            let path = format!("/workspaces/lab/members/{name}");
            site.ask("admin", "PUT", &path, &json!({ "role": "viewer" })).await;
            site.ask(who, method, &path, &body).await
        }
        _ => site.ask(who, method, &path, &body).await,
    };
    word(operation, answer.status)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_may_not_see_is_not_listed() {
    let site = Site::new(&[]).await;
    let job = site.job(true).await;
    let seen = async |who: &str| {
        let jobs = value(&site.ask(who, "GET", "/jobs", &Value::Null).await);
        let events = value(&site.ask(who, "GET", &format!("/events?job={job}"), &Value::Null).await);
        (jobs["items"].as_array().unwrap().len(), events["items"].as_array().unwrap().len() > 0)
    };
    assert_eq!(seen("sam").await, (0, false));
    for who in ["vera", "mia", "ada", "otto", "admin"] {
        assert_eq!(seen(who).await, (1, true), "{who}");
    }
    let hidden = site.ask("sam", "GET", &format!("/jobs/{job}"), &Value::Null).await;
    let missing = site.ask("sam", "GET", "/jobs/987654", &Value::Null).await;
    assert_eq!(hidden.body.replace(&job.to_string(), "N"), missing.body.replace("987654", "N"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_does_no_more_than_its_scope_and_nothing_once_revoked() {
    let site = Site::new(&[]).await;
    let job = site.job(true).await;
    let made = value(&site.ask("ada", "POST", "/tokens", &json!({ "name": "board", "scope": "read" })).await);
    let (id, secret) = (made["token"]["id"].as_str().unwrap(), made["secret"].as_str());
    let look = async || site.ask_with(secret, "GET", &format!("/jobs/{job}"), &Value::Null).await.status;
    assert_eq!(look().await, 200);
    let stop = site.ask_with(secret, "POST", &format!("/jobs/{job}/stop"), &Value::Null).await;
    assert!(stop.status == 403 && stop.body.contains("`jobs`"), "{}", stop.body);
    let more = site.ask_with(secret, "POST", "/tokens", &json!({ "name": "x", "scope": "all" })).await;
    assert_eq!(more.status, 403, "{}", more.body);
    assert_eq!(
        site.ask("ada", "DELETE", &format!("/accounts/ada/tokens/{id}"), &Value::Null).await.status,
        204
    );
    assert_eq!(look().await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_says_nothing_and_gets_slow() {
    let site = Site::new(&[]).await;
    let wrong = site.sign_in("ada", "not her password").await;
    let unknown = site.sign_in("nobody-at-all", "not her password").await;
    assert_eq!((wrong.status, &wrong.body), (401, &unknown.body));
    for _ in 0..5 {
        site.sign_in("ada", "not her password").await;
    }
    assert_eq!(site.sign_in("ada", PASSWORD).await.status, 429);
    assert_eq!(site.sign_in("mia", PASSWORD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_alone_changes_nothing() {
    let site = Site::new(&[]).await;
    let signed_in = site.sign_in("ada", PASSWORD).await;
    let cookie = signed_in.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly; SameSite=Lax"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let submit = async |more: &[(&str, &str)]| {
        let mut headers = vec![("cookie", cookie), ("content-type", "application/json")];
        headers.extend(more);
        send(&site.address, "POST", "/api/v1/jobs", &headers, br#"{"command":"true","cpus":"10m"}"#)
            .await
            .status
    };
    assert_eq!(submit(&[]).await, 403);
    assert_eq!(submit(&[("x-danlu-console", "1"), ("origin", "http://evil.example")]).await, 403);
    assert_eq!(submit(&[("x-danlu-console", "1"), ("origin", "http://localhost")]).await, 201);
    let read = send(&site.address, "GET", "/api/v1/whoami", &[("cookie", cookie)], b"").await;
    assert_eq!(value(&read)["account"]["name"], "ada");
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_wait_for_approval_and_end_when_disabled() {
    let site = Site::new(&["--open-registration"]).await;
    let asked = json!({ "name": "nina", "password": PASSWORD });
    assert_eq!(site.ask("nobody", "POST", "/registration", &asked).await.status, 201);
    // Nobody makes themselves an administrator on the way.
    let greedy = json!({ "name": "eve", "password": PASSWORD, "admin": true });
    assert_eq!(site.ask("nobody", "POST", "/registration", &greedy).await.status, 422);
    assert_eq!(site.sign_in("nina", PASSWORD).await.status, 401);
    let approve = site.ask("admin", "PATCH", "/accounts/nina", &json!({ "standing": "active" })).await;
    assert_eq!(approve.status, 200, "{}", approve.body);
    let signed_in = site.sign_in("nina", PASSWORD).await;
    let secret = value(&signed_in)["secret"].as_str().unwrap().to_owned();
    let own = async |body: Value| site.ask_with(Some(&secret), "PATCH", "/accounts/nina", &body).await.status;
    assert_eq!(own(json!({ "email": "nina@lab.example" })).await, 200);
    assert_eq!(own(json!({ "admin": true })).await, 403);
    site.ask("admin", "PATCH", "/accounts/nina", &json!({ "standing": "disabled" })).await;
    assert_eq!(own(json!({ "email": "x@lab.example" })).await, 401);
    assert_eq!(
        site.ask("admin", "PATCH", "/accounts/admin", &json!({ "standing": "disabled" })).await.status,
        409
    );

    let audit = value(&site.ask("admin", "GET", "/audit?subject=nina", &Value::Null).await);
    let actions: Vec<&str> =
        audit["items"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(
        actions,
        ["account.create", "account.change", "session.begin", "account.change", "account.change"]
    );
    assert!(!audit.to_string().contains("argon2"), "no hash of a password leaves the server");
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_survive_a_restart() {
    let mut site = Site::new(&[]).await;
    let token = site.token("otto").unwrap().to_owned();
    site.server.kill();
    site.server.restart().await;
    site.address = site.server.client().address().to_owned();
    let members = site.ask_with(Some(&token), "GET", "/workspaces/lab/members", &Value::Null).await;
    assert_eq!(value(&members)["items"].as_array().unwrap().len(), 4);
    assert_eq!(site.sign_in("vera", PASSWORD).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_signs_in_and_out() {
    let site = Site::new(&[]).await;
    let home = tempfile::tempdir().unwrap();
    let run = async |arguments: &[&str], typed: &str| {
        use tokio::io::AsyncWriteExt as _;
        let mut program = tokio::process::Command::new(DANLU)
            .args(arguments)
            .env("XDG_CONFIG_HOME", home.path())
            .env("HOME", home.path())
            .env_remove("DANLU_DATA")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        program.stdin.take().unwrap().write_all(typed.as_bytes()).await.unwrap();
        let output = program.wait_with_output().await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, _, said) = run(&["login", "ada", "--server", &site.address], "wrong\n").await;
    assert!(code == Some(1) && said.contains("no account with this name and password"), "{said}");
    let (code, _, said) = run(&["login", "ada", "--server", &site.address], &format!("{PASSWORD}\n")).await;
    assert_eq!(code, Some(0), "{said}");
    let (_, whoami, _) = run(&["whoami"], "").await;
    assert_eq!(whoami, "ada\nowner of the workspace `ada`, member of `default`\nmember of `lab`\n");
    let (code, token, _) = run(&["tokens", "add", "nightly", "--scope", "read"], "").await;
    assert!(code == Some(0) && token.starts_with("danlu_"), "{token}");
    let (code, _, said) = run(&["admin", "user", "list"], "").await;
    assert!(code == Some(1) && said.contains("`ada` may not do this"), "{said}");
    assert_eq!(run(&["logout"], "").await.0, Some(0));
    assert_eq!(run(&["whoami"], "").await.0, Some(4));

    let data = site.server.data().display().to_string();
    let (code, seal, said) = run(&["--data", &data, "admin", "audit", "--verify"], "").await;
    assert!(code == Some(0) && seal.trim().len() == 64, "{said}");
    let (_, secret, _) = run(&["--data", &data, "admin", "user", "add", "nina"], "").await;
    let set = ["--data", &data, "password", "nina", "--link", secret.trim()];
    assert_eq!(run(&set, &format!("{PASSWORD}\n")).await.0, Some(0));
    let (code, _, said) = run(&set, &format!("{PASSWORD}\n")).await;
    assert!(code == Some(1) && said.contains("a link works once"), "{said}");
    assert_eq!(site.sign_in("nina", PASSWORD).await.status, 200);
}
