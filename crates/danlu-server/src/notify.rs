//! Hints: they carry no data, may be doubled or lost, and only make somebody look earlier than they would have.

use std::sync::Arc;

use danlu_core::{Job, JobLifecycle};
use danlu_types::NodeName;
use danlu_types::api::Hint;
use tokio::sync::{Notify, broadcast};

#[derive(Debug)]
pub(crate) struct Notifier {
    /// Something may be startable.
    pub(crate) schedule: Notify,
    /// Some worker may need launching, signalling or releasing.
    pub(crate) act: Notify,
    hints: broadcast::Sender<Hint>,
}

impl Notifier {
    pub(crate) fn new() -> Self {
        // A client that falls this far behind loses hints and polls instead.
        let (hints, _) = broadcast::channel(4096);
        Notifier { schedule: Notify::new(), act: Notify::new(), hints }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Hint> {
        self.hints.subscribe()
    }

    pub(crate) fn node_changed(&self, name: &NodeName) {
        // No receiver is no error.
        let _ = self.hints.send(Hint { kind: "node".to_owned(), id: name.to_string(), generation: 0 });
        self.schedule.notify_one();
    }

    pub(crate) fn jobs_changed(&self, jobs: &[Arc<Job>]) {
        let (mut schedule, mut act) = (false, false);
        for job in jobs {
            match &job.life {
                JobLifecycle::Queued { .. } | JobLifecycle::Held { .. } | JobLifecycle::Ended { .. } => {
                    schedule = true;
                }
                JobLifecycle::Active(_) => act = true,
            }
            if self.hints.receiver_count() > 0 {
                let hint =
                    Hint { kind: "job".to_owned(), id: job.id.to_string(), generation: job.generation };
                // No receiver is no error.
                let _ = self.hints.send(hint);
            }
        }
        if schedule {
            self.schedule.notify_one();
        }
        if act {
            self.act.notify_one();
        }
    }
}
