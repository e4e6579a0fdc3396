//! Files that Python 3 cannot read.

use super::{Grade, Rule};
use crate::hooks::Hooks;

pub(crate) const RULE: Rule = Rule {
    name: "unreadable",
    grade: Grade::NeedsPerson,
    what: "Reports files that do not parse, with what of Python 2 is in the way, files in an encoding that cannot be read, and \
           files whose result would not parse or would use a name that nothing binds. All of them stay as they were.",
    why: "A guess about code that cannot be understood is worse than none, and one such file must not cost the others.",
    before: "print \"training\"\n",
    after: "print \"training\"\n",
    references: &["https://docs.python.org/3/whatsnew/3.0.html"],
    hooks: Hooks::NONE,
};

/// The leftover of Python 2 on the line at `offset`, if there is one.
pub(crate) fn looks_like(text: &str, offset: usize) -> Option<&'static str> {
    let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[start..].lines().next().unwrap_or_default().trim_start();
    let word = line.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    match word {
        "print" => Some("a `print` statement"),
        "exec" => Some("an `exec` statement"),
        "except" if line.contains(',') => Some("`except X, e`"),
        "raise" if line.contains(',') => Some("`raise X, \"...\"`"),
        _ if line.contains("<>") => Some("the operator `<>`"),
        _ if line.contains("async=") || line.contains("async =") => {
            Some("the argument `async`, now a keyword,")
        }
        _ if line.contains('`') => Some("backquotes"),
        _ => None,
    }
}
