//! The one walk over a file: keeps scopes and ancestors, and shows each rule what it asked to see.

use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor, TraversalSignal};
use ruff_python_ast::{
    AnyNodeRef, Expr, ExprCall, ExprContext, FStringPart, InterpolatedStringElement, Stmt, StmtFunctionDef,
    StringFlags as _, StringLiteral,
};
use ruff_text_size::{Ranged as _, TextRange};

use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Method, Reference, Text, TextShape};
use crate::rules::Rule;
use crate::scope::ScopeKind;

impl<'a> Checker<'a> {
    fn each(&mut self, mut show: impl FnMut(&mut Self, &'static Rule)) {
        if !self.is_dry {
            for rule in self.rules {
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

    fn on_text(&mut self, value: &'a str, range: TextRange, shape: TextShape) {
        // Escapes move what stands where; a string with some never spells a device.
        if self.source[range] != *value || !(mentions(value) || self.concerns_npus() && names_npu(value)) {
            return;
        }
        let text = Text { value, range, shape };
        self.each(|checker, rule| {
            if let Some(hook) = rule.hooks.text {
                hook(checker, rule, &text);
            }
        });
    }

    /// Whether texts that name NPUs are shown as well.
    fn concerns_npus(&self) -> bool {
        self.options.portable.is_some() || self.options.distributed.is_some()
    }

    fn on_literal(&mut self, literal: &'a StringLiteral, shape: TextShape) {
        let (opener, closer) = (literal.flags.opener_len(), literal.flags.closer_len());
        let range = literal.range.add_start(opener).sub_end(closer);
        self.on_text(&literal.value, range, shape);
    }

    fn on_f_string(&mut self, expression: &'a ruff_python_ast::ExprFString) {
        let parts: Vec<_> = expression.value.iter().collect();
        for part in &parts {
            match part {
                FStringPart::Literal(literal) => self.on_literal(literal, TextShape::Part),
                FStringPart::FString(string) => {
                    let elements = &string.elements;
                    for (index, element) in elements.iter().enumerate() {
                        match element {
                            InterpolatedStringElement::Literal(literal) => {
                                let shape = match (parts.len(), index, elements.len()) {
                                    (1, 0, 1) => TextShape::Whole,
                                    (1, 0, 2) => TextShape::Prefix,
                                    _ => TextShape::Part,
                                };
                                self.is_in_f_string = true;
                                self.on_text(&literal.value, literal.range, shape);
                                self.is_in_f_string = false;
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
            && (self.knows_npus(statement.range()) || self.is_one_of_two(statement));
        if starts {
            self.aware = Some(statement.range());
        }
        starts
    }

    fn is_one_of_two(&self, statement: &Stmt) -> bool {
        matches!(statement, Stmt::FunctionDef(function) if self.npu_places.is_one_of_two(&function.name))
    }

    fn knows_npus(&self, range: TextRange) -> bool {
        // Portable code changes what names either kind, so only what names both chooses between them.
        let names_cuda = |text: &str| text.contains("cuda") || text.contains("CUDA");
        self.npu_places.any_in(range) && (self.options.portable.is_none() || names_cuda(&self.source[range]))
    }

    fn end_awareness(&mut self) {
        if let Some(range) = self.aware.take()
            && self.held_back.last().is_some_and(|place| range.contains(*place))
        {
            let rule = &crate::rules::npu_aware::RULE;
            let first_line = self.text(range).lines().next().unwrap_or_default().trim().to_owned();
            self.report(
                rule,
                FindingKind::Note,
                range,
                first_line,
                "names NPUs already, so it was left as it is",
            );
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
                let shape =
                    if string.value.is_implicit_concatenated() { TextShape::Part } else { TextShape::Whole };
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

/// The same of code for NPUs.
fn names_npu(text: &str) -> bool {
    text.contains("npu") || text.contains("hccl") || text.contains("ASCEND")
}
