//! What has become of a worker, and forgetting it.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Instant;

use danlu_core::job::{FailureCause, WorkerEnd, WorkerFailure};
use danlu_core::launch::{LauncherState, LauncherStatus, STOP_FILE, StopOrder};
use danlu_core::report::REPORT_FILE;
use danlu_slurm::{
    ALLOCATION_LOG, InferredState, SUBMITTED_FILE, SlurmEvidence, SlurmJobEnd, SlurmJobState, SlurmReply,
    infer_state, pending_reason, queue_wait,
};
use danlu_types::{Reason, Span, WorkerId};
use jiff::Timestamp;

use super::folders::{AllocationFolders, Call, read_order, submitted};
use super::node_cache::NodeCache;
use super::poll::{LastReport, Watch};
use crate::{Observation, ObservedState, files};

impl AllocationFolders {
    /// `node_cache` where Slurm places workers: then it is said where they are.
    pub(super) fn observe(
        &self,
        worker: WorkerId,
        watch: &Watch,
        known: Option<&NodeCache>,
    ) -> io::Result<Observation> {
        let _guard = self.guard(worker);
        let mut observation = self.look(worker, watch)?;
        if let (ObservedState::Preparing | ObservedState::Running { .. }, None) =
            (&observation.seen, &observation.remark)
        {
            observation.trouble = self.silence(worker)?;
        }
        if let (Some(known), true) = (known, observation.seen != ObservedState::Unknown) {
            observation.place = self.given_place(worker)?.and_then(|place| known.whereabouts(place));
        }
        if let ObservedState::Running { report, .. } = &mut observation.seen {
            *report = files::read(&self.run(worker).join(REPORT_FILE))?.map(Box::new);
        }
        Ok(observation)
    }

    /// The caller has the worker's guard.
    pub(super) fn look(&self, worker: WorkerId, watch: &Watch) -> io::Result<Observation> {
        let seen = |seen| Observation::new(worker, seen);
        if !self.marker(worker).try_exists()? {
            return Ok(seen(ObservedState::Unknown));
        }
        let told_to_stop = self.is_told_to_stop(worker)?;
        if let Some(ended) = self.last_word(worker, told_to_stop)? {
            return Ok(seen(ended));
        }
        let folder = self.allocation(worker)?;
        let job = folder.as_deref().map(Self::job_of).transpose()?.flatten();
        let word = job.map(|job| watch.hear(job, worker)).unwrap_or_default();
        // Read after Slurm's word was taken: a launcher that wrote its end before its job ended has been heard.
        if let Some(ended) = self.last_word(worker, told_to_stop)? {
            return Ok(seen(ended));
        }
        let status = self.status(worker)?;
        if let (true, None, Some(folder)) = (told_to_stop, &status, &folder)
            && !Self::is_claimed(folder)?
            && read_order(folder)?.is_some_and(|order| !self.is_own(&order))
        {
            // It is not cancelled, so nobody waits for Slurm to start it: it would find the order to stop.
            return self.conclude(worker, None, WorkerEnd::Stopped).map(seen);
        }
        if let (Some(job), Some(folder)) = (job, &folder)
            && (status.is_some() || Self::has_claimant(folder)?)
        {
            watch.has_begun(job);
        }
        if let (LastReport::Denied | LastReport::LostNode(..), None, false, Some(folder)) =
            (&word, &status, told_to_stop, &folder)
            && !Self::is_claimed(folder)?
        {
            // A controller that was killed forgets what it had not saved, and one that cannot reach a node gives up. Nothing of
            // it ran, so it may be submitted again; and should we be wrong, the claim lets only one of them run.
            tracing::warn!(worker.id = %worker, "Slurm has lost the job of worker {worker} before it began");
            files::remove(&folder.join(SUBMITTED_FILE))?;
            watch.forget(worker);
            return Ok(seen(ObservedState::Preparing));
        }
        let stopped_by_slurm = status.as_ref().is_some_and(|it| ended(&it.phase).is_some());
        if let (LastReport::Listed(listed), true, false) = (&word, stopped_by_slurm, told_to_stop)
            && matches!(listed.state, SlurmJobState::Completed | SlurmJobState::Over(SlurmJobEnd::Failed))
        {
            // A partition with a grace time signals the steps first, and their launchers end in good order.
            match watch.was_preempted(listed.id) {
                Some(false) => {}
                Some(true) => {
                    let reason = format!("Slurm's job {} was preempted by Slurm", listed.id);
                    let exit = WorkerEnd::Requeued { reason };
                    return self.conclude(worker, status.as_ref(), exit).map(seen);
                }
                None => return Ok(seen(as_before(status.as_ref()))),
            }
        }
        let (node, away) = match &word {
            LastReport::LostNode(_, away) => self.nodes_lost(worker, away)?,
            LastReport::None | LastReport::Listed(_) | LastReport::Requeued(_) | LastReport::Denied => {
                (String::new(), Vec::new())
            }
        };
        let evidence = SlurmEvidence {
            node: &node,
            away: &away,
            running: status.as_ref().is_some_and(|it| matches!(it.phase, LauncherState::Running { .. })),
            told_to_stop,
            stopped_by_slurm,
            requeued: matches!(word, LastReport::Requeued(_)),
            submitted: job,
            slurm: match &word {
                LastReport::None => SlurmReply::None,
                LastReport::Listed(job) | LastReport::LostNode(job, _) | LastReport::Requeued(job) => {
                    SlurmReply::Listed(job)
                }
                LastReport::Denied => SlurmReply::Denied,
            },
        };
        match infer_state(evidence) {
            InferredState::AsBefore => Ok(seen(as_before(status.as_ref()))),
            InferredState::Waiting => {
                let LastReport::Listed(listed) = &word else { return Ok(seen(ObservedState::Preparing)) };
                let remark = Some(pending_reason(listed.id, &listed.reason));
                let wait = queue_wait(&listed.reason);
                Ok(Observation { remark, wait, ..seen(ObservedState::Preparing) })
            }
            InferredState::Suspended => {
                let remark = job.map(|slurm_job| Reason::SlurmSuspended { slurm_job });
                Ok(Observation { remark, ..seen(as_before(status.as_ref())) })
            }
            InferredState::Awaited | InferredState::Ended(_) if word_is_done(&word) && stopped_by_slurm => {
                // Told to end by nobody that Slurm knows of, or because Slurm knows of no job.
                let exit = match (&word, told_to_stop, job) {
                    (LastReport::Denied, false, Some(id)) => WorkerEnd::Requeued {
                        reason: format!("Slurm has forgotten its job {id} and ended it"),
                    },
                    _ => WorkerEnd::Stopped,
                };
                self.conclude(worker, status.as_ref(), exit).map(seen)
            }
            InferredState::Awaited
                if !self.awaited.is_overdue(worker, self.traces(worker), Instant::now()) =>
            {
                Ok(seen(as_before(status.as_ref())))
            }
            InferredState::Awaited if matches!(word, LastReport::Requeued(_)) => {
                let reason =
                    format!("Slurm's job {} was requeued, and not by Danlu", job.unwrap_or_default());
                self.conclude(worker, status.as_ref(), WorkerEnd::Requeued { reason }).map(seen)
            }
            InferredState::Awaited => {
                let what = if word == LastReport::Denied {
                    "no longer knows its job"
                } else {
                    "says that its job has completed"
                };
                let detail = format!(
                    "Slurm {what}, and its launcher has not said how it ended; do the nodes see the data folder, or reach the \
                     server?"
                );
                let cause = FailureCause::LauncherLost;
                let failure = WorkerFailure { cause, rank: None, exit: None, detail };
                self.conclude(worker, status.as_ref(), WorkerEnd::Failed(failure)).map(seen)
            }
            InferredState::Ended(exit) => {
                let exit = match (exit, &folder) {
                    (WorkerEnd::Failed(failure), Some(folder)) => {
                        WorkerEnd::Failed(with_last_words(failure, folder))
                    }
                    (exit, _) => exit,
                };
                self.conclude(worker, status.as_ref(), exit).map(seen)
            }
        }
    }

    /// The worker's own node, and those of its gang that are away. A job of one node lost that one, whatever is said of it now.
    fn nodes_lost(&self, worker: WorkerId, away: &[String]) -> io::Result<(String, Vec<String>)> {
        let mut nodes = Vec::new();
        for other in self.gang(worker)? {
            nodes.extend(self.node(other)?);
        }
        let own = self.node(worker)?.unwrap_or_default();
        let is_alone = nodes.iter().all(|node| *node == own);
        nodes.retain(|node| is_alone || away.contains(node));
        Ok((own, nodes))
    }

    /// What we said at last, or the launcher. One that says that it was stopped, though nobody here told it to, was told by
    /// Slurm, which knows why: a node that fails, a limit, somebody's `scancel`.
    fn last_word(&self, worker: WorkerId, told_to_stop: bool) -> io::Result<Option<ObservedState>> {
        if let Some(verdict) = self.verdict(worker)? {
            return Ok(ended(&verdict));
        }
        let phase = self.status(worker)?.map(|status| status.phase);
        let is_theirs = matches!(&phase, Some(LauncherState::Ended { exit: WorkerEnd::Stopped, .. }));
        Ok(phase.as_ref().filter(|_| told_to_stop || !is_theirs).and_then(ended))
    }

    /// Gives the verdict, durable before it is told.
    fn conclude(
        &self,
        worker: WorkerId,
        status: Option<&LauncherStatus>,
        exit: WorkerEnd,
    ) -> io::Result<ObservedState> {
        self.forget_secrets(worker)?;
        // Slurm says only that it was cancelled.
        let exit = self.killed_as(worker)?.unwrap_or(exit);
        let running_since = match status.map(|status| &status.phase) {
            Some(LauncherState::Running { since, .. }) => Some(*since),
            Some(LauncherState::Ended { running_since, .. }) => *running_since,
            Some(LauncherState::Preparing) | None => None,
        };
        let verdict = LauncherState::Ended { running_since, at: Timestamp::now(), exit };
        match self.give_verdict(worker, &verdict) {
            Ok(()) => {
                // Should its launcher live on a node that only Slurm has lost, it finds this and ends.
                let order = serde_json::to_vec(&StopOrder { grace: Span::default() })?;
                if let Err(error) = files::replace(&self.run(worker), STOP_FILE, &order) {
                    tracing::warn!(worker.id = %worker, %error, "could not write an order for worker {worker}");
                }
                Ok(ended(&verdict).unwrap_or(ObservedState::Unknown))
            }
            Err(error) => {
                // Others are to be seen nevertheless. This one stays as it was until the disk takes the verdict.
                tracing::warn!(worker.id = %worker, %error, "could not write the verdict on worker {worker}");
                Ok(as_before(status))
            }
        }
    }

    /// Forgets an ended worker; the marker goes last. A second submission of the same order may be left, which can only run
    /// nothing: away with it.
    pub(super) fn release(&self, worker: WorkerId, watch: &Watch) -> io::Result<Option<Call>> {
        let _guard = self.guard(worker);
        let marker = self.marker(worker);
        if !marker.try_exists()? {
            return Ok(None);
        }
        if let ObservedState::Preparing | ObservedState::Running { .. } = self.look(worker, watch)?.seen {
            return Err(io::Error::new(ErrorKind::ResourceBusy, "its launcher still runs"));
        }
        self.forget_secrets(worker)?;
        let mut left = None;
        if let Some(folder) = self.allocation(worker)? {
            let (runs, known) = (Self::job_of(&folder)?, submitted(&folder)?);
            // What was requeued would run nothing either.
            let waits = |job: u64| matches!(watch.hear(job, worker), LastReport::Requeued(_));
            let own = read_order(&folder)?.filter(|order| self.is_own(order));
            if let (Some(job), Some(order)) =
                (known.filter(|known| runs != Some(*known) || waits(*known)), own)
            {
                left = Some(Call::Cancel { job, user: order.user });
            }
        }
        watch.forget(worker);
        self.awaited.forget(worker);
        files::remove(&marker)?;
        Ok(left)
    }
}

/// Who could not even start a launcher has said why in the allocation's log.
fn with_last_words(failure: WorkerFailure, folder: &Path) -> WorkerFailure {
    const LONGEST: usize = 300;
    if failure.cause != FailureCause::LauncherLost {
        return failure;
    }
    let text = files::read_bytes(&folder.join(ALLOCATION_LOG)).ok().flatten().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    match text.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(words) => {
            let words: String = words.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect();
            WorkerFailure { detail: format!("{}: {words}", failure.detail), ..failure }
        }
        None => failure,
    }
}

/// Slurm knows of nothing that went wrong.
fn word_is_done(word: &LastReport) -> bool {
    match word {
        LastReport::Listed(job) => job.state == SlurmJobState::Completed,
        LastReport::Denied => true,
        LastReport::LostNode(..) | LastReport::Requeued(_) | LastReport::None => false,
    }
}

fn ended(phase: &LauncherState) -> Option<ObservedState> {
    match phase {
        LauncherState::Preparing | LauncherState::Running { .. } => None,
        LauncherState::Ended { running_since, at, exit } => {
            Some(ObservedState::Ended { running_since: *running_since, at: *at, exit: exit.clone() })
        }
    }
}

fn as_before(status: Option<&LauncherStatus>) -> ObservedState {
    match status.map(|status| &status.phase) {
        Some(
            LauncherState::Running { since, .. } | LauncherState::Ended { running_since: Some(since), .. },
        ) => ObservedState::Running { since: *since, report: None },
        Some(LauncherState::Preparing | LauncherState::Ended { running_since: None, .. }) | None => {
            ObservedState::Preparing
        }
    }
}
