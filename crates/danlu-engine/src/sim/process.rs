//! Processes: a program, where it is in it, and what it waits for.

use std::collections::{BTreeMap, VecDeque};

use danlu_core::job::ProcessExit;
use danlu_types::WorkerId;
use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedSender;

use super::state::{SimState, after};
use crate::conformance::{ProgramStep, TestFolder, TestProgram};

#[derive(Debug)]
pub(super) struct SimProcess {
    pub(super) worker: WorkerId,
    pub(super) role: ProcessRole,
    env: BTreeMap<String, String>,
    /// What is still to be done.
    steps: VecDeque<ProgramStep>,
    on_stop: OnStop,
    waits: Waits,
    input: Input,
}

#[derive(Debug)]
pub(super) enum ProcessRole {
    Rank(u32),
    Daemon,
    Session(UnboundedSender<Said>),
}

/// What a process of a session says to whoever opened it.
#[derive(Debug)]
pub(super) enum Said {
    Text(String),
    End(ProcessExit),
}

#[derive(Debug, Default)]
struct Input {
    lines: VecDeque<String>,
    closed: bool,
}

#[derive(Debug)]
enum OnStop {
    Die,
    Ignore,
    Do(Vec<ProgramStep>),
}

#[derive(Debug)]
enum Waits {
    No,
    Until(Timestamp),
    ForFile(TestFolder, String),
    ForLine,
    ForEver,
}

impl SimProcess {
    pub(super) fn new(
        worker: WorkerId,
        role: ProcessRole,
        env: BTreeMap<String, String>,
        program: TestProgram,
    ) -> Self {
        let (on_stop, waits, input) = (OnStop::Die, Waits::No, Input::default());
        SimProcess { worker, role, env, steps: program.0.into(), on_stop, waits, input }
    }

    pub(super) fn due(&self) -> Option<Timestamp> {
        match self.waits {
            Waits::Until(time) => Some(time),
            Waits::No | Waits::ForFile(..) | Waits::ForLine | Waits::ForEver => None,
        }
    }

    pub(super) fn hear(&mut self, line: String) {
        self.input.lines.push_back(line);
    }

    pub(super) fn close_input(&mut self) {
        self.input.closed = true;
    }

    /// With the process's number for `$$`, and nothing for what is not set.
    fn expand(&self, pid: i32, text: &str) -> String {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            expanded.push_str(before);
            if let Some(after) = after.strip_prefix('$') {
                expanded.push_str(&pid.to_string());
                rest = after;
                continue;
            }
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let end = after.find(|letter| !is_name(letter)).unwrap_or(after.len());
            expanded.push_str(self.env.get(&after[..end]).map_or("", String::as_str));
            rest = &after[end..];
        }
        expanded + rest
    }
}

impl SimState {
    pub(super) fn spawn(&mut self, process: SimProcess) -> i32 {
        self.last_process += 1;
        self.processes.insert(self.last_process, process);
        self.last_process
    }

    /// Runs each process until it waits or has ended. True if any did anything.
    pub(super) fn run_processes(&mut self) -> bool {
        let pids: Vec<i32> = self.processes.keys().copied().collect();
        let mut ran = false;
        for pid in pids {
            while let Some(process) = self.processes.remove(&pid) {
                if !self.may_go_on(&process) {
                    self.processes.insert(pid, process);
                    break;
                }
                ran = true;
                self.step(pid, process);
            }
        }
        ran
    }

    fn may_go_on(&self, process: &SimProcess) -> bool {
        match &process.waits {
            Waits::No => true,
            Waits::Until(time) => *time <= self.now,
            Waits::ForFile(place, name) => {
                let resumes = *place != TestFolder::Resume || process.env.contains_key("DANLU_RESUME_DIR");
                resumes && self.file(process.worker.job, *place, name).is_some_and(|text| !text.is_empty())
            }
            Waits::ForLine => process.input.closed || !process.input.lines.is_empty(),
            Waits::ForEver => false,
        }
    }

    /// One step; the process is put back unless it has ended.
    fn step(&mut self, pid: i32, mut process: SimProcess) {
        let waited = std::mem::replace(&mut process.waits, Waits::No);
        if let Waits::ForLine = waited {
            let line = process.input.lines.pop_front().unwrap_or_default();
            process.env.insert("LINE".to_owned(), line);
        }
        let Some(step) = process.steps.pop_front() else { return self.end(process, ProcessExit::Code(0)) };
        let job = process.worker.job;
        match step {
            ProgramStep::Print(text) => {
                let text = process.expand(pid, &text);
                self.print(&process, &format!("{text}\n"));
            }
            ProgramStep::PrintOpen(text) => {
                let text = process.expand(pid, &text);
                self.print(&process, &text);
            }
            ProgramStep::Count(last) => {
                let lines: Vec<String> = (1..=last).map(|number| format!("{number}\n")).collect();
                self.print(&process, &lines.concat());
            }
            ProgramStep::Write(place, name, text) => {
                *self.file_mut(job, place, &name) = format!("{}\n", process.expand(pid, &text));
            }
            ProgramStep::Append(place, name, text) => {
                let line = format!("{}\n", process.expand(pid, &text));
                self.file_mut(job, place, &name).push_str(&line);
            }
            ProgramStep::Await(place, name) => process.waits = Waits::ForFile(place, name),
            ProgramStep::Read => process.waits = Waits::ForLine,
            ProgramStep::Sleep(span) => process.waits = Waits::Until(after(self.now, span)),
            ProgramStep::Forever => process.waits = Waits::ForEver,
            ProgramStep::Exit(code) => return self.end(process, ProcessExit::Code(code)),
            ProgramStep::Die => return self.end(process, ProcessExit::Signal(9)),
            ProgramStep::OnStop(steps) => process.on_stop = OnStop::Do(steps),
            ProgramStep::IgnoreStop => process.on_stop = OnStop::Ignore,
            ProgramStep::Daemon(name) => {
                let (worker, env) = (process.worker, process.env.clone());
                let daemon = SimProcess::new(worker, ProcessRole::Daemon, env, TestProgram::forever());
                let daemon = self.spawn(SimProcess { on_stop: OnStop::Ignore, ..daemon });
                *self.file_mut(job, TestFolder::Output, &name) = format!("{daemon}\n");
            }
            ProgramStep::UseMemory(bytes) => {
                let limit = self.workers.get(&process.worker).and_then(|worker| worker.launch.limits.memory);
                if limit.is_some_and(|limit| bytes > limit.0) {
                    if let Some(worker) = self.workers.get_mut(&process.worker) {
                        worker.ran_out_of_memory = true;
                    }
                    return self.end(process, ProcessExit::Signal(9));
                }
            }
            ProgramStep::OnRank(rank, steps) => {
                if process.env.get("RANK") == Some(&rank.to_string()) {
                    steps.into_iter().rev().for_each(|step| process.steps.push_front(step));
                }
            }
        }
        self.processes.insert(pid, process);
    }

    fn print(&mut self, process: &SimProcess, text: &str) {
        match &process.role {
            ProcessRole::Rank(rank) => {
                self.printed.entry((process.worker, *rank)).or_default().push_str(text);
            }
            ProcessRole::Daemon => {}
            // Nobody listens to one who has left.
            ProcessRole::Session(said) => drop(said.send(Said::Text(text.to_owned()))),
        }
    }

    fn end(&mut self, process: SimProcess, exit: ProcessExit) {
        match process.role {
            ProcessRole::Rank(rank) => self.on_rank_ended(process.worker, rank, exit),
            ProcessRole::Daemon => {}
            ProcessRole::Session(said) => drop(said.send(Said::End(exit))),
        }
    }

    /// The polite signal, to all processes of a worker.
    pub(super) fn terminate(&mut self, worker: WorkerId) {
        let own: Vec<i32> = self.processes_of(worker);
        for pid in own {
            let Some(mut process) = self.processes.remove(&pid) else { continue };
            match std::mem::replace(&mut process.on_stop, OnStop::Ignore) {
                OnStop::Die => self.end(process, ProcessExit::Signal(15)),
                OnStop::Ignore => drop(self.processes.insert(pid, process)),
                OnStop::Do(steps) => {
                    (process.steps, process.waits) = (steps.into(), Waits::No);
                    self.processes.insert(pid, process);
                }
            }
        }
    }

    /// The last signal.
    pub(super) fn kill(&mut self, worker: WorkerId) {
        for pid in self.processes_of(worker) {
            if let Some(process) = self.processes.remove(&pid) {
                self.end(process, ProcessExit::Signal(9));
            }
        }
    }

    pub(super) fn processes_of(&self, worker: WorkerId) -> Vec<i32> {
        let own = self.processes.iter().filter(|(_, process)| process.worker == worker);
        own.map(|(pid, _)| *pid).collect()
    }
}
