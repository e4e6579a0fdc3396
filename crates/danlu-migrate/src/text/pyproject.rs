//! The dependencies of a pyproject.toml: lists of requirements (PEP 621, dependency groups) and tables (Poetry).
//!
//! By its lines, because only these few have to be understood and everything else has to stay as it is.

use crate::FileMigration;
use crate::edit::{self, Edit};
use crate::finding::FindingKind;
use crate::rules::requirements;
use crate::text::requirements::{cuda_only_package, edited, pinned};
use crate::text::shell::finding;
use crate::versions::{nearest_release, release_for};

/// How dependencies are written where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Other,
    /// `"torch==2.1.0",` in a list.
    List,
    /// `torch = "2.1.0"`
    Table,
}

pub(crate) fn migrate(bytes: &[u8]) -> FileMigration {
    let Ok(text) = std::str::from_utf8(bytes) else { return FileMigration::default() };
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut found = Found { outcome: FileMigration::default(), is_added: names_torch_npu(text), newline };
    let (mut section, mut is_in_list) = ("", false);
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let code = code_of(line.trim_end_matches(['\r', '\n']));
        let trimmed = code.trim();
        if !is_in_list && trimmed.starts_with('[') && trimmed.ends_with(']') {
            section = trimmed.trim_matches(['[', ']', ' ']);
        } else {
            let form = form(section, trimmed, is_in_list);
            match form {
                Form::List => found.on_list_line(code, start),
                Form::Table => found.on_table_line(code, start),
                Form::Other => {}
            }
            if form == Form::List {
                let opens = code.matches('[').count() + usize::from(is_in_list);
                is_in_list = opens > code.matches(']').count();
            }
        }
        start += line.len();
    }
    found.outcome.edits = edit::in_order(bytes, found.outcome.edits);
    found.outcome
}

fn names_torch_npu(text: &str) -> bool {
    text.contains("torch_npu") || text.contains("torch-npu")
}

/// The line without its comment; a `#` in quotes begins none.
fn code_of(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return &line[..at],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    line
}

fn form(section: &str, line: &str, is_in_list: bool) -> Form {
    let is_list = line.split_once('=').is_some_and(|(_, value)| value.trim_start().starts_with('['));
    let key = line.split('=').next().unwrap_or_default().trim();
    let lists_here = match section {
        "project" => key == "dependencies",
        "build-system" => key == "requires",
        "project.optional-dependencies" | "dependency-groups" | "tool.pdm.dev-dependencies" => true,
        _ => false,
    };
    if is_in_list || lists_here && is_list {
        Form::List
    } else if section.starts_with("tool.poetry.") && section.ends_with("dependencies") && line.contains('=') {
        Form::Table
    } else {
        Form::Other
    }
}

struct Found {
    outcome: FileMigration,
    is_added: bool,
    newline: &'static str,
}

impl Found {
    fn on_list_line(&mut self, line: &str, offset: usize) {
        let mut rest = 0;
        while let Some(open) = line[rest..].find(['"', '\'']).map(|at| rest + at) {
            let quote = &line[open..=open];
            let Some(length) = line[open + 1..].find(quote) else { return };
            let item = &line[open + 1..open + 1 + length];
            rest = open + length + 2;
            let name =
                item.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(item.len());
            let place = (offset + open + 1, offset + open + 1 + item.len());
            let is_alone = line.trim().trim_end_matches(',').len() == item.len() + 2;
            match &*normal(&item[..name]) {
                "torch" => {
                    let added = |requirement: &str| format!(", {quote}{requirement}{quote}");
                    self.on_torch(pinned(&item[name..]), item, place, offset + rest, added);
                }
                name => self.on_package(name, line, offset, item, place, is_alone),
            }
        }
    }

    fn on_table_line(&mut self, line: &str, offset: usize) {
        let Some((key, value)) = line.split_once('=') else { return };
        let (name, value) = (normal(key.trim().trim_matches('"')), value.trim());
        let place = (offset, offset + line.trim_end().len());
        if name == "torch" {
            let version = value.trim_matches(['"', '\'']).trim_start_matches("==");
            let is_exact =
                version.starts_with(|c: char| c.is_ascii_digit()) && !version.contains(['*', ',', ' ']);
            let newline = self.newline;
            let added = |requirement: &str| {
                format!("{newline}torch_npu = \"{}\"", requirement.trim_start_matches("torch_npu=="))
            };
            return self.on_torch(is_exact.then_some(version), line.trim(), place, place.1, added);
        }
        self.on_package(&name, line, offset, line.trim(), place, true);
    }

    /// `added` writes a further requirement as this place needs it, to be put at `end`.
    fn on_torch(
        &mut self,
        version: Option<&str>,
        item: &str,
        place: (usize, usize),
        end: usize,
        added: impl Fn(&str) -> String,
    ) {
        let message = match version.map(|version| version.split('+').next().unwrap_or(version)) {
            None if self.is_added => return,
            None => {
                "torch is not pinned; torch_npu works with exactly one version of it, so pin both".to_owned()
            }
            Some(plain) => match release_for(plain) {
                Some(_) if self.is_added => return,
                Some(release) => {
                    let requirement = format!("torch_npu=={}", release.torch_npu);
                    self.push(edited((end, end), added(&requirement), format!("add {requirement}")));
                    self.is_added = true;
                    return;
                }
                None => {
                    let nearest = nearest_release(plain).map(|release| release.torch).unwrap_or_default();
                    format!("no torch_npu was released for torch {plain}; the nearest is for {nearest}")
                }
            },
        };
        self.outcome.findings.push(finding(
            &requirements::RULE,
            FindingKind::NeedsPerson,
            place,
            item,
            &message,
        ));
    }

    /// What only CUDA has is commented out where it stands alone on its line, and reported elsewhere.
    fn on_package(
        &mut self,
        name: &str,
        line: &str,
        offset: usize,
        item: &str,
        place: (usize, usize),
        is_alone: bool,
    ) {
        let Some(reason) = cuda_only_package(name) else { return };
        if is_alone {
            let start = offset + line.len() - line.trim_start().len();
            let replacement = format!("# {}  # CUDA only: {reason}", line.trim());
            let end = offset + line.trim_end().len();
            self.push(edited((start, end), replacement, format!("comment out {item}")));
        } else {
            let message = format!("CUDA only: {reason}");
            self.outcome.findings.push(finding(
                &requirements::RULE,
                FindingKind::NeedsPerson,
                place,
                item,
                &message,
            ));
        }
    }

    fn push(&mut self, edit: Edit) {
        self.outcome.edits.push(edit);
    }
}

fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace(['-', '.'], "_")
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::migrate;
    use crate::edit::apply;

    fn migrated(text: &str) -> String {
        let outcome = migrate(text.as_bytes());
        let mut shown = String::from_utf8(apply(text.as_bytes(), &outcome.edits)).unwrap();
        assert!(migrate(shown.as_bytes()).edits.is_empty(), "not stable: {shown}");
        for finding in &outcome.findings {
            let _ = writeln!(shown, "! {}: {}", finding.subject, finding.message);
        }
        shown
    }

    #[test]
    fn lists_of_requirements_name_the_torch_npu_that_belongs_to_torch() {
        let text = "[build-system]\nrequires = [\"torch==2.1.0\", \"ninja\"]\n\n[project]\nname = \"torch\"\ndependencies = [\n    'torch==2.1.0',  # pinned\n    \"flash-attn>=2\",\n    \"numpy[all]\",\n]\nkeywords = [\"triton\"]\n\n[project.optional-dependencies]\nfast = [\"xformers\", \"triton\"]\n";
        insta::assert_snapshot!(migrated(text), @r#"
        [build-system]
        requires = ["torch==2.1.0", "torch_npu==2.1.0.post17", "ninja"]

        [project]
        name = "torch"
        dependencies = [
            'torch==2.1.0',  # pinned
            # "flash-attn>=2",  # CUDA only: use `torch_npu.npu_fusion_attention`, or `torch.nn.functional.scaled_dot_product_attention`
            "numpy[all]",
        ]
        keywords = ["triton"]

        [project.optional-dependencies]
        fast = ["xformers", "triton"]
        ! xformers: CUDA only: use `torch_npu.npu_fusion_attention`, or `torch.nn.functional.scaled_dot_product_attention`
        ! triton: CUDA only: kernels have to be rewritten, with triton-ascend or Ascend C; plain PyTorch runs as it is
        "#);
    }

    #[test]
    fn tables_of_poetry_are_read_as_well() {
        let text = "[tool.poetry]\nname = \"x\"\n[tool.poetry.dependencies]\npython = \"^3.10\"\ntorch = \"2.6.0\"\nxformers = { version = \"*\" }\n[tool.poetry.group.dev.dependencies]\ntorch = \"^2.1\"\n";
        insta::assert_snapshot!(migrated(text), @r#"
        [tool.poetry]
        name = "x"
        [tool.poetry.dependencies]
        python = "^3.10"
        torch = "2.6.0"
        torch_npu = "2.6.0.post5"
        # xformers = { version = "*" }  # CUDA only: use `torch_npu.npu_fusion_attention`, or `torch.nn.functional.scaled_dot_product_attention`
        [tool.poetry.group.dev.dependencies]
        torch = "^2.1"
        "#);
        insta::assert_snapshot!(migrated("[project]\ndependencies = [\"torch>=2\"]\n"), @r#"
        [project]
        dependencies = ["torch>=2"]
        ! torch>=2: torch is not pinned; torch_npu works with exactly one version of it, so pin both
        "#);
    }
}
