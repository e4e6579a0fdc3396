//! A batch in the making: what its commands make of jobs, and what each of them will be answered.
//!
//! Pure: it neither commits nor sends. Invariant: an answer that follows from anything in this batch leaves with its
//! commit and fails with it. "It was so already" is such an answer too: a worker is released on it, and a batch that then
//! fails would leave a job that runs by the live state with a worker that nobody remembers.
//!
//! `R` is where an answer goes: a channel in the server, a name in the model that checks this exhaustively.

use std::collections::HashMap;
use std::sync::Arc;

use danlu_core::{Grant, HistoryEvent, Job, Transition, Trigger, apply};
use danlu_store::{Batch, Committed, Insert, StoreError, Update};
use danlu_types::JobId;
use jiff::Timestamp;

use super::{JobWriterError, WriteResult};

#[derive(Debug)]
pub(super) struct PendingBatch<R> {
    inserts: Vec<(Insert, R)>,
    updates: HashMap<JobId, Changed<R>>,
    /// Answers that follow from no job of this batch alone. They wait with the others: the devices that one was refused
    /// may be those that another of the batch has taken.
    others: Vec<(R, WriteResult)>,
    /// Jobs whose devices were taken for this batch, to be given back if it fails.
    taken: Vec<JobId>,
}

#[derive(Debug)]
struct Changed<R> {
    /// The newest value, with every record on the way there.
    update: Update,
    answers: Vec<(R, WriteResult)>,
}

/// What somebody wants to happen to a job.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) id: JobId,
    pub(super) event: Trigger,
    pub(super) at: Timestamp,
    /// Only if this is still its generation.
    pub(super) seen: Option<u64>,
}

/// What became of a batch.
#[derive(Debug)]
pub(super) struct Settled<R> {
    pub(super) answers: Vec<(R, Result<WriteResult, JobWriterError>)>,
    /// The jobs as they are now.
    pub(super) changed: Vec<Arc<Job>>,
    /// Jobs that somebody else has changed: what is known of them is old.
    pub(super) stale: Vec<JobId>,
    /// Jobs whose devices are to be given back.
    pub(super) give_back: Vec<JobId>,
    /// Jobs of which nobody can tell whether their change was written: a database that goes away while it commits does not
    /// say on which side of the commit.
    pub(super) doubtful: Vec<JobId>,
}

impl<R> Default for PendingBatch<R> {
    fn default() -> Self {
        PendingBatch { inserts: Vec::new(), updates: HashMap::new(), others: Vec::new(), taken: Vec::new() }
    }
}

impl<R> PendingBatch<R> {
    /// How many jobs it changes.
    pub(super) fn len(&self) -> usize {
        self.inserts.len() + self.updates.len()
    }

    pub(super) fn insert(&mut self, insert: Insert, reply: R) {
        self.inserts.push((insert, reply));
    }

    /// Applies an event to a job: to what this batch has made of it, else to what is `durable`. `take` is asked for the
    /// devices of a placement.
    pub(super) fn apply(
        &mut self,
        wish: Wish,
        durable: Option<Arc<Job>>,
        reply: R,
        take: impl FnOnce(&[Grant]) -> bool,
    ) {
        let Wish { id, event, at, seen } = wish;
        let drafted = self.updates.get(&id).map(|changed| Arc::new(changed.update.job.clone()));
        let Some(job) = drafted.or(durable) else {
            self.others.push((reply, WriteResult::NoSuchJob));
            return;
        };
        if seen.is_some_and(|seen| seen != job.generation) {
            self.answer(id, reply, WriteResult::Unchanged(job));
            return;
        }
        let grants = match &event {
            Trigger::Place { grants } => Some(grants.clone()),
            _ => None,
        };
        match apply(&job, event, at) {
            Transition::Ignore => self.answer(id, reply, WriteResult::Unchanged(job)),
            Transition::Refuse(refusal) => self.answer(id, reply, WriteResult::Refused(refusal)),
            Transition::Next { job: next, records } => {
                if let Some(grants) = grants {
                    if !take(&grants) {
                        self.answer(id, reply, WriteResult::Overbooked);
                        return;
                    }
                    self.taken.push(id);
                }
                self.change(&job, *next, records, at, reply);
            }
        }
    }

    fn change(&mut self, before: &Job, next: Job, records: Vec<HistoryEvent>, at: Timestamp, reply: R) {
        let done = WriteResult::Done(Arc::new(next.clone()));
        let changed = self.updates.entry(next.id).or_insert_with(|| Changed {
            update: Update {
                job: before.clone(),
                seen_generation: before.generation,
                at,
                records: Vec::new(),
            },
            answers: Vec::new(),
        });
        changed.update.job = next;
        changed.update.at = at;
        changed.update.records.extend(records);
        changed.answers.push((reply, done));
    }

    /// Keeps an answer until what it follows from is durable.
    fn answer(&mut self, id: JobId, reply: R, answer: WriteResult) {
        match self.updates.get_mut(&id) {
            Some(changed) => changed.answers.push((reply, answer)),
            None => self.others.push((reply, answer)),
        }
    }

    pub(super) fn batch(&self) -> Batch {
        Batch {
            inserts: self.inserts.iter().map(|(insert, _)| insert.clone()).collect(),
            updates: self.updates.values().map(|changed| changed.update.clone()).collect(),
        }
    }

    /// Each change by itself; what changes nothing comes last.
    pub(super) fn split(self) -> Vec<PendingBatch<R>> {
        let mut drafts = Vec::new();
        for insert in self.inserts {
            drafts.push(PendingBatch { inserts: vec![insert], ..PendingBatch::default() });
        }
        for (id, changed) in self.updates {
            let taken = self.taken.iter().copied().filter(|taken| *taken == id).collect();
            drafts.push(PendingBatch {
                updates: HashMap::from([(id, changed)]),
                taken,
                ..PendingBatch::default()
            });
        }
        drafts.push(PendingBatch { others: self.others, ..PendingBatch::default() });
        drafts
    }

    /// It is durable, but for what the store left out.
    pub(super) fn committed(self, committed: &Committed) -> Settled<R> {
        let mut answers = Vec::new();
        let mut changed = Vec::new();
        for (insert, reply) in self.inserts {
            let duplicate = committed.duplicates.iter().find(|(unused, _)| *unused == insert.job.id);
            if let Some((_, existing)) = duplicate {
                answers.push((reply, Ok(WriteResult::SubmittedBefore(*existing))));
            } else {
                let job = Arc::new(insert.job);
                answers.push((reply, Ok(WriteResult::Done(job.clone()))));
                changed.push(job);
            }
        }
        for (id, update) in self.updates {
            let is_stale = committed.stale.contains(&id);
            let told =
                |(reply, answer)| (reply, if is_stale { Err(JobWriterError::Stale) } else { Ok(answer) });
            answers.extend(update.answers.into_iter().map(told));
            if !is_stale {
                changed.push(Arc::new(update.update.job));
            }
        }
        answers.extend(self.others.into_iter().map(|(reply, answer)| (reply, Ok(answer))));
        let stale = committed.stale.clone();
        let give_back = self.taken.into_iter().filter(|id| stale.contains(id)).collect();
        Settled { answers, changed, stale, give_back, doubtful: Vec::new() }
    }

    /// Nothing of it has happened, or nobody can tell: whoever asked is to ask again.
    pub(super) fn failed(self, error: &Arc<StoreError>) -> Settled<R> {
        let doubtful =
            self.inserts.iter().map(|(insert, _)| insert.job.id).chain(self.updates.keys().copied());
        let doubtful = doubtful.filter(|_| matches!(**error, StoreError::Unavailable { .. })).collect();
        let inserts = self.inserts.into_iter().map(|(_, reply)| reply);
        let updates = self.updates.into_values().flat_map(|changed| changed.answers);
        let replies = inserts.chain(updates.chain(self.others).map(|(reply, _)| reply));
        Settled {
            answers: replies.map(|reply| (reply, Err(JobWriterError::Store(error.clone())))).collect(),
            changed: Vec::new(),
            stale: Vec::new(),
            give_back: self.taken,
            doubtful,
        }
    }
}
