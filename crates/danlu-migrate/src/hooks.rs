//! What rules are shown, and how they say what they want to see.

use ruff_python_ast::{Expr, ExprCall, Identifier, StmtFunctionDef, StmtImport, StmtImportFrom};
use ruff_text_size::TextRange;

use crate::checker::Checker;
use crate::rules::Rule;
use crate::scope::DottedPath;

/// A chain of names that stands for a path: `t.cuda.is_available` for `torch.cuda.is_available`.
#[derive(Debug)]
pub(crate) struct Reference<'a> {
    pub(crate) path: DottedPath,
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
    pub(crate) shape: TextShape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextShape {
    /// The whole string.
    Whole,
    /// The beginning of an f-string that goes on with exactly one value: `f"cuda:{i}"`.
    Prefix,
    /// Some other part.
    Part,
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
