//! Devices that all processes would share: by number, option or constant, and variables that hide the others.
//!
//! The first device of the entry script becomes the process's own. Everything else is reported, because what a person meant by a number
//! is not in the code; only what comes from a rank is known to differ between processes.

use ruff_python_ast::{AnyNodeRef, Expr, ExprCall};
use ruff_text_size::{Ranged as _, TextRange};

use super::{RULE, has_rank, is_asked};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Text, TextShape};
use crate::portable::plain_literal;
use crate::roles::StringRole;
use crate::rules::{Grade, Rule};
use crate::scope::Binding;

const ONE_DEVICE: &str =
    "every process would use this one device; take the process's own: `torch.npu.current_device()`";

const HIDDEN: &str = "hides devices from every process alike, while each takes the one of its local rank; leave all of them visible";

/// Longer expressions are nobody's device.
const LONGEST: usize = 400;

/// A device by number is the same for every process.
pub(super) fn on_text<'a>(checker: &mut Checker<'a>, rule: &'static Rule, text: &Text<'a>) {
    if !is_asked(checker) {
        return;
    }
    if text.shape == TextShape::Whole
        && matches!(text.value, "CUDA_VISIBLE_DEVICES" | "ASCEND_RT_VISIBLE_DEVICES")
    {
        if hides_devices(checker) {
            checker.report(rule, FindingKind::NeedsPerson, text.range, text.value, HIDDEN);
        }
        return;
    }
    let Some(number) = ["cuda:", "gpu:", "npu:"].iter().find_map(|word| text.value.strip_prefix(word)) else {
        return;
    };
    if checker.role(text.range) == StringRole::Other {
        return;
    }
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    if text.shape == TextShape::Whole && is_number {
        let literal = plain_literal(checker.source, text.range).filter(|_| !checker.is_in_f_string);
        match literal {
            Some((literal, _)) if number == "0" && has_rank(checker, literal.start()) => {
                let message = format!("replace string \"{}\" with the device of the process", text.value);
                // Also in code that names NPUs already: that it chose one is what has to change.
                let aware = checker.aware.take();
                checker.replace_with_npu(rule, Grade::Likely, literal, "f\"npu:{LOCAL_RANK}\"", message);
                checker.aware = aware;
            }
            _ => checker.report(rule, FindingKind::NeedsPerson, text.range, text.value, ONE_DEVICE),
        }
        return;
    }
    let filled_in = match text.shape {
        TextShape::Prefix if number.is_empty() => rest_of_f_string(checker, text.range),
        TextShape::Whole if number.is_empty() || number.starts_with(['%', '{']) => operation_around(checker),
        _ => return,
    };
    if let Some((range, written)) = filled_in
        && !differs(written)
        && !names_what_differs(checker, written)
    {
        checker.report(rule, FindingKind::NeedsPerson, range, written, ONE_DEVICE);
    }
}

/// `.cuda(0)`, `.npu(device=0)`, `set_device(args.gpu)` and `torch.device("cuda", 0)`.
pub(super) fn on_call<'a>(checker: &mut Checker<'a>, rule: &'static Rule, call: &'a ExprCall) {
    if !is_asked(checker) {
        return;
    }
    let Some((function, argument)) = index_argument(checker, call) else { return };
    if checker.text(argument) == "0" && has_rank(checker, argument.start()) {
        let message = format!("change the device of function {function} to LOCAL_RANK");
        let aware = checker.aware.take();
        checker.replace_with_npu(rule, Grade::Likely, argument.range(), "LOCAL_RANK", message);
        checker.aware = aware;
    } else {
        report_number(checker, argument);
    }
}

/// Reports a number that is the same in every process. Answers whether it did.
pub(in crate::rules) fn report_number<'a>(checker: &mut Checker<'a>, argument: &'a Expr) -> bool {
    if !is_asked(checker) || is_own(checker, argument) {
        return false;
    }
    checker.report(&RULE, FindingKind::NeedsPerson, argument.range(), checker.text(argument), ONE_DEVICE);
    true
}

/// The function and the argument by which a call chooses a device by its number.
fn index_argument<'a>(checker: &Checker<'a>, call: &'a ExprCall) -> Option<(&'a str, &'a Expr)> {
    let keyword = |name: &str| call.arguments.find_keyword(name).map(|keyword| &keyword.value);
    let argument = |name: &str, position: usize| keyword(name).or_else(|| call.arguments.args.get(position));
    let path = checker.scopes.path(&call.func).map(|path| path.full);
    let of_torch = |name: &str| {
        let path = path.as_deref()?;
        let is_module = ["torch.cuda", "torch.npu", "torch_npu.npu", "torch_npu"]
            .iter()
            .any(|module| path.strip_prefix(module).and_then(|rest| rest.strip_prefix('.')) == Some(name));
        is_module.then_some(())
    };
    let found = match &*call.func {
        Expr::Attribute(callee) if matches!(callee.attr.as_str(), "cuda" | "npu") => {
            (callee.attr.as_str(), argument("device", 0)?)
        }
        _ if of_torch("set_device").is_some() => ("set_device", argument("device", 0)?),
        // The context in which work goes to a device: `with torch.cuda.device(0):`
        _ if of_torch("device").is_some() => ("device", argument("device", 0)?),
        _ if path.as_deref() == Some("torch.device") => {
            let is_cpu = |kind: &Expr| matches!(kind, Expr::StringLiteral(text) if !matches!(text.value.to_str(), "cuda" | "npu"));
            let kind = argument("type", 0);
            ("device", argument("index", 1).filter(|_| !kind.is_some_and(is_cpu))?)
        }
        // Whatever it belongs to: a literal number is a device of somebody's.
        Expr::Attribute(callee) if callee.attr.as_str() == "set_device" => {
            ("set_device", argument("device", 0).filter(|argument| argument.is_number_literal_expr())?)
        }
        _ => return None,
    };
    // Texts are looked at where they stand.
    let is_number = !matches!(
        found.1,
        Expr::StringLiteral(_)
            | Expr::FString(_)
            | Expr::NoneLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::Starred(_)
    ) && !is_formatted(found.1);
    is_number.then_some(found)
}

/// `"cuda:%d" % i`, `"cuda:{}".format(i)`, `torch.device("cuda:0")`
fn is_formatted(expression: &Expr) -> bool {
    match expression {
        Expr::BinOp(operation) => operation.left.is_string_literal_expr(),
        Expr::Call(call) => match &*call.func {
            Expr::Attribute(callee) => {
                callee.value.is_string_literal_expr() || callee.attr.as_str() == "device"
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether an expression differs from process to process, or stands for a text that is looked at where it is written.
fn is_own<'a>(checker: &Checker<'a>, expression: &'a Expr) -> bool {
    let text = checker.text(expression);
    if differs(text) {
        return true;
    }
    let Expr::Name(name) = expression else { return false };
    checker.scopes.bindings(name.id.as_str()).is_some_and(|bindings| {
        !bindings.is_empty()
            && bindings.iter().take(200).all(|binding| match binding {
                Binding::Value(value) => {
                    matches!(value, Expr::StringLiteral(_) | Expr::FString(_) | Expr::If(_))
                        || is_formatted(value)
                        || differs(checker.text(*value))
                }
                Binding::Nothing => true,
                Binding::Path(_) | Binding::Parameter(_) | Binding::Opaque => false,
            })
    })
}

/// Whether what is written comes from a rank: `LOCAL_RANK`, `args.local_rank % 8`, `dist.get_rank()`.
fn differs(text: &str) -> bool {
    let parts = || text.split(|c: char| !c.is_ascii_alphanumeric());
    text.len() <= LONGEST
        && (text.contains("current_device")
            || parts().any(|part| ["rank", "localrank"].iter().any(|word| part.eq_ignore_ascii_case(word))))
}

/// The same of a name in an f-string: `f"cuda:{gpu}"` after `gpu = int(os.environ["LOCAL_RANK"])`.
fn names_what_differs(checker: &Checker<'_>, written: &str) -> bool {
    let name = written.trim_matches(|c: char| !(c.is_alphanumeric() || c == '_'));
    checker.scopes.bindings(name).is_some_and(|bindings| {
        let comes_from_rank =
            |binding: &Binding<'_>| matches!(binding, Binding::Value(value) if differs(checker.text(*value)));
        !bindings.is_empty() && bindings.iter().take(200).all(comes_from_rank)
    })
}

/// What stands in the braces behind `f"cuda:`.
fn rest_of_f_string<'a>(checker: &Checker<'a>, prefix: TextRange) -> Option<(TextRange, &'a str)> {
    let rest = checker.source[prefix.end().to_usize()..].strip_prefix('{')?;
    let length = rest.bytes().take(LONGEST).position(|byte| byte == b'}')?;
    let written = rest.get(..length)?;
    Some((prefix, written))
}

/// What a text is filled in with: `"cuda:%d" % gpu`, `"cuda:{}".format(gpu)`, `"cuda:" + str(gpu)`.
fn operation_around<'a>(checker: &Checker<'a>) -> Option<(TextRange, &'a str)> {
    let mut around = checker.ancestors.iter().rev().take(2);
    let range = around.find_map(|node| match node {
        AnyNodeRef::ExprBinOp(operation) => Some(operation.range),
        AnyNodeRef::ExprCall(call) => Some(call.range()),
        _ => None,
    })?;
    Some((range, checker.text(range)))
}

/// Whether the name of the variable stands where it is given a value that hides devices; a list of several hides none that is meant to
/// be used.
fn hides_devices(checker: &Checker<'_>) -> bool {
    let is_list =
        |value: &Expr| matches!(value, Expr::StringLiteral(text) if text.value.to_str().contains(','));
    let mut around = checker.ancestors.iter().rev();
    match around.next() {
        Some(AnyNodeRef::ExprSubscript(subscript)) if subscript.ctx.is_store() => {
            !matches!(around.next(), Some(AnyNodeRef::StmtAssign(assign)) if is_list(&assign.value))
        }
        Some(AnyNodeRef::Arguments(arguments)) => {
            let is_set = matches!(around.next(), Some(AnyNodeRef::ExprCall(call))
                if matches!(&*call.func, Expr::Attribute(callee) if matches!(callee.attr.as_str(), "setdefault" | "putenv" | "setenv")));
            is_set && !arguments.args.get(1).is_some_and(is_list)
        }
        Some(AnyNodeRef::ExprDict(dict)) => !dict.items.iter().any(|item| {
            matches!(&item.key, Some(Expr::StringLiteral(key)) if key.value.to_str().ends_with("_VISIBLE_DEVICES"))
                && is_list(&item.value)
        }),
        _ => false,
    }
}
