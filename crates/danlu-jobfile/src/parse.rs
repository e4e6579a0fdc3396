//! A file as the API answers for it: what the command line says of the same file, less what only the command line knows.

use std::path::PathBuf;

use danlu_types::api::{JobFileDiagnostic, JobFileNote, ParseRequest, ParsedJobFile};

use crate::{Code, Diagnostic, Foreign, JobFile, ReadError, ValueOrigin};

/// Past this, more of them help as little as they can be shown.
const MOST_SAID: usize = 100;

/// The job spec that a text asks for, or everything that is wrong with it.
pub fn parse(request: ParseRequest) -> ParsedJobFile {
    let name = request.file_name.as_deref().unwrap_or("job");
    let mut file = match JobFile::read(name, PathBuf::new(), request.text.into_bytes()) {
        Ok(file) => file,
        Err(error) => return refused(vec![of_read_error(error)]),
    };
    let mut notes: Vec<JobFileNote> = file
        .import_notes()
        .iter()
        .map(|note| JobFileNote { line: number(note.line), text: note.text.clone() })
        .collect();
    let code_line = file.line_of_field("code");
    let has_folder = file.has("working_directory") || file.has("code");
    let parsed = match file.finish(|_| true) {
        Ok((mut spec, code)) => {
            if let Code::Folder(folder) = code {
                spec.code = None;
                let text = format!(
                    "the folder `{}` is not uploaded from here; `danlu submit` uploads it with the job",
                    folder.display()
                );
                notes.push(JobFileNote { line: number(code_line.unwrap_or(1)), text });
            }
            if file.is_script() && !has_folder {
                let text = "the job starts in a folder of its own; set `working_directory` if it needs files of another one"
                    .to_owned();
                notes.push(JobFileNote { line: 1, text });
            }
            ParsedJobFile { spec: Some(spec), array: file.array().to_vec(), ..refused(Vec::new()) }
        }
        Err(diagnostics) => {
            let source = file.source();
            let told = diagnostics.iter().take(MOST_SAID).map(|diagnostic| of_diagnostic(diagnostic, source));
            refused(told.collect())
        }
    };
    notes.sort_by_key(|note| note.line);
    notes.truncate(MOST_SAID);
    ParsedJobFile { notes, ..parsed }
}

fn refused(diagnostics: Vec<JobFileDiagnostic>) -> ParsedJobFile {
    ParsedJobFile { spec: None, diagnostics, notes: Vec::new(), array: Vec::new() }
}

fn of_read_error(error: ReadError) -> JobFileDiagnostic {
    let (message, help, line) = match error {
        ReadError::Syntax { diagnostic, source } => return of_diagnostic(&diagnostic, &source),
        ReadError::Foreign(Foreign { what, hint }) => {
            (format!("the file looks like {what}"), Some(hint.to_owned()), None)
        }
        ReadError::NotText { line } => ("the file is not UTF-8 text".to_owned(), None, Some(number(line))),
    };
    JobFileDiagnostic { field: String::new(), message, help, line, column: None }
}

fn of_diagnostic(diagnostic: &Diagnostic, source: &str) -> JobFileDiagnostic {
    // About the whole file: there is nothing to point at.
    let range = match diagnostic.place {
        ValueOrigin::Start => None,
        _ => diagnostic.place.within(source),
    };
    let before = range.map(|range| &source[..source.floor_char_boundary(range.start)]);
    let line = before.map(|before| before.matches('\n').count() + 1);
    let column = before.map(|before| before.rsplit('\n').next().unwrap_or_default().chars().count() + 1);
    JobFileDiagnostic {
        field: diagnostic.field.clone(),
        message: diagnostic.message.clone(),
        help: diagnostic.label.clone(),
        line: line.map(number),
        column: column.map(number),
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(file_name: &str, text: &str) -> ParsedJobFile {
        parse(ParseRequest { text: text.to_owned(), file_name: Some(file_name.to_owned()) })
    }

    /// A file in the form in which it can be read in one look.
    fn told(file_name: &str, text: &str) -> String {
        let ParsedJobFile { spec, diagnostics, notes, array } = parsed(file_name, text);
        let mut lines = Vec::new();
        if let Some(spec) = spec {
            lines.push(format!(
                "{}: {} workers, {}, code {:?}, in {:?}",
                spec.name, spec.workers, spec.devices, spec.code, spec.working_directory
            ));
        }
        lines.extend(diagnostics.iter().map(|it| {
            let at = |number: Option<u32>| number.map_or("-".to_owned(), |number| number.to_string());
            let help = it.help.as_deref().map(|help| format!(" ({help})")).unwrap_or_default();
            format!("{}:{} [{}] {}{help}", at(it.line), at(it.column), it.field, it.message)
        }));
        lines.extend(notes.iter().map(|note| format!("note {}: {}", note.line, note.text)));
        if let [first, .., last] = array[..] {
            lines.push(format!("{} tasks, {first} to {last}", array.len()));
        }
        lines.join("\n")
    }

    fn corpus(files: &[(&str, &str)]) -> String {
        let told: Vec<String> = files
            .iter()
            .map(|(name, text)| format!("=== {name}\n{text}\n--- \n{}", told(name, text)))
            .collect();
        told.join("\n")
    }

    #[test]
    fn job_files_and_scripts_become_specs_with_notes() {
        insta::assert_snapshot!(corpus(&[
            (
                "job.yaml",
                "name: digits\ncommand: python train.py\nworkers: 2\ndevices: {kind: ascend, count: 8}\n"
            ),
            ("job.json", r#"{"command": "true", "code": "src"}"#),
            (
                "train.sbatch",
                "#!/bin/bash\n#SBATCH -p gpu -N 2\n#SBATCH --gres=gpu:8 --array=1-4%2\nsrun python train.py\n"
            ),
            ("train.sh", "#!/bin/sh\n#SBATCH --chdir=/data\ntrue\n"),
        ]));
    }

    #[test]
    fn diagnostics_name_line_and_column() {
        insta::assert_snapshot!(corpus(&[
            ("job.yaml", "command: x\nlabels: {炼丹: é, b: [1]}\nmemory: 256Gx\ndvices: {count: 1}\n"),
            ("tab.yaml", "command: x\nenv:\n\tA: 1\n"),
            ("empty.yaml", ""),
            ("task.yaml", "resources: {accelerators: A100:8}\nrun: python x.py\n"),
            ("a.sbatch", "#!/bin/sh\n#SBATCH --time=24h -D here\ntrue\n"),
        ]));
    }

    #[test]
    fn what_is_said_of_a_file_has_an_end() {
        let many: Vec<String> = (0..1000).map(|number| format!("field{number}: 1\n")).collect();
        let many = many.concat();
        assert_eq!(parsed("job.yaml", &many).diagnostics.len(), MOST_SAID);
        let late = "#!/bin/sh\ntrue\n".to_owned() + &"#SBATCH -p a\n".repeat(1000);
        let parsed = parsed("a.sh", &late);
        assert_eq!((parsed.notes.len(), parsed.spec.is_some()), (MOST_SAID, true));
    }
}
