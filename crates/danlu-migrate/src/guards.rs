//! Conditions that keep a program away from code for CUDA only: after the walk, before anything is written, changes that would open
//! one are taken back.
//!
//! Only what certainly runs once a condition holds counts as guarded: its block without what further conditions, handlers and
//! functions in it hold, and the rest of the expression that it stands in.

mod conditions;
mod evidence;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor};
use ruff_python_ast::{BoolOp, Expr, ExprBoolOp, Stmt, StmtIf};
use ruff_text_size::{Ranged as _, TextRange};

use self::conditions::{
    answered, catches_what_is_missing, end_of, is_negative, is_question, leaves, names_build, names_cuda,
    refuses_for_nvidia,
};
use self::evidence::{Found, flags, has_word, only_for_cuda};
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
    let functions = checker.body.iter().filter_map(|statement| match statement {
        Stmt::FunctionDef(function) => Some((function.name.as_str(), Called::Unread(&function.body))),
        _ => None,
    });
    let functions = RefCell::new(functions.collect());
    let flags = flags(checker.body);
    let mut guards = Guards {
        edits,
        lacking,
        checker,
        closed: Vec::new(),
        owner: None,
        flags,
        functions,
        follows: Cell::new(false),
    };
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
    /// Names that say whether a library for CUDA only is there.
    flags: HashSet<&'a str>,
    /// The functions at the top of the file.
    functions: RefCell<HashMap<&'a str, Called<'a>>>,
    /// Calls in a function that is called are not followed: one step says enough, and circles have no end.
    follows: Cell<bool>,
}

#[derive(Debug, Clone)]
enum Called<'a> {
    Unread(&'a [Stmt]),
    /// What in it is for CUDA only.
    Read(Option<String>),
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
                    // `self.build_for_cpu = not torch.cuda.is_available()`
                    if assign.targets.iter().any(names_build) {
                        let reason = "a build for CUDA".to_owned();
                        self.close(assign.value.range(), assign.value.range(), Some(reason));
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
                            let is_refused = is_about_cuda || refuses_for_nvidia(body, self.checker);
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
                let mut found = Found { guards: self, reason: self.lacking_in(simple.range()), is_condition: false };
                found.visit_stmt(simple);
                found.reason
            }
        })
    }

    fn in_expression(&self, expression: &'a Expr) -> Option<String> {
        let mut found =
            Found { guards: self, reason: self.lacking_in(expression.range()), is_condition: false };
        found.visit_expr(expression);
        found.reason
    }

    /// The first thing for CUDA only in a function of this file: `dtw_cuda(x)`.
    fn in_function(&self, callee: &Expr) -> Option<String> {
        let Expr::Name(name) = callee else { return None };
        let called = self.functions.borrow().get(name.id.as_str()).cloned()?;
        let body = match called {
            Called::Read(reason) => return reason,
            Called::Unread(body) => body,
        };
        if self.follows.replace(true) {
            return None;
        }
        let reason = self.in_block(body);
        self.follows.set(false);
        if let Some(called) = self.functions.borrow_mut().get_mut(name.id.as_str()) {
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
    fn words_in(&self, test: &'a Expr) -> Option<String> {
        let mut found = Found { guards: self, reason: None, is_condition: true };
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
            if !(leads_on || words.is_some()) || !self.has_edit(operand.range()) {
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
                // Lightning's word for CUDA, and that of `associative_scan` for kernels of Triton.
                let word = match &**guarded {
                    Expr::StringLiteral(text) if matches!(text.value.to_str(), "gpu" | "pointwise") => {
                        Some(text)
                    }
                    _ => None,
                };
                let word = || word.map(|text| text.value.to_str().to_owned());
                let reason = self.words_in(test).or_else(|| self.in_expression(guarded)).or_else(word);
                self.close(expression.range(), test.range(), reason.clone());
                self.close(expression.range(), guarded.range(), reason);
            }
            _ => {}
        }
        source_order::walk_expr(self, expression);
    }
}
