//! `import torch_npu` where a file needs it.

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged as _, TextRange, TextSize};

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::hooks::Hooks;

pub(crate) const RULE: Rule = Rule {
    name: "torch-npu-import",
    grade: Grade::Safe,
    what: "Adds `import torch_npu` after the first import of torch, once, and only to files that were changed to use the \
           device. Where torch is imported inside functions only, it is added there; where only a star import can bring it, after that. Imports for type checkers do not count.",
    why: "Importing torch_npu is what registers `torch.npu` and the device. From PyTorch 2.5 on torch does that by itself; the \
          line is harmless there.",
    before: "import torch\n\nx = torch.ones(3).cuda()\n",
    after: "import torch\nimport torch_npu  # noqa: F401\n\nx = torch.ones(3).npu()\n",
    references: &["https://docs.pytorch.org/tutorials/prototype/python_extension_autoload.html"],
    hooks: Hooks { end: Some(on_end), ..Hooks::NONE },
};

#[derive(Default)]
struct Imports<'a> {
    at_top: Vec<&'a Stmt>,
    in_functions: Vec<&'a Stmt>,
    /// Imports of everything, which may bring torch.
    stars: Vec<&'a Stmt>,
    depth: usize,
    has_torch_npu: bool,
}

impl<'a> StatementVisitor<'a> for Imports<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let is_star = matches!(statement, Stmt::ImportFrom(import) if import.names.iter().any(|alias| alias.name.as_str() == "*"));
        if is_star && self.depth == 0 {
            self.stars.push(statement);
        }
        let names: Vec<&str> = match statement {
            Stmt::Import(import) => import.names.iter().map(|alias| alias.name.as_str()).collect(),
            Stmt::ImportFrom(import) if import.level == 0 => import.module.as_deref().into_iter().collect(),
            Stmt::FunctionDef(_) => {
                self.depth += 1;
                walk_stmt(self, statement);
                self.depth -= 1;
                return;
            }
            // A type checker's imports do not happen.
            Stmt::If(conditional) if is_type_checking(&conditional.test) => return,
            _ => return walk_stmt(self, statement),
        };
        let of = |package: &str| names.iter().any(|name| crate::scope::is_in(name, package));
        self.has_torch_npu |= self.depth == 0 && of("torch_npu");
        if of("torch") {
            let list = if self.depth == 0 { &mut self.at_top } else { &mut self.in_functions };
            list.push(statement);
        }
    }
}

fn is_type_checking(test: &Expr) -> bool {
    match test {
        Expr::Name(name) => name.id.as_str() == "TYPE_CHECKING",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "TYPE_CHECKING",
        _ => false,
    }
}

fn on_end(checker: &mut Checker<'_>, rule: &'static Rule) {
    if !checker.needs_torch_npu || checker.has_torch_npu {
        return;
    }
    let mut imports = Imports::default();
    imports.visit_body(checker.body);
    if imports.has_torch_npu {
        return;
    }
    if let Some(first) = imports.at_top.first() {
        insert_after(checker, rule, first);
    } else if imports.in_functions.is_empty() {
        if let Some(star) = imports.stars.first().filter(|_| checker.imports_torch()) {
            insert_after(checker, rule, star);
        }
    } else {
        let places = imports.in_functions;
        for statement in places {
            insert_after(checker, rule, statement);
        }
    }
}

fn insert_after(checker: &mut Checker<'_>, rule: &'static Rule, statement: &Stmt) {
    const LINE: &str = "import torch_npu  # noqa: F401";
    let range = statement.range();
    // After the comment of the import's own line; on the line itself where more statements follow there.
    let (at, new) = match (checker.line_end(range), checker.indentation(range)) {
        (Some(end), Some(_)) => (end, checker.as_statement_after(range, LINE)),
        _ => (range.end().to_usize(), "; import torch_npu".to_owned()),
    };
    let Ok(at) = TextSize::try_from(at) else { return };
    checker.replace(rule, Grade::Safe, TextRange::empty(at), new, "import torch_npu");
}
