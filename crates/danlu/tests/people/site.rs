//! A server with a workspace and everybody that one can be in it.

use danlu_testkit::TestServer;
use danlu_testkit::wire::{Answer, send};
use serde_json::{Value, json};

pub(crate) const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
pub(crate) const PASSWORD: &str = "correct horse battery";
/// Of the workspace `lab`, where `ada` submits what all others ask about; nobody has no token, and root is the machine's.
const PEOPLE: [(&str, Option<&str>); 5] = [
    ("sam", None),
    ("vera", Some("viewer")),
    ("mia", Some("member")),
    ("ada", Some("member")),
    ("otto", Some("owner")),
];
/// The last is no person but a program: it has the token of an attempt of ada's in the lab.
pub(crate) const ASKERS: [&str; 8] = ["nobody", "sam", "vera", "mia", "ada", "otto", "admin", "attempt"];

/// What people here show beside their session.
pub(crate) fn proof() -> Value {
    json!({ "password": PASSWORD })
}

pub(crate) struct Site {
    pub(crate) server: TestServer,
    pub(crate) address: String,
    tokens: Vec<(String, String)>,
}

impl Site {
    pub(crate) async fn new(flags: &[&str]) -> Self {
        let mut site = Site::of(TestServer::start(DANLU, flags).await);
        assert_eq!(site.ask("admin", "PUT", "/workspaces/lab", &json!({})).await.status, 200);
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

    /// A server where there is nobody but the administrator.
    pub(crate) fn of(server: TestServer) -> Self {
        let address = server.client().address();
        let token = std::fs::read_to_string(server.data().join("token")).unwrap().trim().to_owned();
        Site { server, address, tokens: vec![("admin".to_owned(), token)] }
    }

    /// The same after a restart, which may have moved it to another port.
    pub(crate) fn again(&mut self) -> &Self {
        self.address = self.server.client().address();
        self
    }

    /// Starts a job of ada's, and has `attempt` ask with what its programs find in their environment.
    pub(crate) async fn start_attempt(&mut self) {
        let job = self.job(false).await;
        // Read where only the server's user can.
        let path = self.server.data().join(format!("runs/{job}/1.0/launch.json"));
        let launch: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let token = launch["access"]["token"].as_str().unwrap().to_owned();
        self.tokens.push(("attempt".to_owned(), token));
    }

    pub(crate) async fn sign_in(&self, name: &str, password: &str) -> Answer {
        self.ask("nobody", "POST", "/session", &json!({ "name": name, "password": password })).await
    }

    pub(crate) fn token(&self, who: &str) -> Option<&str> {
        self.tokens.iter().find(|(name, _)| name == who).map(|(_, token)| token.as_str())
    }

    pub(crate) async fn ask(&self, who: &str, method: &str, path: &str, body: &Value) -> Answer {
        self.ask_with(self.token(who), method, path, body).await
    }

    pub(crate) async fn ask_with(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Answer {
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
    pub(crate) async fn job(&self, held: bool) -> u64 {
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

pub(crate) fn value(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{} {}", answer.head, answer.body))
}

/// Runs the command line as somebody with this home, and returns its exit code, output and talk.
pub(crate) async fn run_danlu(
    home: &std::path::Path,
    arguments: &[&str],
    typed: &str,
) -> (Option<i32>, String, String) {
    use tokio::io::AsyncWriteExt as _;
    let mut program = tokio::process::Command::new(DANLU)
        .args(arguments)
        .env("XDG_CONFIG_HOME", home)
        .env("HOME", home)
        .env_remove("DANLU_DATA")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // A command that asks for nothing may have ended by now.
    let _ = program.stdin.take().unwrap().write_all(typed.as_bytes()).await;
    let output = program.wait_with_output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
