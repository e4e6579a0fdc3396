//! Devices given as bare numbers.

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::Hooks;
use crate::scope::Binding;
use ruff_python_ast::{Expr, ExprAttribute, ExprCall};
use ruff_text_size::Ranged as _;

pub(crate) const RULE: Rule = Rule {
    name: "device-index",
    grade: Grade::Likely,
    what: "Turns a number that stands for a device into the NPU of that number: `x.to(0)`, `x.to(local_rank)`, \
           `torch.device(rank)`, `torch.ones(3, device=rank)`, \
           `x.to(torch.cuda.current_device())`, where the argument can be seen to be a number: a literal, \
           `int(...)`, a rank of `torch.distributed`, a parameter annotated `int`, or a name that always is one (`rank`, \
           `local_rank`). Stars, keywords and everything else are left alone, and nothing is evaluated twice.",
    why: "PyTorch before 2.3 takes a bare number for a CUDA device, whatever accelerator is there.",
    before: "rank = int(os.environ[\"LOCAL_RANK\"])\nmodel.to(rank)\n",
    after: "rank = int(os.environ[\"LOCAL_RANK\"])\nmodel.to(f\"npu:{rank}\")\n",
    references: &["https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device"],
    hooks: Hooks { call: Some(on_call), ..Hooks::NONE },
};

/// Functions that make tensors take `device`, too.
const MAKERS: &[&str] = &[
    "arange",
    "as_tensor",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "normal",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "scalar_tensor",
    "tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
    "new_empty",
    "new_full",
    "new_ones",
    "new_tensor",
    "new_zeros",
];

fn on_call<'a>(checker: &mut Checker<'a>, rule: &'static Rule, call: &'a ExprCall) {
    let Some(argument) = argument(checker, call) else { return };
    let last = match &*call.func {
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => checker.text(&*call.func),
    };
    // The current device is the one that a type without a number means.
    if let Expr::Call(inner) = argument
        && inner.arguments.is_empty()
        && checker.scopes.path(&inner.func).is_some_and(|path| path.full == "torch.cuda.current_device")
    {
        let message = format!("change the arg at position 0 of function {last} to \"npu\"");
        checker.replace_with_npu(rule, Grade::Safe, argument.range(), "\"npu\"", message);
        return;
    }
    let Some(grade) = number(checker, argument) else {
        if names_number(checker, argument) && super::distributed::report_number(checker, argument) {
            return;
        }
        // From 2.3 on torch takes a number for the accelerator that there is.
        let is_taken_for_cuda = crate::support::number(checker.options.torch.name()) < Some(2_003_000);
        if is_taken_for_cuda && may_be_number(checker, argument) && !checker.is_aware() {
            let message = "a number here means a CUDA device before torch 2.3; where it is one, write `f\"npu:{number}\"`";
            checker.report(rule, FindingKind::NeedsPerson, argument.range(), checker.text(argument), message);
        }
        return;
    };
    let written = checker.text(argument);
    let is_own = written == "0" && super::distributed::has_rank(checker, argument.start());
    if !is_own {
        super::distributed::report_number(checker, argument);
    }
    let new = if is_own {
        "f\"npu:{LOCAL_RANK}\"".to_owned()
    } else if argument.is_number_literal_expr() {
        format!("\"npu:{written}\"")
    } else {
        format!("f\"npu:{{{written}}}\"")
    };
    let message = format!("change the arg at position 0 of function {last} to {new}");
    checker.replace_with_npu(rule, grade, argument.range(), new, message);
}

/// The argument of a call that is a device.
pub(crate) fn argument<'a>(checker: &Checker<'a>, call: &'a ExprCall) -> Option<&'a Expr> {
    let (last, is_method) = match &*call.func {
        Expr::Attribute(attribute) => (attribute.attr.as_str(), true),
        Expr::Name(name) => (name.id.as_str(), false),
        _ => return None,
    };
    let device = || call.arguments.find_keyword("device").map(|keyword| &keyword.value);
    match last {
        "to" | "to_empty" if is_method => device().or(call.arguments.args.first()),
        "device" if call.arguments.args.len() == 1 && is_torch(checker, call) => call.arguments.args.first(),
        _ if MAKERS.contains(&last) && (last.starts_with("new_") || is_torch(checker, call)) => device(),
        _ => None,
    }
}

fn is_torch<'a>(checker: &Checker<'a>, call: &'a ExprCall) -> bool {
    checker.scopes.path(&call.func).is_some_and(|path| path.is_in("torch"))
}

/// How sure it is that an expression is a number. Only names and attributes besides literals: they fit into an f-string
/// on every Python, and reading them twice would do no harm either.
pub(crate) fn number<'a>(checker: &Checker<'a>, expression: &'a Expr) -> Option<Grade> {
    match expression {
        Expr::NumberLiteral(literal) => literal.value.is_int().then_some(Grade::Safe),
        Expr::Name(name) => always_a_number(checker, name.id.as_str()).then_some(Grade::Likely),
        Expr::Attribute(attribute) if is_of_a_name(attribute) => {
            let name = attribute.attr.as_str();
            let is_option =
                checker.facts.number_options.get(name) == Some(&true) && !checker.facts.stored.contains(name);
            (name == "local_rank" || is_option).then_some(Grade::Likely)
        }
        _ => None,
    }
}

/// `args.local_rank`, and not `load().local_rank`.
fn is_of_a_name(attribute: &ExprAttribute) -> bool {
    let mut value = &attribute.value;
    while let Expr::Attribute(attribute) = &**value {
        value = &attribute.value;
    }
    value.is_name_expr()
}

/// `args.gpu`, which is a number where it was given, and may be nothing or something else.
fn may_be_number<'a>(checker: &Checker<'a>, argument: &'a Expr) -> bool {
    matches!(argument, Expr::Attribute(attribute) if checker.facts.number_options.contains_key(attribute.attr.as_str())
        && names_card(attribute.attr.as_str()))
}

/// `args.gpu`, `GPU`: what is called like the number of a card. What is called a device is one by its text more often.
fn names_number<'a>(checker: &Checker<'a>, argument: &'a Expr) -> bool {
    let name = match argument {
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        Expr::Name(name) => name.id.as_str(),
        _ => return false,
    };
    may_be_number(checker, argument)
        || name
            .split('_')
            .any(|part| ["gpu", "cuda", "card"].iter().any(|word| part.eq_ignore_ascii_case(word)))
}

fn names_card(name: &str) -> bool {
    name.split('_').any(|part| matches!(part, "gpu" | "gpus" | "cuda" | "device" | "rank" | "card"))
}

/// What one binding says of its name.
enum Evidence<'a> {
    Number,
    /// A number if this name is one: `rank % 8`.
    If(&'a str),
    Other,
}

/// Bindings that are looked at for one name. A program may bind names in circles (`i = i + 1`) or thousands of times.
const MOST_BINDINGS: usize = 200;

/// Whether all bindings of a name, and of the names that these are computed from, are numbers, and one is so by itself.
fn always_a_number<'a>(checker: &Checker<'a>, name: &'a str) -> bool {
    let (mut names, mut next) = (vec![name], 0);
    let (mut looked_at, mut has_number) = (0, false);
    while let Some(name) = names.get(next) {
        next += 1;
        let Some(bindings) = checker.scopes.bindings(name).filter(|bindings| !bindings.is_empty()) else {
            return false;
        };
        looked_at += bindings.len();
        if looked_at > MOST_BINDINGS {
            return false;
        }
        for binding in bindings {
            match evidence(checker, binding) {
                Evidence::Number => has_number = true,
                Evidence::If(other) if names.contains(&other) => {}
                Evidence::If(other) => names.push(other),
                Evidence::Other => return false,
            }
        }
    }
    has_number
}

fn evidence<'a>(checker: &Checker<'a>, binding: &Binding<'a>) -> Evidence<'a> {
    let is_number = match binding {
        Binding::Value(value) => {
            // `rank % torch.cuda.device_count()`; an operation leans to the left, so this is as long as its text.
            let mut value = *value;
            while let Expr::BinOp(operation) = value {
                value = &operation.left;
            }
            if let Expr::Name(name) = value {
                return Evidence::If(name.id.as_str());
            }
            match value {
                Expr::NumberLiteral(literal) => literal.value.is_int(),
                Expr::Call(call) => gives_number(checker, call),
                Expr::Attribute(attribute) => attribute.attr.as_str() == "local_rank",
                _ => false,
            }
        }
        Binding::Parameter(parameter) => match &parameter.parameter.annotation {
            Some(annotation) => matches!(&**annotation, Expr::Name(name) if name.id.as_str() == "int"),
            None => matches!(parameter.parameter.name.as_str(), "rank" | "local_rank"),
        },
        Binding::Path(_) | Binding::Nothing | Binding::Opaque => false,
    };
    if is_number { Evidence::Number } else { Evidence::Other }
}

fn gives_number<'a>(checker: &Checker<'a>, call: &'a ExprCall) -> bool {
    match &*call.func {
        Expr::Name(name) if matches!(name.id.as_str(), "int" | "get_rank" | "get_local_rank") => true,
        Expr::Attribute(attribute) if matches!(attribute.attr.as_str(), "get_rank" | "get_local_rank") => {
            true
        }
        // Other accelerators have functions of the same names.
        callee => checker.scopes.path(callee).is_some_and(|path| {
            let owner = ["torch.cuda", "torch.npu", "torch_npu.npu"].iter().find(|owner| path.is_in(owner));
            owner
                .is_some_and(|owner| matches!(&path.full[owner.len()..], ".current_device" | ".device_count"))
        }),
    }
}
