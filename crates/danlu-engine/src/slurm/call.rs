//! Telling Slurm of orders: `scancel`, which may hang like any other of its programs.
//!
//! Invariant: one call that hangs holds up only what it was made for. It is left to itself after a while, and who asks for
//! the same again hears how it ended.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use danlu_core::launch::UnixUser;
use tokio::task::JoinHandle;

use super::SlurmEngine;
use super::commands::{Programs, With};
use super::folders::Call;
use crate::{ClusterAnswer, EngineError};

const DOING: &str = "call a job's launchers";
/// Launchers that were called and have not answered are called again, but not with every look at them.
const CALL_AGAIN: Duration = Duration::from_secs(5);
/// So long a call is waited for; a sound controller takes a hundredth.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same while another one hangs: many that hang are not waited for one by one.
const LITTLE_PATIENCE: Duration = Duration::from_millis(200);
/// With so many under way, Slurm does not answer at all.
const MOST: usize = 16;

/// Calls that were not answered in time, by their words, and when the launchers of a job were last called.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    under_way: BTreeMap<Vec<String>, JoinHandle<Result<(), EngineError>>>,
    called: BTreeMap<u64, Instant>,
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_time_to_call(&mut self, job: u64) -> bool {
        self.called.retain(|_, at| at.elapsed() < CALL_AGAIN);
        !self.called.contains_key(&job)
    }

    /// How many hang. Of those that have ended since nobody may ever ask.
    fn hanging(&self) -> usize {
        self.under_way.values().filter(|task| !task.is_finished()).count()
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.under_way.values().for_each(JoinHandle::abort);
    }
}

impl SlurmEngine {
    pub(super) async fn call(&self, call: Call) -> Result<(), EngineError> {
        let (job, words, user): (_, Vec<String>, _) = match call {
            // Only while it waits: one that has begun ends by its orders.
            Call::Cancel { job, user } => {
                (job, ["--quiet".to_owned(), "--state=PENDING".to_owned(), job.to_string()].to_vec(), user)
            }
            Call::End { job, user } => (job, ["--quiet".to_owned(), job.to_string()].to_vec(), user),
            Call::Wake { job, is_new, is_script } => {
                let is_pending =
                    |state: &State| state.under_way.keys().any(|words| words.ends_with(&[job.to_string()]));
                let mut state = self.calls.lock();
                if !is_new && !is_pending(&state) && !state.is_time_to_call(job) {
                    return Ok(());
                }
                // `scancel` signals the script or the steps, never both.
                let script = is_script.then(|| "--full".to_owned());
                let others = ["--quiet".to_owned(), "--signal=URG".to_owned(), job.to_string()];
                (job, script.into_iter().chain(others).collect(), None)
            }
        };
        let (mut task, patience) = self.begin(job, &words, user)?;
        match tokio::time::timeout(patience, &mut task).await {
            Ok(Ok(called)) => called,
            // Only where the runtime is shutting down.
            Ok(Err(error)) => Err(EngineError::Host { doing: DOING, source: io::Error::other(error) }),
            Err(_) => {
                self.calls.lock().under_way.insert(words, task);
                Err(unanswered())
            }
        }
    }

    /// The call, made now or before, and how long to wait for it.
    fn begin(
        &self,
        job: u64,
        words: &[String],
        user: Option<UnixUser>,
    ) -> Result<(JoinHandle<Result<(), EngineError>>, Duration), EngineError> {
        let mut state = self.calls.lock();
        if let Some(task) = state.under_way.remove(words) {
            return Ok((task, Duration::ZERO));
        }
        let hanging = state.hanging();
        if hanging >= MOST {
            return Err(unanswered());
        }
        state.under_way.retain(|_, task| !task.is_finished());
        state.called.insert(job, Instant::now());
        let (programs, words) = (Arc::clone(&self.programs), words.to_vec());
        let task = tokio::spawn(async move { scancel(&programs, &words, user.as_ref()).await });
        Ok((task, if hanging == 0 { PATIENCE } else { LITTLE_PATIENCE }))
    }
}

async fn scancel(programs: &Programs, words: &[String], user: Option<&UnixUser>) -> Result<(), EngineError> {
    match programs.ask_with(DOING, "scancel", words, With::user(user)).await {
        // It has ended meanwhile, which is what was wanted.
        Err(EngineError::Cluster { answer: ClusterAnswer::NotNow | ClusterAnswer::Never, .. }) => Ok(()),
        called => called.map(drop),
    }
}

fn unanswered() -> EngineError {
    EngineError::Cluster {
        doing: DOING,
        program: "scancel",
        said: "nothing yet; it is still waited for".to_owned(),
        answer: ClusterAnswer::Away,
    }
}
