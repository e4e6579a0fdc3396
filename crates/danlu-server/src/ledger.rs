//! The one writer: every change of a job goes through here, is decided by the core, made durable, and then shown.
//!
//! Changes that arrive while a commit is under way wait for it and then share the next one, so a thousand clients cost a
//! few commits. A change is answered only when it is durable. If the store fails, nothing has happened: the book still
//! shows the old state, and whoever asked is told to try again.

use std::collections::HashMap;
use std::sync::Arc;

use danlu_core::transition::submission_record;
use danlu_core::{Event, Grant, Job, Record, Refusal, Step, apply};
use danlu_store::{Batch, Committed, Insert, Store, StoreError, Update};
use danlu_types::{JobId, JobSpec};
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use crate::book::Book;
use crate::wake::Wake;

/// More changes than this wait for the next commit, which bounds how long the first of them waits.
const MOST_PER_COMMIT: usize = 1024;

/// What became of a wish.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Done(Arc<Job>),
    /// It was so already.
    Unchanged(Arc<Job>),
    Refused(Refusal),
    /// There is no such job that has not ended.
    NoSuchJob,
    /// A job was submitted with this key before; this is its id.
    SubmittedBefore(JobId),
    /// The devices were taken by somebody else in the meantime.
    Overbooked,
}

#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum LedgerError {
    #[error("the change could not be made durable")]
    Store(#[source] Arc<StoreError>),
    #[error("another server has changed the job in the meantime")]
    Stale,
    #[error("the server is shutting down")]
    Closed,
}

type Reply = oneshot::Sender<Result<Answer, LedgerError>>;

#[derive(Debug)]
enum Command {
    Submit { submission: Box<Submission>, at: Timestamp, reply: Reply },
    Apply { id: JobId, event: Event, at: Timestamp, seen: Option<u64>, reply: Reply },
}

#[derive(Debug)]
struct Submission {
    spec: JobSpec,
    owner: String,
    key: Option<String>,
    /// Why somebody has to approve it first.
    approval: Option<String>,
}

/// A handle to the ledger; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    commands: mpsc::UnboundedSender<Command>,
}

impl Ledger {
    /// Starts the writer. It ends when the last handle is dropped.
    pub(crate) fn spawn(store: Arc<dyn Store>, book: Arc<Book>, wake: Arc<Wake>, last_id: JobId) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        tokio::spawn(Writer { store, book, wake, last_id }.run(inbox));
        Ledger { commands }
    }

    pub(crate) async fn submit(
        &self,
        spec: JobSpec,
        owner: String,
        key: Option<String>,
        approval: Option<String>,
    ) -> Result<Answer, LedgerError> {
        let at = Timestamp::now();
        let submission = Box::new(Submission { spec, owner, key, approval });
        self.ask(|reply| Command::Submit { submission, at, reply }).await
    }

    pub(crate) async fn apply(&self, id: JobId, event: Event) -> Result<Answer, LedgerError> {
        self.apply_at(id, event, Timestamp::now()).await
    }

    pub(crate) async fn apply_at(
        &self,
        id: JobId,
        event: Event,
        at: Timestamp,
    ) -> Result<Answer, LedgerError> {
        self.ask(|reply| Command::Apply { id, event, at, seen: None, reply }).await
    }

    /// Hands in several events at once, in order, so that they share a commit.
    pub(crate) async fn apply_all(
        &self,
        events: Vec<(JobId, Event, Timestamp)>,
    ) -> Vec<Result<Answer, LedgerError>> {
        self.apply_planned(events.into_iter().map(|(id, event, at)| (id, event, at, None)).collect()).await
    }

    /// The same for events that were decided on a job of a certain generation; one that has changed since is left as it is.
    pub(crate) async fn apply_planned(
        &self,
        events: Vec<(JobId, Event, Timestamp, Option<u64>)>,
    ) -> Vec<Result<Answer, LedgerError>> {
        let answers: Vec<_> = events
            .into_iter()
            .map(|(id, event, at, seen)| {
                let (reply, answer) = oneshot::channel();
                // A closed ledger drops the reply, which the receiver notices.
                let _ = self.commands.send(Command::Apply { id, event, at, seen, reply });
                answer
            })
            .collect();
        let mut results = Vec::with_capacity(answers.len());
        for answer in answers {
            results.push(answer.await.unwrap_or(Err(LedgerError::Closed)));
        }
        results
    }

    async fn ask(&self, command: impl FnOnce(Reply) -> Command) -> Result<Answer, LedgerError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).map_err(|_| LedgerError::Closed)?;
        answer.await.unwrap_or(Err(LedgerError::Closed))
    }
}

struct Writer {
    store: Arc<dyn Store>,
    book: Arc<Book>,
    wake: Arc<Wake>,
    last_id: JobId,
}

/// A batch in the making: the newest value of each job that it changes.
#[derive(Default)]
struct Draft {
    inserts: Vec<(Insert, Reply)>,
    updates: HashMap<JobId, Changed>,
    /// Devices taken for placements of this batch, to be given back if it fails.
    taken: Vec<JobId>,
}

struct Changed {
    update: Update,
    replies: Vec<(Reply, Answer)>,
}

impl Draft {
    fn is_empty(&self) -> bool {
        self.inserts.is_empty() && self.updates.is_empty()
    }

    /// Each change by itself.
    fn split(self) -> Vec<Draft> {
        let inserts =
            self.inserts.into_iter().map(|insert| Draft { inserts: vec![insert], ..Draft::default() });
        let updates = self.updates.into_iter().map(|(id, changed)| Draft {
            updates: HashMap::from([(id, changed)]),
            taken: self.taken.iter().copied().filter(|taken| *taken == id).collect(),
            ..Draft::default()
        });
        inserts.chain(updates).collect()
    }

    fn note(&mut self, before: &Job, next: Job, records: Vec<Record>, at: Timestamp, reply: Reply) {
        let done = Answer::Done(Arc::new(next.clone()));
        let changed = self.updates.entry(next.id).or_insert_with(|| Changed {
            update: Update {
                job: before.clone(),
                seen_generation: before.generation,
                at,
                records: Vec::new(),
            },
            replies: Vec::new(),
        });
        changed.update.job = next;
        changed.update.at = at;
        changed.update.records.extend(records);
        changed.replies.push((reply, done));
    }
}

impl Writer {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Command>) {
        let mut commands = Vec::new();
        while inbox.recv_many(&mut commands, MOST_PER_COMMIT).await > 0 {
            let mut draft = Draft::default();
            for command in commands.drain(..) {
                match command {
                    Command::Submit { submission, at, reply } => {
                        self.on_submit(&mut draft, *submission, at, reply);
                    }
                    Command::Apply { id, event, at, seen, reply } => {
                        self.on_event(&mut draft, id, event, at, seen, reply);
                    }
                }
            }
            self.commit(draft).await;
        }
    }

    fn on_submit(&mut self, draft: &mut Draft, submission: Submission, at: Timestamp, reply: Reply) {
        let Submission { spec, owner, key, approval } = submission;
        self.last_id = JobId(self.last_id.0 + 1);
        let mut job = Job::submitted(self.last_id, owner, Arc::new(spec), at);
        if let Some(why) = approval {
            job = job.waiting_for_approval(why);
        }
        let records = vec![submission_record(&job)];
        draft.inserts.push((Insert { job, submission_key: key, at, records }, reply));
    }

    fn on_event(
        &self,
        draft: &mut Draft,
        id: JobId,
        event: Event,
        at: Timestamp,
        seen: Option<u64>,
        reply: Reply,
    ) {
        let known = draft.updates.get(&id).map(|changed| Arc::new(changed.update.job.clone()));
        let Some(job) = known.or_else(|| self.book.job(id)) else {
            answer(reply, Answer::NoSuchJob);
            return;
        };
        if seen.is_some_and(|seen| seen != job.generation) {
            answer(reply, Answer::Unchanged(job));
            return;
        }
        let grants = match &event {
            Event::Place { grants } => Some(grants.clone()),
            _ => None,
        };
        match apply(&job, event, at) {
            Step::Ignore => answer(reply, Answer::Unchanged(job)),
            Step::Refuse(refusal) => answer(reply, Answer::Refused(refusal)),
            Step::Next { job: next, records } => {
                if let Some(grants) = grants
                    && !self.take(draft, id, &grants)
                {
                    answer(reply, Answer::Overbooked);
                    return;
                }
                draft.note(&job, *next, records, at, reply);
            }
        }
    }

    /// A plan is checked against the newest state before it is committed: devices are taken here, or not at all.
    fn take(&self, draft: &mut Draft, id: JobId, grants: &[Grant]) -> bool {
        let taken = self.book.write().cluster.take(id, grants).is_ok();
        if taken {
            draft.taken.push(id);
        }
        taken
    }

    async fn commit(&self, draft: Draft) {
        if draft.is_empty() {
            return;
        }
        let batch = Batch {
            inserts: draft.inserts.iter().map(|(insert, _)| insert.clone()).collect(),
            updates: draft.updates.values().map(|changed| changed.update.clone()).collect(),
        };
        match self.store.commit(batch).await {
            Ok(committed) => self.on_commit(draft, committed).await,
            // One change that the database will never take must not keep the others from being written.
            Err(StoreError::Refused { .. }) if draft.inserts.len() + draft.updates.len() > 1 => {
                for alone in draft.split() {
                    Box::pin(self.commit(alone)).await;
                }
            }
            Err(error) => self.on_failed_commit(draft, Arc::new(error)),
        }
    }

    async fn on_commit(&self, draft: Draft, committed: Committed) {
        let mut changed_jobs = Vec::new();
        let mut answers = Vec::new();
        for (insert, reply) in draft.inserts {
            let duplicate = committed.duplicates.iter().find(|(unused, _)| *unused == insert.job.id);
            if let Some((_, existing)) = duplicate {
                answers.push((reply, Ok(Answer::SubmittedBefore(*existing))));
            } else {
                let job = Arc::new(insert.job);
                answers.push((reply, Ok(Answer::Done(job.clone()))));
                changed_jobs.push(job);
            }
        }
        for (id, changed) in draft.updates {
            let stale = committed.stale.contains(&id);
            for (reply, done) in changed.replies {
                answers.push((reply, if stale { Err(LedgerError::Stale) } else { Ok(done) }));
            }
            if stale {
                tracing::warn!(job.id = %id, "job {id} was changed by another server; reloading it");
                changed_jobs.extend(self.store.job_fetch(id).await.ok().flatten().map(Arc::new));
            } else {
                changed_jobs.push(Arc::new(changed.update.job));
            }
        }
        {
            let mut pages = self.book.write();
            for job in &changed_jobs {
                pages.file(job.clone());
            }
        }
        for (reply, result) in answers {
            // Whoever asked may have gone away; the change stands.
            let _ = reply.send(result);
        }
        self.wake.jobs_changed(&changed_jobs);
    }

    fn on_failed_commit(&self, draft: Draft, error: Arc<StoreError>) {
        tracing::error!(
            error = %crate::error_chain(&*error),
            "could not write {} changes to the store; they will be tried again",
            draft.inserts.len() + draft.updates.len()
        );
        {
            let mut pages = self.book.write();
            for id in draft.taken {
                pages.cluster.give_back(id);
            }
        }
        let replies = draft.inserts.into_iter().map(|(_, reply)| reply);
        let more = draft.updates.into_values().flat_map(|changed| changed.replies).map(|(reply, _)| reply);
        for reply in replies.chain(more) {
            let _ = reply.send(Err(LedgerError::Store(error.clone())));
        }
    }
}

fn answer(reply: Reply, answer: Answer) {
    let _ = reply.send(Ok(answer));
}
