//! What Slurm says of our jobs: one question for all of them, again and again, as long as there is any.
//!
//! A job that should be in the answer and is not may have been cut off or forgotten. It is asked for by its number, and
//! only where Slurm then says that there is no such job is it denied, unless its accounting remembers how it ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use danlu_slurm::{
    ACCOUNT_FORMAT, NodeRecord, SlurmJobEnd, SlurmJobState, SqueueJob, WATCH_FORMAT, parse_accounted,
    parse_job, parse_nodes, parse_preempted, parse_queue,
};
use danlu_types::WorkerId;
use tokio::sync::Notify;

use super::commands::Programs;
use crate::hints::Hints;
use crate::{EngineError, pause_after};

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
    word: LastReport,
    /// When it was first seen to have begun. An answer from after that by which it waits says that it was requeued.
    begun: Option<Instant>,
    preemption: Preemption,
}

/// Whether a job was preempted that has ended otherwise by its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Preemption {
    /// Nobody wants to know: Slurm has to be asked for each job by itself.
    #[default]
    NotAsked,
    Asked,
    Answered(bool),
}

/// Slurm's last word on a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum LastReport {
    #[default]
    None,
    Listed(SqueueJob),
    /// It lost a node; these are the nodes of the cluster that did not answer when that was first seen.
    LostNode(SqueueJob, Arc<[String]>),
    /// It had begun, and waits again.
    Requeued(SqueueJob),
    Denied,
}

impl Watch {
    /// Has the job of a worker watched, and says what was last heard of it.
    pub(super) fn hear(&self, job: u64, worker: WorkerId) -> LastReport {
        let mut jobs = self.lock();
        let mut is_new = false;
        let watched = jobs.entry(job).or_insert_with(|| {
            is_new = true;
            Watched {
                since: Instant::now(),
                workers: BTreeSet::new(),
                word: LastReport::None,
                begun: None,
                preemption: Preemption::NotAsked,
            }
        });
        watched.workers.insert(worker);
        let word = watched.word.clone();
        drop(jobs);
        if is_new {
            self.begun.notify_one();
        }
        word
    }

    /// A job of which something has run.
    pub(super) fn has_begun(&self, job: u64) {
        if let Some(watched) = self.lock().get_mut(&job) {
            watched.begun.get_or_insert_with(Instant::now);
        }
    }

    /// Whether a job that has ended was preempted; `None` as long as Slurm has not said.
    pub(super) fn was_preempted(&self, job: u64) -> Option<bool> {
        let mut jobs = self.lock();
        let preemption = &mut jobs.get_mut(&job)?.preemption;
        match *preemption {
            Preemption::Answered(preempted) => Some(preempted),
            Preemption::NotAsked | Preemption::Asked => {
                *preemption = Preemption::Asked;
                None
            }
        }
    }

    fn perhaps_preempted(&self) -> Vec<u64> {
        let jobs = self.lock();
        let asked = jobs.iter().filter(|(_, watched)| watched.preemption == Preemption::Asked);
        asked.map(|(id, _)| *id).collect()
    }

    fn set_preempted(&self, job: u64, preempted: bool, hints: &Hints) {
        if let Some(watched) = self.lock().get_mut(&job) {
            watched.preemption = Preemption::Answered(preempted);
            watched.workers.iter().for_each(|worker| hints.add(*worker));
        }
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

    /// The jobs that an answer should have and lacks.
    fn lacking(&self, answer: &[SqueueJob], asked: Instant) -> Vec<u64> {
        let listed: BTreeSet<u64> = answer.iter().map(|job| job.id).collect();
        let jobs = self.lock();
        let is_missed = |id: &u64, watched: &Watched| {
            !listed.contains(id) && watched.since < asked && !watched.word.is_final()
        };
        jobs.iter().filter(|(id, watched)| is_missed(id, watched)).map(|(id, _)| *id).collect()
    }

    /// Whether a job is watched whose end is not known.
    fn is_open(&self, job: u64) -> bool {
        self.lock().get(&job).is_some_and(|watched| !watched.word.is_final())
    }

    /// Whether it is news that a job lost a node.
    fn hears_of_a_loss(&self, answer: &[SqueueJob]) -> bool {
        let jobs = self.lock();
        let is_open = |id: &u64| jobs.get(id).is_some_and(|watched| !watched.word.is_final());
        answer.iter().any(|job| has_lost_node(job) && is_open(&job.id))
    }

    /// Takes an answer over. Workers of jobs with news are hinted. Where it is not known which nodes are away, those that
    /// lost one stay as they were.
    fn take(&self, answer: Vec<SqueueJob>, asked: Instant, away: Option<&Arc<[String]>>, hints: &Hints) {
        let mut jobs = self.lock();
        for job in answer {
            let Some(watched) = jobs.get_mut(&job.id) else { continue };
            match away {
                Some(away) if has_lost_node(&job) => {
                    watched.set(LastReport::LostNode(job, away.clone()), hints);
                }
                None if has_lost_node(&job) => {}
                _ if job.state == SlurmJobState::Waiting && watched.begun.is_some_and(|at| at < asked) => {
                    watched.set(LastReport::Requeued(job), hints);
                }
                _ => watched.set(LastReport::Listed(job), hints),
            }
        }
    }

    fn set(&self, job: u64, word: LastReport, hints: &Hints) {
        if let Some(watched) = self.lock().get_mut(&job) {
            watched.set(word, hints);
        }
    }
}

impl LastReport {
    pub(super) fn is_final(&self) -> bool {
        match self {
            LastReport::Listed(job) => matches!(job.state, SlurmJobState::Completed | SlurmJobState::Over(_)),
            LastReport::LostNode(..) | LastReport::Requeued(_) | LastReport::Denied => true,
            LastReport::None => false,
        }
    }
}

fn has_lost_node(job: &SqueueJob) -> bool {
    job.state == SlurmJobState::Over(SlurmJobEnd::NodeFailed)
}

impl Watched {
    fn set(&mut self, word: LastReport, hints: &Hints) {
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
        let asked = Instant::now();
        match look(&programs, &watch, &hints, pace).await {
            Ok(()) => pause = pause_after(every, asked.elapsed()),
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
    for job in watch.perhaps_preempted() {
        if let Some(preempted) = was_preempted(programs, job).await {
            watch.set_preempted(job, preempted, hints);
        }
    }
    let asked = Instant::now();
    let own = (!pace.many_users).then(|| "--me".to_owned());
    let format = format!("--format={WATCH_FORMAT}");
    let others = ["--states=all".to_owned(), "--noheader".to_owned(), format];
    let arguments: Vec<String> = own.into_iter().chain(others).collect();
    let text = programs.ask(DOING, "squeue", &arguments).await?;
    let mut answer = parse_queue(&text);
    for job in watch.lacking(&answer, asked) {
        let arguments = ["--oneliner", "show", "job", &job.to_string()].map(str::to_owned);
        match programs.run("scontrol", &arguments).await {
            Ok(answered) if answered.status.success() => {
                answer.extend(parse_job(&answered.text).filter(|found| found.id == job));
            }
            Ok(answered) if answered.said.contains("Invalid job id specified") => {
                match accounted(programs, job).await {
                    Some(remembered) => answer.push(remembered),
                    None => watch.set(job, LastReport::Denied, hints),
                }
            }
            // It will be asked for again.
            Ok(_) | Err(_) => {}
        }
    }
    for job in &mut answer {
        if job.state == SlurmJobState::Over(SlurmJobEnd::Failed)
            && job.exit_code.is_none()
            && watch.is_open(job.id)
        {
            job.exit_code = exit_code(programs, job.id).await;
        }
    }
    let away = if watch.hears_of_a_loss(&answer) { nodes_away(programs).await } else { None };
    watch.take(answer, asked, away.as_ref(), hints);
    Ok(())
}

/// With which code a job's script ended: its own codes say more than Slurm's reason.
async fn exit_code(programs: &Programs, job: u64) -> Option<i32> {
    let arguments = ["--oneliner", "show", "job", &job.to_string()].map(str::to_owned);
    let answered = programs.run("scontrol", &arguments).await.ok().filter(|it| it.status.success())?;
    parse_job(&answered.text).filter(|found| found.id == job)?.exit_code
}

/// `None` where Slurm does not answer: it is asked again. What it has forgotten counts as not preempted.
async fn was_preempted(programs: &Programs, job: u64) -> Option<bool> {
    let arguments = ["--oneliner", "show", "job", &job.to_string()].map(str::to_owned);
    let answered = programs.run("scontrol", &arguments).await.ok()?;
    let is_forgotten = answered.said.contains("Invalid job id specified");
    (answered.status.success() || is_forgotten).then(|| parse_preempted(&answered.text))
}

/// The nodes that do not answer Slurm; `None` where it does not say.
async fn nodes_away(programs: &Programs) -> Option<Arc<[String]>> {
    let arguments = ["--oneliner", "show", "node"].map(str::to_owned);
    let text = programs.ask("ask which nodes are away", "scontrol", &arguments).await.ok()?;
    Some(parse_nodes(&text).into_iter().filter(NodeRecord::is_away).map(|node| node.name).collect())
}

/// How a job ended that the controller has forgotten. Few small sites have accounting: without it nothing is remembered.
async fn accounted(programs: &Programs, job: u64) -> Option<SqueueJob> {
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

    fn job(id: u64, state: &str) -> SqueueJob {
        let (name, reason) = (String::new(), String::new());
        SqueueJob { id, state: SlurmJobState::parse(state), name, reason, exit_code: None }
    }

    #[test]
    fn a_job_is_missed_only_by_answers_that_could_have_known_it() {
        let watch = Watch::default();
        let before = Instant::now();
        watch.hear(17, "7.1.0".parse().unwrap());
        assert_eq!(watch.lacking(&[], before), [0; 0]);
        let after = Instant::now() + Duration::from_millis(1);
        assert_eq!(watch.lacking(&[job(17, "RUNNING")], after), [0; 0]);
        assert_eq!(watch.lacking(&[], after), [17]);
        assert_eq!(watch.hear(17, "7.1.0".parse().unwrap()), LastReport::None, "and it is not lost yet");
    }

    #[test]
    fn an_end_is_not_taken_back() {
        let (watch, hints) = (Watch::default(), Hints::default());
        let worker = "7.1.0".parse().unwrap();
        watch.hear(17, worker);
        for state in ["PENDING", "RUNNING", "FAILED", "RUNNING"] {
            watch.take(vec![job(17, state)], Instant::now(), None, &hints);
        }
        assert_eq!(watch.hear(17, worker), LastReport::Listed(job(17, "FAILED")));
        watch.forget(worker);
        assert_eq!(watch.hear(17, worker), LastReport::None);
    }

    #[test]
    fn a_job_is_requeued_only_by_answers_from_after_its_start() {
        let (watch, hints) = (Watch::default(), Hints::default());
        let worker = "7.1.0".parse().unwrap();
        watch.hear(17, worker);
        let before = Instant::now();
        watch.has_begun(17);
        watch.take(vec![job(17, "PENDING")], before, None, &hints);
        assert_eq!(
            watch.hear(17, worker),
            LastReport::Listed(job(17, "PENDING")),
            "an answer that was under way"
        );
        watch.take(vec![job(17, "PENDING")], Instant::now() + Duration::from_millis(1), None, &hints);
        assert_eq!(watch.hear(17, worker), LastReport::Requeued(job(17, "PENDING")));
    }

    #[test]
    fn a_lost_node_is_believed_once_it_is_known_which() {
        let (watch, hints) = (Watch::default(), Hints::default());
        let worker = "7.1.0".parse().unwrap();
        watch.hear(17, worker);
        let answer = vec![job(17, "NODE_FAIL")];
        assert!(watch.hears_of_a_loss(&answer));
        watch.take(answer.clone(), Instant::now(), None, &hints);
        assert_eq!(watch.hear(17, worker), LastReport::None);
        let away: Arc<[String]> = Arc::new(["n2".to_owned()]);
        watch.take(answer.clone(), Instant::now(), Some(&away), &hints);
        assert_eq!(watch.hear(17, worker), LastReport::LostNode(job(17, "NODE_FAIL"), away));
        assert!(!watch.hears_of_a_loss(&answer), "which is asked once");
    }
}
