//! Every rule on its fixtures: `tests/rules/<rule>/input.py` becomes `output.py` with `findings.txt`.
//!
//! Other Python files of a folder are modules beside it, whose facts it sees. `INSTA_UPDATE=always` writes what comes out.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a panic is how a test fails, and says what differs"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use danlu_migrate::{
    Distributed, FileMigration, LineIndex, Module, Options, PORTABLE_RULES, Portable, ProjectFacts, RULES,
    apply, gather_facts, migrate_python,
};

fn facts_of(folder: &Path) -> ProjectFacts {
    let mut facts = ProjectFacts::default();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "py") && stem != "output" {
            let module = Module { name: stem, ..Module::default() };
            facts.merge(gather_facts(&fs::read(&path).unwrap(), &module));
        }
    }
    facts
}

fn shown(input: &[u8], outcome: &FileMigration) -> String {
    let lines = LineIndex::of(input);
    let mut text = String::new();
    for edit in &outcome.edits {
        let line = lines.line(edit.start);
        let _ = writeln!(text, "{line}: {} ({}): {}", edit.rule, edit.grade.name(), edit.message);
    }
    for finding in &outcome.findings {
        let line = lines.line(finding.start);
        let kind = finding.kind.name();
        let _ = writeln!(text, "{line}: {} [{kind}] {}: {}", finding.rule, finding.subject, finding.message);
    }
    text
}

fn compare(path: &Path, actual: &[u8]) -> bool {
    if std::env::var("INSTA_UPDATE").is_ok_and(|wanted| wanted == "always") {
        fs::write(path, actual).unwrap();
        return true;
    }
    let expected = fs::read(path).unwrap_or_default();
    if expected != actual {
        println!(
            "--- {}\n{}\n+++ now\n{}",
            path.display(),
            String::from_utf8_lossy(&expected),
            String::from_utf8_lossy(actual)
        );
    }
    expected == actual
}

/// Some rules are asked for.
fn options_of(rule: &str) -> (Options, bool) {
    let mut options = Options::default();
    match rule {
        "distributed" => {
            options.distributed =
                Some(Distributed { main: "input.py".to_owned(), model: "model".to_owned() });
        }
        "specify-device" => options.specify_device = true,
        "modelarts" => options.modelarts = true,
        "advice" => options.similar = true,
        "portable" | "portable-npu" => options.portable = Some(Portable::Inline),
        "portable-shim" => options.portable = Some(Portable::Shim),
        _ => {}
    }
    let is_main = options.distributed.is_some();
    (options, is_main)
}

#[test]
fn every_rule_does_what_its_fixtures_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    let mut all_well = true;
    let mut folders: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders {
        let input = fs::read(folder.join("input.py")).unwrap();
        let facts = facts_of(&folder);
        let (options, is_main) = options_of(&folder.file_name().unwrap().to_string_lossy());
        let module = Module { name: "input".to_owned(), is_main, ..Module::default() };
        let outcome = migrate_python(&input, &module, &facts, &options);
        let output = apply(&input, &outcome.edits);
        all_well &= compare(&folder.join("output.py"), &output);
        all_well &= compare(&folder.join("findings.txt"), shown(&input, &outcome).as_bytes());
        let again = migrate_python(&output, &module, &facts, &options);
        assert_eq!(again.edits, Vec::new(), "{} is not stable", folder.display());
    }
    assert!(
        all_well,
        "fixtures differ; `INSTA_UPDATE=always cargo test -p danlu-migrate --test rules` renews them"
    );
}

#[test]
fn every_rule_that_looks_at_python_has_a_fixture() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    for rule in RULES.iter().chain(PORTABLE_RULES).filter(|rule| rule.looks_at_python()) {
        assert!(root.join(rule.name).is_dir(), "no fixture for `{}`", rule.name);
    }
}

#[test]
fn every_example_in_the_documentation_is_what_happens() {
    for rule in RULES.iter().chain(PORTABLE_RULES).filter(|rule| rule.looks_at_python()) {
        // Examples leave out the imports that everybody knows.
        let preamble = "import os\nimport torch\nimport torch.distributed as dist\nimport pytorch_lightning as pl\nimport torch_npu\n";
        let has_imports = rule.before.contains("import torch");
        let whole = |text: &str| if has_imports { text.to_owned() } else { format!("{preamble}{text}") };
        let input = whole(rule.before);
        let (options, is_main) = options_of(rule.name);
        let module = Module { is_main, ..Module::default() };
        let outcome = migrate_python(input.as_bytes(), &module, &ProjectFacts::default(), &options);
        let output = String::from_utf8(apply(input.as_bytes(), &outcome.edits)).unwrap();
        // What is added to the imports is not part of the example.
        let shown = &output[output.len().saturating_sub(rule.after.len())..];
        assert_eq!(shown, rule.after, "the example of `{}`", rule.name);
    }
}
