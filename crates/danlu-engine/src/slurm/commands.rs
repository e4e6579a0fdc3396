//! Slurm's programs, run with a bounded time, a bounded answer and an environment of their own.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use danlu_core::launch::UnixUser;
use danlu_slurm::SlurmSettings;
use nix::unistd::geteuid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::outage::Outage;
use crate::{ClusterAnswer, EngineError};

/// Programs wait for a controller that is away: a minute in all, on most sites. Nobody else waits meanwhile.
const PATIENCE: Duration = Duration::from_secs(100);
/// From then on people are told that Slurm does not answer.
const SOON: Duration = Duration::from_secs(5);
/// A hundred thousand jobs take less.
const LONGEST_ANSWER: u64 = 64 << 20;
const LONGEST_SAID: usize = 500;
/// What jobs are to find of the server's environment, besides what Slurm itself needs. The rest configures the server, and
/// some of it is secret.
const PASSED_ON: [&str; 7] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "SLURM_CONF"];

/// What Slurm's programs say when they could not ask the controller: the same question may be answered later.
const AWAY: [&str; 18] = [
    "Unable to contact slurm controller",
    "Unable to contact Slurm controller",
    "Socket timed out",
    "Connection refused",
    "Connection timed out",
    "Connection reset",
    "Transport endpoint",
    "Zero Bytes were transmitted",
    "temporarily unable to accept job",
    "Resource temporarily unavailable",
    "Slurm backup controller in standby mode",
    "Communication connection failure",
    "Protocol authentication error",
    "Munge",
    "MUNGE",
    "munge",
    "Unable to establish controller machine",
    "Unable to establish configuration source",
];

/// Refusals of the request itself, whatever the cluster looks like by then. All others may pass: limits on submissions, partitions
/// that are closed, accounts that do not exist yet, nodes that have changed.
const FINAL: [&str; 7] = [
    "Requested time limit is invalid",
    "unrecognized option",
    "invalid option",
    "Invalid numeric value",
    "Batch job submission failed: Pathname",
    "Batch script contains",
    "Script is too large",
];

#[derive(Debug)]
pub(super) struct Programs {
    folder: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    outage: Arc<Outage>,
}

/// How a program is run, where that is not as the server's own user with nothing to read.
#[derive(Debug, Default)]
pub(super) struct With<'a> {
    pub(super) user: Option<&'a UnixUser>,
    /// For its environment: command lines are seen by everybody.
    pub(super) secret: Option<(&'static str, String)>,
    pub(super) input: Option<File>,
}

impl<'a> With<'a> {
    pub(super) fn user(user: Option<&'a UnixUser>) -> Self {
        With { user, ..With::default() }
    }
}

/// What a program answered.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: ExitStatus,
    pub(super) text: String,
    pub(super) said: String,
}

impl Programs {
    pub(super) fn new(settings: &SlurmSettings) -> Self {
        let inherited =
            PASSED_ON.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let mut environment: Vec<(OsString, OsString)> = inherited.collect();
        // The last of a name counts.
        environment.extend(
            settings.configuration.as_ref().map(|path| ("SLURM_CONF".into(), path.clone().into_os_string())),
        );
        Programs { folder: settings.programs.clone(), environment, outage: Arc::default() }
    }

    /// The same, for questions whose answers hold times.
    pub(super) fn in_utc(&self) -> Self {
        let mut environment = self.environment.clone();
        environment.push(("TZ".into(), "UTC0".into()));
        Programs { folder: self.folder.clone(), environment, outage: Arc::clone(&self.outage) }
    }

    /// A program of Slurm's, to be started. It is looked for here: where `PATH` is both searched and set for the program,
    /// the standard library forks, and copies the server's page tables each time.
    ///
    /// Root becomes another user by itself; others need leave of `sudo`.
    pub(super) fn command(&self, program: &str, with: &With<'_>) -> Command {
        let path = match &self.folder {
            Some(folder) => folder.join(program),
            None => on_path(program),
        };
        let mut command = match with.user {
            Some(user) if !geteuid().is_root() => {
                let kept = with.secret.iter().map(|(name, _)| *name).chain(["SLURM_CONF"]);
                let kept: Vec<&str> = kept.collect();
                let mut command = Command::new(on_path("sudo"));
                command.args(["--non-interactive", "--user", &user.name]);
                command.arg(format!("--preserve-env={}", kept.join(","))).arg("--").arg(path);
                command
            }
            Some(user) => {
                let mut command = Command::new(path);
                command.uid(user.uid).gid(user.gid);
                command
            }
            None => Command::new(path),
        };
        command.env_clear().envs(self.environment.iter().cloned()).current_dir("/").kill_on_drop(true);
        if let Some(user) = with.user {
            command.env("USER", &user.name).env("LOGNAME", &user.name).env("HOME", &user.home);
        }
        command.envs(with.secret.iter().map(|(name, value)| (*name, value)));
        command
    }

    /// Runs it to its end, whatever that is.
    pub(super) async fn run(&self, program: &'static str, arguments: &[String]) -> io::Result<Answered> {
        self.run_with(program, arguments, With::default()).await
    }

    async fn run_with(
        &self,
        program: &'static str,
        arguments: &[String],
        with: With<'_>,
    ) -> io::Result<Answered> {
        let mut child = self
            .command(program, &with)
            .args(arguments)
            .stdin(with.input.map_or_else(Stdio::null, Stdio::from))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let finished = async {
            let (text, said) = tokio::try_join!(read(stdout), read(stderr))?;
            Ok::<_, io::Error>(Answered { status: child.wait().await?, text, said })
        };
        tokio::pin!(finished);
        let mut answered = tokio::time::timeout(SOON, &mut finished).await;
        if answered.is_err() {
            self.outage.note(format!("`{program}` has not answered for {SOON:?}"));
            answered = tokio::time::timeout(PATIENCE.saturating_sub(SOON), finished).await;
        }
        if let Ok(Ok(answered)) = &answered
            && (answered.status.success() || meaning(answered) != ClusterAnswer::Away)
        {
            self.outage.clear();
        }
        match answered {
            Ok(answered) => answered,
            Err(_) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, format!("it took longer than {PATIENCE:?}")))
            }
        }
    }

    /// What keeps Slurm from answering, for people.
    pub(super) fn trouble(&self) -> Option<String> {
        self.outage.sentence()
    }

    /// What it prints, where it succeeds.
    pub(super) async fn ask(
        &self,
        doing: &'static str,
        program: &'static str,
        arguments: &[String],
    ) -> Result<String, EngineError> {
        self.ask_with(doing, program, arguments, With::default()).await
    }

    pub(super) async fn ask_with(
        &self,
        doing: &'static str,
        program: &'static str,
        arguments: &[String],
        with: With<'_>,
    ) -> Result<String, EngineError> {
        let ran = self.run_with(program, arguments, with).await;
        let answered = ran.map_err(|error| EngineError::Cluster {
            doing,
            program,
            said: error.to_string(),
            answer: ClusterAnswer::Away,
        })?;
        if answered.status.success() {
            return Ok(answered.text);
        }
        let said = last_words(&answered.said);
        let answer = meaning(&answered);
        if answer == ClusterAnswer::Away {
            self.outage.note(format!("`{program}` said: {said}"));
        }
        Err(EngineError::Cluster { doing, program, said, answer })
    }
}

/// What a program that failed means for the same question, asked again.
fn meaning(answered: &Answered) -> ClusterAnswer {
    let says = |words: &[&str]| words.iter().any(|word| answered.said.contains(word));
    if answered.status.code().is_none() || says(&AWAY) {
        ClusterAnswer::Away
    } else if says(&FINAL) {
        ClusterAnswer::Never
    } else {
        ClusterAnswer::NotNow
    }
}

fn on_path(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
    // Not there: the error of starting it says so, by this name.
    found.unwrap_or_else(|| program.into())
}

async fn read(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let Some(pipe) = pipe else { return Ok(String::new()) };
    let mut bytes = Vec::new();
    pipe.take(LONGEST_ANSWER).read_to_end(&mut bytes).await?;
    if bytes.len() as u64 == LONGEST_ANSWER {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "its answer is too long to be one"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What is worth repeating of what a program said.
fn last_words(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = lines.join("; ");
    if text.is_empty() { "nothing".to_owned() } else { text.chars().take(LONGEST_SAID).collect() }
}
