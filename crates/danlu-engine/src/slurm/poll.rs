//! What Slurm says of our jobs: one question for all of them, again and again, as long as there is any.
//!
//! A job that should be in the answer and is not may have been cut off or forgotten. It is asked for by its number, and
//! only where Slurm then says that there is no such job is it denied, unless its accounting remembers how it ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use danlu_core::slurm::{
    ACCOUNT_FORMAT, JobState, QUEUE_FORMAT, QueuedJob, parse_accounted, parse_job, parse_queue,
};
use danlu_types::WorkerId;
use tokio::sync::Notify;

use super::commands::Programs;
use crate::EngineError;
use crate::hints::Hints;

/// While the controller is away it is asked less often.
const SLOWEST: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Watch {
    jobs: Mutex<BTreeMap<u64, Watched>>,
    begun: Notify,
}

#[derive(Debug)]
struct Watched {
    /// From when on its absence from an answer says something.
    since: Instant,
    workers: BTreeSet<WorkerId>,
    word: Word,
}

/// Slurm's last word on a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Word {
    #[default]
    None,
    Listed(QueuedJob),
    Denied,
}

impl Watch {
    /// Has the job of a worker watched, and says what was last heard of it.
    pub(super) fn hear(&self, job: u64, worker: WorkerId) -> Word {
        let mut jobs = self.lock();
        let mut is_new = false;
        let watched = jobs.entry(job).or_insert_with(|| {
            is_new = true;
            Watched { since: Instant::now(), workers: BTreeSet::new(), word: Word::None }
        });
        watched.workers.insert(worker);
        let word = watched.word.clone();
        drop(jobs);
        if is_new {
            self.begun.notify_one();
        }
        word
    }

    pub(super) fn forget(&self, worker: WorkerId) {
        self.lock().retain(|_, watched| {
            watched.workers.remove(&worker);
            !watched.workers.is_empty()
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Watched>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an answer over; returns the jobs that it lacks. Workers of jobs with news are hinted.
    fn take(&self, answer: Vec<QueuedJob>, asked: Instant, hints: &Hints) -> Vec<u64> {
        let mut answer: BTreeMap<u64, QueuedJob> = answer.into_iter().map(|job| (job.id, job)).collect();
        let mut lacking = Vec::new();
        for (id, watched) in self.lock().iter_mut() {
            match answer.remove(id) {
                Some(job) => watched.set(Word::Listed(job), hints),
                None if watched.since < asked && !watched.word.is_final() => lacking.push(*id),
                None => {}
            }
        }
        lacking
    }

    fn set(&self, job: u64, word: Word, hints: &Hints) {
        if let Some(watched) = self.lock().get_mut(&job) {
            watched.set(word, hints);
        }
    }
}

impl Word {
    fn is_final(&self) -> bool {
        match self {
            Word::Listed(job) => matches!(job.state, JobState::Completed | JobState::Over(_)),
            Word::Denied => true,
            Word::None => false,
        }
    }
}

impl Watched {
    fn set(&mut self, word: Word, hints: &Hints) {
        // Slurm does not take an end back, and an answer that was under way may be older than the last.
        if self.word.is_final() || self.word == word {
            return;
        }
        self.word = word;
        self.workers.iter().for_each(|worker| hints.add(*worker));
    }
}

/// How Slurm is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) every: Duration,
    /// Ours are jobs of many users: all of everybody's are listed.
    pub(super) many_users: bool,
}

pub(super) async fn run(programs: Arc<Programs>, watch: Arc<Watch>, hints: Arc<Hints>, pace: Pace) {
    let every = pace.every;
    let mut pause = every;
    loop {
        if watch.lock().is_empty() {
            watch.begun.notified().await;
        }
        match look(&programs, &watch, &hints, pace).await {
            Ok(()) => pause = every,
            Err(error) => {
                tracing::warn!("Slurm does not say how jobs are doing: {error}");
                pause = (pause * 2).clamp(every, SLOWEST.max(every));
            }
        }
        tokio::time::sleep(pause).await;
    }
}

async fn look(programs: &Programs, watch: &Watch, hints: &Hints, pace: Pace) -> Result<(), EngineError> {
    const DOING: &str = "ask how jobs are doing";
    let asked = Instant::now();
    let own = (!pace.many_users).then(|| "--me".to_owned());
    let format = format!("--format={QUEUE_FORMAT}");
    let others = ["--states=all".to_owned(), "--noheader".to_owned(), format];
    let arguments: Vec<String> = own.into_iter().chain(others).collect();
    let text = programs.ask(DOING, "squeue", &arguments).await?;
    for job in watch.take(parse_queue(&text), asked, hints) {
        let arguments = ["--oneliner", "show", "job", &job.to_string()].map(str::to_owned);
        match programs.run("scontrol", &arguments).await {
            Ok(answered) if answered.status.success() => {
                if let Some(found) = parse_job(&answered.text).filter(|found| found.id == job) {
                    watch.set(job, Word::Listed(found), hints);
                }
            }
            Ok(answered) if answered.said.contains("Invalid job id specified") => {
                let remembered = accounted(programs, job).await.map_or(Word::Denied, Word::Listed);
                watch.set(job, remembered, hints);
            }
            // It will be asked for again.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// How a job ended that the controller has forgotten. Few small sites have accounting: without it nothing is remembered.
async fn accounted(programs: &Programs, job: u64) -> Option<QueuedJob> {
    let arguments = [
        format!("--jobs={job}"),
        "--allocations".to_owned(),
        "--noheader".to_owned(),
        "--parsable2".to_owned(),
        format!("--format={ACCOUNT_FORMAT}"),
    ];
    let answered = programs.run("sacct", &arguments).await.ok().filter(|it| it.status.success())?;
    parse_accounted(&answered.text, job)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: u64, state: &str) -> QueuedJob {
        QueuedJob { id, state: JobState::parse(state), name: String::new(), reason: String::new() }
    }

    #[test]
    fn a_job_is_missed_only_by_answers_that_could_have_known_it() {
        let (watch, hints) = (Watch::default(), Hints::default());
        let before = Instant::now();
        watch.hear(17, "7.1.0".parse().unwrap());
        assert_eq!(watch.take(Vec::new(), before, &hints), [0; 0]);
        let after = Instant::now() + Duration::from_millis(1);
        assert_eq!(watch.take(Vec::new(), after, &hints), [17]);
        assert_eq!(watch.hear(17, "7.1.0".parse().unwrap()), Word::None, "and it is not lost yet");
    }

    #[test]
    fn an_end_is_not_taken_back() {
        let (watch, hints) = (Watch::default(), Hints::default());
        let worker = "7.1.0".parse().unwrap();
        watch.hear(17, worker);
        for state in ["PENDING", "RUNNING", "FAILED", "RUNNING"] {
            watch.take(vec![job(17, state)], Instant::now(), &hints);
        }
        assert_eq!(watch.hear(17, worker), Word::Listed(job(17, "FAILED")));
        watch.forget(worker);
        assert_eq!(watch.hear(17, worker), Word::None);
    }
}
