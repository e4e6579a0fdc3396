//! How a command fails: an `error:` line, its causes, a blank line, a `hint:`, and an exit code that scripts can use.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use anstream::stderr;
use danlu_client::ClientError;
use danlu_objects::ObjectsError;
use owo_colors::OwoColorize as _;

pub(crate) const FAILED: u8 = 1;
pub const USAGE: u8 = 2;
pub(crate) const NOT_FOUND: u8 = 3;
pub(crate) const UNREACHABLE: u8 = 4;

#[derive(Debug)]
#[must_use]
pub struct CliError {
    code: u8,
    text: Text,
    hint: Option<String>,
}

#[derive(Debug)]
enum Text {
    Said {
        message: String,
        causes: Vec<String>,
    },
    /// Already laid out, with its own `error:` lines.
    Rendered(String),
    /// There is nobody left to tell, or nothing to add.
    Silent,
}

impl CliError {
    pub fn new(message: impl Into<String>) -> Self {
        let text = Text::Said { message: message.into(), causes: Vec::new() };
        CliError { code: FAILED, text, hint: None }
    }

    pub(crate) fn rendered(text: String) -> Self {
        CliError { code: FAILED, text: Text::Rendered(text), hint: None }
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    pub fn with_code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the error and its chain of causes, each once.
    pub fn caused_by(mut self, error: &dyn Error) -> Self {
        if let Text::Said { message, causes } = &mut self.text {
            let mut next = Some(error);
            while let Some(error) = next {
                let cause = error.to_string();
                // Some libraries repeat their cause in their own text.
                if *message != cause && causes.last().is_none_or(|last| !last.contains(&cause)) {
                    causes.push(cause);
                }
                next = error.source();
            }
        }
        self
    }

    pub fn report(self) -> ExitCode {
        // If stderr is closed there is nobody left to tell.
        let _ = self.write_to(&mut stderr().lock());
        ExitCode::from(self.code)
    }

    /// The whole report without colours.
    pub fn plain_text(&self) -> String {
        let mut text = anstream::StripStream::new(Vec::new());
        // Writing into memory does not fail.
        let _ = self.write_to(&mut text);
        String::from_utf8_lossy(&text.into_inner()).trim_end().to_owned()
    }

    pub(crate) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.text {
            Text::Said { message, causes } => {
                writeln!(out, "{}: {message}", "error".red().bold())?;
                for cause in causes {
                    writeln!(out, "  {}: {cause}", "cause".red())?;
                }
            }
            Text::Rendered(text) => writeln!(out, "{text}")?,
            Text::Silent => {}
        }
        if let Some(hint) = &self.hint {
            writeln!(out, "\n{}: {hint}", "hint".cyan().bold())?;
        }
        Ok(())
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let code = match &error {
            _ if error.is_not_found() => NOT_FOUND,
            _ if error.is_unreachable() => UNREACHABLE,
            _ => FAILED,
        };
        let mut failure = CliError::new(error.to_string()).with_code(code);
        failure.hint = error.hint();
        if let ClientError::Problem(problem) = &error
            && let Text::Said { causes, .. } = &mut failure.text
            && problem.errors.len() > 1
        {
            causes.extend(problem.errors.iter().map(|error| format!("`{}` {}", error.field, error.message)));
        }
        match error.source() {
            // Between "cannot reach the server" and "connection refused" the libraries say nothing of use.
            Some(source) if error.is_unreachable() => failure.caused_by(innermost(source)),
            Some(source) => failure.caused_by(source),
            None => failure,
        }
    }
}

fn innermost<'a>(mut error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    while let Some(source) = error.source() {
        error = source;
    }
    error
}

impl From<ObjectsError> for CliError {
    fn from(error: ObjectsError) -> Self {
        let mut failure = CliError::new(error.to_string());
        failure.hint = error.hint().map(str::to_owned);
        match error.source() {
            Some(source) => failure.caused_by(source),
            None => failure,
        }
    }
}

/// Errors of writing output: a reader that went away (`danlu jobs | head`) ends the command quietly.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return CliError { code: 0, text: Text::Silent, hint: None };
        }
        CliError::new("cannot write the output").caused_by(&error)
    }
}
