//! What keeps the server from doing all of its work: kept for as long as it lasts, told by `/readyz` and `danlu doctor`,
//! logged when it begins and when it is over, and not every second in between.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use danlu_types::WorkerId;

/// What a problem is about; each has at most one at a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// The look at all workers.
    Workers,
    Worker(WorkerId),
}

#[derive(Debug, Default)]
pub(crate) struct Troubles {
    problems: Mutex<BTreeMap<Subject, String>>,
}

impl Troubles {
    /// Notes the problem with something, or that there is none.
    pub(crate) fn note(&self, subject: Subject, problem: Option<String>) {
        note(&mut self.lock(), subject, problem);
    }

    /// Notes the workers that cannot be looked at: these, and no others.
    pub(crate) fn note_workers<'a>(&self, unreadable: impl Iterator<Item = (WorkerId, &'a str)>) {
        let mut problems = self.lock();
        let mut over: Vec<Subject> =
            problems.keys().filter(|it| matches!(it, Subject::Worker(_))).cloned().collect();
        for (worker, error) in unreadable {
            let (job, subject) = (worker.job, Subject::Worker(worker));
            over.retain(|it| *it != subject);
            let text = format!(
                "worker {worker} cannot be looked at: {error}; job {job} stays as it is until its run folder can be read, \
                 or until it is stopped with `danlu stop {job}`"
            );
            note(&mut problems, subject, Some(text));
        }
        for subject in over {
            note(&mut problems, subject, None);
        }
    }

    /// All there are now.
    pub(crate) fn all(&self) -> Vec<String> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Subject, String>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note(problems: &mut BTreeMap<Subject, String>, subject: Subject, problem: Option<String>) {
    match problem {
        Some(text) => {
            if problems.get(&subject) != Some(&text) {
                tracing::warn!("{text}");
                problems.insert(subject, text);
            }
        }
        None => {
            if let Some(text) = problems.remove(&subject) {
                tracing::info!("no longer so: {text}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_last_as_long_as_they_are_seen() {
        let troubles = Troubles::default();
        let worker: WorkerId = "7.1.0".parse().unwrap();
        troubles.note_workers([(worker, "Input/output error")].into_iter());
        troubles.note(Subject::Workers, None);
        assert_eq!(troubles.all().len(), 1);
        assert!(troubles.all()[0].contains("job 7 stays"), "{:?}", troubles.all());
        troubles.note(Subject::Workers, Some("could not look at workers: too many open files".to_owned()));
        troubles.note_workers([].into_iter());
        assert_eq!(troubles.all(), ["could not look at workers: too many open files"]);
    }
}
