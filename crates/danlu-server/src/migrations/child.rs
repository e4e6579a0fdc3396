//! The process that a migration runs in: the same program, with limits that it sets for itself before it reads anything.
//!
//! They share one folder: the snapshot in [`BEFORE`] and the request are there when it starts, the migrated copy in [`AFTER`] and
//! the answer when it ends. A process that leaves no answer has crashed, and costs its request only.

use std::fs;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use danlu_migrate::project::{self, Destination, ProjectError};
use danlu_types::api::{MigrationRequest, MigrationView};
use nix::sys::resource::{Resource, setrlimit};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;

pub(super) const BEFORE: &str = "before";
pub(super) const AFTER: &str = "after";
const ORDER: &str = "order.json";
const ANSWER: &str = "answer.json";
/// The hidden command that [`migrate_snapshot`] answers to.
const COMMAND: &str = "migrate-snapshot";

/// What a migration may use. Ten times what the largest public projects need.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct ChildLimits {
    pub(super) seconds: u64,
    /// Of the address space, the stacks of the migrator's threads included.
    memory_bytes: u64,
    /// Of any file that is written, reports included.
    file_bytes: u64,
}

pub(super) const LIMITS: ChildLimits =
    ChildLimits { seconds: 60, memory_bytes: 8 << 30, file_bytes: 512 << 20 };

const LARGEST_ANSWER: u64 = 64 << 20;
const LAST_WORDS: u64 = 4096;

#[derive(Debug, thiserror::Error)]
pub(super) enum ChildError {
    #[error("`{0}` is no Python file of the project")]
    NoMain(String),
    #[error("the migration takes longer than {0} seconds")]
    Timeout(u64),
    #[error("the migrator crashed on this code ({how})")]
    Crashed { how: String },
    #[error("the migration failed: {0}")]
    Failed(String),
    #[error("cannot run the migrator")]
    Io(#[from] std::io::Error),
}

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    request: MigrationRequest,
    limits: ChildLimits,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// Without the digest of the copy, which is not packed yet.
    Migrated(Box<MigrationView>),
    NoMain(String),
    Failed(String),
}

/// Has the snapshot in `folder` migrated. The process ends with the future.
pub(super) async fn migrate(
    folder: &Path,
    request: &MigrationRequest,
    limits: ChildLimits,
) -> Result<MigrationView, ChildError> {
    let order = Order { request: request.clone(), limits };
    tokio::fs::write(folder.join(ORDER), serde_json::to_vec(&order).map_err(std::io::Error::other)?).await?;
    // Itself, even if its file has been replaced by a newer one since.
    let mut child = tokio::process::Command::new("/proc/self/exe")
        .arg(COMMAND)
        .arg(folder)
        .env_clear()
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut words = Vec::new();
    let ended = async {
        if let Some(stderr) = child.stderr.take() {
            let mut stderr = stderr;
            (&mut stderr).take(LAST_WORDS).read_to_end(&mut words).await?;
            // What comes after is read as well, so that nothing waits for it.
            tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await?;
        }
        child.wait().await
    };
    let Ok(status) = tokio::time::timeout(Duration::from_secs(limits.seconds), ended).await else {
        child.kill().await?;
        return Err(ChildError::Timeout(limits.seconds));
    };
    let (path, status) = (folder.join(ANSWER), status?);
    let answer =
        tokio::task::spawn_blocking(move || read_answer(&path)).await.map_err(std::io::Error::other)?;
    match answer.filter(|_| status.success()) {
        Some(Answer::Migrated(view)) => Ok(*view),
        Some(Answer::NoMain(main)) => Err(ChildError::NoMain(main)),
        Some(Answer::Failed(detail)) => Err(ChildError::Failed(detail)),
        None => {
            tracing::warn!("the migrator crashed: {}", String::from_utf8_lossy(&words).trim());
            Err(ChildError::Crashed { how: how_it_ended(status) })
        }
    }
}

fn read_answer(path: &Path) -> Option<Answer> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(LARGEST_ANSWER).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn how_it_ended(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match nix::sys::signal::Signal::try_from(signal) {
            Ok(nix::sys::signal::Signal::SIGXCPU) => "it used all of its processor time".to_owned(),
            Ok(nix::sys::signal::Signal::SIGXFSZ) => "it wrote too much".to_owned(),
            Ok(known) => format!("ended by {known}; it may have run out of memory"),
            Err(_) => format!("ended by signal {signal}"),
        },
        (None, code) => format!("exit code {}", code.unwrap_or_default()),
    }
}

/// The hidden command: migrates the snapshot in `folder` within limits.
pub fn migrate_snapshot(folder: &Path) -> ExitCode {
    let order =
        fs::read(folder.join(ORDER)).ok().and_then(|bytes| serde_json::from_slice::<Order>(&bytes).ok());
    let Some(order) = order else { return ExitCode::from(2) };
    if let Err(error) = set_limits(order.limits) {
        return answer(folder, &Answer::Failed(format!("cannot set its limits: {error}")));
    }
    answer(folder, &migrate_here(folder, &order.request))
}

fn set_limits(limits: ChildLimits) -> nix::Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let processor_seconds = limits.seconds * cores;
    for (resource, most) in [
        (Resource::RLIMIT_AS, limits.memory_bytes),
        (Resource::RLIMIT_CPU, processor_seconds),
        (Resource::RLIMIT_FSIZE, limits.file_bytes),
        (Resource::RLIMIT_CORE, 0),
    ] {
        setrlimit(resource, most, most)?;
    }
    Ok(())
}

fn migrate_here(folder: &Path, request: &MigrationRequest) -> Answer {
    let options = match super::options(request) {
        Ok(options) => options,
        Err(problem) => return Answer::Failed(problem.detail),
    };
    let (before, after) = (folder.join(BEFORE), folder.join(AFTER));
    let migrated =
        project::migrate(&before, &Destination::Folder(after.clone()), &options, true).and_then(|report| {
            let reports = after.join(project::PLATFORM_REPORTS);
            let names = project::write_reports(&reports, &report, &options, super::TITLE, None)?;
            Ok((report, names))
        });
    let (report, names) = match migrated {
        Ok(made) => made,
        Err(ProjectError::NoMain { main }) => return Answer::NoMain(main),
        Err(error) => return Answer::Failed(crate::error_chain(&error)),
    };
    // What is not there any more is shown without its text.
    let text = |root: &Path, path: &str| {
        let bytes = fs::read(root.join(path)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let texts = |path: &str| (text(&before, path), text(&after, path));
    Answer::Migrated(Box::new(super::view::of(String::new(), &report, names, texts)))
}

fn answer(folder: &Path, answer: &Answer) -> ExitCode {
    let written = serde_json::to_vec(answer)
        .map_err(std::io::Error::other)
        .and_then(|bytes| fs::write(folder.join(ANSWER), bytes));
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
