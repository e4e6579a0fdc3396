//! Names and attributes that hold the answer to a question for the device, wherever they are asked: `self.use_cuda` in another method,
//! `HAS_CUDA` in a function, `has_cuda()`.
//!
//! A name counts only if everything that binds it is such a question. Who else reads it is kept, because an answer that also chooses
//! the device must not be taken back.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor};
use ruff_python_ast::{Expr, ExprContext, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged as _, TextRange, TextSize};

use super::conditions::is_question;

/// Where a name is bound: nothing for the module, else where its function or class begins.
pub(super) type Place = Option<TextSize>;
pub(super) type Key<'a> = (Place, &'a str);

/// Operands of one condition that are looked at.
const MOST_OPERANDS: usize = 200;

#[derive(Debug, Default)]
struct Answer {
    /// The questions.
    bindings: Vec<TextRange>,
    is_other: bool,
    /// A function that does nothing but ask: other files call it as well.
    is_function: bool,
}

/// The functions and classes around a place, outermost first.
#[derive(Debug, Default, Clone)]
pub(super) struct Around {
    pub(super) functions: Vec<TextSize>,
    pub(super) classes: Vec<TextSize>,
    /// Whether the innermost is a class.
    pub(super) is_in_class: bool,
}

#[derive(Debug, Default)]
pub(super) struct Answers<'a> {
    names: HashMap<Key<'a>, Answer>,
    attributes: HashMap<Key<'a>, Answer>,
    /// The classes that bind an attribute.
    classes: HashMap<&'a str, Vec<Place>>,
    /// Where each is read, by whom the scopes say; `None` as the place of an attribute of something else than `self`.
    reads: HashMap<Key<'a>, HashSet<TextSize>>,
}

/// What a condition asks.
#[derive(Debug, Clone, Copy)]
pub(super) struct GuardQuestion<'a> {
    pub(super) key: Key<'a>,
    pub(super) place: TextSize,
    pub(super) is_attribute: bool,
}

impl<'a> Answers<'a> {
    /// `is_edited` tells whether something in a range was changed.
    pub(super) fn of(body: &'a [Stmt], is_edited: &dyn Fn(TextRange) -> bool) -> Self {
        let mut gather =
            Gather { answers: Answers::default(), around: Around::default(), globals: Vec::new(), is_edited };
        gather.visit_body(body);
        let mut answers = gather.answers;
        let is_plain = |answer: &Answer| !answer.is_other && !answer.bindings.is_empty();
        // Names that are bound otherwise stay, because they hide those around them.
        let bound_from_outside: HashSet<&str> =
            answers.attributes.keys().filter(|(place, _)| place.is_none()).map(|(_, name)| *name).collect();
        for ((_, name), answer) in &mut answers.attributes {
            answer.is_other |= bound_from_outside.contains(name);
        }
        answers.attributes.retain(|_, answer| !answer.bindings.is_empty());
        for (place, name) in answers.attributes.keys() {
            answers.classes.entry(name).or_default().push(*place);
        }
        if !answers.attributes.is_empty() || answers.names.values().any(is_plain) {
            let mut reads = Reads { answers: &answers, around: Around::default(), found: HashMap::new() };
            reads.visit_body(body);
            answers.reads = reads.found;
        }
        answers
    }

    /// The answers that a condition asks for.
    pub(super) fn asked_in(&self, test: &'a Expr, around: &Around) -> Vec<GuardQuestion<'a>> {
        let (mut asked, mut left, mut looked_at) = (Vec::new(), vec![test], 0);
        while let Some(expression) = left.pop() {
            looked_at += 1;
            if looked_at > MOST_OPERANDS {
                break;
            }
            match expression {
                Expr::UnaryOp(operation) => left.push(&operation.operand),
                Expr::BoolOp(operation) => left.extend(operation.values.iter().rev()),
                Expr::Call(call) if call.arguments.is_empty() => {
                    asked.extend(self.answer(&call.func, around, true));
                }
                other => asked.extend(self.answer(other, around, false)),
            }
        }
        asked
    }

    fn answer(&self, expression: &'a Expr, around: &Around, is_called: bool) -> Option<GuardQuestion<'a>> {
        let asked = self.read(expression, around)?;
        let table = if asked.is_attribute { &self.attributes } else { &self.names };
        let answer = table.get(&asked.key)?;
        // An attribute, and a name of the module, may be given something else and still lead where it leads now.
        let is_asked =
            !answer.bindings.is_empty() && (!answer.is_other || asked.key.0.is_none() || asked.is_attribute);
        // A property is read without a call.
        (is_asked && (answer.is_function == is_called || asked.is_attribute)).then_some(asked)
    }

    fn read(&self, expression: &'a Expr, around: &Around) -> Option<GuardQuestion<'a>> {
        match expression {
            Expr::Name(name) if name.ctx == ExprContext::Load => {
                let name_text = name.id.as_str();
                let functions = around.functions.iter().rev().map(|function| Some(*function));
                let mut places = functions.chain(std::iter::once(None));
                let place = places.find(|place| self.names.contains_key(&(*place, name_text)))?;
                Some(GuardQuestion {
                    key: (place, name_text),
                    place: name.range.start(),
                    is_attribute: false,
                })
            }
            Expr::Attribute(attribute) if attribute.ctx == ExprContext::Load => {
                let name = attribute.attr.as_str();
                let place = attribute.range.start();
                if !is_self(&attribute.value) {
                    return None;
                }
                let class = around.classes.last().map(|class| (Some(*class), name))?;
                if self.attributes.contains_key(&class) {
                    return Some(GuardQuestion { key: class, place, is_attribute: true });
                }
                // One that another class of the file binds, and only one, is inherited from it.
                let [other] = self.classes.get(name)?.as_slice() else { return None };
                Some(GuardQuestion { key: (*other, name), place, is_attribute: true })
            }
            _ => None,
        }
    }

    /// The questions whose answer it is.
    pub(super) fn questions(&self, asked: GuardQuestion<'a>) -> &[TextRange] {
        let table = if asked.is_attribute { &self.attributes } else { &self.names };
        table.get(&asked.key).map_or(&[], |answer| answer.bindings.as_slice())
    }

    /// The questions whose answer it is, if nobody needs it but those that were `handled`.
    pub(super) fn only_for(
        &self,
        asked: GuardQuestion<'a>,
        handled: &HashSet<TextSize>,
    ) -> Option<&[TextRange]> {
        let table = if asked.is_attribute { &self.attributes } else { &self.names };
        let answer = table.get(&asked.key).filter(|answer| !answer.is_function && !answer.is_other)?;
        let is_handled = |key: &Key<'a>| {
            self.reads.get(key).is_none_or(|reads| reads.iter().all(|read| handled.contains(read)))
        };
        // `trainer.use_cuda` may be the one of any class.
        let is_elsewhere = asked.is_attribute && self.reads.contains_key(&(None, asked.key.1));
        (is_handled(&asked.key) && !is_elsewhere).then_some(answer.bindings.as_slice())
    }

    /// Whether blocks need not follow the name themselves.
    pub(super) fn knows(&self, name: &'a str, around: &Around) -> bool {
        let place = around.functions.last().copied();
        self.names.get(&(place, name)).is_some_and(|answer| !answer.is_other && !answer.bindings.is_empty())
    }
}

fn is_self(owner: &Expr) -> bool {
    matches!(owner, Expr::Name(name) if matches!(name.id.as_str(), "self" | "cls"))
}

struct Gather<'a, 'e> {
    answers: Answers<'a>,
    around: Around,
    globals: Vec<HashSet<&'a str>>,
    is_edited: &'e dyn Fn(TextRange) -> bool,
}

impl<'a> Gather<'a, '_> {
    fn name(&mut self, name: &'a str) -> &mut Answer {
        if self.around.is_in_class {
            let class = self.around.classes.last().copied();
            return self.answers.attributes.entry((class, name)).or_default();
        }
        let is_global = self.globals.last().is_some_and(|names| names.contains(name));
        let place = self.around.functions.last().copied().filter(|_| !is_global);
        self.answers.names.entry((place, name)).or_default()
    }

    /// What a target of an assignment binds, if it is one name or attribute.
    fn target(&mut self, target: &'a Expr) -> Option<&mut Answer> {
        match target {
            Expr::Name(name) => Some(self.name(name.id.as_str())),
            Expr::Attribute(attribute) if is_self(&attribute.value) => {
                let class = *self.around.classes.last()?;
                Some(self.answers.attributes.entry((Some(class), attribute.attr.as_str())).or_default())
            }
            _ => None,
        }
    }

    fn bind(&mut self, target: &'a Expr, value: &'a Expr) {
        let is_asked = (self.is_edited)(value.range()) && is_question(value);
        match self.target(target).filter(|_| is_asked) {
            Some(answer) => answer.bindings.push(value.range()),
            None => self.visit_expr(target),
        }
    }

    fn function(&mut self, function: &'a StmtFunctionDef) {
        let body = match function.body.as_slice() {
            [Stmt::Expr(text), rest @ ..] if text.value.is_string_literal_expr() => rest,
            body => body,
        };
        let asks = match body {
            [Stmt::Return(statement)] => statement.value.as_deref().filter(|value| {
                (self.is_edited)(value.range())
                    && matches!(value, Expr::Call(_) | Expr::Compare(_) | Expr::BoolOp(_) | Expr::UnaryOp(_))
            }),
            _ => None,
        };
        let answer = self.name(function.name.as_str());
        match asks {
            Some(question) => {
                answer.bindings.push(question.range());
                answer.is_function = true;
            }
            None => answer.is_other = true,
        }
    }
}

impl<'a> SourceOrderVisitor<'a> for Gather<'a, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(assign) => {
                assign.targets.iter().for_each(|target| self.bind(target, &assign.value));
                self.visit_expr(&assign.value);
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.bind(&assign.target, value);
                    self.visit_expr(value);
                }
            }
            Stmt::Global(global) => {
                let names = global.names.iter().map(ruff_python_ast::Identifier::as_str);
                if let Some(globals) = self.globals.last_mut() {
                    globals.extend(names);
                }
            }
            Stmt::Nonlocal(nonlocal) => {
                let functions: Vec<Place> = self.around.functions.iter().map(|place| Some(*place)).collect();
                for (name, place) in
                    nonlocal.names.iter().flat_map(|name| functions.iter().map(move |place| (name, place)))
                {
                    if let Some(answer) = self.answers.names.get_mut(&(*place, name.as_str())) {
                        answer.is_other = true;
                    }
                }
            }
            Stmt::Import(import) => {
                for alias in &import.names {
                    let first = alias.name.split('.').next().unwrap_or_default();
                    let bound = alias.asname.as_ref().map_or(first, |name| name.as_str());
                    self.name(bound).is_other = true;
                }
            }
            Stmt::ImportFrom(import) => {
                for alias in &import.names {
                    self.name(alias.asname.as_ref().unwrap_or(&alias.name).as_str()).is_other = true;
                }
            }
            Stmt::FunctionDef(function) => {
                self.function(function);
                let before = std::mem::take(&mut self.around.is_in_class);
                self.around.functions.push(function.range.start());
                self.globals.push(HashSet::new());
                for parameter in &function.parameters {
                    self.name(parameter.name().as_str()).is_other = true;
                }
                self.visit_body(&function.body);
                self.globals.pop();
                self.around.functions.pop();
                self.around.is_in_class = before;
            }
            Stmt::ClassDef(class) => {
                self.name(class.name.as_str()).is_other = true;
                let before = std::mem::replace(&mut self.around.is_in_class, true);
                self.around.classes.push(class.range.start());
                self.visit_body(&class.body);
                self.around.classes.pop();
                self.around.is_in_class = before;
            }
            _ => source_order::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if name.ctx != ExprContext::Load => self.name(name.id.as_str()).is_other = true,
            Expr::Attribute(attribute) if attribute.ctx != ExprContext::Load => {
                if let Some(answer) = self.target(expression) {
                    answer.is_other = true;
                } else {
                    // `trainer.use_cuda = False`
                    let name = attribute.attr.as_str();
                    self.answers.attributes.entry((None, name)).or_default().is_other = true;
                }
                source_order::walk_expr(self, expression);
            }
            _ => source_order::walk_expr(self, expression),
        }
    }
}

struct Reads<'g, 'a> {
    answers: &'g Answers<'a>,
    around: Around,
    found: HashMap<Key<'a>, HashSet<TextSize>>,
}

impl<'a> SourceOrderVisitor<'a> for Reads<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                self.around.functions.push(function.range.start());
                source_order::walk_stmt(self, statement);
                self.around.functions.pop();
            }
            Stmt::ClassDef(class) => {
                self.around.classes.push(class.range.start());
                source_order::walk_stmt(self, statement);
                self.around.classes.pop();
            }
            _ => source_order::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Some(asked) = self.answers.read(expression, &self.around) {
            self.found.entry(asked.key).or_default().insert(asked.place);
        } else if let Expr::Attribute(attribute) = expression
            && attribute.ctx == ExprContext::Load
            && !is_self(&attribute.value)
        {
            let name = attribute.attr.as_str();
            if self.answers.classes.contains_key(name) {
                self.found.entry((None, name)).or_default().insert(attribute.range.start());
            }
        }
        source_order::walk_expr(self, expression);
    }
}
