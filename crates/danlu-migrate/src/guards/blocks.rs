//! What a block or an expression certainly runs that is for CUDA only.

use ruff_python_ast::visitor::source_order::SourceOrderVisitor as _;
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged as _, TextRange};

use super::conditions::catches_what_is_missing;
use super::evidence::{GuardEvidence, has_word, only_for_cuda};
use super::{Called, Guards};

/// Statements that are looked at behind one condition: a block may hold thousands of both.
const MOST_STATEMENTS: usize = 200;

impl<'a> Guards<'_, 'a> {
    /// The first thing for CUDA only that runs whenever the block does.
    pub(super) fn in_block(&self, body: &'a [Stmt]) -> Option<String> {
        body.iter().take(MOST_STATEMENTS).find_map(|statement| match statement {
            Stmt::If(conditional) => self.in_expression(&conditional.test).or_else(|| {
                // Which version there is says nothing about the device: one of its branches will run.
                let clauses = conditional.elif_else_clauses.iter().map(|clause| &clause.body);
                let mut blocks = std::iter::once(&conditional.body).chain(clauses);
                self.asks_for_version(&conditional.test)
                    .then(|| blocks.find_map(|block| self.in_block(block)))
                    .flatten()
            }),
            Stmt::While(statement) => self.in_expression(&statement.test),
            Stmt::For(statement) => {
                self.in_expression(&statement.iter).or_else(|| self.in_block(&statement.body))
            }
            Stmt::With(statement) => {
                let items = statement.items.iter();
                items
                    .map(|item| &item.context_expr)
                    .find_map(|item| self.in_expression(item))
                    .or_else(|| self.in_block(&statement.body))
            }
            Stmt::Try(statement) => {
                // What a handler takes care of does no harm.
                let is_handled =
                    |ruff_python_ast::ExceptHandler::ExceptHandler(handler): &'a ruff_python_ast::ExceptHandler| {
                        catches_what_is_missing(handler.type_.as_deref())
                            && !matches!(handler.body.last(), Some(Stmt::Raise(_))) && self.in_block(&handler.body).is_none()
                    };
                let in_body = if statement.handlers.iter().any(is_handled) { None } else { self.in_block(&statement.body) };
                in_body.or_else(|| self.in_block(&statement.finalbody))
            }
            Stmt::Import(import) => {
                import.names.iter().map(|alias| alias.name.as_str()).find_map(only_for_cuda)
            }
            Stmt::ImportFrom(import) => {
                let name = import.module.as_deref();
                let module = name.filter(|_| import.level == 0).and_then(only_for_cuda);
                // `from .triton_ops import kernel`
                let module = module.or_else(|| name.filter(|name| name.split('.').any(has_word)).map(str::to_owned));
                let mut names = import.names.iter().map(|alias| alias.name.as_str());
                module.or_else(|| names.find(|name| has_word(name)).map(str::to_owned))
            }
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) | Stmt::Match(_) => None,
            simple => {
                let mut found = GuardEvidence { guards: self, reason: self.lacking_in(simple.range()), is_condition: false };
                found.visit_stmt(simple);
                found.reason
            }
        })
    }

    pub(super) fn in_expression(&self, expression: &'a Expr) -> Option<String> {
        let mut found =
            GuardEvidence { guards: self, reason: self.lacking_in(expression.range()), is_condition: false };
        found.visit_expr(expression);
        found.reason
    }

    /// The first thing for CUDA only in a function of this file or a method of this class: `dtw_cuda(x)`, `self.capability()`.
    pub(super) fn in_function(&self, callee: &'a Expr) -> Option<String> {
        let key = match callee {
            Expr::Name(name) => (None, name.id.as_str()),
            Expr::Attribute(attribute) => match &*attribute.value {
                Expr::Name(owner) if matches!(owner.id.as_str(), "self" | "cls") => {
                    (Some(*self.around.classes.last()?), attribute.attr.as_str())
                }
                _ => return None,
            },
            _ => return None,
        };
        let called = self.functions.borrow().get(&key).cloned()?;
        let body = match called {
            Called::Read(reason) => return reason,
            Called::Unread(body) => body,
        };
        if self.follows.replace(true) {
            return None;
        }
        let reason = self.in_block(body);
        self.follows.set(false);
        if let Some(called) = self.functions.borrow_mut().get_mut(&key) {
            *called = Called::Read(reason.clone());
        }
        reason
    }

    /// `hasattr(torch.nn.functional, "grouped_mm")`, `is_torch_version(">=", "2.1")`
    fn asks_for_version(&self, test: &Expr) -> bool {
        const LONGEST: usize = 200;
        let text = self.checker.text(test);
        text.len() <= LONGEST && (text.starts_with("hasattr(") || text.contains("version"))
    }

    fn lacking_in(&self, range: TextRange) -> Option<String> {
        let first = self.lacking.partition_point(|(start, _)| *start < range.start().to_usize());
        let (start, subject) = self.lacking.get(first)?;
        (*start < range.end().to_usize()).then(|| (*subject).to_owned())
    }

    /// A name in a condition that says what it is about: `HAS_TRITON and x.is_cuda`.
    pub(super) fn words_in(&self, test: &'a Expr) -> Option<String> {
        let mut found = GuardEvidence { guards: self, reason: None, is_condition: true };
        found.visit_expr(test);
        found.reason
    }
}
