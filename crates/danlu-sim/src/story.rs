//! What is to happen in a simulation. Times count from its start.

use danlu_core::WorkerExit;
use danlu_types::{JobSpec, NodeName, Span};

/// A job that somebody submits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimJob {
    pub submit_at: Span,
    pub spec: JobSpec,
    /// What each attempt does if it is let; the last is repeated for further attempts. Without any, it succeeds at once.
    pub attempts: Vec<Script>,
    /// How long its workers take to end once they are told to, up to the job's grace.
    pub takes_to_stop: Span,
}

/// What one attempt does from the moment it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub runs: Span,
    /// How all workers end if they succeed, or the first worker if it does not.
    pub exit: WorkerExit,
}

/// Something that is done to the cluster or to a job from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intervention {
    pub at: Span,
    pub what: Happening,
}

/// Jobs are named by their position in the list of jobs. What a job's state does not allow has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// The node goes away, and what ran on it is lost.
    NodeLost {
        node: NodeName,
    },
    NodeBack {
        node: NodeName,
    },
    /// The device fails: it is not given out again, but its holder goes on.
    DeviceFailed {
        node: NodeName,
        device: u32,
    },
    DeviceMended {
        node: NodeName,
        device: u32,
    },
    Stop {
        job: usize,
    },
    Hold {
        job: usize,
    },
    Release {
        job: usize,
    },
    Preempt {
        job: usize,
        for_job: usize,
    },
}

impl SimJob {
    /// One that runs for a while and succeeds.
    pub fn succeeding(submit_at: Span, spec: JobSpec, runs: Span) -> Self {
        let attempts = vec![Script { runs, exit: WorkerExit::Succeeded }];
        SimJob { submit_at, spec, attempts, takes_to_stop: Span::default() }
    }
}
