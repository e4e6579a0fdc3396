//! What has become of a worker, from what lies on disk and what Slurm says.
//!
//! Two rules keep jobs from being lost. The launcher's own last word always counts, so this is asked only where there is
//! none. And silence proves nothing: a job that is missing from a list may be in the part that was cut off, so it is gone
//! only when Slurm, asked for it by its number, denies it.

use danlu_core::job::{FailureCause, WorkerEnd, WorkerFailure};
use danlu_types::reason::{Reason, SlurmWait};

use super::queue::{SlurmJobEnd, SlurmJobState, SqueueJob};

/// What is known of a worker whose launcher has not said that it ended.
#[derive(Debug, Clone, Copy)]
pub struct SlurmEvidence<'a> {
    /// The launcher has said that the ranks run.
    pub running: bool,
    pub told_to_stop: bool,
    /// The launcher has said that it was stopped, and not by us.
    pub stopped_by_slurm: bool,
    /// Slurm has put its job back into its queue, or has forgotten it while the launcher lives.
    pub requeued: bool,
    /// The number of its job, once there is one.
    pub submitted: Option<u64>,
    pub slurm: SlurmReply<'a>,
    /// The worker's node.
    pub node: &'a str,
    /// Of the job's nodes, those that did not answer Slurm when the job was seen to have lost one.
    pub away: &'a [String],
}

#[derive(Debug, Clone, Copy)]
pub enum SlurmReply<'a> {
    /// It was not asked, did not answer, or answered without a word on this job.
    None,
    Listed(&'a SqueueJob),
    /// Asked for the number, it knows no such job.
    Denied,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InferredState {
    /// Nothing has changed: preparing, or running, as the launcher last said.
    AsBefore,
    /// It waits in Slurm's queue.
    Waiting,
    /// It runs by Slurm's book, and Slurm has stopped its processes for a while.
    Suspended,
    /// The launchers have ended in good order: the last word must be on its way.
    Awaited,
    Ended(WorkerEnd),
}

pub fn infer_state(evidence: SlurmEvidence<'_>) -> InferredState {
    let SlurmEvidence { running, told_to_stop, stopped_by_slurm, requeued, submitted, slurm, node, away } =
        evidence;
    let is_away = away.iter().any(|name| name == node);
    let Some(id) = submitted else {
        // What was never submitted is not submitted any more once an order lies there.
        return if told_to_stop { InferredState::Ended(WorkerEnd::Stopped) } else { InferredState::AsBefore };
    };
    let ended = |cause, detail| {
        if told_to_stop {
            return InferredState::Ended(WorkerEnd::Stopped);
        }
        InferredState::Ended(WorkerEnd::Failed(WorkerFailure { cause, rank: None, exit: None, detail }))
    };
    let again = |what: &str| {
        if told_to_stop {
            return InferredState::Ended(WorkerEnd::Stopped);
        }
        InferredState::Ended(WorkerEnd::Requeued { reason: format!("Slurm's job {id} {what}") })
    };
    match slurm {
        SlurmReply::None => InferredState::AsBefore,
        // A controller that was killed forgets jobs that run, and ends them when their nodes tell of them: till then the launcher
        // lives, and may even finish.
        SlurmReply::Denied if running && !told_to_stop => InferredState::Awaited,
        SlurmReply::Denied => ended(
            FailureCause::LauncherLost,
            format!("Slurm no longer knows its job {id}, and its launcher has not said how it ended"),
        ),
        SlurmReply::Listed(job) => match &job.state {
            // A controller that was killed may have forgotten that the job began, too. The launchers of one that really was put back
            // say that they were stopped.
            SlurmJobState::Waiting if requeued && running && !told_to_stop => InferredState::Awaited,
            SlurmJobState::Waiting if requeued => again("was requeued, and not by Danlu"),
            SlurmJobState::Waiting if !running => InferredState::Waiting,
            SlurmJobState::Waiting | SlurmJobState::Alive => InferredState::AsBefore,
            SlurmJobState::Suspended => InferredState::Suspended,
            SlurmJobState::Completed => InferredState::Awaited,
            // Slurm ends the whole job. Another of its workers was on the lost node and is to be blamed, not this one, whose
            // node would be avoided for it: it ends when the gang is told to.
            SlurmJobState::Over(SlurmJobEnd::NodeFailed) if !away.is_empty() && !is_away && !told_to_stop => {
                InferredState::AsBefore
            }
            SlurmJobState::Over(SlurmJobEnd::Preempted) => again("was preempted by Slurm"),
            SlurmJobState::Over(ending) => {
                let (cause, what) = match ending {
                    // `srun` ends all of them when one ends badly.
                    SlurmJobEnd::Failed if stopped_by_slurm => {
                        (FailureCause::LauncherLost, "lost the launcher of another worker".to_owned())
                    }
                    SlurmJobEnd::NodeFailed if is_away => {
                        (FailureCause::NodeLost, format!("lost its node {node}"))
                    }
                    ending => {
                        let (cause, what) = meaning(*ending);
                        (cause, what.to_owned())
                    }
                };
                let reason = match (job.exit_code.and_then(script_error), job.reason.as_str()) {
                    (Some(error), _) => format!(": {error}"),
                    (None, "" | "None") => String::new(),
                    (None, reason) => format!(" ({reason})"),
                };
                ended(cause, format!("Slurm's job {id} {what}{reason}"))
            }
        },
    }
}

/// What the codes mean with which scripts of ours end that could not start a launcher.
fn script_error(code: i32) -> Option<&'static str> {
    match code {
        70 => Some(
            "its node has not the folder that it works in, or may not write there (`work` of the settings, or the data folder)",
        ),
        71 => Some(
            "its node could not claim the order: the data folder cannot be written there, or the server is not reached from there",
        ),
        72 => Some("its node could not fetch the program from the server (`server` of the settings)"),
        _ => None,
    }
}

fn meaning(ending: SlurmJobEnd) -> (FailureCause, &'static str) {
    match ending {
        SlurmJobEnd::Cancelled => (FailureCause::LauncherLost, "was cancelled, and not by Danlu"),
        SlurmJobEnd::Failed => {
            (FailureCause::LauncherLost, "failed before its launcher had said how it ended")
        }
        SlurmJobEnd::TimedOut => (FailureCause::TimeLimit, "ran longer than Slurm lets it"),
        SlurmJobEnd::NodeFailed => (FailureCause::NodeLost, "lost a node, which is back"),
        // Answered before: it starts again at no cost.
        SlurmJobEnd::Preempted => (FailureCause::NodeLost, "was preempted by Slurm"),
        SlurmJobEnd::OutOfMemory => (FailureCause::OutOfMemory, "used more memory than Slurm lets it"),
    }
}

/// What a job waits for in a queue of the engine's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueWait {
    /// For the nodes that it was planned on: others have them, or they are away.
    Nodes,
    /// For what the nodes that it was planned on do not have, or no longer.
    Hardware,
    /// For what no other node would change: a limit, a hold, a partition that is closed.
    Other,
}

/// The same from Slurm's word for it; `None` before Slurm has looked at the job.
pub fn queue_wait(reason: &str) -> Option<QueueWait> {
    match reason.split(',').next().unwrap_or_default().trim() {
        "" | "None" => None,
        "Resources" | "Priority" | "ReqNodeNotAvail" | "Nodes_required_for_job_are_DOWN" | "NodeDown" => {
            Some(QueueWait::Nodes)
        }
        "BadConstraints" => Some(QueueWait::Hardware),
        _ => Some(QueueWait::Other),
    }
}

/// What a job waits for in Slurm, by Slurm's own word.
pub fn pending_reason(slurm_job: u64, slurm_reason: &str) -> Reason {
    let word = slurm_reason.split(',').next().unwrap_or_default().trim();
    let cause = match word {
        "" | "None" => SlurmWait::NotConsidered,
        "Resources" => SlurmWait::Resources,
        "Priority" => SlurmWait::Priority,
        "ReqNodeNotAvail" => SlurmWait::NodeUnavailable,
        "Nodes_required_for_job_are_DOWN" => SlurmWait::NodeDown,
        "BeginTime" => SlurmWait::BeginTime,
        "JobHeldUser" | "JobHeldAdmin" => SlurmWait::Held,
        "PartitionDown" | "PartitionInactive" => SlurmWait::PartitionClosed,
        "PartitionTimeLimit" => SlurmWait::PartitionTimeLimit,
        "PartitionNodeLimit" => SlurmWait::PartitionNodeLimit,
        "Reservation" => SlurmWait::Reservation,
        "Licenses" => SlurmWait::Licenses,
        "BadConstraints" => SlurmWait::BadConstraints,
        word if word.starts_with("QOS") => SlurmWait::QosLimit,
        word if word.starts_with("Assoc") => SlurmWait::AccountLimit,
        _ => SlurmWait::Other,
    };
    Reason::SlurmPending { slurm_job, cause, slurm_reason: slurm_reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(state: &str, reason: &str, running: bool, told_to_stop: bool) -> InferredState {
        let job = SqueueJob {
            id: 17,
            state: SlurmJobState::parse(state),
            name: String::new(),
            reason: reason.to_owned(),
            exit_code: None,
        };
        let slurm = SlurmReply::Listed(&job);
        let evidence = SlurmEvidence { running, told_to_stop, slurm, ..EVIDENCE };
        infer_state(evidence)
    }

    const EVIDENCE: SlurmEvidence<'static> = SlurmEvidence {
        running: true,
        told_to_stop: false,
        stopped_by_slurm: false,
        requeued: false,
        submitted: Some(17),
        slurm: SlurmReply::None,
        node: "n1",
        away: &[],
    };

    #[test]
    fn every_state_of_slurms_has_a_meaning() {
        let states = [
            "PENDING",
            "CONFIGURING",
            "RUNNING",
            "SUSPENDED",
            "COMPLETING",
            "COMPLETED",
            "FAILED",
            "CANCELLED",
            "TIMEOUT",
            "DEADLINE",
            "NODE_FAIL",
            "BOOT_FAIL",
            "PREEMPTED",
            "OUT_OF_MEMORY",
            "REVOKED",
            "NEWFANGLED",
        ];
        let shown: Vec<String> = states
            .iter()
            .map(|state| match judged(state, "NodeDown", true, false) {
                InferredState::Ended(WorkerEnd::Failed(failure)) => {
                    format!("{state}: {:?}: {}", failure.cause, failure.detail)
                }
                other => format!("{state}: {other:?}"),
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        PENDING: AsBefore
        CONFIGURING: AsBefore
        RUNNING: AsBefore
        SUSPENDED: Suspended
        COMPLETING: AsBefore
        COMPLETED: Awaited
        FAILED: LauncherLost: Slurm's job 17 failed before its launcher had said how it ended (NodeDown)
        CANCELLED: LauncherLost: Slurm's job 17 was cancelled, and not by Danlu (NodeDown)
        TIMEOUT: TimeLimit: Slurm's job 17 ran longer than Slurm lets it (NodeDown)
        DEADLINE: TimeLimit: Slurm's job 17 ran longer than Slurm lets it (NodeDown)
        NODE_FAIL: NodeLost: Slurm's job 17 lost a node, which is back (NodeDown)
        BOOT_FAIL: NodeLost: Slurm's job 17 lost a node, which is back (NodeDown)
        PREEMPTED: Ended(Requeued { reason: "Slurm's job 17 was preempted by Slurm" })
        OUT_OF_MEMORY: OutOfMemory: Slurm's job 17 used more memory than Slurm lets it (NodeDown)
        REVOKED: LauncherLost: Slurm's job 17 was cancelled, and not by Danlu (NodeDown)
        NEWFANGLED: AsBefore
        "#);
    }

    #[test]
    fn codes_of_our_own_scripts_are_explained() {
        let job = |exit_code| SqueueJob {
            id: 17,
            state: SlurmJobState::Over(SlurmJobEnd::Failed),
            name: String::new(),
            reason: "NonZeroExitCode".to_owned(),
            exit_code,
        };
        let detail =
            |code| match infer_state(SlurmEvidence { slurm: SlurmReply::Listed(&job(code)), ..EVIDENCE }) {
                InferredState::Ended(WorkerEnd::Failed(failure)) => failure.detail,
                other => panic!("{other:?}"),
            };
        assert!(detail(Some(70)).contains("may not write there"));
        assert!(
            detail(Some(1)).ends_with("(NonZeroExitCode)") && detail(None).ends_with("(NonZeroExitCode)")
        );
    }

    #[test]
    fn a_job_that_is_back_in_the_queue_starts_again() {
        let job = SqueueJob {
            id: 17,
            state: SlurmJobState::Waiting,
            name: String::new(),
            reason: "BeginTime".to_owned(),
            exit_code: None,
        };
        let alive = SlurmEvidence { requeued: true, slurm: SlurmReply::Listed(&job), ..EVIDENCE };
        assert_eq!(
            infer_state(alive),
            InferredState::Awaited,
            "the controller may have forgotten that it began"
        );
        let evidence = SlurmEvidence { running: false, ..alive };
        let reason = "Slurm's job 17 was requeued, and not by Danlu".to_owned();
        assert_eq!(infer_state(evidence), InferredState::Ended(WorkerEnd::Requeued { reason }));
        let told = SlurmEvidence { told_to_stop: true, ..evidence };
        assert_eq!(infer_state(told), InferredState::Ended(WorkerEnd::Stopped));
        let stale = SlurmEvidence { requeued: false, ..alive };
        assert_eq!(infer_state(stale), InferredState::AsBefore, "the answer may be older than its start");
    }

    #[test]
    fn what_other_nodes_would_change_is_told_from_what_they_would_not() {
        for reason in ["Resources", "Priority", "ReqNodeNotAvail, UnavailableNodes:n[1-2]"] {
            assert_eq!(queue_wait(reason), Some(QueueWait::Nodes), "{reason}");
        }
        assert_eq!(queue_wait("BadConstraints"), Some(QueueWait::Hardware));
        for reason in ["QOSMaxGRESPerUser", "JobHeldUser", "PartitionDown", "Licenses", "Newfangled"] {
            assert_eq!(queue_wait(reason), Some(QueueWait::Other), "{reason}");
        }
        assert_eq!([queue_wait("None"), queue_wait("")], [None, None]);
    }

    #[test]
    fn silence_is_no_proof() {
        let evidence = |slurm| SlurmEvidence { slurm, ..EVIDENCE };
        assert_eq!(infer_state(evidence(SlurmReply::None)), InferredState::AsBefore);
        assert_eq!(
            infer_state(evidence(SlurmReply::Denied)),
            InferredState::Awaited,
            "its launcher may live"
        );
        let never = SlurmEvidence { running: false, ..evidence(SlurmReply::Denied) };
        assert!(matches!(infer_state(never), InferredState::Ended(WorkerEnd::Failed(_))));
    }

    #[test]
    fn of_a_gang_that_lost_a_node_the_worker_there_is_blamed_and_the_others_wait_for_their_orders() {
        let job = SqueueJob {
            id: 17,
            state: SlurmJobState::parse("NODE_FAIL"),
            name: String::new(),
            reason: "NodeDown".to_owned(),
            exit_code: None,
        };
        let slurm = SlurmReply::Listed(&job);
        let away = ["n2".to_owned()];
        let on = |node, told_to_stop| {
            infer_state(SlurmEvidence { slurm, node, told_to_stop, away: &away, ..EVIDENCE })
        };
        assert_eq!(on("n1", false), InferredState::AsBefore);
        assert_eq!(on("n1", true), InferredState::Ended(WorkerEnd::Stopped));
        let InferredState::Ended(WorkerEnd::Failed(lost)) = on("n2", false) else { panic!("it is lost") };
        assert_eq!(
            (lost.cause, lost.detail.as_str()),
            (FailureCause::NodeLost, "Slurm's job 17 lost its node n2 (NodeDown)")
        );
    }

    #[test]
    fn what_was_told_to_stop_was_stopped() {
        for state in ["CANCELLED", "FAILED", "NODE_FAIL"] {
            assert_eq!(
                judged(state, "None", false, true),
                InferredState::Ended(WorkerEnd::Stopped),
                "{state}"
            );
        }
        let never = SlurmEvidence { running: false, told_to_stop: true, submitted: None, ..EVIDENCE };
        assert_eq!(infer_state(never), InferredState::Ended(WorkerEnd::Stopped));
    }

    #[test]
    fn slurms_reasons_are_said_in_words() {
        let reasons = [
            "None",
            "Resources",
            "Priority",
            "QOSMaxGRESPerUser",
            "ReqNodeNotAvail, UnavailableNodes:n2",
            "Odd",
        ];
        let shown: Vec<String> =
            reasons.iter().map(|reason| pending_reason(17, reason).to_string()).collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        waiting in Slurm's queue as its job 17 (Slurm has not looked at it yet)
        waiting in Slurm's queue as its job 17 (Resources: too little is free on its nodes, perhaps because of jobs outside Danlu)
        waiting in Slurm's queue as its job 17 (Priority: jobs ahead in Slurm's queue go first)
        waiting in Slurm's queue as its job 17 (QOSMaxGRESPerUser: a limit of its quality of service (QOS) is reached)
        waiting in Slurm's queue as its job 17 (ReqNodeNotAvail, UnavailableNodes:n2: a node that it is to run on is drained, down or reserved)
        waiting in Slurm's queue as its job 17 (Odd)
        ");
    }
}
