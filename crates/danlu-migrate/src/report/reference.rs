//! The reference of all rules, from the rules themselves.

use std::fmt::Write as _;

use crate::portable;
use crate::rules::RULES;

pub fn rules_markdown() -> String {
    let mut text = String::from(
        "# Rules of `danlu migrate`\n\nOne section for each rule, made from the code. Grades: *safe* is resolved through imports or \
         unmistakable; *likely* is what a reader would do without asking; *needs a person* is reported and never changed.\n\n\
         | rule | grade |\n|---|---|\n",
    );
    for rule in RULES.iter().chain(portable::RULES) {
        let _ = writeln!(text, "| [`{0}`](#{0}) | {1} |", rule.name, rule.grade.name());
    }
    for rule in RULES.iter().chain(portable::RULES) {
        let _ = write!(text, "\n## {}\n\n{}\n\n{}\n\n", rule.name, rule.what, rule.why);
        let _ = write!(text, "```text\n{}```\n", rule.before);
        if rule.after == rule.before {
            text += "\nIs left as it is, and reported.\n";
        } else {
            let _ = write!(text, "\nbecomes\n\n```text\n{}```\n", rule.after);
        }
        if !rule.references.is_empty() {
            let _ = writeln!(
                text,
                "\nSee {}.",
                rule.references.iter().map(|link| format!("<{link}>")).collect::<Vec<_>>().join(", ")
            );
        }
    }
    text.trim_end().to_owned()
}
