//! What people are told of jobs that they may not see: that something is held, and how much, but not by what or by whom.
//!
//! Who may see a job is the policy's word; here is only what takes the place of its number, its name and its owner wherever
//! the cluster is shown as a whole. Invariant: nothing that names such a job leaves through nodes, devices, quotas or
//! explanations.

use std::collections::HashSet;

use danlu_types::JobId;
use danlu_types::api::{DeviceView, Explanation, HIDDEN_JOB, HeldDevice, Holder, NodeView, QuotaView};

use crate::accounts::Caller;
use crate::app::App;

/// The running jobs that somebody may see.
#[derive(Debug)]
pub(crate) struct Sight {
    /// `None`: everything.
    seen: Option<Seen>,
}

#[derive(Debug)]
struct Seen {
    workspaces: HashSet<String>,
    jobs: HashSet<JobId>,
}

impl App {
    pub(crate) fn sight_of(&self, caller: &Caller) -> Sight {
        let Some(workspaces) = self.directory.visible_to(&caller.person) else { return Sight { seen: None } };
        let workspaces: HashSet<String> = workspaces.into_iter().collect();
        let pages = self.live_state.read();
        let jobs = pages.active().filter(|job| workspaces.contains(&job.spec.workspace));
        let jobs = jobs.map(|job| job.id).collect();
        Sight { seen: Some(Seen { workspaces, jobs }) }
    }
}

impl Sight {
    fn job(&self, id: JobId) -> bool {
        self.seen.as_ref().is_none_or(|seen| seen.jobs.contains(&id))
    }

    fn workspace(&self, name: &str) -> bool {
        self.seen.as_ref().is_none_or(|seen| seen.workspaces.contains(name))
    }

    fn held(&self, held: &mut HeldDevice) {
        if held.job.is_some_and(|job| !self.job(job)) {
            held.job = None;
            HIDDEN_JOB.clone_into(&mut held.job_name);
            held.owner.clear();
        }
    }

    pub(crate) fn nodes(&self, mut views: Vec<NodeView>) -> Vec<NodeView> {
        for held in views.iter_mut().flat_map(|view| &mut view.held) {
            self.held(held);
        }
        views
    }

    pub(crate) fn devices(&self, mut views: Vec<DeviceView>) -> Vec<DeviceView> {
        for view in &mut views {
            for held in view.holders.iter_mut().chain(&mut view.held_by) {
                self.held(held);
            }
            if let Some(reading) = &mut view.reading {
                // Without its job it would read as a process that is none of Danlu's.
                reading.processes.retain(|process| process.job.is_none_or(|job| self.job(job)));
            }
        }
        views
    }

    pub(crate) fn quotas(&self, mut views: Vec<QuotaView>) -> Vec<QuotaView> {
        for view in &mut views {
            if !self.workspace(&view.workspace) {
                view.users.clear();
            }
            for loan in &mut view.loans {
                loan.jobs.retain(|job| self.job(*job));
            }
        }
        views
    }

    /// Whether anything of it was hidden, so that its text says too much.
    pub(crate) fn explanation(&self, explanation: &mut Explanation) -> bool {
        let mut hidden = false;
        for holder in &mut explanation.holders {
            if self.workspace(&holder.workspace) {
                continue;
            }
            hidden = true;
            let Holder {
                job,
                name,
                workspace,
                owner,
                devices: _,
                cpus: _,
                memory: _,
                nodes: _,
                expected_end: _,
            } = holder;
            *job = None;
            HIDDEN_JOB.clone_into(name);
            workspace.clear();
            owner.clear();
        }
        hidden
    }
}
