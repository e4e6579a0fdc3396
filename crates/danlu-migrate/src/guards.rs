//! Conditions that keep a program away from code for CUDA only: after the walk, before anything is written, changes that would open
//! one are taken back.
//!
//! Only what certainly runs once a condition holds counts as guarded: its block without what further conditions, handlers and
//! functions in it hold, and the rest of the expression that it stands in.

mod answers;
mod blocks;
mod conditions;
mod evidence;
mod expressions;
mod handed;
mod uses;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor};
use ruff_python_ast::{Expr, Stmt, StmtIf, StmtMatch, StmtWhile};
use ruff_text_size::{Ranged as _, TextRange, TextSize};

use self::answers::{Answers, Around};
use self::conditions::{
    answered, end_of, is_negative, is_question, leaves, names_build, names_cuda, nvidia_word,
    refuses_for_nvidia,
};
use self::evidence::{flags, has_word};
use self::uses::Use;
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::rules::cuda_guard;

/// Takes back what would open a guard, and says so.
pub(crate) fn close(checker: &mut Checker<'_>) {
    leave_what_is_handed_on(checker);
    if checker.edits.is_empty() {
        checker.needs_torch_npu = false;
        return;
    }
    let mut edits: Vec<usize> = checker.edits.iter().map(|edit| checker.offset(edit.start)).collect();
    edits.sort_unstable();
    // What is held back counts as a question, so that a second run, for which much more knows NPUs, closes what the first did.
    let mut questions: Vec<usize> = checker.held_back.iter().map(TextSize::to_usize).collect();
    questions.extend(&edits);
    questions.sort_unstable();
    let lacking = checker.findings.iter().filter(|finding| {
        finding.kind == FindingKind::Unsupported && finding.subject.starts_with("torch.cuda.")
    });
    let lacking = lacking.map(|finding| (checker.offset(finding.start), finding.subject.as_str()));
    let unreported = checker.unreported.iter().map(|(place, path)| (place.to_usize(), path.as_str()));
    let mut lacking: Vec<(usize, &str)> = lacking.chain(unreported).collect();
    lacking.sort_unstable();
    let functions = checker.body.iter().filter_map(|statement| match statement {
        Stmt::FunctionDef(function) => Some(((None, function.name.as_str()), Called::Unread(&function.body))),
        _ => None,
    });
    let functions = RefCell::new(functions.collect());
    let flags = flags(checker.body);
    let answers = Answers::of(checker.body, &|range| has_place(&questions, range));
    let mut guards = Guards {
        edits,
        lacking,
        checker,
        closed: Vec::new(),
        owner: None,
        flags,
        functions,
        follows: Cell::new(false),
        read: RefCell::new(HashMap::new()),
        answers,
        around: Around::default(),
        asked: Vec::new(),
    };
    guards.block(checker.body, false);
    let reached = guards.settle();
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
        checker.report(&cuda_guard::RULE, FindingKind::NeedsPerson, test, first_line, message);
    }
    for (test, name, reason) in reached {
        let message = format!(
            "leads to `{reason}`, which is for CUDA only and was left, and `{name}` now asks for NPUs, as other code needs it to; rewrite that for NPUs, or give it a condition of its own"
        );
        checker.report(&cuda_guard::RULE, FindingKind::NeedsPerson, test, name, message);
    }
    checker.needs_torch_npu &= !checker.edits.is_empty();
}

/// Devices that go to libraries which know CUDA and the CPU only stay.
fn leave_what_is_handed_on(checker: &mut Checker<'_>) {
    if checker.edits.is_empty() {
        return;
    }
    let mut places: Vec<usize> = checker.edits.iter().map(|edit| checker.offset(edit.start)).collect();
    places.sort_unstable();
    let mut handed = handed::find(checker.body, checker.facts);
    handed.retain(|one| has_place(&places, one.left));
    checker.withdraw(handed.iter().map(|one| one.left).collect());
    handed.dedup_by_key(|one| one.left);
    for one in handed {
        let text = checker.text(one.left).lines().next().unwrap_or_default().to_owned();
        let message = format!(
            "goes to `{}` of another library, which may know CUDA and the CPU only, and was left; write it for NPUs if that knows them",
            checker.text(one.callee)
        );
        checker.report(&cuda_guard::RULE, FindingKind::NeedsPerson, one.left, text, message);
    }
}

/// Whether one of the places, which are in order, is in a range.
fn has_place(places: &[usize], range: TextRange) -> bool {
    let first = places.partition_point(|place| *place < range.start().to_usize());
    places.get(first).is_some_and(|place| *place < range.end().to_usize())
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
    /// The functions at the top of the file, and the methods of the classes that were seen by where those begin.
    functions: RefCell<HashMap<(Option<TextSize>, &'a str), Called<'a>>>,
    /// Calls in a function that is called are not followed: one step says enough, and circles have no end.
    follows: Cell<bool>,
    /// What expressions with others of their kind in them were found to hold, so that no nesting is read once per level.
    read: RefCell<HashMap<(TextRange, bool, bool), Option<String>>>,
    answers: Answers<'a>,
    around: Around,
    /// Conditions that ask a name for the answer, and what they guard.
    asked: Vec<Use<'a>>,
}

#[derive(Debug, Clone)]
enum Called<'a> {
    Unread(&'a [Stmt]),
    /// What in it is for CUDA only.
    Read(Option<String>),
}

impl<'a> Guards<'_, 'a> {
    fn has_edit(&self, range: TextRange) -> bool {
        has_place(&self.edits, range)
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
                        if self.has_edit(assign.value.range())
                            && is_question(&assign.value)
                            && !self.answers.knows(name.id.as_str(), &self.around)
                        {
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
                    if self.is_asked(&assert.test) {
                        let says =
                            || assert.msg.as_ref().and_then(|text| nvidia_word(self.checker.text(&**text)));
                        let reason =
                            self.words_in(&assert.test).or_else(says).or_else(|| self.in_block(rest));
                        self.close(test, test, reason.clone());
                        self.note_asked(&assert.test, range_of(rest), reason);
                    }
                    self.visit_expr(&assert.test);
                }
                Stmt::FunctionDef(function) => {
                    let name = function.name.as_str();
                    let is_about_cuda = names_cuda(name) || has_word(name);
                    let outer = self.owner.clone();
                    self.owner = has_word(name).then(|| name.to_owned()).or(outer.clone());
                    self.around.functions.push(function.range.start());
                    self.block(&function.body, is_about_cuda);
                    self.around.functions.pop();
                    self.owner = outer;
                }
                Stmt::ClassDef(class) => {
                    let start = class.range.start();
                    let methods = class.body.iter().filter_map(|statement| match statement {
                        Stmt::FunctionDef(method) => {
                            Some(((Some(start), method.name.as_str()), Called::Unread(&method.body)))
                        }
                        _ => None,
                    });
                    self.functions.borrow_mut().extend(methods);
                    self.around.classes.push(start);
                    self.block(&class.body, false);
                    self.around.classes.pop();
                }
                Stmt::For(statement) => {
                    self.visit_expr(&statement.iter);
                    self.block(&statement.body, is_about_cuda);
                    self.block(&statement.orelse, is_about_cuda);
                }
                Stmt::While(statement) => {
                    self.loop_condition(statement, rest);
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
                    self.choice(statement);
                    self.visit_expr(&statement.subject);
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
                let named = answered(test, answers);
                if own.is_some() || named.is_some() || self.is_asked(test) {
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
                    let guarded = match otherwise {
                        _ if !is_negative(test) => TextRange::new(test.start(), end_of(body, test)),
                        Some(clause) => clause.range,
                        None if leaves(body) => range_of(rest),
                        None => range_of(body),
                    };
                    self.note_asked(test, guarded, reason.clone());
                    for asked in own.into_iter().chain(named) {
                        self.close(asked, asked, reason.clone());
                        if let Some(clause) = otherwise.filter(|_| is_closed && is_negative(test)) {
                            self.close(test.range(), clause.range, reason.clone());
                        }
                        if is_closed && !is_negative(test) {
                            self.close(test.range(), guarded, reason.clone());
                        }
                    }
                }
            }
            self.block(body, is_about_cuda);
        }
    }

    /// `while torch.cuda.is_available():`; behind one that waits for a device stands what needs it.
    fn loop_condition(&mut self, statement: &'a StmtWhile, rest: &'a [Stmt]) {
        let test = &*statement.test;
        if !self.is_asked(test) {
            return;
        }
        let guarded = if is_negative(test) { rest } else { &statement.body };
        let reason = self.words_in(test).or_else(|| self.in_block(guarded));
        self.close(test.range(), test.range(), reason.clone());
        if !is_negative(test) {
            self.close(test.range(), range_of(guarded), reason.clone());
        }
        self.note_asked(test, range_of(guarded), reason);
    }

    /// `match torch.cuda.is_available():`, `case "cuda":`, `case _ if torch.cuda.is_available():`
    fn choice(&mut self, statement: &'a StmtMatch) {
        let subject = &*statement.subject;
        let mut of_subject = None;
        for case in &statement.cases {
            let in_case = self.in_block(&case.body);
            let body = range_of(&case.body);
            let refuses = matches!(&case.pattern, ruff_python_ast::Pattern::MatchSingleton(pattern)
                if pattern.value != ruff_python_ast::Singleton::True);
            if !refuses {
                of_subject = of_subject.or_else(|| in_case.clone().map(|reason| (reason, body)));
            }
            if self.has_edit(case.pattern.range()) {
                self.close(case.pattern.range(), case.pattern.range(), in_case.clone());
                self.close(case.pattern.range(), body, in_case.clone());
            }
            if let Some(test) = &case.guard
                && self.is_asked(test)
            {
                let reason = self.words_in(test).or_else(|| in_case.clone().filter(|_| !is_negative(test)));
                self.close(test.range(), test.range(), reason.clone());
                self.note_asked(test, body, reason);
            }
        }
        if self.is_asked(subject) {
            let (reason, body) = of_subject.unzip();
            self.close(subject.range(), subject.range(), reason.clone());
            if let Some(body) = body {
                self.close(subject.range(), body, reason.clone());
            }
            self.note_asked(subject, body.unwrap_or(statement.range), reason);
        }
    }
}

fn range_of(body: &[Stmt]) -> TextRange {
    match (body.first(), body.last()) {
        (Some(first), Some(last)) => first.range().cover(last.range()),
        _ => TextRange::default(),
    }
}
