//! The one walk over a file: keeps scopes and ancestors, and shows each rule what it asked to see.
//!
//! Rules never walk by themselves. They get events (a reference that imports resolve, a method of something unknown, a
//! call, a text, an import, a function) and answer with edits and findings through [`Checker`].

use std::collections::HashSet;

use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor, TraversalSignal};
use ruff_python_ast::{
    AnyNodeRef, Expr, ExprCall, ExprContext, FStringPart, Identifier, InterpolatedStringElement, ModModule,
    Stmt, StmtFunctionDef, StmtImport, StmtImportFrom, StringFlags as _, StringLiteral,
};
use ruff_text_size::{Ranged, TextRange};

use crate::Options;
use crate::devices::DeviceUse;
use crate::edit::Edit;
use crate::facts::ProjectFacts;
use crate::finding::{Finding, Kind};
use crate::rules::{Grade, RULES, Rule};
use crate::scope::{Path, ScopeKind, Scopes};

/// A chain of names that stands for a path: `t.cuda.is_available` for `torch.cuda.is_available`.
#[derive(Debug)]
pub(crate) struct Reference<'a> {
    pub(crate) path: Path,
    pub(crate) expression: &'a Expr,
    /// The parts after the first.
    pub(crate) parts: Vec<&'a Identifier>,
    pub(crate) call: Option<&'a ExprCall>,
    pub(crate) is_stored: bool,
}

impl<'a> Reference<'a> {
    /// The identifier that spells part `index` of the path here, if one does.
    pub(crate) fn spelled(&self, index: usize) -> Option<&'a Identifier> {
        // The first part of the expression is a name and not among `parts`.
        let part = index.cast_signed() - self.path.shift - 1;
        self.parts.get(usize::try_from(part).ok()?).copied()
    }
}

/// An attribute of something that is not an import.
#[derive(Debug)]
pub(crate) struct Method<'a> {
    pub(crate) receiver: &'a Expr,
    pub(crate) name: &'a Identifier,
    pub(crate) call: Option<&'a ExprCall>,
}

/// A piece of text in a string or in the literal part of an f-string.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    pub(crate) value: &'a str,
    /// Where the text itself stands, without quotes.
    pub(crate) range: TextRange,
    pub(crate) shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The whole string.
    Whole,
    /// The beginning of an f-string that goes on with exactly one value: `f"cuda:{i}"`.
    Prefix,
    /// Some other part.
    Part,
}

#[derive(Debug)]
pub(crate) struct Checker<'a> {
    pub(crate) source: &'a str,
    pub(crate) options: &'a Options,
    pub(crate) facts: &'a ProjectFacts,
    pub(crate) scopes: Scopes<'a>,
    pub(crate) uses: DeviceUse<'a>,
    pub(crate) ancestors: Vec<AnyNodeRef<'a>>,
    pub(crate) functions: Vec<&'a StmtFunctionDef>,
    pub(crate) body: &'a [Stmt],
    /// The entry script of `--distributed`.
    pub(crate) is_main: bool,
    pub(crate) edits: Vec<Edit>,
    pub(crate) findings: Vec<Finding>,
    /// Names that no scope binds, to compare before and after.
    pub(crate) unbound: HashSet<&'a str>,
    /// Set once an edit means that `torch_npu` has to be loaded.
    pub(crate) needs_torch_npu: bool,
    /// Set once a rule has imported it already.
    pub(crate) has_torch_npu: bool,
    is_dry: bool,
    aware: Option<TextRange>,
    aware_of_edits: bool,
    skipped: usize,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(
        source: &'a str,
        skipped: usize,
        module: &'a ModModule,
        facts: &'a ProjectFacts,
        options: &'a Options,
        package: &str,
    ) -> Self {
        Checker {
            source,
            options,
            facts,
            scopes: Scopes::new(facts, package),
            uses: DeviceUse::of(module),
            ancestors: Vec::new(),
            functions: Vec::new(),
            body: &module.body,
            is_main: false,
            edits: Vec::new(),
            findings: Vec::new(),
            unbound: HashSet::new(),
            needs_torch_npu: false,
            has_torch_npu: false,
            is_dry: false,
            aware: None,
            aware_of_edits: false,
            skipped,
        }
    }

    /// Walks with all rules.
    pub(crate) fn check(&mut self) {
        self.walk();
        for rule in RULES {
            if let Some(hook) = rule.hooks.end {
                hook(self, rule);
            }
        }
    }

    /// Walks only to find the names that nothing binds.
    pub(crate) fn unbound_names(mut self) -> HashSet<&'a str> {
        self.is_dry = true;
        self.walk();
        self.unbound
    }

    pub(crate) fn has_star_import(&self) -> bool {
        self.scopes.has_star_import
    }

    fn walk(&mut self) {
        let body = self.body;
        self.scopes.enter(ScopeKind::Module, None, body);
        self.visit_body(body);
        // The module's scope stays, for the rules that look once more at the end.
    }

    pub(crate) fn text(&self, ranged: impl Ranged) -> &'a str {
        &self.source[ranged.range()]
    }

    pub(crate) fn replace(
        &mut self,
        rule: &'static Rule,
        grade: Grade,
        range: TextRange,
        new: impl Into<String>,
        message: impl Into<String>,
    ) {
        if self.aware.is_some() {
            self.aware_of_edits = true;
            return;
        }
        self.edits.push(Edit {
            start: range.start().to_usize() + self.skipped,
            end: range.end().to_usize() + self.skipped,
            replacement: new.into(),
            rule: rule.name,
            grade,
            message: message.into(),
        });
    }

    /// A change after which the file uses the device, so that `torch_npu` must have been imported.
    pub(crate) fn replace_with_npu(
        &mut self,
        rule: &'static Rule,
        grade: Grade,
        range: TextRange,
        new: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.needs_torch_npu |= self.aware.is_none();
        self.replace(rule, grade, range, new, message);
    }

    pub(crate) fn report(
        &mut self,
        rule: &'static Rule,
        kind: Kind,
        range: TextRange,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.findings.push(Finding {
            rule: rule.name,
            kind,
            start: range.start().to_usize() + self.skipped,
            end: range.end().to_usize() + self.skipped,
            subject: subject.into(),
            message: message.into(),
        });
    }

    pub(crate) fn is_aware(&self) -> bool {
        self.aware.is_some()
    }

    /// Whether the file imports torch at all, anywhere.
    pub(crate) fn imports_torch(&self) -> bool {
        self.source.contains("torch")
    }

    /// Whether the file belongs to a package of this name.
    pub(crate) fn package_is(&self, name: &str) -> bool {
        crate::scope::is_in(self.scopes.package(), name)
    }

    /// Whether the last of the ancestors are the bases of a class.
    pub(crate) fn is_base_class(&self) -> bool {
        matches!(
            self.ancestors.as_slice(),
            [.., AnyNodeRef::StmtClassDef(_), AnyNodeRef::Arguments(_)] | [.., AnyNodeRef::Decorator(_)]
        )
    }

    fn each(&mut self, mut show: impl FnMut(&mut Self, &'static Rule)) {
        if !self.is_dry {
            for rule in RULES {
                show(self, rule);
            }
        }
    }

    fn on_chain(&mut self, expression: &'a Expr, call: Option<&'a ExprCall>) {
        let mut parts = Vec::new();
        let mut root = expression;
        while let Expr::Attribute(attribute) = root {
            parts.push(&attribute.attr);
            root = &attribute.value;
        }
        parts.reverse();
        if let Expr::Name(name) = root
            && matches!(name.ctx, ExprContext::Load)
            && !self.scopes.has_star_import
            && self.scopes.bindings(name.id.as_str()).is_none()
        {
            self.unbound.insert(name.id.as_str());
        }
        if self.is_dry {
            if !matches!(root, Expr::Name(_)) {
                self.visit_expr(root);
            }
            return;
        }
        if let Some(path) = self.scopes.path(expression) {
            let is_stored = match expression {
                Expr::Attribute(attribute) => !matches!(attribute.ctx, ExprContext::Load),
                Expr::Name(name) => !matches!(name.ctx, ExprContext::Load),
                _ => false,
            };
            let reference = Reference { path, expression, parts, call, is_stored };
            self.each(|checker, rule| {
                if let Some(hook) = rule.hooks.reference {
                    hook(checker, rule, &reference);
                }
            });
            if !matches!(root, Expr::Name(_)) {
                self.visit_expr(root);
            }
            return;
        }
        if let Expr::Attribute(attribute) = expression {
            let method = Method { receiver: &attribute.value, name: &attribute.attr, call };
            self.each(|checker, rule| {
                if let Some(hook) = rule.hooks.method {
                    hook(checker, rule, &method);
                }
            });
            self.ancestors.push(AnyNodeRef::from(attribute));
            self.visit_expr(&attribute.value);
            self.ancestors.pop();
        }
    }

    fn on_call(&mut self, call: &'a ExprCall) {
        self.each(|checker, rule| {
            if let Some(hook) = rule.hooks.call {
                hook(checker, rule, call);
            }
        });
        self.ancestors.push(AnyNodeRef::from(call));
        match &*call.func {
            callee @ (Expr::Attribute(_) | Expr::Name(_)) => self.on_chain(callee, Some(call)),
            callee => self.visit_expr(callee),
        }
        self.visit_arguments(&call.arguments);
        self.ancestors.pop();
    }

    fn on_text(&mut self, value: &'a str, range: TextRange, shape: Shape) {
        // Escapes move what stands where; a string with some never spells a device.
        if self.source[range] != *value || !mentions(value) {
            return;
        }
        let text = Text { value, range, shape };
        self.each(|checker, rule| {
            if let Some(hook) = rule.hooks.text {
                hook(checker, rule, &text);
            }
        });
    }

    fn on_literal(&mut self, literal: &'a StringLiteral, shape: Shape) {
        let (opener, closer) = (literal.flags.opener_len(), literal.flags.closer_len());
        let range = literal.range.add_start(opener).sub_end(closer);
        self.on_text(&literal.value, range, shape);
    }

    fn on_f_string(&mut self, expression: &'a ruff_python_ast::ExprFString) {
        let parts: Vec<_> = expression.value.iter().collect();
        for part in &parts {
            match part {
                FStringPart::Literal(literal) => self.on_literal(literal, Shape::Part),
                FStringPart::FString(string) => {
                    let elements = &string.elements;
                    for (index, element) in elements.iter().enumerate() {
                        match element {
                            InterpolatedStringElement::Literal(literal) => {
                                let shape = match (parts.len(), index, elements.len()) {
                                    (1, 0, 1) => Shape::Whole,
                                    (1, 0, 2) => Shape::Prefix,
                                    _ => Shape::Part,
                                };
                                self.on_text(&literal.value, literal.range, shape);
                            }
                            InterpolatedStringElement::Interpolation(value) => {
                                self.ancestors.push(AnyNodeRef::from(value));
                                self.visit_expr(&value.expression);
                                self.ancestors.pop();
                            }
                        }
                    }
                }
            }
        }
    }

    fn on_function(&mut self, function: &'a StmtFunctionDef) {
        self.each(|checker, rule| {
            if let Some(hook) = rule.hooks.function {
                hook(checker, rule, function);
            }
        });
        self.ancestors.push(AnyNodeRef::from(function));
        for decorator in &function.decorator_list {
            self.visit_decorator(decorator);
        }
        self.visit_parameters(&function.parameters);
        if let Some(returns) = &function.returns {
            self.visit_annotation(returns);
        }
        self.scopes.enter(ScopeKind::Function, Some(&function.parameters), &function.body);
        self.functions.push(function);
        self.visit_body(&function.body);
        self.functions.pop();
        self.scopes.leave();
        self.ancestors.pop();
    }

    fn on_comprehension(&mut self, expression: &'a Expr, generators: &'a [ruff_python_ast::Comprehension]) {
        self.scopes.enter(ScopeKind::Function, None, &[]);
        for generator in generators {
            self.scopes.bind_target(&generator.target);
        }
        source_order::walk_expr(self, expression);
        self.scopes.leave();
    }

    /// A statement that names NPUs already is left to whoever wrote it.
    fn begin_awareness(&mut self, statement: &'a Stmt) -> bool {
        let starts = self.aware.is_none()
            && !self.scopes.is_inside_function()
            && !matches!(statement, Stmt::ClassDef(_) | Stmt::Import(_) | Stmt::ImportFrom(_))
            && mentions_npu(self.text(statement));
        if starts {
            self.aware = Some(statement.range());
            self.aware_of_edits = false;
        }
        starts
    }

    fn end_awareness(&mut self) {
        if let Some(range) = self.aware.take()
            && self.aware_of_edits
        {
            let rule = &crate::rules::npu_aware::RULE;
            let first_line = self.text(range).lines().next().unwrap_or_default().trim().to_owned();
            self.report(rule, Kind::Note, range, first_line, "names NPUs already, so it was left as it is");
        }
    }
}

impl<'a> SourceOrderVisitor<'a> for Checker<'a> {
    fn enter_node(&mut self, node: AnyNodeRef<'a>) -> TraversalSignal {
        self.ancestors.push(node);
        TraversalSignal::Traverse
    }

    fn leave_node(&mut self, _node: AnyNodeRef<'a>) {
        self.ancestors.pop();
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let starts = self.begin_awareness(statement);
        match statement {
            Stmt::FunctionDef(function) => self.on_function(function),
            Stmt::ClassDef(class) => {
                self.ancestors.push(AnyNodeRef::from(class));
                for decorator in &class.decorator_list {
                    self.visit_decorator(decorator);
                }
                if let Some(arguments) = &class.arguments {
                    self.visit_arguments(arguments);
                }
                self.scopes.enter(ScopeKind::Class, None, &class.body);
                self.visit_body(&class.body);
                self.scopes.leave();
                self.ancestors.pop();
            }
            Stmt::Import(import) => self.each(|checker, rule| {
                if let Some(hook) = rule.hooks.import {
                    hook(checker, rule, import);
                }
            }),
            Stmt::ImportFrom(import) => {
                let module = self.scopes.absolute(import.module.as_ref(), import.level);
                self.each(|checker, rule| {
                    if let Some(hook) = rule.hooks.import_from {
                        hook(checker, rule, import, &module);
                    }
                });
            }
            _ => source_order::walk_stmt(self, statement),
        }
        if starts {
            self.end_awareness();
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Call(call) => self.on_call(call),
            Expr::Attribute(_) | Expr::Name(_) => self.on_chain(expression, None),
            Expr::StringLiteral(string) => {
                let shape = if string.value.is_implicit_concatenated() { Shape::Part } else { Shape::Whole };
                for literal in &string.value {
                    self.on_literal(literal, shape);
                }
            }
            Expr::FString(string) => self.on_f_string(string),
            Expr::Lambda(lambda) => {
                self.scopes.enter(ScopeKind::Function, lambda.parameters.as_deref(), &[]);
                source_order::walk_expr(self, expression);
                self.scopes.leave();
            }
            Expr::ListComp(comprehension) => self.on_comprehension(expression, &comprehension.generators),
            Expr::SetComp(comprehension) => self.on_comprehension(expression, &comprehension.generators),
            Expr::DictComp(comprehension) => self.on_comprehension(expression, &comprehension.generators),
            Expr::Generator(comprehension) => self.on_comprehension(expression, &comprehension.generators),
            _ => source_order::walk_expr(self, expression),
        }
    }
}

pub(crate) type ReferenceHook = for<'a> fn(&mut Checker<'a>, &'static Rule, &Reference<'a>);
pub(crate) type MethodHook = for<'a> fn(&mut Checker<'a>, &'static Rule, &Method<'a>);
pub(crate) type CallHook = for<'a> fn(&mut Checker<'a>, &'static Rule, &'a ExprCall);
pub(crate) type TextHook = for<'a> fn(&mut Checker<'a>, &'static Rule, &Text<'a>);
pub(crate) type ImportHook = for<'a> fn(&mut Checker<'a>, &'static Rule, &'a StmtImport);
pub(crate) type ImportFromHook = for<'a> fn(&mut Checker<'a>, &'static Rule, &'a StmtImportFrom, &str);
pub(crate) type FunctionHook = for<'a> fn(&mut Checker<'a>, &'static Rule, &'a StmtFunctionDef);
pub(crate) type EndHook = for<'a> fn(&mut Checker<'a>, &'static Rule);

/// What a rule wants to see.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    pub(crate) reference: Option<ReferenceHook>,
    pub(crate) method: Option<MethodHook>,
    pub(crate) call: Option<CallHook>,
    pub(crate) text: Option<TextHook>,
    pub(crate) import: Option<ImportHook>,
    pub(crate) import_from: Option<ImportFromHook>,
    pub(crate) function: Option<FunctionHook>,
    /// Once, after the walk.
    pub(crate) end: Option<EndHook>,
}

impl Hooks {
    pub(crate) const NONE: Hooks = Hooks {
        reference: None,
        method: None,
        call: None,
        text: None,
        import: None,
        import_from: None,
        function: None,
        end: None,
    };
}

/// Texts that some rule could care about.
fn mentions(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() < 200
        && (memchr::memmem::find(bytes, b"cuda").is_some()
            || memchr::memmem::find(bytes, b"CUDA").is_some()
            || memchr::memmem::find(bytes, b"nccl").is_some()
            || memchr::memmem::find(bytes, b"NCCL").is_some()
            || memchr::memmem::find(bytes, b"gpu").is_some()
            || memchr::memmem::find(bytes, b"flash_attention").is_some())
}

/// Whether code, not a comment, has the word: `torch_npu`, `is_npu_available`, `"npu"`, but not `input`.
pub(crate) fn mentions_npu(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_letter = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphabetic);
    let is_word = |at: usize| {
        let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        !is_letter(at.checked_sub(1)) && !is_letter(Some(at + 3)) && !text[line..at].contains('#')
    };
    [b"npu".as_slice(), b"NPU"].iter().any(|word| memchr::memmem::find_iter(bytes, word).any(is_word))
}
