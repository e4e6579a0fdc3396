//! Why a worker failed: by how its ranks ended, and by their last words.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use danlu_core::diagnosis::{Diagnosis, DiagnosisKind, diagnose};
use danlu_core::job::{FailureCause, ProcessExit, WorkerEnd, WorkerFailure};
use danlu_core::log::{decode, rank_log_name};
use danlu_types::Rank;
use danlu_types::api::LogStream;

use super::Worker;

/// What a rank says at its end fits in here, with a long traceback of each of its threads.
const TAIL_BYTES: u64 = 64 * 1024;
const LONGEST_QUOTE: usize = 200;

impl Worker<'_> {
    pub(super) fn failure(&self, index: usize, exit: ProcessExit) -> WorkerFailure {
        let kills = self.group.oom_kills();
        // A shell in between reports the death of its child as 128 + 9.
        let killed = matches!(exit, ProcessExit::Signal(9) | ProcessExit::Code(137));
        let limit = self.launch.limits.memory.map(|bytes| format!(" of {bytes}")).unwrap_or_default();
        let (cause, detail) = match (kills, killed) {
            (0, _) => (FailureCause::Exit, String::new()),
            (_, true) => (FailureCause::OutOfMemory, format!("the worker used up its memory{limit}")),
            (_, false) => (
                FailureCause::Exit,
                format!(
                    "before, the kernel killed {kills} of its processes: the worker used up its memory{limit}"
                ),
            ),
        };
        let rank = self.launch.ranks.get(index).map(|plan| plan.rank);
        WorkerFailure { cause, rank, exit: Some(exit), detail }
    }

    pub(super) fn hang_sentence(&self) -> String {
        let after = self.launch.options.hang_after.map(|span| span.to_string()).unwrap_or_default();
        let idle =
            if self.launch.devices.is_empty() { "used no processor" } else { "its devices did nothing" };
        format!("on {} it printed nothing and {idle} for {after}", self.launch.node)
    }

    pub(super) fn time_limit(&self) -> WorkerFailure {
        let detail = self.launch.max_time.map(|limit| limit.to_string()).unwrap_or_default();
        WorkerFailure { cause: FailureCause::TimeLimit, rank: None, exit: None, detail }
    }

    /// After all that was printed is in the logs.
    pub(super) fn diagnose(&self, exit: &mut WorkerEnd) {
        let WorkerEnd::Failed(failure) = exit else { return };
        let Some(rank) = failure.rank.filter(|_| failure.cause == FailureCause::Exit) else { return };
        let own = last_words(rank).and_then(|tail| self.read(&tail, failure.exit));
        if let Some((culprit, diagnosis)) = self.culprit(rank, own) {
            if culprit != rank {
                // How the other one ended is not known to have anything to do with it.
                failure.rank = Some(culprit);
                failure.exit = None;
            }
            self.fill_in(failure, &diagnosis);
        } else if let Some((rank, name)) = self.reports.report().not_a_number {
            failure.cause = FailureCause::ProgramError;
            add(failure, format!("before, rank {rank} reported a {name} that is not a number"));
        }
    }

    /// Where the rank that failed first only suffered from another, and one of the others says why, that one is blamed.
    fn culprit(&self, rank: Rank, own: Option<Diagnosis>) -> Option<(Rank, Diagnosis)> {
        let own = own?;
        if own.entry.kind != DiagnosisKind::Symptom {
            return Some((rank, own));
        }
        let others = self.launch.ranks.iter().map(|plan| plan.rank).filter(|other| *other != rank);
        let mut causes = others.filter_map(|other| {
            let found = self.read(&last_words(other)?, None)?;
            (found.is_certain && found.entry.kind != DiagnosisKind::Symptom).then_some((other, found))
        });
        Some(causes.next().unwrap_or((rank, own)))
    }

    fn read(&self, tail: &[(LogStream, String)], exit: Option<ProcessExit>) -> Option<Diagnosis> {
        let lines = tail.iter().map(|(stream, line)| (*stream, line.as_str()));
        diagnose(lines, exit, !self.launch.devices.is_empty())
    }

    fn fill_in(&self, failure: &mut WorkerFailure, diagnosis: &Diagnosis) {
        let Diagnosis { entry, line, is_certain } = diagnosis;
        if *is_certain {
            failure.cause = entry.kind.cause();
        }
        let said = if line.is_empty() {
            String::new()
        } else {
            format!("; it said `{}`", line.chars().take(LONGEST_QUOTE).collect::<String>())
        };
        let (perhaps, advice) = if *is_certain {
            ("", entry.kind.advice())
        } else {
            ("perhaps ", DiagnosisKind::Passing.advice())
        };
        add(failure, format!("on {}: {perhaps}{}; {advice}{said}", self.launch.node, entry.meaning));
    }
}

fn add(failure: &mut WorkerFailure, text: String) {
    failure.detail = if failure.detail.is_empty() { text } else { format!("{}; {text}", failure.detail) };
}

fn last_words(rank: Rank) -> Option<Vec<(LogStream, String)>> {
    tail(Path::new(&rank_log_name(rank))).ok()
}

/// The last records of a log.
fn tail(path: &Path) -> io::Result<Vec<(LogStream, String)>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    // The first may be cut.
    let records = bytes.split(|byte| *byte == b'\n').filter_map(decode);
    Ok(records.map(|(_, stream, line)| (stream, String::from_utf8_lossy(line).into_owned())).collect())
}
