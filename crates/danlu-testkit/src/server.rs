//! One server, started from the built binary.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use danlu_client::Client;
use danlu_types::api::{JobState, JobView, LogLine, LogQuery};
use danlu_types::{JobId, JobSpec};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::{alive, eventually, processes_of};

/// A running `danlu up`. Dropping it ends the server and everything its jobs started.
#[derive(Debug)]
pub struct TestServer {
    binary: PathBuf,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
    folder: TempDir,
    process: Option<Child>,
    client: Option<Client>,
}

/// A job of one command that asks for little, so that many run at once.
pub fn spec(command: &str) -> JobSpec {
    JobSpec { cpus: danlu_types::Cpus { milli: 10 }, ..JobSpec::of_command(command) }
}

impl TestServer {
    /// Starts the binary on an empty folder, with further flags of `danlu up`.
    pub async fn start(binary: &str, flags: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().expect("a temporary folder");
        Self::start_in(binary, flags, folder, &[]).await
    }

    /// The same in a folder that the test has prepared, with an environment of its own.
    pub async fn start_in(
        binary: &str,
        flags: &[&str],
        folder: TempDir,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut server = TestServer {
            binary: binary.into(),
            flags: flags.iter().map(|flag| (*flag).to_owned()).chain(for_workers(environment)).collect(),
            environment: environment
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            folder,
            process: None,
            client: None,
        };
        server.restart().await;
        server
    }

    /// For the next start.
    pub fn add_flags(&mut self, flags: &[&str]) {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
    }

    /// Starts the server, on whatever is in its folder, and waits until it is ready.
    pub async fn restart(&mut self) {
        let pid = self.spawn();
        let data = self.data();
        let client = eventually("the server to be ready", || async {
            // One that has ended will not be; why is in its log.
            assert!(alive(pid.cast_signed()), "the server ended:\n{}", self.log());
            let text = std::fs::read_to_string(data.join("server.json")).ok()?;
            let value: serde_json::Value = serde_json::from_str(&text).ok()?;
            if value["pid"].as_u64() != Some(u64::from(pid)) {
                return None;
            }
            let token = std::fs::read_to_string(data.join("token")).ok()?;
            let fingerprint = value["fingerprint"].as_str().and_then(|text| text.parse().ok());
            let client = Client::trusting(value["address"].as_str()?, token.trim(), fingerprint);
            client.readiness().await.ok()?;
            Some(client)
        })
        .await;
        self.client = Some(client);
    }

    /// Starts the server where it cannot be ready, because of its disk for instance, and waits until it answers.
    pub async fn restart_unready(&mut self) {
        let before = self.log().len();
        let pid = self.spawn();
        let data = self.data();
        let client = eventually("the server to answer", || async {
            assert!(alive(pid.cast_signed()), "the server ended:\n{}", self.log());
            let log = self.log();
            // Perhaps it could not leave word in its folder.
            let (_, address) = log[before..].split_once("serving on ")?;
            let token = std::fs::read_to_string(data.join("token")).ok()?;
            Some(Client::trusting(address.split_whitespace().next()?, token.trim(), None))
        })
        .await;
        self.client = Some(client);
    }

    fn spawn(&mut self) -> u32 {
        assert!(self.process.is_none(), "kill it first");
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.log_path()).expect("a log file");
        let process = Command::new(&self.binary)
            .args(["up", "--listen", "127.0.0.1:0", "--data"])
            .arg(self.data())
            .args(&self.flags)
            .env("RUST_LOG", "info")
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(self.output_file())
            .stderr(log)
            .spawn()
            .expect("the binary starts");
        let pid = process.id();
        self.process = Some(process);
        pid
    }

    pub fn client(&self) -> &Client {
        self.client.as_ref().expect("the server was started")
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn pid(&self) -> i32 {
        let process = self.process.as_ref().expect("the server runs");
        i32::try_from(process.id()).expect("pids are small")
    }

    /// What the server said on standard error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// What the server, since it was last started, printed on standard output.
    pub fn output(&self) -> String {
        std::fs::read_to_string(self.output_path()).unwrap_or_default()
    }

    /// For us alone: a server prints nothing secret where others read.
    fn output_file(&self) -> std::fs::File {
        let mut options = std::fs::OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        options.open(self.output_path()).expect("a file")
    }

    fn output_path(&self) -> PathBuf {
        self.folder.path().join("server.out")
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it was running");
            process.wait().expect("it can be waited for");
        }
    }

    /// Asks it to end, and waits until it has.
    pub fn terminate(&mut self) {
        if let Some(mut process) = self.process.take() {
            let pid = i32::try_from(process.id()).expect("pids are small");
            kill(Pid::from_raw(pid), Signal::SIGTERM).expect("it was running");
            process.wait().expect("it can be waited for");
        }
    }

    pub async fn submit(&self, spec: &JobSpec) -> JobId {
        self.client().job_submit(spec, None).await.expect("the job is accepted").id
    }

    pub async fn job(&self, id: JobId) -> JobView {
        self.client().job_fetch(id).await.expect("the job is there")
    }

    pub async fn wait_for(&self, id: JobId, state: JobState) -> JobView {
        eventually(&format!("job {id} to be {}", state.as_str()), || async {
            let job = self.client().job_fetch(id).await.ok()?;
            assert!(
                job.state == state || job.state != JobState::Ended,
                "job {id} ended while it should become {}: {:?}\n{}",
                state.as_str(),
                job.reason,
                self.log()
            );
            (job.state == state).then_some(job)
        })
        .await
    }

    pub async fn wait_for_end(&self, id: JobId) -> JobView {
        self.wait_for(id, JobState::Ended).await
    }

    /// Submits a job and waits until it has ended.
    pub async fn run(&self, spec: &JobSpec) -> JobView {
        let id = self.submit(spec).await;
        self.wait_for_end(id).await
    }

    /// All lines of a job's last attempt, page by page.
    pub async fn lines(&self, id: JobId) -> Vec<LogLine> {
        let mut lines = Vec::new();
        let mut query = LogQuery { limit: Some(10_000), ..LogQuery::default() };
        loop {
            let page = self.client().logs_read(id, &query).await.expect("logs can be read");
            lines.extend(page.items);
            match page.next {
                Some(next) => query.cursor = Some(next),
                None => return lines,
            }
        }
    }

    pub async fn texts(&self, id: JobId) -> Vec<String> {
        self.lines(id).await.into_iter().map(|line| line.text).collect()
    }

    /// The text of a file that a job writes into the test's folder, once it is there and ends with a line feed.
    pub async fn file(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        eventually(&format!("file {name}"), || async {
            std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))
        })
        .await
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
        // Jobs outlive their server on purpose; here, nobody wants them. A launcher that is killed takes its ranks
        // along, and those may have left others.
        for _ in 0..100 {
            let left = processes_of(self.folder.path());
            if left.is_empty() {
                return;
            }
            for pid in left {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }
}

/// A made-up clock is the workers' as well.
fn for_workers(environment: &[(&str, &str)]) -> Option<String> {
    let is_clock = |(name, _): &(&str, &str)| *name == "LD_PRELOAD";
    environment.iter().any(is_clock).then(|| "--pass-environment=LD_PRELOAD,FAKETIME*".to_owned())
}
