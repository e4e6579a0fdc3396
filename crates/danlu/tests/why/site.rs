//! A server with made-up devices, and people who type commands.

use std::process::{Command, Output};

use danlu_client::Client;
use danlu_testkit::{TestServer, eventually};
use danlu_types::JobId;
use danlu_types::account::WorkspaceRole;
use danlu_types::api::{Explanation, JobQuery, JobState, JobView, NewAccount, NewRole, SignIn, StopRequest};

pub(crate) const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
const PASSWORD: &str = "correct horse battery";

pub(crate) struct Site {
    pub(crate) server: TestServer,
    tokens: Vec<(String, String)>,
}

impl Site {
    /// Nodes as `--simulate` takes them, rules as `--workspaces` does.
    pub(crate) async fn new(nodes: &str, rules: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
        let file = folder.path().join("workspaces.yaml");
        let rules = if rules.is_empty() { "workspaces: {}\n" } else { rules };
        std::fs::write(&file, rules).unwrap();
        let flags = ["--simulate", nodes, "--workspaces", file.to_str().unwrap()];
        let server = TestServer::start_in(DANLU, &flags, folder, &[]).await;
        let token = std::fs::read_to_string(server.data().join("token")).unwrap().trim().to_owned();
        Site { server, tokens: vec![("admin".to_owned(), token)] }
    }

    /// Somebody with a role in some workspaces.
    pub(crate) async fn person(&mut self, name: &str, roles: &[(&str, WorkspaceRole)]) -> Client {
        let admin = self.server.client();
        let new = NewAccount {
            name: name.parse().unwrap(),
            display_name: None,
            email: None,
            password: Some(PASSWORD.to_owned()),
        };
        admin.account_create(&new).await.unwrap();
        for (workspace, role) in roles {
            admin.member_set(workspace, &new.name, &NewRole { role: *role }).await.unwrap();
        }
        let password = Some(PASSWORD.to_owned());
        let sign_in = SignIn { name: Some(name.to_owned()), password, ..SignIn::default() };
        let token = admin.sign_in(&sign_in).await.unwrap();
        self.tokens.push((name.to_owned(), token.clone()));
        Client::new(&admin.address(), &token)
    }

    /// Runs a line in a shell as somebody who has `danlu` in their path.
    pub(crate) fn shell(&self, who: &str, line: &str) -> Output {
        let (_, token) = self.tokens.iter().find(|(name, _)| name == who).unwrap();
        let programs = std::path::Path::new(DANLU).parent().unwrap().display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        Command::new("sh")
            .args(["-c", line])
            .current_dir(self.server.folder())
            .env("PATH", format!("{programs}:{path}"))
            .env("DANLU_SERVER", self.server.client().address())
            .env("DANLU_TOKEN", token)
            .env_remove("DANLU_DATA")
            .env_remove("DANLU_PROFILE")
            .output()
            .unwrap()
    }

    /// What a line prints that succeeds.
    pub(crate) fn printed(&self, who: &str, line: &str) -> String {
        let output = self.shell(who, line);
        assert!(output.status.success(), "`{line}` of {who}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a line says on standard error that fails.
    pub(crate) fn refused(&self, who: &str, line: &str) -> String {
        let output = self.shell(who, line);
        assert!(!output.status.success(), "`{line}` of {who} succeeded");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Submits with the flags of `danlu submit`; what runs goes on until it is stopped.
    pub(crate) fn submit(&self, who: &str, flags: &str) -> JobId {
        let printed = self.printed(who, &format!("danlu submit --set grace=1s {flags} -- sleep 1000"));
        printed.trim().parse().unwrap()
    }

    /// The same, and waits until it runs.
    pub(crate) async fn start(&self, who: &str, flags: &str) -> JobId {
        let id = self.submit(who, flags);
        self.server.wait_for(id, JobState::Running).await;
        id
    }

    pub(crate) async fn waits_for(&self, id: JobId, code: &str) -> JobView {
        eventually(&format!("job {id} to wait because of {code}"), || async {
            let job = self.server.job(id).await;
            (job.state == JobState::Queued && job.reason.word() == code).then_some(job)
        })
        .await
    }

    pub(crate) async fn why(&self, id: JobId) -> Explanation {
        self.server.client().job_why(id).await.unwrap()
    }

    /// The commands that are suggested, without the remarks behind them.
    pub(crate) fn suggestions(&self, who: &str, question: &str) -> Vec<String> {
        let page = self.printed(who, question);
        let lines = page.lines().filter_map(|line| line.strip_prefix("  danlu "));
        lines.map(|line| format!("danlu {}", line.split("  # ").next().unwrap())).collect()
    }

    pub(crate) async fn has_started(&self, id: JobId) {
        eventually(&format!("job {id} to start"), || async {
            let job = self.server.job(id).await;
            (!job.attempts.is_empty()).then_some(())
        })
        .await;
    }

    /// Ends every job.
    pub(crate) async fn clear(&self) {
        let client = self.server.client();
        let live = JobQuery {
            state: Some("held,queued,starting,running,stopping".to_owned()),
            ..JobQuery::default()
        };
        let at_once = StopRequest { grace: Some(danlu_types::Span::default()) };
        let jobs = client.jobs_list(&live).await.unwrap().items;
        // Those that wait first, so that none of them starts.
        for waiting in [true, false] {
            for job in &jobs {
                if matches!(job.state, JobState::Held | JobState::Queued) == waiting {
                    // It may have ended meanwhile.
                    let _ = client.job_stop(job.id, &at_once).await;
                }
            }
        }
        for job in jobs {
            self.server.wait_for_end(job.id).await;
        }
    }
}
