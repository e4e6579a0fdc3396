//! What a command leaves running when it has ended well: `nohup python train.py > train.log &`, and the script is over.
//!
//! Whether that is the work itself or a helper is told by evidence ([`Evidence`]): what holds the rank's output or a device, was
//! made to outlive its shell, or was started at the command's end to print into a file, is waited for, as part of the rank; the rest
//! is ended, and named. How the former ends counts as far as we hear of it. See ADR 21.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use danlu_core::job::{FailureCause, ProcessExit, WorkerFailure};
use danlu_core::launch::ProcessIdentity;
use danlu_core::log::rank_log_name;
use danlu_device::process;
use danlu_types::api::LogStream;
use jiff::Timestamp;
use nix::unistd::{SysconfVar, getpid, sysconf};

use super::{Audience, Worker};
use crate::spool::Spool;
use crate::termination::Termination;

/// Between fork and exec a process shows no evidence yet: this long, it is given the benefit of the doubt.
const SETTLING: Duration = Duration::from_secs(1);
const LOOK_OFTEN: Duration = Duration::from_millis(100);
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const MOST_NAMED: usize = 8;
/// What a script starts last is its work; a helper, such as one that writes down what devices do, is started before it.
const AT_THE_END: Duration = Duration::from_secs(10);

/// Device files of accelerators.
const DEVICES: [&str; 2] = ["/dev/davinci", "/dev/nvidia"];
/// These are open in programs that use no device.
const NOT_DEVICES: [&str; 2] = ["/dev/davinci_manager", "/dev/nvidiactl"];

#[derive(Debug)]
pub(super) struct Background {
    /// When the launcher was started, by the kernel's count and by our clock: processes tell their age by the former.
    launcher: (u64, Instant),
    /// What ran before the ranks did, such as what `setup` has started: nobody waits for that.
    before: HashSet<i32>,
    /// The pipes of the ranks, as `/proc` names them.
    pub(super) pipes: Vec<String>,
    /// When the last rank ended.
    since: Option<Instant>,
    /// What is or was waited for, by number, with its name.
    awaited: BTreeMap<i32, String>,
    has_told: bool,
    next_look: Option<Instant>,
}

/// Why a process that was left running is part of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    Output,
    Device,
    Nohup,
    File,
}

#[derive(Debug)]
struct Left {
    process: ProcessIdentity,
    name: String,
    evidence: Option<Evidence>,
}

impl Background {
    /// At the launcher's start.
    pub(super) fn new(launcher: ProcessIdentity) -> Self {
        Background {
            launcher: (launcher.start_ticks, Instant::now()),
            before: HashSet::new(),
            pipes: Vec::new(),
            since: None,
            awaited: BTreeMap::new(),
            has_told: false,
            next_look: None,
        }
    }

    pub(super) fn is_awaited(&self, pid: i32) -> bool {
        self.awaited.contains_key(&pid)
    }

    /// Why the worker failed where something that it waited for did.
    pub(super) fn failure(&self, pid: i32, exit: ProcessExit) -> WorkerFailure {
        let name = self.awaited.get(&pid).map(String::as_str).unwrap_or_default();
        let detail = format!(
            "the command had ended well and left {pid} ({name}) running in the background, which failed; what it printed is where the \
             script sent it"
        );
        WorkerFailure { cause: FailureCause::Exit, rank: None, exit: Some(exit), detail }
    }

    /// Whether the process was started within [`AT_THE_END`] of the last rank's end.
    fn is_of_the_end(&self, process: ProcessIdentity) -> bool {
        let Some(since) = self.since else { return false };
        let ticks_per_second =
            sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|ticks| u64::try_from(ticks).ok());
        let ticks = process.start_ticks.saturating_sub(self.launcher.0);
        let started_after = Duration::from_millis(ticks * 1000 / ticks_per_second.unwrap_or(100).max(1));
        since.duration_since(self.launcher.1).saturating_sub(started_after) < AT_THE_END
    }

    pub(super) fn next_look(&self) -> Option<Instant> {
        self.next_look
    }
}

impl Worker<'_> {
    /// Before the first rank is started.
    pub(super) fn remember_what_runs(&mut self) {
        // Mostly nothing has been started by now, and then nobody need look.
        if !self.captures.is_empty() {
            self.background.before = process::descendants(getpid().as_raw()).into_iter().collect();
        }
    }

    /// Once all ranks have ended well: whether the worker goes on for what they left running.
    pub(super) fn follow_background(&mut self, termination: &mut Termination, any_left: bool) {
        if self.running_since.is_none() || termination.why().is_some() || !termination.has_everyone_exited() {
            return;
        }
        let now = Instant::now();
        let since = *self.background.since.get_or_insert(now);
        let left = if any_left { self.left_running() } else { Vec::new() };
        let (awaited, others): (Vec<&Left>, Vec<&Left>) =
            left.iter().partition(|left| left.evidence.is_some());
        self.background.awaited.extend(awaited.iter().map(|left| (left.process.pid, left.name.clone())));
        let is_settling = now < since + SETTLING;
        let goes_on = !awaited.is_empty() || (is_settling && !others.is_empty());
        termination.set_background(goes_on);
        let pause = if is_settling { LOOK_OFTEN } else { LOOK_AGAIN };
        self.background.next_look = goes_on.then(|| now + pause);
        if !awaited.is_empty() && !is_settling && !self.background.has_told {
            self.background.has_told = true;
            self.announce(&format!(
                "the command has ended and left running in the background: {}; the job goes on until they end{}. Write `wait` \
                 at the end of the script to say so, or end them there",
                named(&awaited),
                if Self::hears_of_one(&awaited) {
                    ", and fails if one of them does"
                } else {
                    "; how they end is not to be known"
                }
            ));
        }
        if !goes_on && !others.is_empty() {
            self.announce(&format!(
                "the command has ended; ending what it left running in the background: {}. To have the job wait for that, write \
                 `wait` at the end of the script, or start it with `nohup`",
                named(&others)
            ));
        }
    }

    /// A line of ours in the log of the worker's first rank, and in the journal.
    pub(super) fn announce(&self, text: &str) {
        self.launcher_log.note(text);
        if self.audience == Audience::Terminal {
            let _ = writeln!(io::stderr(), "danlu: {text}");
        }
        let Some(first) = self.launch.ranks.first() else { return };
        if let Ok(mut spool) = Spool::open(Path::new(&rank_log_name(first.rank))) {
            spool.record(Timestamp::now(), LogStream::Danlu, text.as_bytes());
            // The journal has it where the disk has no room.
            drop(spool.write());
        }
    }

    fn left_running(&self) -> Vec<Left> {
        let own = getpid().as_raw();
        let mut before = self.background.before.clone();
        before.extend(self.server);
        let older: Vec<i32> = before.iter().copied().collect();
        before.extend(older.iter().flat_map(|pid| process::descendants(*pid)));
        let in_session = process::session(own);
        process::descendants(own)
            .into_iter()
            .filter(|pid| !before.contains(pid))
            // Somebody's session inside the worker: it ends with the worker.
            .filter(|pid| self.audience == Audience::Terminal || process::foreground_group(*pid).is_none())
            .filter_map(|pid| {
                let process = process::identity(pid)?;
                let is_daemon = process::session(pid) != in_session;
                let evidence = self.evidence(process, is_daemon);
                Some(Left { process, name: process::name(pid).unwrap_or_default(), evidence })
            })
            .collect()
    }

    /// Whether at least one of them has lost its parent, so that the kernel tells us how it ends.
    fn hears_of_one(left: &[&Left]) -> bool {
        let own = getpid().as_raw();
        left.iter().any(|left| process::parent(left.process.pid) == Some(own))
    }

    /// Whoever makes a session of its own is a daemon, which outlives its shell as a matter of course.
    fn evidence(&self, process: ProcessIdentity, is_daemon: bool) -> Option<Evidence> {
        let pid = process.pid;
        let files = process::open_files(pid);
        let is_device = |file: &String| {
            DEVICES.iter().any(|start| file.starts_with(start))
                && !NOT_DEVICES.iter().any(|other| file == other)
        };
        if files.iter().any(|file| self.background.pipes.contains(file)) {
            Some(Evidence::Output)
        } else if files.iter().any(is_device) {
            Some(Evidence::Device)
        } else if !is_daemon && process::ignores_hangup(pid) {
            Some(Evidence::Nohup)
        } else if !is_daemon && process::prints_into_a_file(pid) && self.background.is_of_the_end(process) {
            Some(Evidence::File)
        } else {
            None
        }
    }
}

fn named(left: &[&Left]) -> String {
    let mut names: Vec<String> = left
        .iter()
        .take(MOST_NAMED)
        .map(|left| {
            let why = match left.evidence {
                Some(Evidence::Output) => ", which holds its output",
                Some(Evidence::Device) => ", which holds a device",
                Some(Evidence::Nohup) => ", started with nohup",
                Some(Evidence::File) => ", started at the end and printing into a file",
                None => "",
            };
            format!("{} ({}{why})", left.process.pid, left.name)
        })
        .collect();
    if left.len() > MOST_NAMED {
        names.push(format!("{} more", left.len() - MOST_NAMED));
    }
    names.join(", ")
}
