//! Calls of PyTorch that the vendor lists as unsupported, or not at all.

use super::{Grade, Rule, torch_cuda};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Method, Reference};
use crate::scope::Binding;
use crate::support::Support;
use ruff_python_ast::Expr;
use ruff_text_size::Ranged as _;

pub(crate) const RULE: Rule = Rule {
    name: "unsupported-api",
    grade: Grade::NeedsPerson,
    what: "Looks every call, base class and decorator of PyTorch up in the vendor's lists for the version given with `-v`. \
           Those that are listed as unsupported go to `unsupported_api.csv`, those that no list names to `unknown_api.csv`, if they \
           compute on the device: layers, functions, compiled operators. What is PyTorch's frame around them (`nn.Parameter`, `Size`, \
           loaders, optimisers, hooks) is the same everywhere.",
    why: "A call without a kernel for NPUs fails when it is reached, or runs on the host and is slow.",
    before: "torch.cuda.get_device_capability()\n",
    after: "torch.cuda.get_device_capability()\n",
    references: &["https://www.hiascend.com/document"],
    hooks: Hooks { reference: Some(on_reference), method: Some(on_method), ..Hooks::NONE },
};

/// What the properties of an NPU do not have.
const OF_CUDA_DEVICES: &[&str] = &[
    "major",
    "minor",
    "is_integrated",
    "is_multi_gpu_board",
    "warp_size",
    "regs_per_multiprocessor",
    "shared_memory_per_block",
    "gcnArchName",
];

/// `torch.cuda.get_device_properties(0).major`, also of a name that holds the properties.
fn on_method<'a>(checker: &mut Checker<'a>, rule: &'static Rule, method: &Method<'a>) {
    let name = method.name.as_str();
    if !OF_CUDA_DEVICES.contains(&name) {
        return;
    }
    let are_properties = |value: &'a Expr| {
        let Expr::Call(call) = value else { return false };
        let path = checker.scopes.path(&call.func);
        path.is_some_and(|path| {
            matches!(
                path.full.as_str(),
                "torch.cuda.get_device_properties" | "torch.npu.get_device_properties"
            )
        })
    };
    let is_one = match method.receiver {
        Expr::Name(holder) => checker.scopes.bindings(holder.id.as_str()).is_some_and(|bindings| {
            bindings.iter().take(MOST_BINDINGS).all(|binding| match binding {
                Binding::Value(value) => are_properties(value),
                _ => false,
            })
        }),
        value => are_properties(value),
    };
    if is_one {
        let path = format!("torch.cuda.get_device_properties().{name}");
        let advice = "describes CUDA hardware; the properties of an NPU have `name` and `total_memory`";
        checker.report_lacking(rule, method.name.range, &path, advice);
    }
}

/// Bindings of one name that are looked at.
const MOST_BINDINGS: usize = 20;

fn on_reference<'a>(checker: &mut Checker<'a>, rule: &'static Rule, reference: &Reference<'a>) {
    if !reference.path.is_in("torch") || reference.is_stored {
        return;
    }
    let is_used = reference.call.is_some()
        || matches!(
            checker.ancestors.last(),
            Some(ruff_python_ast::AnyNodeRef::Decorator(_) | ruff_python_ast::AnyNodeRef::Arguments(_))
        ) && checker.is_base_class();
    let full = reference.path.full.as_str();
    // What is missing from `torch.cuda` has been said with better advice.
    if !is_used || torch_cuda::missing(checker, full).is_some() {
        return;
    }
    let version = checker.options.torch;
    let range = reference.expression.range();
    match version.support(full) {
        Support::Supported => {}
        Support::Unsupported => {
            let message = format!("torch_npu for torch {} does not support it", version.name());
            checker.report(rule, FindingKind::Unsupported, range, full, message);
        }
        Support::Unlisted if !needs_kernel(full) => {}
        Support::Unlisted => {
            let message = format!("no list for torch {} names it", version.name());
            checker.report(rule, FindingKind::Unknown, range, full, message);
        }
    }
}

/// Modules whose functions compute.
const COMPUTING: &[&str] = &[
    "torch",
    "torch.nn.functional",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.sparse",
    "torch.nested",
    "torch.nn.attention.flex_attention",
];
/// What of `torch.nn` holds other layers.
const FRAME: &[&str] = &[
    "Module",
    "ModuleList",
    "ModuleDict",
    "Sequential",
    "Parameter",
    "ParameterList",
    "ParameterDict",
    "Buffer",
    "Identity",
];
/// Beginnings of functions of `torch` itself that ask or set something.
const ASKING: &[&str] = &[
    "set_",
    "get_",
    "is_",
    "has_",
    "use_",
    "are_",
    "_",
    "compile",
    "device",
    "load",
    "inference_mode",
    "typename",
];

/// Whether a call that no list names would run on the device, so that it matters whether there is a kernel for it.
fn needs_kernel(path: &str) -> bool {
    let Some((module, name)) = path.rsplit_once('.') else { return false };
    let is_class = name.starts_with(|c: char| c.is_ascii_uppercase());
    match module {
        "torch.nn" => is_class && !FRAME.contains(&name),
        "torch" => !is_class && !ASKING.iter().any(|word| name.starts_with(word)),
        _ => {
            !is_class && COMPUTING.contains(&module)
                || ["torch.cuda", "torch.ops", "torch.classes"]
                    .iter()
                    .any(|owner| crate::scope::is_in(module, owner))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::needs_kernel;

    #[test]
    fn the_frame_around_layers_and_functions_needs_no_kernel() {
        for name in [
            "torch.nn.Parameter",
            "torch.Size",
            "torch.__version__.split",
            "torch.utils.data.DataLoader",
            "torch.xpu.synchronize",
        ] {
            assert!(!needs_kernel(name), "{name}");
        }
        for name in [
            "torch.nn.NewLayer",
            "torch.new_function",
            "torch.ops.mine.scan",
            "torch.cuda.new",
            "torch.nn.functional.new",
        ] {
            assert!(needs_kernel(name), "{name}");
        }
    }
}
