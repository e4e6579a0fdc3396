//! Job files of this machine: opened, finished with the folders that are here, and every mistake shown at its line.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use danlu_jobfile::{Code, Diagnostic, Foreign, JobFile, ReadError};
use danlu_types::spec::shell_quote;
use danlu_types::{FieldError, JobSpec};

use crate::diagnostics::render;
use crate::failure::CliError;

/// Room for the largest honest job and for saying what is wrong with a dishonest one.
const MOST_FILE_BYTES: u64 = 32 << 20;

/// A job file, or standard input for `-`.
pub(crate) fn open(path: &str) -> Result<JobFile, CliError> {
    let (name, folder) = match path {
        "-" => ("standard input".to_owned(), PathBuf::from(".")),
        _ => (path.to_owned(), Path::new(path).parent().map_or(PathBuf::from("."), Path::to_owned)),
    };
    let cannot = |error: io::Error| {
        let failure = CliError::new(format!("cannot read the job file `{path}`")).caused_by(&error);
        match error.kind() {
            io::ErrorKind::NotFound => failure.hint(format!(
                "if it is a command, write `--` before it: `danlu run -- {}`",
                shell_quote(path)
            )),
            _ => failure,
        }
    };
    let mut bytes = Vec::new();
    let reader: Box<dyn Read> = match path {
        "-" => Box::new(io::stdin()),
        _ => Box::new(fs::File::open(path).map_err(cannot)?),
    };
    reader.take(MOST_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > MOST_FILE_BYTES {
        let message = format!("the job file `{path}` is larger than the 32 MiB that are read");
        return Err(CliError::new(message).hint("large data belongs into files that the job reads"));
    }
    read(&name, folder, bytes)
}

fn read(name: &str, folder: PathBuf, bytes: Vec<u8>) -> Result<JobFile, CliError> {
    JobFile::read(name, folder, bytes).map_err(|error| match error {
        ReadError::NotText { line } => {
            CliError::new(format!("the job file `{name}` is not UTF-8 text, at line {line}"))
        }
        ReadError::Foreign(Foreign { what, hint }) => {
            CliError::new(format!("`{name}` looks like {what}")).hint(hint)
        }
        ReadError::Syntax { diagnostic, source } => CliError::rendered(render(&[diagnostic], name, &source)),
    })
}

/// The spec, checked as far as it can be without a server, and the code to upload with it.
pub(crate) fn finish(file: &mut JobFile) -> Result<(JobSpec, Code), CliError> {
    file.finish(Path::is_dir).map_err(|diagnostics| refuse(file, &diagnostics))
}

/// What was set, as JSON, for a server that has the rest.
pub(crate) fn overrides(file: &mut JobFile) -> Result<serde_json::Value, CliError> {
    file.overrides().map_err(|diagnostics| refuse(file, &diagnostics))
}

/// What the server had to say, at the lines it is about.
pub(crate) fn refuse_by_server(file: &JobFile, errors: Vec<FieldError>) -> CliError {
    refuse(file, &file.place_errors(errors))
}

fn refuse(file: &JobFile, diagnostics: &[Diagnostic]) -> CliError {
    CliError::rendered(render(diagnostics, file.name(), file.source()))
}

#[cfg(test)]
mod tests;
