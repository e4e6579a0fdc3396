//! The workspaces file of `danlu up --workspaces`: read strictly, every mistake shown at its line.

use std::path::Path;

use danlu_jobfile::{Diagnostic, SourceValue, ValueOrigin, explain, place_errors, read_tree};
use danlu_types::Sharing;

use crate::diagnostics::render;
use crate::failure::CliError;

pub fn open(path: &Path) -> Result<Sharing, CliError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        CliError::new(format!("cannot read the workspaces file `{name}`")).caused_by(&error)
    })?;
    read(&name, &text)
}

fn read(name: &str, source: &str) -> Result<Sharing, CliError> {
    let refuse = |complaints: &[Diagnostic]| CliError::rendered(render(complaints, name, source));
    let tree = read_tree(source).map_err(|complaint| refuse(&[complaint]))?;
    if !matches!(tree.content, SourceValue::Map(_)) {
        let message = "the file is not a map; write `workspaces:` and below it a map for each, such as \
                       `vision: { guaranteed: { nvidia: 8 } }`";
        let (message, place) = (message.to_owned(), ValueOrigin::Start);
        return Err(refuse(&[Diagnostic { field: String::new(), message, label: None, place }]));
    }
    let sharing: Sharing = serde_path_to_error::deserialize(tree.to_json())
        .map_err(|error| refuse(&[explain(&error, &tree, &tree.place, "a workspaces file")]))?;
    let errors = sharing.check();
    if errors.is_empty() { Ok(sharing) } else { Err(refuse(&place_errors(errors, &tree))) }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    const EXAMPLE: &str = include_str!("../../../examples/workspaces.yaml");

    #[test]
    fn the_example_is_read() {
        let sharing = read("workspaces.yaml", EXAMPLE).unwrap();
        assert_eq!(sharing.workspaces.keys().collect::<Vec<_>>(), ["speech", "students", "vision"]);
    }

    #[test]
    fn mistakes_are_shown_at_their_lines() {
        let mut text = String::new();
        for source in [
            "",
            "- vision",
            "workspace: {}\n",
            "lending: maybe\n",
            "workspaces:\n  vision:\n    garanteed: { nvidia: 8 }\n",
            "workspaces:\n  vision:\n    guaranteed: { nvidia: 1.5 }\n",
            "workspaces:\n  vision:\n    limit: { memory: 12Q }\n",
            "workspaces:\n  vision: 8\n",
            "workspaces:\n  vision: { head_of_line: strikt }\n",
            "minimum_run_time: soon\n",
            "workspaces:\n  a b: {}\n  vision:\n    guaranteed: { ascend: 16 }\n    limit: { ascend: 8 }\n",
            "workspaces:\n  vision: {\n",
        ] {
            let failure = read("workspaces.yaml", source).unwrap_err();
            let _ = writeln!(text, "=== {source:?}\n{}", failure.plain_text());
        }
        insta::assert_snapshot!(text);
    }
}
