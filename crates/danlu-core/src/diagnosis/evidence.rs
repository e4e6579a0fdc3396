//! How much a line of output says about the end of the rank that printed it.
//!
//! Programs print tips, quote errors that they have dealt with, and show their sources in tracebacks. Only what is said last, as a
//! statement, explains an end; the rest is at most a guess.

use danlu_types::api::LogStream;

/// What comes earlier than this in its stream did not end the rank.
const LAST_LINES: usize = 50;
/// Without an exception to go by, the end is explained this near to it.
const NEAR_THE_END: usize = 10;
/// The last words on stderr need no form: programs without tracebacks end with a plain sentence.
const LAST_WORDS: usize = 2;
/// How lines begin that state nothing of the end.
const ADVICE: [&str; 9] = ["tip", "hint", "note", "warning", "warn", "info", "debug", "advice", "help"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Evidence {
    Possible,
    Certain,
}

/// The output of a rank, oldest first, with what of it is no statement.
pub(super) struct Output {
    /// Stream, text, and the text in small letters.
    pub(super) lines: Vec<(LogStream, String, String)>,
    /// How many lines of the same stream come after each.
    after: Vec<usize>,
    is_source: Vec<bool>,
    /// The last exception that ended a traceback.
    last_exception: Option<usize>,
}

impl Output {
    pub(super) fn new<'a>(lines: impl Iterator<Item = (LogStream, &'a str)>, longest: usize) -> Self {
        let lines: Vec<(LogStream, String, String)> = lines
            .filter(|(stream, _)| *stream != LogStream::Danlu)
            .map(|(stream, text)| {
                let text: String = text.chars().take(longest).collect();
                let lower = text.to_lowercase();
                (stream, text, lower)
            })
            .collect();
        let mut after = vec![0; lines.len()];
        let (mut of_stdout, mut of_stderr) = (0, 0);
        for (at, (stream, _, _)) in lines.iter().enumerate().rev() {
            let count = if *stream == LogStream::Stderr { &mut of_stderr } else { &mut of_stdout };
            after[at] = *count;
            *count += 1;
        }
        let is_source = sources(&lines);
        let has_traceback = |at: usize| {
            let stream = lines[at].0;
            lines[..at]
                .iter()
                .rev()
                .take(400)
                .any(|line| line.0 == stream && line.2.contains("traceback (most recent call last)"))
        };
        let last_exception = (0..lines.len())
            .rev()
            .find(|at| !is_source[*at] && is_exception(&lines[*at].1) && has_traceback(*at));
        Output { lines, after, is_source, last_exception }
    }

    /// What the line says of the end, where it holds the text in question.
    pub(super) fn evidence(&self, at: usize, text: &str) -> Option<Evidence> {
        let (stream, line, lower) = &self.lines[at];
        if self.is_source[at] || self.after[at] >= LAST_LINES {
            return None;
        }
        if (is_quoted(lower, text) || is_advice(lower)) && !is_exception(line) {
            return Some(Evidence::Possible);
        }
        let is_statement = is_exception(line) || is_complaint(lower);
        let is_near = self.after[at] < NEAR_THE_END;
        let is_last = *stream == LogStream::Stderr && self.after[at] < LAST_WORDS;
        let is_certain = match self.last_exception {
            Some(last) if at >= last => true,
            // Of an exception that led to the last one, the first is the cause.
            Some(last) => is_exception(line) && self.is_chained(at, last),
            None => is_last || (is_near && is_statement),
        };
        Some(if is_certain { Evidence::Certain } else { Evidence::Possible })
    }

    fn is_chained(&self, from: usize, to: usize) -> bool {
        let links = ["during handling of the above exception", "the above exception was the direct cause"];
        self.lines[from..to].iter().any(|line| links.iter().any(|link| line.2.contains(link)))
    }
}

/// Lines of a traceback that show the program and not its error: what stands below `File "…", line N`.
fn sources(lines: &[(LogStream, String, String)]) -> Vec<bool> {
    let mut is_source = vec![false; lines.len()];
    let mut inside: [bool; 2] = [false; 2];
    for (at, (stream, text, _)) in lines.iter().enumerate() {
        let text = without_rank(text);
        let inside = &mut inside[usize::from(*stream == LogStream::Stderr)];
        let is_indented = text.starts_with(' ') || text.starts_with('\t');
        if text.trim_start().starts_with("File \"") && is_indented {
            *inside = true;
        } else if !is_indented {
            *inside = false;
        }
        is_source[at] = *inside;
    }
    is_source
}

/// `torch.OutOfMemoryError: CUDA out of memory`, at the beginning of its line.
fn is_exception(line: &str) -> bool {
    let line = without_rank(line);
    let name = line.split(':').next().unwrap_or_default();
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let last = name.rsplit('.').next().unwrap_or_default();
    name.split('.').all(is_name)
        && last.starts_with(|c: char| c.is_ascii_uppercase())
        && ["Error", "Exception", "Interrupt", "Exit", "Timeout"].iter().any(|end| last.ends_with(end))
}

/// `[ERROR] HCCL …`, `error: …`, `EI0006: …`: a program that complains, in small letters.
fn is_complaint(lower: &str) -> bool {
    let start: String = without_rank(lower).chars().take(40).collect();
    let first = start.split([':', ' ']).next().unwrap_or_default();
    let is_code =
        first.len() == 6 && first.starts_with('e') && first[2..].chars().all(|c| c.is_ascii_digit());
    is_code || ["error", "fatal", "failed", "abort"].iter().any(|word| start.contains(word))
}

/// `tip: …`, `[WARNING] …`, `WARNING:root:…`, in small letters.
fn is_advice(lower: &str) -> bool {
    let start = without_rank(lower).trim_start_matches(|c: char| !c.is_alphanumeric());
    let first = start.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    ADVICE.contains(&first)
}

fn is_quoted(lower: &str, text: &str) -> bool {
    let first = text.split('*').next().unwrap_or_default();
    let Some(at) = lower.find(first).filter(|_| !first.is_empty()) else { return false };
    lower[..at].ends_with(['\'', '"', '`', '\u{201c}', '\u{2018}'])
}

/// Launchers of PyTorch put the rank before each line.
fn without_rank(line: &str) -> &str {
    let rest = line.strip_prefix("[rank").and_then(|rest| rest.split_once("]: "));
    rest.filter(|(rank, _)| rank.chars().all(|c| c.is_ascii_digit())).map_or(line, |(_, rest)| rest)
}
