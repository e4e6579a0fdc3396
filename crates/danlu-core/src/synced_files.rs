//! What a sidecar carries between a worker on a node and its run folder on the server, where the two share no disk.
//!
//! The launcher on the node works on plain files and knows nothing of it; the engine looks at plain files and neither does
//! it. Both ends ask here which names there are, so that the sidecar sends nothing that the server would refuse.

use std::ops::Range;

use danlu_types::WorkerIndex;

use crate::launch::{GIVEN_FILE, LauncherState, LauncherStatus, RANK_TABLE_FILE, STATUS_FILE};
use crate::log::{LAUNCHER_LOG, SCHEDULER_LOG};
use crate::report::{METRICS_FILE, REPORT_FILE};
use crate::sample::SAMPLES_FILE;

/// What the worker says of itself to its gang. On both sides it lies in the gang's folder, by the name of [`gang_word`].
pub const WORD_FILE: &str = "present.json";

/// Written by the server whenever a sidecar asks for news, beside what it carries: by its age one knows that the sidecar lives.
pub const CONTACT_FILE: &str = "sidecar.heard";

/// Laid down by a sidecar whose launcher has ended, before it brings the rest.
pub const LAUNCHER_ENDED_FILE: &str = "launcher.ended";

/// How a file travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// It is only ever added to: what is new is sent, with the place where it begins.
    Grows,
    /// It is small, and put in place whole whenever it changes.
    Whole,
}

/// How a file of a worker's run folder travels up; `None` for what does not. `ranks` are the worker's own.
pub fn carriage(name: &str, ranks: Range<u32>) -> Option<SyncMode> {
    match name {
        STATUS_FILE | LAUNCHER_LOG | SCHEDULER_LOG | METRICS_FILE | SAMPLES_FILE => Some(SyncMode::Grows),
        REPORT_FILE | GIVEN_FILE | RANK_TABLE_FILE | WORD_FILE | LAUNCHER_ENDED_FILE => Some(SyncMode::Whole),
        _ => {
            let digits = name.strip_prefix("rank-")?.strip_suffix(".log")?;
            let rank: u32 = digits.parse().ok()?;
            (ranks.contains(&rank) && rank.to_string() == digits).then_some(SyncMode::Grows)
        }
    }
}

/// All names that a worker may have; the status is the last.
pub fn carried_names(ranks: Range<u32>) -> Vec<(String, SyncMode)> {
    let whole = [LAUNCHER_ENDED_FILE, REPORT_FILE, GIVEN_FILE, RANK_TABLE_FILE, WORD_FILE].map(str::to_owned);
    let growing = [LAUNCHER_LOG, SCHEDULER_LOG, METRICS_FILE, SAMPLES_FILE].map(str::to_owned);
    let logs = ranks.map(|rank| format!("rank-{rank}.log"));
    let growing = growing.into_iter().chain(logs).chain([STATUS_FILE.to_owned()]);
    let whole = whole.into_iter().map(|name| (name, SyncMode::Whole));
    whole.chain(growing.map(|name| (name, SyncMode::Grows))).collect()
}

/// The name in the gang's folder of what a worker says of itself.
pub fn gang_word(worker: WorkerIndex) -> String {
    format!("worker-{worker}.json")
}

/// How much of a status file may be told before everything else has arrived: all up to the word that the worker ended,
/// which is its last. Half a line waits for its other half.
pub fn before_the_end(status: &[u8]) -> usize {
    let mut told = 0;
    for line in status.split_inclusive(|byte| *byte == b'\n') {
        let is_end = serde_json::from_slice::<LauncherStatus>(line)
            .is_ok_and(|status| matches!(status.phase, LauncherState::Ended { .. }));
        if is_end || !line.ends_with(b"\n") {
            break;
        }
        told += line.len();
    }
    told
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::job::WorkerEnd;
    use crate::launch::ProcessIdentity;

    #[test]
    fn names_that_are_not_the_workers_own_are_refused() {
        for (name, carriage) in carried_names(4..6) {
            assert_eq!(super::carriage(&name, 4..6), Some(carriage), "{name}");
        }
        for other in [
            "rank-3.log",
            "rank-6.log",
            "rank-04.log",
            "rank-+4.log",
            "rank-.log",
            "rank-4.log/..",
            "../1.0/status.jsonl",
            "launch.json",
            "stop.json",
            "secrets.json",
            "allocation",
            "verdict.json",
            "worker-0.json",
            ".",
            "..",
            "",
        ] {
            assert_eq!(super::carriage(other, 4..6), None, "{other}");
        }
    }

    #[test]
    fn the_end_is_held_back_and_nothing_before_it() {
        let status = |phase| {
            let launcher = ProcessIdentity { pid: 12, start_ticks: 34 };
            LauncherStatus { worker: "7.1.0".parse().unwrap(), launcher, phase }.to_line().unwrap()
        };
        let preparing = status(LauncherState::Preparing);
        let at = Timestamp::UNIX_EPOCH;
        let ended = status(LauncherState::Ended { running_since: None, at, exit: WorkerEnd::Succeeded });
        let text = [preparing.clone(), ended].concat();
        // The line feed before the last line says nothing yet.
        assert_eq!(before_the_end(&text), preparing.len() + 1);
        assert_eq!(before_the_end(&text[..preparing.len() - 3]), 1);
        assert_eq!(before_the_end(&preparing), preparing.len());
        assert_eq!(before_the_end(b""), 0);
    }
}
