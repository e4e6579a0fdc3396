//! Where a file gets to know which device there is.

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::{BACKEND, DEVICE, RULE};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::options::Portable;
use crate::rules::{Grade, Rule};

/// The module that `--portable` adds.
pub(crate) const SHIM_NAME: &str = "portable_device";

pub(crate) const SHIM: &str = r#""""Which kind of device this machine has: `npu` where torch_npu can be imported, `cuda` elsewhere."""
try:
    import torch_npu  # noqa: F401
    ACCELERATOR, COLLECTIVES = "npu", "hccl"
except ImportError:
    ACCELERATOR, COLLECTIVES = "cuda", "nccl"
"#;

/// The folder whose shim a file imports: that of the outermost package, or its own.
pub(crate) fn shim_folder<'p>(path: &'p str, package: &str) -> &'p str {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let above = package.split('.').filter(|part| !part.is_empty()).count().saturating_sub(1);
    (0..above).fold(folder, |folder, _| folder.rsplit_once('/').map_or("", |(above, _)| above))
}

pub(super) fn on_end(checker: &mut Checker<'_>, rule: &'static Rule) {
    if !checker.needs_torch_npu {
        return;
    }
    let package = checker.scopes.package().split('.').next().unwrap_or_default();
    let module = if package.is_empty() { SHIM_NAME.to_owned() } else { format!("{package}.{SHIM_NAME}") };
    let newline = checker.newline();
    let text = match checker.options.portable {
        Some(Portable::Shim) => format!("from {module} import {DEVICE}, {BACKEND}"),
        _ => SHIM.split_once('\n').map_or("", |(_, code)| code).trim_end().replace('\n', newline),
    };
    if checker.source.contains(&text) {
        return;
    }
    if [DEVICE, BACKEND].iter().any(|name| checker.scopes.bindings(name).is_some()) {
        checker.edits.clear();
        let message = format!("the file was left as it is: it has a `{DEVICE}` or `{BACKEND}` of its own");
        checker.report(rule, FindingKind::Broken, TextRange::default(), DEVICE, message);
        return;
    }
    // Before the first import of torch and the first use, on a line of its own.
    let first_edit = checker.first_edit();
    let is_first = |statement: &Stmt| {
        imports_torch(statement) || !is_head(statement) && first_edit < statement.range().end()
    };
    let first = checker.body.iter().position(is_first).unwrap_or(0);
    let lines = checker.body[..=first.min(checker.body.len().saturating_sub(1))].iter().rev();
    let start = lines
        .map(Ranged::range)
        .find(|range| checker.indentation(*range) == Some(""))
        .map(|range| TextRange::empty(range.start()));
    let Some(start) = start else { return };
    let message = "define which device there is";
    checker.replace(&RULE, Grade::Safe, start, format!("{text}{newline}"), message);
}

/// A docstring or an import from the future: nothing may come before.
fn is_head(statement: &Stmt) -> bool {
    match statement {
        Stmt::Expr(expression) => matches!(&*expression.value, Expr::StringLiteral(_)),
        Stmt::ImportFrom(import) => import.module.as_deref() == Some("__future__"),
        _ => false,
    }
}

fn imports_torch(statement: &Stmt) -> bool {
    struct Search(bool);
    impl<'a> StatementVisitor<'a> for Search {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            let is_torch =
                |name: &str| crate::scope::is_in(name, "torch") || crate::scope::is_in(name, "torch_npu");
            match statement {
                Stmt::Import(import) => {
                    self.0 |= import.names.iter().any(|alias| is_torch(alias.name.as_str()));
                }
                Stmt::ImportFrom(import) if import.level == 0 => {
                    self.0 |= import.module.as_deref().is_some_and(is_torch);
                }
                Stmt::FunctionDef(_) => {}
                _ => walk_stmt(self, statement),
            }
        }
    }
    let mut search = Search(false);
    search.visit_stmt(statement);
    search.0
}

#[cfg(test)]
mod tests {
    use super::shim_folder;

    #[test]
    fn a_shim_lies_in_the_outermost_package_or_beside_the_script() {
        assert_eq!(shim_folder("src/pkg/sub/a.py", "pkg.sub"), "src/pkg");
        assert_eq!(shim_folder("pkg/a.py", "pkg"), "pkg");
        assert_eq!(shim_folder("tools/train.py", ""), "tools");
        assert_eq!(shim_folder("train.py", ""), "");
    }
}
