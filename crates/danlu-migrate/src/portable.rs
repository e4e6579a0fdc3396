//! One code base for both kinds of devices: what names CUDA or NPU asks which of them is there.
//!
//! Takes the place of the other rules where portable code is asked for. The walk, the roles of texts and the check of the result
//! are the same. What exists for one kind only is reported and left.

mod definition;
mod imports;

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{Ranged as _, TextRange};

pub(crate) use self::definition::{SHIM, SHIM_NAME, shim_folder};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Method, Reference, Text, TextShape};
use crate::roles::StringRole;
use crate::rules::{Grade, Rule, device_index, environment, torch_cuda};

/// The kind of device: `npu` or `cuda`.
pub(crate) const DEVICE: &str = "ACCELERATOR";
/// The backend of its collectives: `hccl` or `nccl`.
pub(crate) const BACKEND: &str = "COLLECTIVES";

pub(crate) const RULE: Rule = Rule {
    name: "portable",
    grade: Grade::Likely,
    what: "With `--reverse` and `--portable` only. Turns what names CUDA or NPU into what asks which is there: `\"cuda\"` and `\"npu\"` \
           into `ACCELERATOR`, `torch.cuda` and `torch.npu` into `getattr(torch, ACCELERATOR)`, `.cuda()` into \
           `.to(ACCELERATOR)`, `\"nccl\"` into `COLLECTIVES`. `--reverse` defines both names in each file that needs them, \
           `--portable` in a module `portable_device.py` that they are imported from. Parts that only one kind has are reported.",
    why: "One code base then trains on both. Which device there is, is told by whether `torch_npu` can be imported, so nothing touches \
          a device before the program does.",
    before: "import torch\n\nx = torch.ones(3).cuda()\n",
    after: "try:\n    import torch_npu  # noqa: F401\n    ACCELERATOR, COLLECTIVES = \"npu\", \"hccl\"\nexcept ImportError:\n    ACCELERATOR, COLLECTIVES = \"cuda\", \"nccl\"\nimport torch\n\nx = torch.ones(3).to(ACCELERATOR)\n",
    references: &["https://docs.pytorch.org/tutorials/prototype/python_extension_autoload.html"],
    hooks: Hooks {
        reference: Some(on_reference),
        method: Some(on_method),
        call: Some(on_call),
        text: Some(on_text),
        import: Some(imports::on_import),
        import_from: Some(imports::on_import_from),
        end: Some(definition::on_end),
        ..Hooks::NONE
    },
};

/// The rules of a portable copy.
pub const RULES: &[&Rule] = &[&RULE];

fn change(checker: &mut Checker<'_>, grade: Grade, range: TextRange, new: impl Into<String>, message: &str) {
    checker.replace_with_npu(&RULE, grade, range, new, message);
}

/// `torch.cuda.x` and `torch.npu.x`, and methods of what is imported.
fn on_reference<'a>(checker: &mut Checker<'a>, rule: &'static Rule, reference: &Reference<'a>) {
    let full = reference.path.full.as_str();
    let is_module = reference.path.is_in("torch.cuda") || reference.path.is_in("torch.npu");
    if is_module {
        if let Some(advice) = torch_cuda::missing(checker, full) {
            checker.report_lacking(rule, reference.expression.range(), full, advice);
            return;
        }
        // `torch.cuda.FloatTensor.cuda()`: what the module has is an object, and so its methods are.
        let (mut expression, mut call) = (reference.expression, reference.call);
        for _ in 1..full.matches('.').count() {
            let Expr::Attribute(attribute) = expression else { break };
            let method = Method { receiver: &attribute.value, name: &attribute.attr, call: call.take() };
            on_method(checker, rule, &method);
            expression = &attribute.value;
        }
        if let Some(part) = reference.spelled(1).filter(|_| !reference.is_stored)
            && let Some(receiver) = receiver_of(reference.expression, part.range)
        {
            let new = format!("getattr({}, {DEVICE})", checker.text(receiver));
            let range = TextRange::new(receiver.start(), part.range.end());
            change(checker, Grade::Safe, range, new, "ask which device module there is");
        }
        return;
    }
    let is_one_sided = reference.path.is_in("torch_npu") && !reference.path.is_in("torch_npu.npu")
        || full == "torch.profiler.ProfilerActivity.CUDA";
    if is_one_sided && !reference.parts.is_empty() && !checker.is_aware() {
        let message = "exists for one kind of device only; choose by `ACCELERATOR`";
        checker.report(rule, FindingKind::NeedsPerson, reference.expression.range(), full, message);
        return;
    }
    if let (Expr::Attribute(attribute), Some(call)) = (reference.expression, reference.call)
        && is_move(attribute.attr.as_str())
        && reference.path.part(0) != Some("torch")
    {
        move_to_device(checker, attribute.value.range(), attribute.attr.range, call);
    }
}

/// What stands before the attribute at `attribute`.
fn receiver_of(mut expression: &Expr, attribute: TextRange) -> Option<TextRange> {
    while let Expr::Attribute(found) = expression {
        if found.attr.range == attribute {
            return Some(found.value.range());
        }
        expression = &found.value;
    }
    None
}

fn is_move(name: &str) -> bool {
    matches!(name, "cuda" | "npu")
}

fn on_method<'a>(checker: &mut Checker<'a>, rule: &'static Rule, method: &Method<'a>) {
    match (method.name.as_str(), method.call) {
        (name, Some(call)) if is_move(name) => {
            move_to_device(checker, method.receiver.range(), method.name.range, call);
        }
        ("is_cuda" | "is_npu", None) if !checker.facts.own_definitions.contains("is_cuda") => {
            let receiver = method.receiver.range();
            let message = "ask for the device that there is";
            change(checker, Grade::Likely, TextRange::empty(receiver.start()), "getattr(", message);
            let range = TextRange::new(receiver.end(), method.name.range.end());
            change(checker, Grade::Likely, range, format!(", f\"is_{{{DEVICE}}}\")"), message);
        }
        ("is_cuda" | "is_npu", _) if !checker.is_aware() => {
            let message = "the project defines it itself; look whether this one is a tensor's";
            checker.report(rule, FindingKind::NeedsPerson, method.name.range, method.name.as_str(), message);
        }
        _ => {}
    }
}

/// `x.cuda()` is `x.to(ACCELERATOR)`; with arguments it is the method that the device has.
fn move_to_device(checker: &mut Checker<'_>, receiver: TextRange, name: TextRange, call: &ExprCall) {
    let message = "move to the device that there is";
    if call.arguments.is_empty() {
        let range = TextRange::new(name.start(), call.arguments.range.end());
        change(checker, Grade::Likely, range, format!("to({DEVICE})"), message);
        return;
    }
    change(checker, Grade::Likely, TextRange::empty(receiver.start()), "getattr(", message);
    let range = TextRange::new(receiver.end(), name.end());
    change(checker, Grade::Likely, range, format!(", {DEVICE})"), message);
}

/// Numbers that stand for devices: torch before 2.3 takes them for CUDA's.
fn on_call<'a>(checker: &mut Checker<'a>, _rule: &'static Rule, call: &'a ExprCall) {
    let Some(argument) = device_index::argument(checker, call) else { return };
    let Some(grade) = device_index::number(checker, argument) else { return };
    let written = checker.text(argument);
    let number =
        if argument.is_number_literal_expr() { written.to_owned() } else { format!("{{{written}}}") };
    let new = format!("f\"{{{DEVICE}}}:{number}\"");
    change(checker, grade, argument.range(), new, "name the device that there is");
}

fn on_text<'a>(checker: &mut Checker<'a>, rule: &'static Rule, text: &Text<'a>) {
    match text.value {
        "nccl" | "hccl" if text.shape == TextShape::Whole => {
            return spell(checker, text, Grade::Safe, &format!("{{{BACKEND}}}"));
        }
        pairs if text.shape == TextShape::Whole && crate::rules::nccl::is_pairs(pairs) => {
            let new = ["cuda:nccl", "npu:hccl"].iter().fold(pairs.to_owned(), |text, pair| {
                text.replace(pair, &format!("{{{DEVICE}}}:{{{BACKEND}}}"))
            });
            return spell(checker, text, Grade::Safe, &new);
        }
        name if text.shape == TextShape::Whole && environment::is_of_one_device(name) => {
            if !checker.is_aware() {
                let message = "only one kind of device reads this variable; set the other's as well";
                checker.report(rule, FindingKind::NeedsPerson, text.range, name, message);
            }
            return;
        }
        _ => {}
    }
    let Some((word, is_bare)) = device_word(text) else { return };
    let grade = match checker.role(text.range) {
        StringRole::Device(grade) => grade,
        StringRole::Unclear if !is_bare => Grade::Likely,
        StringRole::Unclear => {
            if checker.imports_torch() && !checker.is_aware() {
                let message = "may be a device; if it is, write `ACCELERATOR`";
                checker.report(rule, FindingKind::NeedsPerson, text.range, text.value, message);
            }
            return;
        }
        StringRole::Other => return,
    };
    let braced = text.value.replace('{', "{{").replace('}', "}}");
    // Inside of an f-string the braces of the text are doubled already, as they stand there.
    let rest = if text.shape == TextShape::Prefix { text.value } else { braced.as_str() };
    let new = rest.replacen(word, &format!("{{{DEVICE}}}"), 1);
    spell(checker, text, grade, &new);
}

/// The word for a device that a text spells, and whether there is nothing else in it.
fn device_word(text: &Text<'_>) -> Option<(&'static str, bool)> {
    for word in ["cuda", "npu"] {
        if let Some(is_bare) = crate::rules::device_string::spells(word, text.value, text.shape) {
            return Some((word, is_bare));
        }
        let is_type = text.shape == TextShape::Whole
            && text.value.strip_prefix("torch.").and_then(|rest| rest.strip_prefix(word)).is_some_and(
                |name| name.starts_with('.') && name.ends_with("Tensor") && !name.contains(['{', ' ']),
            );
        if is_type {
            return Some((word, false));
        }
    }
    None
}

/// Writes `new`, the inside of an f-string, in the place of a text: alone it is the name in its braces.
fn spell(checker: &mut Checker<'_>, text: &Text<'_>, grade: Grade, new: &str) {
    let message = "name the device that there is";
    if text.shape == TextShape::Prefix || checker.is_in_f_string {
        return change(checker, grade, text.range, new, message);
    }
    let Some((literal, quotes)) = plain_literal(checker.source, text.range) else {
        let message = "names one kind of device; write `ACCELERATOR`";
        return checker.report(&RULE, FindingKind::NeedsPerson, text.range, text.value, message);
    };
    let name = new.strip_prefix('{').and_then(|new| new.strip_suffix('}')).filter(|name| !name.contains('{'));
    let new = name.map_or_else(|| format!("f{quotes}{new}{quotes}"), str::to_owned);
    change(checker, grade, literal, new, message);
}

/// The literal around a text and its quotes, if it has no prefix.
pub(crate) fn plain_literal(source: &str, text: TextRange) -> Option<(TextRange, &str)> {
    let (start, end) = (text.start().to_usize(), text.end().to_usize());
    let before = &source[..start];
    let quote = before.chars().last().filter(|quote| matches!(quote, '"' | '\''))?;
    let triple = quote.to_string().repeat(3);
    let length = if before.ends_with(&triple) { 3 } else { 1 };
    let has_prefix = before[..start - length].chars().last().is_some_and(char::is_alphanumeric);
    let length_of = |bytes: usize| u32::try_from(bytes).ok().map(ruff_text_size::TextSize::from);
    let literal = TextRange::new(length_of(start - length)?, length_of(end + length)?);
    (!has_prefix).then_some((literal, &source[start - length..start]))
}
