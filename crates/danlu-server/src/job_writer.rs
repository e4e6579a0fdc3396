//! The one writer: every change of a job goes through here, is decided by the core, made durable, and then shown.
//!
//! Changes that arrive while a commit is under way wait for it and then share the next one, so a thousand clients cost a
//! few commits. Nothing is answered before what it follows from is durable ([`draft`]). If the store fails, nothing has
//! happened: the live state still shows the old state, and whoever asked is told to try again.

mod draft;
#[cfg(test)]
mod model;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use danlu_core::transition::submission_record;
use danlu_core::{ApprovalNeed, Grant, Job, TransitionError, Trigger};
use danlu_store::{Insert, Store, StoreError, SubmissionKey};
use danlu_types::{JobId, JobSpec};
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use crate::live_state::LiveState;
use crate::notify::Notifier;
use draft::{PendingBatch, Settled, Wish};

/// More changes than this wait for the next commit, which bounds how long the first of them waits.
const MOST_PER_COMMIT: usize = 1024;

/// How soon the store is asked for what it may have written.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What became of a wish.
#[derive(Debug, Clone)]
pub(crate) enum WriteResult {
    Done(Arc<Job>),
    /// It was so already.
    Unchanged(Arc<Job>),
    Refused(TransitionError),
    /// There is no such job that has not ended.
    NoSuchJob,
    /// A job was submitted with this key before; this is its id.
    SubmittedBefore(JobId),
    /// The devices were taken by somebody else in the meantime.
    Overbooked,
}

#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum JobWriterError {
    #[error("the change could not be made durable")]
    Store(#[source] Arc<StoreError>),
    #[error("another server has changed the job in the meantime")]
    Stale,
    #[error("the server is shutting down")]
    Closed,
}

type Reply = oneshot::Sender<Result<WriteResult, JobWriterError>>;

#[derive(Debug)]
enum Command {
    Submit { submission: Box<Submission>, at: Timestamp, reply: Reply },
    Apply { id: JobId, event: Trigger, at: Timestamp, seen: Option<u64>, reply: Reply },
}

#[derive(Debug)]
struct Submission {
    spec: JobSpec,
    owner: String,
    key: Option<SubmissionKey>,
    /// Why somebody has to approve it first.
    approval: Option<ApprovalNeed>,
}

/// A handle to the job writer; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct JobWriter {
    commands: mpsc::UnboundedSender<Command>,
}

impl JobWriter {
    /// Starts the writer. It ends when the last handle is dropped.
    pub(crate) fn spawn(
        store: Arc<dyn Store>,
        live_state: Arc<LiveState>,
        wake: Arc<Notifier>,
        last_id: JobId,
    ) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        tokio::spawn(Writer { store, live_state, wake, last_id, doubtful: BTreeSet::new() }.run(inbox));
        JobWriter { commands }
    }

    pub(crate) async fn submit(
        &self,
        spec: JobSpec,
        owner: String,
        key: Option<SubmissionKey>,
        approval: Option<ApprovalNeed>,
    ) -> Result<WriteResult, JobWriterError> {
        let at = Timestamp::now();
        let submission = Box::new(Submission { spec, owner, key, approval });
        self.ask(|reply| Command::Submit { submission, at, reply }).await
    }

    pub(crate) async fn apply(&self, id: JobId, event: Trigger) -> Result<WriteResult, JobWriterError> {
        self.apply_at(id, event, Timestamp::now()).await
    }

    pub(crate) async fn apply_at(
        &self,
        id: JobId,
        event: Trigger,
        at: Timestamp,
    ) -> Result<WriteResult, JobWriterError> {
        self.ask(|reply| Command::Apply { id, event, at, seen: None, reply }).await
    }

    /// Hands in several events at once, in order, so that they share a commit.
    pub(crate) async fn apply_all(
        &self,
        events: Vec<(JobId, Trigger, Timestamp)>,
    ) -> Vec<Result<WriteResult, JobWriterError>> {
        self.apply_planned(events.into_iter().map(|(id, event, at)| (id, event, at, None)).collect()).await
    }

    /// The same for events that were decided on a job of a certain generation; one that has changed since is left as it is.
    pub(crate) async fn apply_planned(
        &self,
        events: Vec<(JobId, Trigger, Timestamp, Option<u64>)>,
    ) -> Vec<Result<WriteResult, JobWriterError>> {
        let answers: Vec<_> = events
            .into_iter()
            .map(|(id, event, at, seen)| {
                let (reply, answer) = oneshot::channel();
                // A closed job writer drops the reply, which the receiver notices.
                let _ = self.commands.send(Command::Apply { id, event, at, seen, reply });
                answer
            })
            .collect();
        let mut results = Vec::with_capacity(answers.len());
        for answer in answers {
            results.push(answer.await.unwrap_or(Err(JobWriterError::Closed)));
        }
        results
    }

    async fn ask(&self, command: impl FnOnce(Reply) -> Command) -> Result<WriteResult, JobWriterError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).map_err(|_| JobWriterError::Closed)?;
        answer.await.unwrap_or(Err(JobWriterError::Closed))
    }
}

struct Writer {
    store: Arc<dyn Store>,
    live_state: Arc<LiveState>,
    wake: Arc<Notifier>,
    last_id: JobId,
    /// Jobs that may be otherwise in the store than in the live state, until the store can be asked.
    doubtful: BTreeSet<JobId>,
}

impl Writer {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Command>) {
        let mut commands = Vec::new();
        loop {
            tokio::select! {
                received = inbox.recv_many(&mut commands, MOST_PER_COMMIT) => {
                    if received == 0 {
                        return;
                    }
                }
                () = tokio::time::sleep(ASK_AGAIN), if !self.doubtful.is_empty() => {}
            }
            self.resolve_doubts().await;
            let mut draft = PendingBatch::default();
            for command in commands.drain(..) {
                match command {
                    Command::Submit { submission, at, reply } => {
                        self.on_submit(&mut draft, *submission, at, reply);
                    }
                    Command::Apply { id, event, at, seen, reply } => {
                        // A plan is checked against the newest state before it is committed: devices are taken here, or
                        // not at all.
                        let take =
                            |grants: &[Grant]| self.live_state.write().cluster.allocate(id, grants).is_ok();
                        let wish = Wish { id, event, at, seen };
                        draft.apply(wish, self.live_state.job(id), reply, take);
                    }
                }
            }
            self.commit(draft).await;
        }
    }

    fn on_submit(
        &mut self,
        draft: &mut PendingBatch<Reply>,
        submission: Submission,
        at: Timestamp,
        reply: Reply,
    ) {
        let Submission { spec, owner, key, approval } = submission;
        self.last_id = JobId(self.last_id.0 + 1);
        let mut job = Job::submitted(self.last_id, owner, Arc::new(spec), at);
        if let Some(why) = approval {
            job = job.waiting_for_approval(why);
        }
        let records = vec![submission_record(&job)];
        draft.insert(Insert { job, submission_key: key, at, records }, reply);
    }

    /// Reads what was written after all, though the store could not say so.
    async fn resolve_doubts(&mut self) {
        for id in std::mem::take(&mut self.doubtful) {
            match self.store.job_fetch(id).await {
                Ok(Some(job))
                    if self.live_state.job(id).is_none_or(|known| known.generation < job.generation) =>
                {
                    tracing::info!(job.id = %id, "a change of job {id} was written after all");
                    self.take_over(Arc::new(job));
                }
                Ok(_) => {}
                Err(_) => drop(self.doubtful.insert(id)),
            }
        }
    }

    /// Takes a job as the store has it, whatever the live state said.
    fn take_over(&self, job: Arc<Job>) {
        self.live_state.write().replace(job.clone());
        self.wake.jobs_changed(&[job]);
    }

    async fn commit(&mut self, draft: PendingBatch<Reply>) {
        match self.store.commit(draft.batch()).await {
            Ok(committed) => self.settle(draft.committed(&committed)).await,
            // One change that the database will never take must not keep the others from being written.
            Err(StoreError::Refused { .. }) if draft.len() > 1 => {
                for alone in draft.split() {
                    match self.store.commit(alone.batch()).await {
                        Ok(committed) => self.settle(alone.committed(&committed)).await,
                        Err(error) => self.on_failed_commit(alone, error).await,
                    }
                }
            }
            Err(error) => self.on_failed_commit(draft, error).await,
        }
    }

    async fn on_failed_commit(&mut self, draft: PendingBatch<Reply>, error: StoreError) {
        tracing::error!(
            error = %crate::error_chain(&error),
            "could not write {} changes to the store; they will be tried again",
            draft.len()
        );
        self.settle(draft.failed(&Arc::new(error))).await;
    }

    /// Shows what has become durable, then tells whoever asked.
    async fn settle(&mut self, settled: Settled<Reply>) {
        let Settled { answers, changed, stale, give_back, doubtful } = settled;
        {
            let mut pages = self.live_state.write();
            for id in give_back {
                pages.cluster.free(id);
            }
            for job in &changed {
                pages.insert(job.clone());
            }
        }
        self.doubtful.extend(doubtful);
        for id in stale {
            tracing::warn!(job.id = %id, "job {id} is not as it was in the store; reading it again");
            match self.store.job_fetch(id).await {
                Ok(Some(job)) => self.take_over(Arc::new(job)),
                Ok(None) => {}
                Err(_) => drop(self.doubtful.insert(id)),
            }
        }
        for (reply, result) in answers {
            // Whoever asked may have gone away; the change stands.
            let _ = reply.send(result);
        }
        self.wake.jobs_changed(&changed);
    }
}
