//! What a followed job looks like: its lines on stdout, its states and progress on stderr.

use std::fmt::Write as _;

use danlu_types::JobId;
use danlu_types::Reason;
use danlu_types::api::{JobOutcome, JobState, JobView, LogLine, LogStream};
use indicatif::ProgressBar;
use owo_colors::OwoColorize as _;

use crate::failure::CliError;
use crate::{output, progress, words};

/// How log lines are printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineStyle {
    /// `[rank 3]` before each line.
    pub(crate) with_rank: bool,
    pub(crate) with_time: bool,
    /// `[attempt 2]` before each line.
    pub(crate) with_attempt: bool,
}

/// Whether a line is a program's report (`::danlu progress 0.4`), which is shown as progress and metrics, and not as a
/// line of the log. One that is not understood is a line: its writer has to see it.
pub(crate) fn is_report(line: &LogLine) -> bool {
    line.stream != LogStream::Danlu && danlu_core::report::read_line(line.text.as_bytes()).is_some()
}

impl LineStyle {
    /// Ranks are named where there is more than one.
    pub(crate) fn of(job: &JobView) -> Self {
        let ranks = u64::from(job.spec.workers) * u64::from(words::ranks_per_worker(job));
        LineStyle { with_rank: ranks > 1, with_time: false, with_attempt: false }
    }

    /// Colours are codes around the text; stdout strips them where they are not wanted.
    pub(crate) fn text(self, line: &LogLine) -> String {
        let mut prefix = String::new();
        if self.with_time {
            // Writing to a string cannot fail.
            let _ = write!(prefix, "{:.3} ", line.at);
        }
        if self.with_attempt {
            let _ = write!(prefix, "[attempt {}] ", line.attempt);
        }
        if self.with_rank {
            let _ = write!(prefix, "[rank {}] ", line.rank);
        }
        if line.stream == LogStream::Danlu {
            prefix.push_str("danlu: ");
        }
        let prefix = if prefix.is_empty() { String::new() } else { prefix.dimmed().to_string() };
        format!("{prefix}{}", line.text)
    }
}

/// One followed job on the terminal, or in a pipe.
#[derive(Debug)]
pub(crate) struct Screen {
    job: JobId,
    style: LineStyle,
    /// Drawn below the lines; hidden when stderr is no terminal.
    bar: Option<ProgressBar>,
    shows_fraction: bool,
    said: String,
}

impl Screen {
    pub(crate) fn new(job: &JobView) -> Self {
        Screen {
            job: job.id,
            style: LineStyle::of(job),
            bar: None,
            shows_fraction: false,
            said: String::new(),
        }
    }

    /// Reports move the bar on a terminal, and are left out of the lines.
    pub(crate) fn lines(&mut self, lines: &[LogLine]) -> Result<(), CliError> {
        let draws = output::stderr_is_terminal() && output::stdout_is_terminal();
        let reported = |line: &LogLine| if draws { progress::reported(&line.text) } else { None };
        let shown = lines.iter().filter(|line| !is_report(line));
        let text: Vec<String> = shown.map(|line| self.style.text(line)).collect();
        if !text.is_empty() {
            match &self.bar {
                Some(bar) => bar.suspend(|| output::lines(text))?,
                None => output::lines(text)?,
            }
        }
        if let Some(fraction) = lines.iter().filter_map(reported).next_back() {
            self.progress(fraction);
        }
        Ok(())
    }

    /// A state is said once, also when it is repeated after a reconnection.
    pub(crate) fn state(&mut self, state: JobState, reason: &Reason) {
        let sentence = words::state_sentence(state, reason);
        if sentence == self.said {
            return;
        }
        self.said.clone_from(&sentence);
        let waits = matches!(state, JobState::Queued | JobState::Held | JobState::Starting);
        if waits && output::stderr_is_terminal() {
            let message = format!("job {} is {sentence}", self.job);
            match &self.bar {
                Some(bar) if !self.shows_fraction => bar.set_message(message),
                _ => self.bar = Some(progress::spinner(message)),
            }
            self.shows_fraction = false;
            return;
        }
        if state == JobState::Ended {
            return;
        }
        self.clear();
        self.say(&format!("job {} is {sentence}", self.job));
    }

    pub(crate) fn end(&mut self, outcome: JobOutcome, reason: &Reason) {
        self.clear();
        let sentence = words::state_sentence(JobState::Ended, reason);
        let sentence = match outcome {
            JobOutcome::Succeeded => sentence.green().to_string(),
            JobOutcome::Failed => sentence.red().to_string(),
            JobOutcome::Stopped => sentence.yellow().to_string(),
        };
        output::say(format!("job {}: {sentence}", self.job));
        if outcome == JobOutcome::Failed {
            output::say(format!(
                "\n{}: `danlu show {}` tells the whole story",
                "hint".cyan().bold(),
                self.job
            ));
        }
    }

    pub(crate) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::say(text)),
            None => output::say(text),
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "fractions are 0 to 1")]
    fn progress(&mut self, fraction: f64) {
        if !self.shows_fraction {
            self.clear();
            self.bar = Some(progress::fraction(format!("job {}", self.job)));
            self.shows_fraction = true;
        }
        if let Some(bar) = &self.bar {
            bar.set_position((fraction * 1000.0) as u64);
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.shows_fraction = false;
    }
}
