//! Job files and batch scripts: text in, a job's spec and diagnostics out.
//!
//! What a file says is merged with what the command line adds, then checked; every mistake knows its line.

mod diagnostic;
mod fields;
mod foreign;
mod merge;
mod near;
mod parse;
mod sbatch;
mod tree;
mod yaml;

use std::path::{Path, PathBuf};

use danlu_types::spec::{is_digest, shell_quote};
use danlu_types::{FieldError, JobSpec};

pub use diagnostic::{Diagnostic, ValueOrigin};
pub use fields::{explain, place_errors};
pub use foreign::Foreign;
pub use parse::parse;
pub use sbatch::ImportNote;
pub use tree::{SourceTree, SourceValue};
pub use yaml::read as read_tree;

/// Stands in for the digest of a folder that is yet to be packed, so that the rest can be checked first.
const DIGEST_TO_COME: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// Says which job of an array one is.
pub const ARRAY_TASK: &str = "SLURM_ARRAY_TASK_ID";

/// A job as it was asked for, before anything was uploaded.
#[derive(Debug)]
pub struct JobFile {
    name: String,
    source: String,
    /// Where paths in the file start.
    folder: PathBuf,
    tree: SourceTree,
    diagnostics: Vec<Diagnostic>,
    script: Option<OfScript>,
}

/// What is known of a job that comes from a batch script.
#[derive(Debug)]
struct OfScript {
    notes: Vec<ImportNote>,
    /// The numbers of an array's jobs.
    array: Vec<u32>,
}

/// Why a text is not read as a job.
#[derive(Debug)]
pub enum ReadError {
    /// At this line are bytes that are not UTF-8.
    NotText {
        line: usize,
    },
    /// It is a file of another platform.
    Foreign(Foreign),
    Syntax {
        diagnostic: Diagnostic,
        source: String,
    },
}

/// The code that goes with a job.
#[derive(Debug, PartialEq, Eq)]
pub enum Code {
    None,
    Uploaded,
    Folder(PathBuf),
}

impl JobFile {
    /// A job from nothing but the command line.
    pub fn empty() -> Self {
        JobFile {
            name: String::new(),
            source: String::new(),
            folder: PathBuf::from("."),
            tree: SourceTree::empty_map(ValueOrigin::Nowhere),
            diagnostics: Vec::new(),
            script: None,
        }
    }

    /// What the text says, before it is checked. `name` is the file's, and paths in it start in `folder`.
    pub fn read(name: &str, folder: PathBuf, bytes: Vec<u8>) -> Result<Self, ReadError> {
        let source = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..valid].split(|byte| *byte == b'\n').count();
            ReadError::NotText { line }
        })?;
        if sbatch::is_script(&source) {
            let sbatch::BatchScript { tree, diagnostics, notes, array } = sbatch::read(name, &source);
            let script = Some(OfScript { notes, array });
            return Ok(JobFile { name: name.to_owned(), source, folder, tree, diagnostics, script });
        }
        let tree = match yaml::read(&source) {
            // A list of assignments, or a program, may happen to be a text in YAML.
            Ok(tree) if matches!(tree.content, SourceValue::Map(_)) => match foreign::by_fields(&tree) {
                Some(found) => return Err(ReadError::Foreign(found)),
                None => tree,
            },
            other => match (foreign::by_text(name, &source), other) {
                (Some(found), _) => return Err(ReadError::Foreign(found)),
                (None, Ok(tree)) => tree,
                (None, Err(diagnostic)) => return Err(ReadError::Syntax { diagnostic, source }),
            },
        };
        Ok(JobFile { name: name.to_owned(), source, folder, tree, diagnostics: Vec::new(), script: None })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the file is a batch script of Slurm's.
    pub fn is_script(&self) -> bool {
        self.script.is_some()
    }

    /// What of a batch script is done otherwise, or not at all: a line for each.
    pub fn notes(&self) -> Vec<String> {
        let notes = self.script.iter().flat_map(|script| &script.notes);
        notes.map(|ImportNote { line, text }| format!("{}:{line}: {text}", self.name)).collect()
    }

    /// What of a batch script is done otherwise, or not at all.
    pub fn import_notes(&self) -> &[ImportNote] {
        self.script.as_ref().map_or(&[], |script| &script.notes)
    }

    /// The line, counted from 1, in which a field's value begins.
    fn line_of_field(&self, field: &str) -> Option<usize> {
        let range = self.tree.get(field)?.place.within(&self.source)?;
        Some(self.source.get(..range.start)?.matches('\n').count() + 1)
    }

    /// The numbers of the jobs that the file asks for, where it asks for several; none where it was said which one is meant.
    pub fn array(&self) -> &[u32] {
        let is_said = self.tree.get("env").is_some_and(|env| env.get(ARRAY_TASK).is_some());
        self.script.as_ref().filter(|_| !is_said).map_or(&[], |script| &script.array)
    }

    /// A script finds what is typed after its name as `$1` and so on.
    pub fn script_arguments(&mut self, words: &[String]) {
        let Some(SourceValue::Text(command)) = self.tree.get("command").map(|command| &command.content)
        else {
            return;
        };
        let (first, rest) = command.split_once('\n').unwrap_or((command, ""));
        let quoted: Vec<String> = words.iter().map(|word| shell_quote(word)).collect();
        if !first.ends_with("sh") && !first.contains("sh ") {
            let accepted = format!("only shells are given words; the script is run by `{first}`");
            return self.complain("--", "command", &quoted.join(" "), &accepted);
        }
        let command = format!("{first}\nset -- {}\n{rest}", quoted.join(" "));
        let place = self.tree.get("command").map_or(ValueOrigin::Nowhere, |command| command.place.clone());
        let tree = SourceTree::text(command, place.clone());
        self.diagnostics.extend(merge::insert(&mut self.tree, "command", tree, place).err());
    }

    /// Where a script runs that names no folder: where one is. One that it names may be below that.
    pub fn settle_script(&mut self, here: &Path) {
        if !self.is_script() || self.has("code") {
            return;
        }
        let named =
            self.tree.get("working_directory").map(|tree| (tree.as_written().content, tree.place.clone()));
        let (folder, place) = match named {
            Some((SourceValue::Text(folder), place)) => (here.join(folder), place),
            _ => (here.to_owned(), ValueOrigin::Nowhere),
        };
        let tree = SourceTree::text(folder.display().to_string(), place.clone());
        self.diagnostics.extend(merge::insert(&mut self.tree, "working_directory", tree, place).err());
    }

    /// `--set key=value`
    pub fn set(&mut self, assignment: &str) {
        if let Err(diagnostic) = merge::set(&mut self.tree, assignment) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// A flag that stands for the field at `key`; its value is read like that of `--set`.
    pub fn flag(&mut self, flag: &str, key: &str, value: &str) {
        self.flag_for(flag, value, key, value);
    }

    /// The same where what was typed stands for another value.
    pub fn flag_for(&mut self, flag: &str, typed: &str, key: &str, value: &str) {
        let place = argument(flag, typed);
        let result = merge::read_value(value, &place).and_then(|mut tree| {
            merge::relocate(&mut tree, &place);
            merge::insert(&mut self.tree, key, tree, place)
        });
        self.diagnostics.extend(result.err());
    }

    /// A flag whose value is a text, whatever it looks like.
    pub fn text_flag(&mut self, flag: &str, key: &str, value: &str) {
        let place = argument(flag, value);
        let tree = SourceTree::text(value, place.clone());
        self.diagnostics.extend(merge::insert(&mut self.tree, key, tree, place).err());
    }

    /// A flag of the form `--env NAME=VALUE`, below the map at `key`.
    pub fn pair_flag(&mut self, flag: &str, key: &str, pair: &str) {
        match pair.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                let place = argument(flag, pair);
                let tree = SourceTree::text(value, place.clone());
                self.diagnostics
                    .extend(merge::insert(&mut self.tree, &format!("{key}.{name}"), tree, place).err());
            }
            _ => self.complain(flag, key, pair, &format!("write `{flag} NAME=VALUE`")),
        }
    }

    pub fn complain(&mut self, flag: &str, key: &str, value: &str, accepted: &str) {
        self.diagnostics.push(Diagnostic {
            field: key.to_owned(),
            message: format!("cannot be the text `{}`", tree::shortened(value)),
            label: Some(accepted.to_owned()),
            place: argument(flag, value),
        });
    }

    pub fn has(&self, field: &str) -> bool {
        self.tree.get(field).is_some()
    }

    /// The specification, checked as far as it can be without a server, and the code to upload with it. Which folders are there is for
    /// the caller to know.
    pub fn finish(&mut self, is_folder: impl Fn(&Path) -> bool) -> Result<(JobSpec, Code), Vec<Diagnostic>> {
        let code = self.take_code(is_folder);
        let mut diagnostics = std::mem::take(&mut self.diagnostics);
        let spec = match fields::read_spec(&self.tree) {
            Ok(mut spec) => {
                if matches!(code, Code::Folder(_)) {
                    spec.code = Some(DIGEST_TO_COME.to_owned());
                }
                diagnostics.extend(fields::place_errors(spec.check(), &self.tree));
                Some(spec)
            }
            Err(found) => {
                diagnostics.extend(found);
                None
            }
        };
        match spec {
            Some(spec) if diagnostics.is_empty() => Ok((spec, code)),
            _ => Err(diagnostics),
        }
    }

    /// What was set, as JSON, for a server that has the rest.
    pub fn overrides(&mut self) -> Result<serde_json::Value, Vec<Diagnostic>> {
        let overrides = fields::to_json(&self.tree);
        let mut diagnostics = std::mem::take(&mut self.diagnostics);
        diagnostics.extend(fields::check_part(&self.tree));
        if diagnostics.is_empty() { Ok(overrides) } else { Err(diagnostics) }
    }

    /// What the server had to say, at the lines it is about.
    pub fn place_errors(&self, errors: Vec<FieldError>) -> Vec<Diagnostic> {
        fields::place_errors(errors, &self.tree)
    }

    /// `code` in a job file is a folder relative to it; in the specification it is a digest.
    fn take_code(&mut self, is_folder: impl Fn(&Path) -> bool) -> Code {
        let Some(tree) = self.tree.get("code") else { return Code::None };
        let (place, SourceValue::Text(text)) = (tree.place.clone(), tree.as_written().content) else {
            return Code::None;
        };
        if text.is_empty() || is_digest(&text) {
            return if text.is_empty() { Code::None } else { Code::Uploaded };
        }
        let folder = match place {
            ValueOrigin::Argument(_) => PathBuf::from(&text),
            _ => self.folder.join(&text),
        };
        let wrong = if text.contains("://") {
            Some("cannot be fetched from elsewhere in this version")
        } else if !is_folder(&folder) {
            Some("is not a folder that is there")
        } else {
            None
        };
        if let Some(message) = wrong {
            self.diagnostics.push(Diagnostic {
                field: "code".to_owned(),
                message: message.to_owned(),
                label: Some("write a folder relative to the job file, such as `.`".to_owned()),
                place,
            });
        }
        Code::Folder(folder)
    }
}

fn argument(flag: &str, value: &str) -> ValueOrigin {
    ValueOrigin::Argument(format!("{flag} {}", tree::shortened(value)))
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
