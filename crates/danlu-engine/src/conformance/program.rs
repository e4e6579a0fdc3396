//! What the workers of the suite run: a few steps, which engines with processes get as a shell command and the simulated
//! one reads as they are.

use std::fmt::Write;

use danlu_types::Span;
use serde::{Deserialize, Serialize};

/// Steps, one after the other; a program that has done all of them ends well.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TestProgram(pub Vec<ProgramStep>);

/// In texts, `$NAME` stands for a variable of the environment and `$$` for the number of the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramStep {
    /// A line.
    Print(String),
    /// The beginning of one.
    PrintOpen(String),
    /// The numbers from 1 on, each on a line.
    Count(u32),
    Write(TestFolder, String, String),
    /// Adds a line to a file.
    Append(TestFolder, String, String),
    /// Waits until somebody has written a file.
    Await(TestFolder, String),
    /// Waits for a line of input, which is `$LINE` from then on.
    Read,
    Sleep(Span),
    /// Goes on until somebody ends it.
    Forever,
    Exit(i32),
    /// Ends by a signal of its own.
    Die,
    /// When told to stop, does this and ends well.
    OnStop(Vec<ProgramStep>),
    IgnoreStop,
    /// Starts a process in a session of its own whose parent is gone, deaf to all but the last signal. It writes its
    /// number into a file of the output folder; the program goes on when it has.
    Daemon(String),
    /// Has so many bytes in memory at once; ends with code 1 where that cannot be.
    UseMemory(u64),
    /// Only the given rank does this.
    OnRank(u32, Vec<ProgramStep>),
}

/// A folder that a program finds by its variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestFolder {
    Output,
    /// What is kept for the next attempt.
    Checkpoint,
    /// What an earlier attempt has kept: the same folder, by the name that only later attempts have.
    Resume,
}

impl TestFolder {
    fn variable(self) -> &'static str {
        match self {
            TestFolder::Output => "DANLU_OUTPUT_DIR",
            TestFolder::Checkpoint => "DANLU_CHECKPOINT_DIR",
            TestFolder::Resume => "DANLU_RESUME_DIR",
        }
    }
}

impl TestProgram {
    pub fn new(steps: impl IntoIterator<Item = ProgramStep>) -> Self {
        TestProgram(steps.into_iter().collect())
    }

    pub fn print(text: &str) -> Self {
        TestProgram::new([ProgramStep::Print(text.to_owned())])
    }

    pub fn forever() -> Self {
        TestProgram::new([ProgramStep::Forever])
    }

    /// One more step.
    #[must_use]
    pub fn then(mut self, step: ProgramStep) -> Self {
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

impl ProgramStep {
    pub fn write(name: &str, text: &str) -> Self {
        ProgramStep::Write(TestFolder::Output, name.to_owned(), text.to_owned())
    }

    pub fn append(name: &str, text: &str) -> Self {
        ProgramStep::Append(TestFolder::Output, name.to_owned(), text.to_owned())
    }

    pub fn wait_for(name: &str) -> Self {
        ProgramStep::Await(TestFolder::Output, name.to_owned())
    }
}

fn script(steps: &[ProgramStep]) -> String {
    let mut text = String::new();
    for step in steps {
        let _ = writeln!(text, "{}", command(step));
    }
    text
}

fn command(step: &ProgramStep) -> String {
    let path = |place: &TestFolder, name: &String| format!("\"${}/{name}\"", place.variable());
    // Short enough that nobody waits for it, long enough that many of them leave a machine to others.
    let pause = "sleep 0.02";
    match step {
        ProgramStep::Print(text) => format!("echo \"{text}\""),
        ProgramStep::PrintOpen(text) => format!("printf %s \"{text}\""),
        ProgramStep::Count(last) => format!("seq 1 {last}"),
        ProgramStep::Write(place, name, text) => format!("echo \"{text}\" > {}", path(place, name)),
        ProgramStep::Append(place, name, text) => format!("echo \"{text}\" >> {}", path(place, name)),
        // With something in it: a file is there before its text is.
        ProgramStep::Await(place, name) => format!("until [ -s {} ]; do {pause}; done", path(place, name)),
        ProgramStep::Read => "read LINE".to_owned(),
        ProgramStep::Sleep(span) => {
            format!("sleep {}.{:03}", span.milliseconds / 1000, span.milliseconds % 1000)
        }
        // Not one long `sleep`: a shell heeds a signal only between commands.
        ProgramStep::Forever => format!("while :; do {pause}; done"),
        ProgramStep::Exit(code) => format!("exit {code}"),
        ProgramStep::Die => "kill -KILL $$".to_owned(),
        ProgramStep::OnStop(steps) => format!("trap {} TERM", quoted(&format!("{}exit 0", script(steps)))),
        ProgramStep::IgnoreStop => "trap '' TERM".to_owned(),
        ProgramStep::Daemon(name) => {
            let file = path(&TestFolder::Output, name);
            let deaf = format!(
                "trap \"\" TERM HUP INT; (echo $$ > {file}; while :; do {pause}; done) & while :; do {pause}; done"
            );
            format!(
                "setsid sh -c {} > /dev/null 2>&1 &\nuntil [ -s {file} ]; do {pause}; done",
                quoted(&deaf)
            )
        }
        ProgramStep::UseMemory(bytes) => {
            format!("head -c {bytes} /dev/zero | tail -c {bytes} > /dev/null || exit $?")
        }
        ProgramStep::OnRank(rank, steps) => format!("if [ \"$RANK\" = {rank} ]; then\n{}fi", script(steps)),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
