//! Notebooks: the code of all cells as one program, and every change put back into the cell's own bytes.
//!
//! JSON is read for the places of its strings only. Whatever is not inside a changed name or text keeps its bytes: other
//! cells, outputs, key order, indentation.

use ruff_python_parser::Mode;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Edit, FileMigration, Finding, Module, Options, ProjectFacts, edit};

#[derive(Deserialize)]
struct Notebook<'a> {
    #[serde(borrow, default)]
    cells: Vec<Cell<'a>>,
}

#[derive(Deserialize)]
struct Cell<'a> {
    cell_type: &'a str,
    #[serde(borrow)]
    source: &'a RawValue,
}

/// The program, and for each of its bytes its place in the file.
#[derive(Default)]
struct Program {
    text: String,
    places: Vec<usize>,
    strings: Vec<CodeString>,
}

/// One JSON string of code: its bytes in the program, and the place of its closing quote in the file.
struct CodeString {
    from: usize,
    to: usize,
    quote: usize,
}

pub(crate) fn migrate(bytes: &[u8], facts: &ProjectFacts, options: &Options) -> FileMigration {
    let Ok(file) = std::str::from_utf8(bytes) else { return FileMigration::default() };
    let notebook: Notebook<'_> = match serde_json::from_str(file) {
        Ok(notebook) => notebook,
        Err(error) => return crate::accept::broken(0, 0, format!("the notebook was left as it is: {error}")),
    };
    let mut program = Program::default();
    for cell in notebook.cells.iter().filter(|cell| cell.cell_type == "code") {
        // Cells in another language begin with `%%`.
        let place = cell.source.get().as_ptr().addr() - file.as_ptr().addr();
        let (from, strings) = (program.text.len(), program.strings.len());
        program.add(cell.source.get(), place);
        if program.text[from..].starts_with("%%") {
            program.text.truncate(from);
            program.places.truncate(from);
            program.strings.truncate(strings);
            continue;
        }
        program.push('\n', place + cell.source.get().len() - 1);
    }
    let outcome =
        crate::migrate_in_mode(program.text.as_bytes(), &Module::default(), facts, options, Mode::Ipython);
    let mut edits = Vec::with_capacity(outcome.edits.len());
    for edit in outcome.edits {
        let Some((start, end)) = program.inside_one_string(edit.start, edit.end) else {
            let change = edit.message;
            let message =
                format!("the notebook was left as it is: a change would span two lines of a cell ({change})");
            return crate::accept::broken(0, 0, message);
        };
        let escaped = serde_json::to_string(&edit.replacement).unwrap_or_default();
        let replacement = escaped[1..escaped.len() - 1].to_owned();
        edits.push(Edit { start, end, replacement, ..edit });
    }
    let place = |at: usize| program.places.get(at).copied().unwrap_or(file.len() - 1);
    let found =
        |finding: Finding| Finding { start: place(finding.start), end: place(finding.end), ..finding };
    FileMigration {
        edits: edit::in_order(bytes, edits),
        findings: outcome.findings.into_iter().map(found).collect(),
    }
}

impl Program {
    fn push(&mut self, c: char, place: usize) {
        self.text.push(c);
        self.places.resize(self.text.len(), place);
    }

    /// The places of a range in the file, if it is inside of one JSON string: what is between two strings is not code. An insertion
    /// between two goes to the beginning of the second.
    fn inside_one_string(&self, start: usize, end: usize) -> Option<(usize, usize)> {
        let last = self.strings.partition_point(|string| string.from <= start).checked_sub(1)?;
        let string = self.strings.get(last).filter(|string| end <= string.to)?;
        let place = |at: usize| if at < string.to { self.places[at] } else { string.quote };
        Some((place(start), place(end)))
    }

    /// Adds a string, or the strings of a list, from their JSON.
    fn add(&mut self, json: &str, place: usize) {
        let mut at = 0;
        while let Some(quote) = json[at..].find('"') {
            at += quote + 1;
            let from = self.text.len();
            let mut characters = json[at..].char_indices();
            let mut end = json.len();
            while let Some((index, c)) = characters.next() {
                match c {
                    '"' => {
                        end = at + index;
                        break;
                    }
                    '\\' => {
                        let decoded = match characters.next() {
                            Some((_, 'n')) => '\n',
                            Some((_, 't')) => '\t',
                            Some((_, 'r')) => '\r',
                            Some((_, 'u')) => {
                                // One of two halves, or a character beyond ASCII: any one letter keeps the layout.
                                let digits: String =
                                    characters.by_ref().take(4).map(|(_, digit)| digit).collect();
                                let code = u32::from_str_radix(&digits, 16).unwrap_or(u32::from('_'));
                                char::from_u32(code).filter(char::is_ascii).unwrap_or('_')
                            }
                            Some((_, other)) => other,
                            None => break,
                        };
                        self.push(decoded, place + at + index);
                    }
                    c => self.push(c, place + at + index),
                }
            }
            self.strings.push(CodeString { from, to: self.text.len(), quote: place + end });
            at = (end + 1).min(json.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::migrate;
    use crate::edit::apply;
    use crate::{Options, ProjectFacts};

    #[test]
    fn cells_are_changed_and_every_other_byte_of_a_notebook_stays() {
        let notebook = r#"{"cells": [
 {"cell_type": "markdown", "source": ["use `.cuda()`"]},
 {"cell_type": "code", "outputs": ["cuda"], "source": ["%matplotlib inline\n", "import torch\n", "name = \"caf\u00e9 \\\"x\\\"\"; x = torch.ones(1).cuda()"]},
 {"cell_type": "code", "source": "%%bash\nnvidia-smi"},
 {"cell_type": "code", "source": "device = \"cuda:0\"  # é\nx.to(device)\n"}
], "metadata": {"kernel": "cuda"}}
"#;
        let outcome = migrate(notebook.as_bytes(), &ProjectFacts::default(), &Options::default());
        let output = String::from_utf8(apply(notebook.as_bytes(), &outcome.edits)).unwrap();
        let expected = notebook
            .replace("torch.ones(1).cuda()", "torch.ones(1).npu()")
            .replace(r"import torch\n", r"import torch\nimport torch_npu  # noqa: F401\n")
            .replace("cuda:0", "npu:0");
        assert_eq!(output, expected);
        let again = migrate(output.as_bytes(), &ProjectFacts::default(), &Options::default());
        assert!(again.edits.is_empty());
    }

    /// Seen in a notebook of `gpytorch`: what was put behind the last line was written between its quote and the end of the list.
    #[test]
    fn what_is_put_behind_the_last_line_of_a_cell_is_inside_of_its_string() {
        for (import, expected) in [
            ("[\"import torch\"\n  ]", "[\"import torch\\nimport torch_npu  # noqa: F401\"\n  ]"),
            ("\"import torch\"", "\"import torch\\nimport torch_npu  # noqa: F401\""),
            ("[\"import torch\", \"\"]", "[\"import torch\", \"\\nimport torch_npu  # noqa: F401\"]"),
        ] {
            let cells = |import: &str, call: &str| {
                let code = |source: &str| format!("{{\"cell_type\": \"code\", \"source\": {source}}}");
                format!(
                    "{{\"cells\": [{}, {}, {}]}}",
                    code("[]"),
                    code(import),
                    code(&format!("[\"x.{call}()\"]"))
                )
            };
            let notebook = cells(import, "cuda");
            let outcome = migrate(notebook.as_bytes(), &ProjectFacts::default(), &Options::default());
            let output = String::from_utf8(apply(notebook.as_bytes(), &outcome.edits)).unwrap();
            assert_eq!(output, cells(expected, "npu"));
        }
    }
}
