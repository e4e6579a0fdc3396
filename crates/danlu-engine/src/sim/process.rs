//! Processes: a program, where it is in it, and what it waits for.

use std::collections::{BTreeMap, VecDeque};

use danlu_core::job::Exit;
use danlu_types::WorkerId;
use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedSender;

use super::state::{State, after};
use crate::conformance::{Place, Program, Step};

#[derive(Debug)]
pub(super) struct Process {
    pub(super) worker: WorkerId,
    pub(super) role: Role,
    env: BTreeMap<String, String>,
    /// What is still to be done.
    steps: VecDeque<Step>,
    on_stop: OnStop,
    waits: Waits,
    input: Input,
}

#[derive(Debug)]
pub(super) enum Role {
    Rank(u32),
    Daemon,
    Session(UnboundedSender<Said>),
}

/// What a process of a session says to whoever opened it.
#[derive(Debug)]
pub(super) enum Said {
    Text(String),
    End(Exit),
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
    Do(Vec<Step>),
}

#[derive(Debug)]
enum Waits {
    No,
    Until(Timestamp),
    ForFile(Place, String),
    ForLine,
    ForEver,
}

impl Process {
    pub(super) fn new(worker: WorkerId, role: Role, env: BTreeMap<String, String>, program: Program) -> Self {
        let (on_stop, waits, input) = (OnStop::Die, Waits::No, Input::default());
        Process { worker, role, env, steps: program.0.into(), on_stop, waits, input }
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

impl State {
    pub(super) fn spawn(&mut self, process: Process) -> i32 {
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

    fn may_go_on(&self, process: &Process) -> bool {
        match &process.waits {
            Waits::No => true,
            Waits::Until(time) => *time <= self.now,
            Waits::ForFile(place, name) => {
                let resumes = *place != Place::Resume || process.env.contains_key("DANLU_RESUME_DIR");
                resumes && self.file(process.worker.job, *place, name).is_some_and(|text| !text.is_empty())
            }
            Waits::ForLine => process.input.closed || !process.input.lines.is_empty(),
            Waits::ForEver => false,
        }
    }

    /// One step; the process is put back unless it has ended.
    fn step(&mut self, pid: i32, mut process: Process) {
        let waited = std::mem::replace(&mut process.waits, Waits::No);
        if let Waits::ForLine = waited {
            let line = process.input.lines.pop_front().unwrap_or_default();
            process.env.insert("LINE".to_owned(), line);
        }
        let Some(step) = process.steps.pop_front() else { return self.end(process, Exit::Code(0)) };
        let job = process.worker.job;
        match step {
            Step::Print(text) => {
                let text = process.expand(pid, &text);
                self.print(&process, &format!("{text}\n"));
            }
            Step::PrintOpen(text) => {
                let text = process.expand(pid, &text);
                self.print(&process, &text);
            }
            Step::Count(last) => {
                let lines: Vec<String> = (1..=last).map(|number| format!("{number}\n")).collect();
                self.print(&process, &lines.concat());
            }
            Step::Write(place, name, text) => {
                *self.file_mut(job, place, &name) = format!("{}\n", process.expand(pid, &text));
            }
            Step::Append(place, name, text) => {
                let line = format!("{}\n", process.expand(pid, &text));
                self.file_mut(job, place, &name).push_str(&line);
            }
            Step::Await(place, name) => process.waits = Waits::ForFile(place, name),
            Step::Read => process.waits = Waits::ForLine,
            Step::Sleep(span) => process.waits = Waits::Until(after(self.now, span)),
            Step::Forever => process.waits = Waits::ForEver,
            Step::Exit(code) => return self.end(process, Exit::Code(code)),
            Step::Die => return self.end(process, Exit::Signal(9)),
            Step::OnStop(steps) => process.on_stop = OnStop::Do(steps),
            Step::IgnoreStop => process.on_stop = OnStop::Ignore,
            Step::Daemon(name) => {
                let (worker, env) = (process.worker, process.env.clone());
                let daemon = Process::new(worker, Role::Daemon, env, Program::forever());
                let daemon = self.spawn(Process { on_stop: OnStop::Ignore, ..daemon });
                *self.file_mut(job, Place::Output, &name) = format!("{daemon}\n");
            }
            Step::UseMemory(bytes) => {
                let limit = self.workers.get(&process.worker).and_then(|worker| worker.launch.limits.memory);
                if limit.is_some_and(|limit| bytes > limit.0) {
                    if let Some(worker) = self.workers.get_mut(&process.worker) {
                        worker.ran_out_of_memory = true;
                    }
                    return self.end(process, Exit::Signal(9));
                }
            }
            Step::OnRank(rank, steps) => {
                if process.env.get("RANK") == Some(&rank.to_string()) {
                    steps.into_iter().rev().for_each(|step| process.steps.push_front(step));
                }
            }
        }
        self.processes.insert(pid, process);
    }

    fn print(&mut self, process: &Process, text: &str) {
        match &process.role {
            Role::Rank(rank) => self.printed.entry((process.worker, *rank)).or_default().push_str(text),
            Role::Daemon => {}
            // Nobody listens to one who has left.
            Role::Session(said) => drop(said.send(Said::Text(text.to_owned()))),
        }
    }

    fn end(&mut self, process: Process, exit: Exit) {
        match process.role {
            Role::Rank(rank) => self.on_rank_ended(process.worker, rank, exit),
            Role::Daemon => {}
            Role::Session(said) => drop(said.send(Said::End(exit))),
        }
    }

    /// The polite signal, to all processes of a worker.
    pub(super) fn terminate(&mut self, worker: WorkerId) {
        let own: Vec<i32> = self.processes_of(worker);
        for pid in own {
            let Some(mut process) = self.processes.remove(&pid) else { continue };
            match std::mem::replace(&mut process.on_stop, OnStop::Ignore) {
                OnStop::Die => self.end(process, Exit::Signal(15)),
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
                self.end(process, Exit::Signal(9));
            }
        }
    }

    pub(super) fn processes_of(&self, worker: WorkerId) -> Vec<i32> {
        let own = self.processes.iter().filter(|(_, process)| process.worker == worker);
        own.map(|(pid, _)| *pid).collect()
    }
}
