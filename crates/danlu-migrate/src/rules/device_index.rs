//! Devices given as bare numbers.

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::hooks::Hooks;
use crate::scope::Binding;
use ruff_python_ast::{Expr, ExprCall};
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
    let Some(grade) = number(checker, argument) else { return };
    let written = checker.text(argument);
    let new = if argument.is_number_literal_expr() {
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
        Expr::Name(name) => match checker.scopes.bindings(name.id.as_str())? {
            [] => None,
            bindings => {
                let all = bindings.iter().all(|binding| is_number_binding(checker, binding));
                all.then_some(Grade::Likely)
            }
        },
        Expr::Attribute(attribute) => {
            matches!(attribute.attr.as_str(), "local_rank").then_some(Grade::Likely)
        }
        _ => None,
    }
}

fn is_number_binding<'a>(checker: &Checker<'a>, binding: &Binding<'a>) -> bool {
    match binding {
        Binding::Value(Expr::NumberLiteral(literal)) => literal.value.is_int(),
        Binding::Value(Expr::Call(call)) => match &*call.func {
            Expr::Name(name) => matches!(name.id.as_str(), "int" | "get_rank" | "get_local_rank"),
            Expr::Attribute(attribute) => {
                matches!(
                    attribute.attr.as_str(),
                    "get_rank" | "get_local_rank" | "current_device" | "device_count"
                )
            }
            _ => false,
        },
        Binding::Value(Expr::Attribute(attribute)) => attribute.attr.as_str() == "local_rank",
        Binding::Value(Expr::BinOp(operation)) => {
            // `rank % torch.cuda.device_count()`
            number(checker, &operation.left).is_some() && !operation.left.is_string_literal_expr()
        }
        Binding::Parameter(parameter) => match &parameter.parameter.annotation {
            Some(annotation) => matches!(&**annotation, Expr::Name(name) if name.id.as_str() == "int"),
            None => matches!(parameter.parameter.name.as_str(), "rank" | "local_rank"),
        },
        _ => false,
    }
}
