//! What is to happen in a simulation. Times count from its start.

use danlu_core::WorkerEnd;
use danlu_core::transition::DANLU;
use danlu_types::{JobSpec, Node, NodeName, Sharing, Span};

use crate::faults::Faults;

/// Everything a simulation starts from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scenario {
    pub nodes: Vec<Node>,
    pub sharing: Sharing,
    pub jobs: Vec<SimJob>,
    /// What people, nodes and devices do meanwhile.
    pub interventions: Vec<Intervention>,
    /// Nodes and devices that fail by chance.
    pub faults: Option<Faults>,
}

/// A job that somebody submits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimJob {
    pub submit_at: Span,
    pub spec: JobSpec,
    pub owner: String,
    /// What it does, one part after the other. A part that was interrupted (preempted, its node lost) is taken up again
    /// at its last checkpoint; one that ended by itself is followed by the next, and the last is repeated. Without any,
    /// it succeeds at once.
    pub parts: Vec<WorkerScript>,
    /// How long its workers take to end once they are told to, up to the job's grace.
    pub takes_to_stop: Span,
    /// How much work lies between two checkpoints; without, an interrupted part begins anew.
    pub checkpoint_every: Option<Span>,
    /// What every attempt but the first spends before it goes on with the work.
    pub restart_cost: Span,
}

/// What one part of a job does from the moment it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerScript {
    /// The work it takes, as time on its devices.
    pub runs: Span,
    /// How all workers end if they succeed, or the first worker if it does not.
    pub exit: WorkerEnd,
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
    /// The device fails, and the workers that hold it fail with it.
    DeviceBroke {
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
        SimJob {
            submit_at,
            spec,
            owner: DANLU.to_owned(),
            parts: vec![WorkerScript { runs, exit: WorkerEnd::Succeeded }],
            takes_to_stop: Span::default(),
            checkpoint_every: None,
            restart_cost: Span::default(),
        }
    }
}
