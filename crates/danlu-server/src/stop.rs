//! Ends jobs when people say so, also where that cannot be written down.
//!
//! A stop is a change like others: durable first, then the passes signal the workers. On a read-only disk nothing becomes
//! durable, but a signal needs no disk: the workers that run are told to end all the same, and whoever asked is told what was
//! done and what was not. History then has what the launchers say when the disk is mended: that somebody else than the server
//! stopped them.

use std::sync::Arc;

use danlu_core::authorization::Action;
use danlu_core::job::WorkerLifecycle;
use danlu_core::launch::StopOrder;
use danlu_core::{Job, Trigger};
use danlu_types::{JobId, Problem, ProblemCode, Span, WorkerIndex};

use crate::accounts::Caller;
use crate::app::App;

impl App {
    pub(crate) async fn stop(
        &self,
        caller: &Caller,
        id: JobId,
        grace: Option<Span>,
    ) -> Result<Arc<Job>, Problem> {
        self.job_for(caller, id, Action::ChangeJob).await?;
        let stopped = self.change(id, Trigger::Stop { by: caller.name(), grace }).await;
        match (stopped, self.health.read_only()) {
            (Err(problem), Some(why)) if problem.code == ProblemCode::Unavailable => {
                Err(self.stop_unwritten(id, grace, &why).await)
            }
            (stopped, _) => stopped,
        }
    }

    /// Signals the workers of a job whose stop could not be written; what to say of it.
    async fn stop_unwritten(&self, id: JobId, grace: Option<Span>, why: &str) -> Problem {
        let job = self.live_state.job(id);
        let (mut told, mut failures) = (0, Vec::new());
        if let Some((job, attempt)) = job.as_ref().and_then(|job| Some((job, job.active()?))) {
            let order = StopOrder { grace: grace.unwrap_or(job.spec.grace) };
            for (worker, index) in attempt.workers.iter().zip(0..) {
                if matches!(worker.state, WorkerLifecycle::Running { .. }) {
                    let worker = job.worker_id(attempt.number, WorkerIndex(index));
                    match self.engine.signal(worker, &order).await {
                        Ok(()) => told += 1,
                        Err(error) => failures.push(crate::error_chain(&error)),
                    }
                }
            }
        }
        let not_written = format!("the stop of job {id} cannot be written down: {why}");
        let (detail, hint) = match failures.first() {
            None if told > 0 => (
                format!("{not_written}. Its workers were told to end all the same"),
                "nothing starts again while the disk is read-only; the job is shown as it was until the disk can be written, \
                 and then as stopped by the machine's administrator",
            ),
            None => (
                format!("{not_written}. It has no workers that run, and none starts while that is so"),
                "make the disk writable, then stop it again",
            ),
            Some(failure) => (
                format!("{not_written}. Its workers could not be told to end either: {failure}"),
                "make the disk writable, then stop it again",
            ),
        };
        tracing::warn!(job.id = %id, "{detail}");
        Problem::new(ProblemCode::Unavailable, detail).with_hint(hint)
    }
}
