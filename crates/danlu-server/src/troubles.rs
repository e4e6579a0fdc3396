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
    /// A worker that has ended and that the engine does not let go.
    Release(WorkerId),
    /// A worker whose launcher shows no sign of life.
    Launcher(WorkerId),
    /// The wall clock, by which jobs are forgotten.
    Clock,
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
        let told = unreadable.map(|(worker, error)| {
            let job = worker.job;
            let text = format!(
                "worker {worker} cannot be looked at: {error}; job {job} stays as it is until its run folder can be read, \
                 or until it is stopped with `danlu stop {job}`"
            );
            (Subject::Worker(worker), text)
        });
        self.note_only(|subject| matches!(subject, Subject::Worker(_)), told);
    }

    /// Notes the workers that nobody looks after: these, and no others.
    pub(crate) fn note_launchers<'a>(&self, troubled: impl Iterator<Item = (WorkerId, &'a str)>) {
        let told =
            troubled.map(|(worker, why)| (Subject::Launcher(worker), format!("of worker {worker}, {why}")));
        self.note_only(|subject| matches!(subject, Subject::Launcher(_)), told);
    }

    /// Drops what was said of letting workers go that are not there any more.
    pub(crate) fn keep_releases(&self, is_there: impl Fn(&WorkerId) -> bool) {
        self.lock().retain(|subject, _| !matches!(subject, Subject::Release(worker) if !is_there(worker)));
    }

    /// Of all subjects of a kind, these have problems and no others.
    fn note_only(
        &self,
        is_of_kind: impl Fn(&Subject) -> bool,
        told: impl Iterator<Item = (Subject, String)>,
    ) {
        let mut problems = self.lock();
        let mut over: Vec<Subject> = problems.keys().filter(|it| is_of_kind(it)).cloned().collect();
        for (subject, text) in told {
            over.retain(|it| *it != subject);
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
        troubles.note_launchers([(worker, "its launcher (process 9) is stopped")].into_iter());
        troubles.note(Subject::Release(worker), Some("worker 7.1.0 cannot be let go".to_owned()));
        assert_eq!(troubles.all().len(), 3);
        troubles.keep_releases(|_| true);
        troubles.note_launchers([].into_iter());
        assert_eq!(troubles.all().len(), 2);
        troubles.keep_releases(|_| false);
        assert_eq!(troubles.all(), ["could not look at workers: too many open files"]);
    }
}
