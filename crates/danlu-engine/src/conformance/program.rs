//! What the workers of the suite run: a few steps, which engines with processes get as a shell command and the simulated
//! one reads as they are.

use std::fmt::Write;

use danlu_types::Span;
use serde::{Deserialize, Serialize};

/// Steps, one after the other; a program that has done all of them ends well.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Program(pub Vec<Step>);

/// In texts, `$NAME` stands for a variable of the environment and `$$` for the number of the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A line.
    Print(String),
    /// The beginning of one.
    PrintOpen(String),
    /// The numbers from 1 on, each on a line.
    Count(u32),
    Write(Place, String, String),
    /// Adds a line to a file.
    Append(Place, String, String),
    /// Waits until somebody has written a file.
    Await(Place, String),
    /// Waits for a line of input, which is `$LINE` from then on.
    Read,
    Sleep(Span),
    /// Goes on until somebody ends it.
    Forever,
    Exit(i32),
    /// Ends by a signal of its own.
    Die,
    /// When told to stop, does this and ends well.
    OnStop(Vec<Step>),
    IgnoreStop,
    /// Starts a process in a session of its own whose parent is gone, deaf to all but the last signal. It writes its
    /// number into a file of the output folder; the program goes on when it has.
    Daemon(String),
    /// Has so many bytes in memory at once; ends with code 1 where that cannot be.
    UseMemory(u64),
    /// Only the given rank does this.
    OnRank(u32, Vec<Step>),
}

/// A folder that a program finds by its variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    Output,
    /// What is kept for the next attempt.
    Checkpoint,
    /// What an earlier attempt has kept: the same folder, by the name that only later attempts have.
    Resume,
}

impl Place {
    fn variable(self) -> &'static str {
        match self {
            Place::Output => "DANLU_OUTPUT_DIR",
            Place::Checkpoint => "DANLU_CHECKPOINT_DIR",
            Place::Resume => "DANLU_RESUME_DIR",
        }
    }
}

impl Program {
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Program(steps.into_iter().collect())
    }

    pub fn print(text: &str) -> Self {
        Program::new([Step::Print(text.to_owned())])
    }

    pub fn forever() -> Self {
        Program::new([Step::Forever])
    }

    /// One more step.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    /// For `/bin/sh -c`.
    pub fn shell(&self) -> String {
        script(&self.0)
    }

    /// For the simulated engine.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("steps have no maps with odd keys")
    }

    pub fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

impl Step {
    pub fn write(name: &str, text: &str) -> Self {
        Step::Write(Place::Output, name.to_owned(), text.to_owned())
    }

    pub fn append(name: &str, text: &str) -> Self {
        Step::Append(Place::Output, name.to_owned(), text.to_owned())
    }

    pub fn wait_for(name: &str) -> Self {
        Step::Await(Place::Output, name.to_owned())
    }
}

fn script(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        let _ = writeln!(text, "{}", command(step));
    }
    text
}

fn command(step: &Step) -> String {
    let path = |place: &Place, name: &String| format!("\"${}/{name}\"", place.variable());
    // Short enough that nobody waits for it, long enough that many of them leave a machine to others.
    let pause = "sleep 0.02";
    match step {
        Step::Print(text) => format!("echo \"{text}\""),
        Step::PrintOpen(text) => format!("printf %s \"{text}\""),
        Step::Count(last) => format!("seq 1 {last}"),
        Step::Write(place, name, text) => format!("echo \"{text}\" > {}", path(place, name)),
        Step::Append(place, name, text) => format!("echo \"{text}\" >> {}", path(place, name)),
        // With something in it: a file is there before its text is.
        Step::Await(place, name) => format!("until [ -s {} ]; do {pause}; done", path(place, name)),
        Step::Read => "read LINE".to_owned(),
        Step::Sleep(span) => format!("sleep {}.{:03}", span.milliseconds / 1000, span.milliseconds % 1000),
        // Not one long `sleep`: a shell heeds a signal only between commands.
        Step::Forever => format!("while :; do {pause}; done"),
        Step::Exit(code) => format!("exit {code}"),
        Step::Die => "kill -KILL $$".to_owned(),
        Step::OnStop(steps) => format!("trap {} TERM", quoted(&format!("{}exit 0", script(steps)))),
        Step::IgnoreStop => "trap '' TERM".to_owned(),
        Step::Daemon(name) => {
            let file = path(&Place::Output, name);
            let deaf = format!(
                "trap \"\" TERM HUP INT; (echo $$ > {file}; while :; do {pause}; done) & while :; do {pause}; done"
            );
            format!(
                "setsid sh -c {} > /dev/null 2>&1 &\nuntil [ -s {file} ]; do {pause}; done",
                quoted(&deaf)
            )
        }
        Step::UseMemory(bytes) => {
            format!("head -c {bytes} /dev/zero | tail -c {bytes} > /dev/null || exit $?")
        }
        Step::OnRank(rank, steps) => format!("if [ \"$RANK\" = {rank} ]; then\n{}fi", script(steps)),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
