//! Conditions that keep a program away from code for CUDA only: after the walk, before anything is written, changes that would open
//! one are taken back.
//!
//! Only what certainly runs once a condition holds counts as guarded: its block without what further conditions, handlers and
//! functions in it hold, and the rest of the expression that it stands in.

mod evidence;

use std::collections::HashMap;

use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor};
use ruff_python_ast::{BoolOp, CmpOp, Expr, ExprBoolOp, Stmt, StmtIf, UnaryOp};
use ruff_text_size::{Ranged as _, TextRange};

use self::evidence::{Found, has_word, only_for_cuda};
use crate::checker::Checker;
use crate::finding::Kind;
use crate::rules::cuda_guard;

/// Statements that are looked at behind one condition: a block may hold thousands of both.
const MOST_STATEMENTS: usize = 200;

/// Takes back what would open a guard, and says so.
pub(crate) fn close(checker: &mut Checker<'_>) {
    if checker.edits.is_empty() {
        return;
    }
    let mut edits: Vec<usize> = checker.edits.iter().map(|edit| checker.offset(edit.start)).collect();
    edits.sort_unstable();
    let lacking = checker
        .findings
        .iter()
        .filter(|finding| finding.kind == Kind::Unsupported && finding.subject.starts_with("torch.cuda."));
    let mut lacking: Vec<(usize, &str)> =
        lacking.map(|finding| (checker.offset(finding.start), finding.subject.as_str())).collect();
    lacking.sort_unstable();
    let mut guards = Guards { edits, lacking, checker, closed: Vec::new(), owner: None };
    guards.block(checker.body, false);
    let mut closed = guards.closed;
    closed.sort_by_key(|(test, ..)| (test.start(), test.end()));
    let ranges: Vec<TextRange> = closed.iter().map(|(_, range, _)| *range).collect();
    checker.withdraw(ranges);
    closed.dedup_by_key(|(test, ..)| *test);
    for (test, _, reason) in closed {
        let first_line = checker.text(test).lines().next().unwrap_or_default().trim().to_owned();
        let message = format!(
            "keeps the program away from `{reason}`, which is for CUDA only and was left; rewrite that for NPUs, then this condition"
        );
        checker.report(&cuda_guard::RULE, Kind::NeedsPerson, test, first_line, message);
    }
    checker.needs_torch_npu &= !checker.edits.is_empty();
}

struct Guards<'c, 'a> {
    checker: &'c Checker<'a>,
    /// Where changes begin, in order.
    edits: Vec<usize>,
    /// What `torch_npu` lacks and where, in order.
    lacking: Vec<(usize, &'c str)>,
    /// The condition, what is left as it is for it, and what it guards.
    closed: Vec<(TextRange, TextRange, String)>,
    /// The function around, if its name says that it is for CUDA only: `convert_to_cupy`.
    owner: Option<String>,
}

impl<'a> Guards<'_, 'a> {
    fn has_edit(&self, range: TextRange) -> bool {
        let first = self.edits.partition_point(|start| *start < range.start().to_usize());
        self.edits.get(first).is_some_and(|start| *start < range.end().to_usize())
    }

    fn close(&mut self, test: TextRange, range: TextRange, reason: Option<String>) {
        if let Some(reason) = reason.filter(|_| self.has_edit(range)) {
            self.closed.push((test, range, reason));
        }
    }

    fn block(&mut self, body: &'a [Stmt], is_about_cuda: bool) {
        // Names of this block that hold an answer: `available = torch.cuda.is_available()`.
        let mut answers: HashMap<&'a str, TextRange> = HashMap::new();
        for (index, statement) in body.iter().enumerate() {
            let rest = &body[index + 1..];
            match statement {
                Stmt::Assign(assign) => {
                    if let [Expr::Name(name)] = assign.targets.as_slice() {
                        answers.remove(name.id.as_str());
                        if self.has_edit(assign.value.range()) && is_question(&assign.value) {
                            answers.insert(name.id.as_str(), assign.value.range());
                        }
                    }
                    self.visit_expr(&assign.value);
                }
                Stmt::If(conditional) => self.condition(conditional, rest, &answers, is_about_cuda),
                Stmt::Assert(assert) => {
                    let test = assert.test.range();
                    if self.has_edit(test) {
                        let reason = self.words_in(&assert.test).or_else(|| self.in_block(rest));
                        self.close(test, test, reason);
                    }
                    self.visit_expr(&assert.test);
                }
                Stmt::FunctionDef(function) => {
                    let name = function.name.as_str();
                    let is_about_cuda = names_cuda(name) || has_word(name);
                    let outer = self.owner.clone();
                    self.owner = has_word(name).then(|| name.to_owned()).or(outer.clone());
                    self.block(&function.body, is_about_cuda);
                    self.owner = outer;
                }
                Stmt::ClassDef(class) => self.block(&class.body, false),
                Stmt::For(statement) => {
                    self.visit_expr(&statement.iter);
                    self.block(&statement.body, is_about_cuda);
                    self.block(&statement.orelse, is_about_cuda);
                }
                Stmt::While(statement) => {
                    self.visit_expr(&statement.test);
                    self.block(&statement.body, is_about_cuda);
                    self.block(&statement.orelse, is_about_cuda);
                }
                Stmt::With(statement) => self.block(&statement.body, is_about_cuda),
                Stmt::Try(statement) => {
                    self.block(&statement.body, is_about_cuda);
                    for ruff_python_ast::ExceptHandler::ExceptHandler(handler) in &statement.handlers {
                        self.block(&handler.body, is_about_cuda);
                    }
                    self.block(&statement.orelse, is_about_cuda);
                    self.block(&statement.finalbody, is_about_cuda);
                }
                Stmt::Match(statement) => {
                    statement.cases.iter().for_each(|case| self.block(&case.body, is_about_cuda));
                }
                _ => source_order::walk_stmt(self, statement),
            }
        }
    }

    fn condition(
        &mut self,
        conditional: &'a StmtIf,
        rest: &'a [Stmt],
        answers: &HashMap<&'a str, TextRange>,
        is_about_cuda: bool,
    ) {
        let clauses = conditional.elif_else_clauses.iter();
        let clauses = std::iter::once((Some(&*conditional.test), &conditional.body))
            .chain(clauses.map(|clause| (clause.test.as_ref(), &clause.body)));
        let otherwise = conditional.elif_else_clauses.iter().find(|clause| clause.test.is_none());
        for (test, body) in clauses {
            if let Some(test) = test {
                self.visit_expr(test);
                let own = self.has_edit(test.range()).then(|| test.range());
                // One that asks a name for the answer is closed where the name gets it.
                for asked in own.into_iter().chain(answered(test, answers)) {
                    let reason = self.words_in(test).or_else(|| self.owner.clone()).or_else(|| {
                        if !is_negative(test) {
                            return self.in_block(body);
                        }
                        let refused = leaves(body).then(|| {
                            let is_refused = is_about_cuda || raises_for_nvidia(body, self.checker);
                            let says = || is_refused.then(|| "a device of NVIDIA's".to_owned());
                            self.in_block(rest).or_else(says)
                        });
                        let in_else = || otherwise.and_then(|clause| self.in_block(&clause.body));
                        refused.flatten().or_else(in_else)
                    });
                    let is_closed = reason.is_some();
                    self.close(asked, asked, reason.clone());
                    if let Some(clause) = otherwise.filter(|_| is_closed && is_negative(test)) {
                        self.close(test.range(), clause.range, reason.clone());
                    }
                    if is_closed && !is_negative(test) {
                        self.close(test.range(), TextRange::new(test.start(), end_of(body, test)), reason);
                    }
                }
            }
            self.block(body, is_about_cuda);
        }
    }

    /// The first thing for CUDA only that runs whenever the block does.
    fn in_block(&self, body: &'a [Stmt]) -> Option<String> {
        body.iter().take(MOST_STATEMENTS).find_map(|statement| match statement {
            Stmt::If(conditional) => self.in_expression(&conditional.test),
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
                        !matches!(handler.body.last(), Some(Stmt::Raise(_))) && self.in_block(&handler.body).is_none()
                    };
                let in_body = if statement.handlers.iter().any(is_handled) { None } else { self.in_block(&statement.body) };
                in_body.or_else(|| self.in_block(&statement.finalbody))
            }
            Stmt::Import(import) => {
                import.names.iter().map(|alias| alias.name.as_str()).find_map(only_for_cuda)
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_deref().filter(|_| import.level == 0).and_then(only_for_cuda);
                let mut names = import.names.iter().map(|alias| alias.name.as_str());
                module.or_else(|| names.find(|name| has_word(name)).map(str::to_owned))
            }
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) | Stmt::Match(_) => None,
            simple => {
                let mut found = Found { guards: self, reason: self.lacking_in(simple.range()) };
                found.visit_stmt(simple);
                found.reason
            }
        })
    }

    fn in_expression(&self, expression: &'a Expr) -> Option<String> {
        let mut found = Found { guards: self, reason: self.lacking_in(expression.range()) };
        found.visit_expr(expression);
        found.reason
    }

    fn lacking_in(&self, range: TextRange) -> Option<String> {
        let first = self.lacking.partition_point(|(start, _)| *start < range.start().to_usize());
        let (start, subject) = self.lacking.get(first)?;
        (*start < range.end().to_usize()).then(|| (*subject).to_owned())
    }

    /// A name in a condition that says what it is about: `HAS_TRITON and x.is_cuda`.
    fn words_in(&self, test: &'a Expr) -> Option<String> {
        let mut found = Found { guards: self, reason: None };
        found.visit_expr(test);
        found.reason
    }

    fn operands(&mut self, operation: &'a ExprBoolOp) {
        let words = self.words_in_operands(operation);
        for (index, operand) in operation.values.iter().enumerate() {
            let leads_on = match operation.op {
                BoolOp::And => !is_negative(operand),
                BoolOp::Or => is_negative(operand),
            };
            if !leads_on || !self.has_edit(operand.range()) {
                continue;
            }
            let rest = &operation.values[index + 1..];
            let reason =
                words.clone().or_else(|| rest.iter().find_map(|operand| self.in_expression(operand)));
            self.close(operation.range, operand.range(), reason);
        }
    }

    fn words_in_operands(&self, operation: &'a ExprBoolOp) -> Option<String> {
        operation.values.iter().find_map(|operand| self.words_in(operand))
    }
}

impl<'a> SourceOrderVisitor<'a> for Guards<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.block(std::slice::from_ref(statement), false);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::BoolOp(operation) => self.operands(operation),
            Expr::If(conditional) if self.has_edit(conditional.test.range()) => {
                let test = &conditional.test;
                let guarded = if is_negative(test) { &conditional.orelse } else { &conditional.body };
                // Lightning's word for CUDA.
                let is_gpu = matches!(&**guarded, Expr::StringLiteral(text) if text.value.to_str() == "gpu");
                let gpu = || is_gpu.then(|| "gpu".to_owned());
                let reason = self.words_in(test).or_else(|| self.in_expression(guarded)).or_else(gpu);
                self.close(expression.range(), test.range(), reason.clone());
                self.close(expression.range(), guarded.range(), reason);
            }
            _ => {}
        }
        source_order::walk_expr(self, expression);
    }
}

fn names_cuda(name: &str) -> bool {
    name.split('_').any(|part| part.eq_ignore_ascii_case("cuda"))
}

/// Whether an expression answers yes or no, rather than with a device.
fn is_question(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::Call(_) | Expr::Compare(_) | Expr::BoolOp(_) | Expr::UnaryOp(_) | Expr::Attribute(_)
    )
}

/// Where the names that a condition asks got their answers.
fn answered(test: &Expr, answers: &HashMap<&str, TextRange>) -> Option<TextRange> {
    match test {
        Expr::Name(name) => answers.get(name.id.as_str()).copied(),
        Expr::UnaryOp(operation) => answered(&operation.operand, answers),
        Expr::BoolOp(operation) => operation.values.iter().find_map(|operand| answered(operand, answers)),
        _ => None,
    }
}

/// Whether a condition holds where there is no such device.
fn is_negative(test: &Expr) -> bool {
    match test {
        Expr::UnaryOp(operation) => operation.op == UnaryOp::Not && !is_negative(&operation.operand),
        Expr::Compare(comparison) => {
            comparison.ops.iter().any(|operator| matches!(operator, CmpOp::NotEq | CmpOp::NotIn | CmpOp::IsNot))
                // `torch.cuda.device_count() == 0`
                || matches!((&comparison.ops[..], &comparison.comparators[..]), ([CmpOp::Eq], [Expr::NumberLiteral(_)]))
        }
        Expr::BoolOp(operation) => operation.values.iter().all(is_negative),
        _ => false,
    }
}

fn leaves(body: &[Stmt]) -> bool {
    matches!(body.last(), Some(Stmt::Return(_) | Stmt::Raise(_) | Stmt::Continue(_) | Stmt::Break(_)))
}

/// `raise ValueError("xformers' attention needs CUDA")`
fn raises_for_nvidia(body: &[Stmt], checker: &Checker<'_>) -> bool {
    let Some(Stmt::Raise(raise)) = body.last() else { return false };
    let words = checker.text(raise).split(|c: char| !c.is_ascii_alphanumeric());
    words.into_iter().any(|word| word == "NVIDIA" || has_word(word))
}

fn end_of(body: &[Stmt], test: &Expr) -> ruff_text_size::TextSize {
    body.last().map_or(test.end(), ruff_text_size::Ranged::end)
}
