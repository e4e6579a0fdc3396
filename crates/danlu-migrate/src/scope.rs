//! Who a name is: scopes of one file, filled when they are entered, and paths through imports and aliases.
//!
//! A name stands for a path (`t.cuda.amp` for `torch.cuda.amp`) only if every binding of its scope agrees on it;
//! `torch = None` after a failed import disagrees with nobody.

use std::collections::HashMap;

use ruff_python_ast::{ExceptHandler, Expr, ExprCall, Identifier, ParameterWithDefault, Parameters, Stmt};

use crate::facts::{MOST_STARS, ProjectFacts};

#[derive(Debug, Clone)]
pub(crate) enum Binding<'a> {
    /// An import, by its full path.
    Path(String),
    Value(&'a Expr),
    Parameter(&'a ParameterWithDefault),
    /// `x = None`
    Nothing,
    /// Bound in a way that says nothing: a loop, a function, a class.
    Opaque,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScopeKind {
    Module,
    Class,
    Function,
}

#[derive(Debug)]
struct Scope<'a> {
    kind: ScopeKind,
    names: HashMap<&'a str, Vec<Binding<'a>>>,
}

#[derive(Debug)]
pub(crate) struct Scopes<'a> {
    stack: Vec<Scope<'a>>,
    facts: &'a ProjectFacts,
    /// `pkg.sub` for `pkg/sub/module.py`, to which relative imports are relative.
    package: String,
    /// A star import may bind anything.
    pub(crate) has_star_import: bool,
    /// The modules of which everything is imported.
    stars: Vec<String>,
}

/// A dotted path, and which part of the expression spells which part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DottedPath {
    pub(crate) full: String,
    /// Part `i` of the expression (0 is its first name) spells part `i + shift` of the path. Below zero where parts of the
    /// expression lead to a re-export and are not in the path at all.
    pub(crate) shift: isize,
}

impl DottedPath {
    pub(crate) fn part(&self, index: usize) -> Option<&str> {
        self.full.split('.').nth(index)
    }

    /// Whether the path is `prefix` or something in it.
    pub(crate) fn is_in(&self, prefix: &str) -> bool {
        is_in(&self.full, prefix)
    }
}

pub(crate) fn is_in(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What one lookup may cost: names can be bound in circles, and each of them many times.
#[derive(Debug)]
struct Steps {
    deep: usize,
    bindings: usize,
}

impl Default for Steps {
    fn default() -> Self {
        Steps { deep: 6, bindings: 200 }
    }
}

impl Steps {
    fn deeper(&mut self, look: impl FnOnce(&mut Self) -> Option<DottedPath>) -> Option<DottedPath> {
        self.deep = self.deep.checked_sub(1)?;
        let found = look(self);
        self.deep += 1;
        found
    }

    fn count(&mut self) -> Option<()> {
        self.bindings = self.bindings.checked_sub(1)?;
        Some(())
    }
}

impl<'a> Scopes<'a> {
    pub(crate) fn new(facts: &'a ProjectFacts, package: &str) -> Self {
        Scopes {
            stack: Vec::new(),
            facts,
            package: package.to_owned(),
            has_star_import: false,
            stars: Vec::new(),
        }
    }

    pub(crate) fn enter(&mut self, kind: ScopeKind, parameters: Option<&'a Parameters>, body: &'a [Stmt]) {
        self.stack.push(Scope { kind, names: HashMap::new() });
        if let Some(parameters) = parameters {
            for parameter in parameters.iter_non_variadic_params() {
                self.bind(parameter.parameter.name.as_str(), Binding::Parameter(parameter));
            }
            for variadic in [&parameters.vararg, &parameters.kwarg].into_iter().flatten() {
                self.bind(variadic.name.as_str(), Binding::Opaque);
            }
        }
        self.bind_body(body);
    }

    pub(crate) fn leave(&mut self) {
        self.stack.pop();
    }

    pub(crate) fn bind_target(&mut self, target: &'a Expr) {
        match target {
            Expr::Name(name) => self.bind(name.id.as_str(), Binding::Opaque),
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|target| self.bind_target(target)),
            Expr::List(list) => list.elts.iter().for_each(|target| self.bind_target(target)),
            Expr::Starred(starred) => self.bind_target(&starred.value),
            _ => {}
        }
    }

    pub(crate) fn package(&self) -> &str {
        &self.package
    }

    pub(crate) fn kind(&self) -> ScopeKind {
        self.stack.last().map_or(ScopeKind::Module, |scope| scope.kind)
    }

    pub(crate) fn is_inside_function(&self) -> bool {
        self.stack.iter().any(|scope| scope.kind == ScopeKind::Function)
    }

    /// The bindings of the innermost scope that has some. Scopes of classes are seen only from within themselves.
    pub(crate) fn bindings(&self, name: &str) -> Option<&[Binding<'a>]> {
        let innermost = self.stack.len().checked_sub(1)?;
        let seen =
            |(depth, scope): &(usize, &Scope<'a>)| scope.kind != ScopeKind::Class || *depth == innermost;
        let mut scopes = self.stack.iter().enumerate().rev().filter(seen);
        scopes.find_map(|(_, scope)| scope.names.get(name).map(Vec::as_slice))
    }

    /// The path that an expression stands for.
    pub(crate) fn path(&self, expression: &'a Expr) -> Option<DottedPath> {
        self.path_within(expression, &mut Steps::default())
    }

    fn path_within(&self, expression: &'a Expr, steps: &mut Steps) -> Option<DottedPath> {
        // Chains of attributes are as deep as their text; only aliases count as steps.
        if let Expr::Attribute(attribute) = expression {
            let path = self.path_within(&attribute.value, steps)?;
            return Some(self.facts.follow(join(path, attribute.attr.as_str())));
        }
        steps.deeper(|steps| match expression {
            Expr::Name(name) => self.path_of_name(name.id.as_str(), steps),
            Expr::Call(call) => self.path_of_call(call, steps),
            Expr::Named(named) => self.path_within(&named.value, steps),
            _ => None,
        })
    }

    fn path_of_name(&self, name: &str, steps: &mut Steps) -> Option<DottedPath> {
        let mut found: Option<String> = None;
        let Some(bindings) = self.bindings(name) else { return self.path_through_stars(name) };
        for binding in bindings {
            steps.count()?;
            let full = match binding {
                Binding::Path(full) => full.clone(),
                Binding::Value(value @ (Expr::Attribute(_) | Expr::Name(_) | Expr::Call(_))) => {
                    // `x = x.y` would be looked up in itself.
                    if matches!(value, Expr::Name(other) if other.id.as_str() == name) {
                        return None;
                    }
                    self.path_within(value, steps)?.full
                }
                Binding::Nothing => continue,
                Binding::Value(_) | Binding::Parameter(_) | Binding::Opaque => return None,
            };
            if found.as_ref().is_some_and(|other| *other != full) {
                return None;
            }
            found = Some(full);
        }
        let full = self.facts.follow_text(found?);
        let shift = dots(&full);
        Some(DottedPath { full, shift })
    }

    /// The path of a name that only a star import can bind. Libraries such as fastai bring `torch` itself in that way.
    fn path_through_stars(&self, name: &str) -> Option<DottedPath> {
        let of_project = self.stars.iter().find_map(|module| self.facts.imported_by_star(module, name));
        let full =
            of_project.or_else(|| (self.has_star_import && name == "torch").then(|| name.to_owned()))?;
        let shift = dots(&full);
        Some(DottedPath { full, shift })
    }

    /// The path that a call stands for.
    pub(crate) fn path_of(&self, call: &'a ExprCall) -> Option<DottedPath> {
        self.path_of_call(call, &mut Steps::default())
    }

    /// `getattr(torch, "cuda")` and `importlib.import_module("torch.cuda")` name a path as well.
    fn path_of_call(&self, call: &'a ExprCall, steps: &mut Steps) -> Option<DottedPath> {
        let text = |index: usize| match call.arguments.args.get(index) {
            Some(Expr::StringLiteral(literal)) => Some(literal.value.to_str()),
            _ => None,
        };
        let named = match &*call.func {
            Expr::Name(name) if self.bindings(name.id.as_str()).is_none() => Some(name.id.as_str()),
            _ => None,
        };
        let full = match named {
            Some("getattr") => {
                let owner = self.path_within(call.arguments.args.first()?, steps)?;
                format!("{}.{}", owner.full, text(1)?)
            }
            Some("__import__") => text(0)?.split('.').next()?.to_owned(),
            Some(_) => return None,
            None => match self.path_within(&call.func, steps)?.full.as_str() {
                "importlib.import_module" => text(0)?.to_owned(),
                _ => return None,
            },
        };
        let shift = dots(&full);
        Some(DottedPath { full, shift })
    }

    fn bind(&mut self, name: &'a str, binding: Binding<'a>) {
        if let Some(scope) = self.stack.last_mut() {
            scope.names.entry(name).or_default().push(binding);
        }
    }

    fn bind_body(&mut self, body: &'a [Stmt]) {
        for statement in body {
            self.bind_statement(statement);
        }
    }

    fn bind_statement(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let name = alias.name.as_str();
                    if let Some(asname) = &alias.asname {
                        self.bind(asname.as_str(), Binding::Path(name.to_owned()));
                    } else {
                        let first = name.split('.').next().unwrap_or(name);
                        self.bind(first, Binding::Path(first.to_owned()));
                    }
                }
            }
            Stmt::ImportFrom(import) => {
                let module = self.absolute(import.module.as_ref(), import.level);
                for alias in &import.names {
                    if alias.name.as_str() == "*" {
                        self.has_star_import = true;
                        if self.stars.len() < MOST_STARS {
                            self.stars.push(module.clone());
                        }
                        continue;
                    }
                    let bound = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
                    self.bind(bound, Binding::Path(format!("{module}.{}", alias.name)));
                }
            }
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    match (target, &*assign.value) {
                        (Expr::Name(name), Expr::NoneLiteral(_)) => {
                            self.bind(name.id.as_str(), Binding::Nothing);
                        }
                        (Expr::Name(name), value) => self.bind(name.id.as_str(), Binding::Value(value)),
                        (Expr::Tuple(names), Expr::Tuple(values))
                            if names.elts.len() == values.elts.len() =>
                        {
                            for pair in names.elts.iter().zip(&values.elts) {
                                match pair {
                                    (Expr::Name(name), value) => {
                                        self.bind(name.id.as_str(), Binding::Value(value));
                                    }
                                    (target, _) => self.bind_target(target),
                                }
                            }
                        }
                        (target, _) => self.bind_target(target),
                    }
                }
            }
            Stmt::AnnAssign(assign) => match (&*assign.target, assign.value.as_deref()) {
                (Expr::Name(name), Some(value)) => self.bind(name.id.as_str(), Binding::Value(value)),
                (target, _) => self.bind_target(target),
            },
            Stmt::AugAssign(assign) => self.bind_target(&assign.target),
            Stmt::For(statement) => {
                self.bind_target(&statement.target);
                self.bind_body(&statement.body);
                self.bind_body(&statement.orelse);
            }
            Stmt::While(statement) => {
                self.bind_body(&statement.body);
                self.bind_body(&statement.orelse);
            }
            Stmt::If(statement) => {
                self.bind_body(&statement.body);
                statement.elif_else_clauses.iter().for_each(|clause| self.bind_body(&clause.body));
            }
            Stmt::With(statement) => {
                let targets = statement.items.iter().filter_map(|item| item.optional_vars.as_deref());
                targets.for_each(|target| self.bind_target(target));
                self.bind_body(&statement.body);
            }
            Stmt::Try(statement) => {
                self.bind_body(&statement.body);
                for ExceptHandler::ExceptHandler(handler) in &statement.handlers {
                    if let Some(name) = &handler.name {
                        self.bind(name.as_str(), Binding::Opaque);
                    }
                    self.bind_body(&handler.body);
                }
                self.bind_body(&statement.orelse);
                self.bind_body(&statement.finalbody);
            }
            Stmt::Match(statement) => statement.cases.iter().for_each(|case| self.bind_body(&case.body)),
            Stmt::FunctionDef(function) => self.bind(function.name.as_str(), Binding::Opaque),
            Stmt::ClassDef(class) => self.bind(class.name.as_str(), Binding::Opaque),
            _ => {}
        }
    }

    /// The full name of the module that `from ... import` names.
    pub(crate) fn absolute(&self, module: Option<&Identifier>, level: u32) -> String {
        absolute(&self.package, module.map(Identifier::as_str), level)
    }
}

/// `from ..a import b` in the package `x.y` is about `x.a`.
pub(crate) fn absolute(package: &str, module: Option<&str>, level: u32) -> String {
    if level == 0 {
        return module.unwrap_or_default().to_owned();
    }
    let parts: Vec<&str> = package.split('.').filter(|part| !part.is_empty()).collect();
    let kept = parts.len().saturating_sub(level as usize - 1);
    parts[..kept].iter().copied().chain(module).collect::<Vec<_>>().join(".")
}

pub(crate) fn dots(path: &str) -> isize {
    memchr::memchr_iter(b'.', path.as_bytes()).count().cast_signed()
}

fn join(mut path: DottedPath, attribute: &str) -> DottedPath {
    path.full.push('.');
    path.full.push_str(attribute);
    path
}
