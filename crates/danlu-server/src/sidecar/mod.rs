//! The server's end of sidecars: nodes that share no disk with it write into run folders through here, and hear what their
//! workers have to hear ([ADR 12](../../../docs/adr/0012-sidecars-where-nothing-is-shared.md)).
//!
//! Invariants:
//! - A sidecar's token opens the folders of one attempt, as long as it is live, by names that are known beforehand.
//! - Whatever is sent twice is there once: pieces say where they begin.
//! - What sidecars send is a file before anybody is told, as if a launcher on this machine had written it. The engine looks
//!   at the same files, and does not know who wrote them.

mod files;
mod tree;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use danlu_core::job::Attempt;
use danlu_core::launch::{STOP_FILE, StopOrder};
use danlu_core::synced_files::{CONTACT_FILE, gang_word};
use danlu_core::{Job, WorkerLifecycle};
use danlu_slurm::{CLAIM_FILE, CLAIMANT_FILE, GRANTED_FILE, ORDER_FILE, parse_allocation_name};
use danlu_types::api::{ClaimRequest, SidecarNews};
use danlu_types::{AttemptNumber, JobId, Problem, ProblemCode, WorkerId, WorkerIndex};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// How a sidecar's token begins.
pub(crate) const PREFIX: &str = "danlu_sidecar_";

/// What tokens began with that an earlier version gave to jobs that still run.
const FORMER_PREFIX: &str = "danlu_courier_";

/// What follows the prefix, if this is a token of sidecars.
pub(crate) fn token_body(secret: &str) -> Option<&str> {
    secret.strip_prefix(PREFIX).or_else(|| secret.strip_prefix(FORMER_PREFIX))
}
/// Below what proxies and firewalls take for a dead connection.
const LONGEST_POLL: Duration = Duration::from_secs(20);
/// News that nobody has told us of are found after this time.
const LOOK_AGAIN: Duration = Duration::from_secs(3);
const LONGEST_GRANTED: usize = 256 << 10;

/// What is kept for sidecars while the server lives; only where nodes share no disk with it.
#[derive(Debug)]
pub(crate) struct Sidecars {
    /// Programs that nodes fetch, each under its digest.
    pub(crate) programs: PathBuf,
    /// One writer at a time for workers that fall together.
    writing: [Mutex<()>; 64],
    /// Attempts that fall together hear of each other's news, and find none.
    news: [Notify; 64],
}

impl Sidecars {
    pub(crate) fn new(programs: PathBuf) -> Self {
        Sidecars {
            programs,
            writing: std::array::from_fn(|_| Mutex::default()),
            news: std::array::from_fn(|_| Notify::new()),
        }
    }

    /// Has sidecars of a job look whether there is something to hear.
    pub(crate) fn tell(&self, job: JobId) {
        self.news[place(job.0)].notify_waiters();
    }

    fn turn(&self, worker: WorkerId) -> MutexGuard<'_, ()> {
        let number = worker.job.0.wrapping_mul(31).wrapping_add(u64::from(worker.worker.0));
        self.writing[place(number)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(number: u64) -> usize {
    usize::try_from(number % 64).unwrap_or_default()
}

/// Whom a request with a sidecar's token speaks for.
#[derive(Debug, Clone)]
pub(crate) struct SidecarCaller {
    pub(crate) job: Arc<Job>,
    pub(crate) attempt: AttemptNumber,
}

/// A worker of a sidecar's.
#[derive(Debug, Clone)]
pub(crate) struct SidecarWorker {
    pub(crate) worker: WorkerId,
    pub(crate) job: Arc<Job>,
    /// Its own.
    pub(crate) ranks: Range<u32>,
    workers: u32,
}

/// Told to sidecars whose attempt nobody waits for any more: they end what they run, and go.
fn over() -> Problem {
    Problem::new(ProblemCode::WrongState, "this attempt of the job, or the worker, has ended already")
}

impl SidecarCaller {
    fn live(&self) -> Option<&Attempt> {
        self.job.active().filter(|attempt| attempt.number == self.attempt)
    }

    pub(crate) fn worker(&self, index: WorkerIndex) -> Result<SidecarWorker, Problem> {
        let attempt = self.live().ok_or_else(over)?;
        let Some(worker) = attempt.workers.get(index.0 as usize) else {
            return Err(Problem::new(ProblemCode::NotFound, format!("the attempt has no worker {index}")));
        };
        if matches!(worker.state, WorkerLifecycle::Ended { .. }) {
            return Err(over());
        }
        let each = self.job.spec.ranks_per_worker(attempt.devices_per_worker());
        let first = index.0.saturating_mul(each);
        Ok(SidecarWorker {
            worker: self.job.worker_id(self.attempt, index),
            job: Arc::clone(&self.job),
            ranks: first..first.saturating_add(each),
            workers: self.job.spec.workers,
        })
    }
}

impl App {
    /// Whom a sidecar's token speaks for. One that was ours and whose attempt is over is told so, for its holder to go.
    pub(crate) fn sidecar(&self, secret: &str) -> Result<SidecarCaller, Problem> {
        let unknown = || Problem::new(ProblemCode::Unauthenticated, "this token is of no sidecar");
        if self.sidecars.is_none() {
            return Err(unknown()
                .with_hint("this server shares a disk with the nodes, and takes nothing from sidecars"));
        }
        let (job, attempt) = self.attempts.read_sidecar(secret).ok_or_else(unknown)?;
        let job = self.live_state.job(job).ok_or_else(over)?;
        let sidecar = SidecarCaller { job, attempt };
        if sidecar.live().is_none() {
            return Err(over());
        }
        Ok(sidecar)
    }

    pub(crate) fn sidecars(&self) -> Result<&Sidecars, Problem> {
        self.sidecars
            .as_ref()
            .ok_or_else(|| Problem::new(ProblemCode::NotFound, "there are no sidecars here"))
    }

    fn allocation_folder(&self, sidecar: &SidecarCaller, name: &str) -> Result<PathBuf, Problem> {
        let unknown = || Problem::new(ProblemCode::NotFound, "the attempt has no such allocation");
        parse_allocation_name(name, sidecar.attempt).ok_or_else(unknown)?;
        let folder = self.layout.job_folder(sidecar.job.id).join(name);
        if folder.join(ORDER_FILE).is_file() { Ok(folder) } else { Err(unknown()) }
    }

    /// Whether this process of the cluster's job is the one that runs the allocation.
    pub(crate) fn claim(&self, sidecar: &SidecarCaller, request: &ClaimRequest) -> Result<bool, Problem> {
        let folder = self.allocation_folder(sidecar, &request.allocation)?;
        let is_nonce = (16..=64).contains(&request.nonce.len())
            && request.nonce.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_nonce || request.granted.len() > LONGEST_GRANTED {
            let detail = "`nonce` has 16 to 64 letters and digits, and `granted` at most 256 KiB";
            return Err(Problem::new(ProblemCode::BadRequest, detail));
        }
        // One at a time: who comes second must not write down what it was granted, either.
        let _turn = self.sidecars()?.turn(sidecar.job.worker_id(sidecar.attempt, WorkerIndex(0)));
        claim(&folder, request).map_err(|error| unwritable(&error))
    }

    /// A file of an allocation's.
    pub(crate) fn allocation_file(
        &self,
        sidecar: &SidecarCaller,
        allocation: &str,
        name: &str,
    ) -> Result<Vec<u8>, Problem> {
        let folder = self.allocation_folder(sidecar, allocation)?;
        match name {
            ORDER_FILE | GRANTED_FILE => read(&folder.join(name)),
            _ => Err(Problem::new(ProblemCode::NotFound, "an allocation has no such file")),
        }
    }

    /// What a worker has to hear: at once where that is something else than it knows, or else as soon as it is.
    pub(crate) async fn sidecar_news(
        &self,
        carried: &SidecarWorker,
        since: &str,
        stop: &CancellationToken,
    ) -> Result<SidecarNews, Problem> {
        let sidecars = self.sidecars()?;
        let heard = self.layout.run_folder(carried.worker).join(CONTACT_FILE);
        // On a full disk, one that lives is taken for one that does not answer: it is only waited for a shorter time.
        let _ = fs::write(heard, "heard\n");
        let until = Instant::now() + LONGEST_POLL;
        loop {
            let mut told = std::pin::pin!(sidecars.news[place(carried.worker.job.0)].notified());
            // From here on nothing is missed.
            told.as_mut().enable();
            let is_late = Instant::now() >= until;
            let news = self.look_for_news(carried, is_late).map_err(|error| unwritable(&error))?;
            if news.version != since || is_late || stop.is_cancelled() {
                return Ok(news);
            }
            let again = until.min(Instant::now() + LOOK_AGAIN);
            tokio::select! {
                () = told => {}
                () = tokio::time::sleep_until(again) => {}
                () = stop.cancelled() => {}
            }
            // Nobody waits for a worker that has ended meanwhile.
            let sidecar = SidecarCaller {
                job: self.live_state.job(carried.worker.job).ok_or_else(over)?,
                attempt: carried.worker.attempt,
            };
            sidecar.worker(carried.worker.worker)?;
        }
    }

    /// Words of a gang that is not complete are told to those only who have waited long: to name who is missing.
    fn look_for_news(&self, carried: &SidecarWorker, is_late: bool) -> io::Result<SidecarNews> {
        let WorkerId { job, attempt, worker } = carried.worker;
        let order = fs::read(self.layout.run_folder(carried.worker).join(STOP_FILE));
        let stop = match order {
            Ok(text) => serde_json::from_slice::<StopOrder>(&text).ok().map(|order| order.grace),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let folder = self.layout.gang_folder(job, attempt);
        let mut gang = BTreeMap::new();
        for index in (0..carried.workers).map(WorkerIndex).filter(|index| *index != worker) {
            let name = gang_word(index);
            match fs::read_to_string(folder.join(&name)) {
                Ok(word) => drop(gang.insert(name, word)),
                Err(_) if is_late => {}
                Err(_) => {
                    gang.clear();
                    break;
                }
            }
        }
        let mut news = SidecarNews { version: String::new(), stop, gang };
        let digest = Sha256::digest(serde_json::to_vec(&news)?);
        news.version = HEXLOWER.encode(&digest[..16]);
        Ok(news)
    }

    /// Has the engine look at a worker, as its launcher would.
    fn poke(&self, worker: WorkerId) {
        let poked = || -> io::Result<()> {
            let folder = fs::File::open(&self.layout.data)?;
            let name = self.layout.hints_socket();
            let name = name.file_name().unwrap_or_default();
            // The path may be longer than the address of a socket.
            let short = Path::new("/proc/self/fd")
                .join(std::os::fd::AsRawFd::as_raw_fd(&folder).to_string())
                .join(name);
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            socket.send_to(worker.to_string().as_bytes(), short).map(drop)
        };
        // The next periodic look finds the same.
        let _ = poked();
    }
}

/// The first to put its file in place has the allocation; one that asks again is known by its nonce, which is in there. The
/// caller lets in one at a time.
fn claim(folder: &Path, request: &ClaimRequest) -> io::Result<bool> {
    let claimed = folder.join(CLAIM_FILE);
    match fs::read_to_string(&claimed) {
        Ok(nonce) => return Ok(nonce == request.nonce),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if !request.granted.is_empty() {
        fs::write(folder.join(GRANTED_FILE), &request.granted)?;
    }
    fs::write(folder.join(CLAIMANT_FILE), format!("{}\n", request.job))?;
    let draft = folder.join(format!(".{CLAIM_FILE}.draft"));
    fs::write(&draft, &request.nonce)?;
    fs::rename(draft, claimed)?;
    Ok(true)
}

fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    fs::read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Problem::new(ProblemCode::NotFound, "there is no such file"),
        _ => unwritable(&error),
    })
}

/// Passing: the sidecar tries again.
fn unwritable(error: &io::Error) -> Problem {
    Problem::new(ProblemCode::Unavailable, format!("the job's folder cannot be used now: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(job: u64, nonce: &str) -> ClaimRequest {
        let granted = format!("of {job}");
        ClaimRequest { allocation: "1.slurm.0".to_owned(), job, nonce: nonce.repeat(16), granted }
    }

    #[test]
    fn an_allocation_is_claimed_by_one_process_of_one_job() {
        let folder = tempfile::tempdir().unwrap();
        assert!(claim(folder.path(), &request(17, "a")).unwrap());
        assert!(claim(folder.path(), &request(17, "a")).unwrap(), "its first answer was lost");
        assert!(!claim(folder.path(), &request(18, "b")).unwrap(), "it was submitted twice");
        assert!(!claim(folder.path(), &request(17, "c")).unwrap(), "it is run again");
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("claim.job"), "17\n");
        assert_eq!(read(GRANTED_FILE), "of 17");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "no draft is left");
    }
}
