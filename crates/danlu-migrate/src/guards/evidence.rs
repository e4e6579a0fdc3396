//! What tells that code is for CUDA only: names, texts and modules.

use std::collections::HashSet;

use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged as _;

use super::Guards;
use super::conditions::names_cuda;
use crate::rules::cuda_only;

/// Parts of names that only code for CUDA has.
const WORDS: &[&str] = &[
    "triton",
    "tensorrt",
    "trt",
    "polygraphy",
    "cupy",
    "nvml",
    "pynvml",
    "nvtx",
    "cutlass",
    "xformers",
    "cudart",
    "capability",
    "bitsandbytes",
    "bnb",
    "cudagraph",
    "cudagraphs",
    "nvcc",
];

/// What sends people there speaks of NVIDIA's libraries.
const NVIDIAS_PAGES: &str = "nvidia.com";

/// Looks for names and texts that only code for CUDA has.
pub(super) struct GuardEvidence<'g, 'c, 'a> {
    pub(super) guards: &'g Guards<'c, 'a>,
    pub(super) reason: Option<String>,
    /// Whether it is a condition that is looked at, and not what it guards.
    pub(super) is_condition: bool,
}

impl<'a> SourceOrderVisitor<'a> for GuardEvidence<'_, '_, 'a> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if self.reason.is_some() {
            return;
        }
        // What may hold others of its kind is read once, however deep it stands.
        let nests = matches!(
            expression,
            Expr::BoolOp(_)
                | Expr::If(_)
                | Expr::ListComp(_)
                | Expr::SetComp(_)
                | Expr::DictComp(_)
                | Expr::Generator(_)
        );
        let key = (expression.range(), self.is_condition, self.guards.follows.get());
        if nests && let Some(known) = self.guards.read.borrow().get(&key) {
            self.reason.clone_from(known);
            return;
        }
        self.reason = match expression {
            Expr::Lambda(_) => return,
            // A compiled module of the project's own: `deform_conv_ext.forward(x)`.
            Expr::Call(call) => compiled_module(&call.func).or_else(|| self.guards.in_function(&call.func)),
            Expr::Name(name) if matches!(name.id.as_str(), "CUDA_HOME" | "CUDAExtension") => {
                Some(name.id.to_string())
            }
            Expr::Name(name)
                if name.ctx.is_load()
                    && (has_word(name.id.as_str()) || self.guards.flags.contains(name.id.as_str())) =>
            {
                Some(name.id.to_string())
            }
            // `isinstance(self, CUDAOpBuilder)`
            Expr::Name(name) if self.is_condition && is_class_for_cuda(name.id.as_str()) => {
                Some(name.id.to_string())
            }
            Expr::Name(name) if self.is_condition && asks_to_compile(name.id.as_str()) => {
                Some(name.id.to_string())
            }
            Expr::Attribute(attribute)
                if has_word(attribute.attr.as_str())
                    || self.is_condition && asks_to_compile(attribute.attr.as_str()) =>
            {
                Some(attribute.attr.to_string())
            }
            Expr::Attribute(attribute) if matches!(attribute.attr.as_str(), "cuda" | "hip") => {
                let is_version =
                    matches!(&*attribute.value, Expr::Attribute(owner) if owner.attr.as_str() == "version");
                is_version.then(|| self.guards.checker.text(expression).to_owned())
            }
            // NPUs have properties, but not these.
            Expr::Attribute(attribute) if matches!(attribute.attr.as_str(), "major" | "minor") => {
                let is_of_device = matches!(&*attribute.value, Expr::Call(call)
                    if matches!(&*call.func, Expr::Attribute(callee) if callee.attr.as_str() == "get_device_properties"));
                is_of_device.then(|| self.guards.checker.text(expression).to_owned())
            }
            Expr::StringLiteral(text)
                if is_cuda_source(text.value.to_str())
                    || matches!(text.value.to_str(), "nvcc" | "WITH_CUDA") =>
            {
                Some(text.value.to_str().to_owned())
            }
            Expr::StringLiteral(_) | Expr::FString(_) => {
                self.guards.checker.text(expression).contains(NVIDIAS_PAGES).then(|| NVIDIAS_PAGES.to_owned())
            }
            _ => None,
        };
        source_order::walk_expr(self, expression);
        if nests {
            self.guards.read.borrow_mut().insert(key, self.reason.clone());
        }
    }
}

pub(super) fn has_word(name: &str) -> bool {
    let is_graph = || name.len() < 80 && name.to_ascii_lowercase().contains("cuda_graph");
    is_graph() || name.split('_').any(|part| WORDS.iter().any(|word| part.eq_ignore_ascii_case(word)))
}

/// `CUDAOpBuilder`, but not `CUDA` and `CUDA_AVAILABLE`.
fn is_class_for_cuda(name: &str) -> bool {
    name.strip_prefix("CUDA").is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_uppercase()) && rest.contains(|c: char| c.is_ascii_lowercase())
    })
}

/// `args.compile`, `compile_config`, `is_unet_compiled`: what is compiled runs as kernels of Triton.
fn asks_to_compile(name: &str) -> bool {
    name.split('_').any(|part| matches!(part, "compile" | "compiled"))
}

fn compiled_module(callee: &Expr) -> Option<String> {
    let Expr::Attribute(attribute) = callee else { return None };
    let Expr::Name(module) = &*attribute.value else { return None };
    let name = module.id.as_str();
    let is_compiled = ["_ext", "_cuda", "_C"].iter().any(|end| name.ends_with(end));
    is_compiled.then(|| name.to_owned())
}

/// `kernels/scan.cu`, `*.cu`
fn is_cuda_source(text: &str) -> bool {
    text.rsplit_once('.').is_some_and(|(_, extension)| extension == "cu")
}

/// `onnxruntime-gpu`, `paddlepaddle-gpu>=3.0.0`, and the end of such a name.
pub(super) fn is_package_for_cuda(text: &str) -> bool {
    let name = text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_')).next();
    name.is_some_and(|name| name.ends_with("-gpu"))
}

/// Names that are true where a library for CUDA only is there: `try: import flash_attn; has_flash = True`. Also what is imported from
/// one: a block that calls it needs it.
pub(super) fn flags(body: &[Stmt]) -> HashSet<&str> {
    let mut flags = HashSet::new();
    for statement in body {
        imported_for_cuda(statement, &mut flags);
        let Stmt::Try(attempt) = statement else { continue };
        attempt.body.iter().for_each(|statement| imported_for_cuda(statement, &mut flags));
        let imports = attempt.body.iter().any(|statement| match statement {
            Stmt::Import(import) => import.names.iter().any(|alias| is_missing(alias.name.as_str())),
            Stmt::ImportFrom(import) => import.level == 0 && import.module.as_deref().is_some_and(is_missing),
            _ => false,
        });
        for statement in attempt.body.iter().chain(&attempt.orelse).filter(|_| imports) {
            if let Stmt::Assign(assign) = statement
                && let ([Expr::Name(name)], Expr::BooleanLiteral(_)) =
                    (assign.targets.as_slice(), &*assign.value)
            {
                flags.insert(name.id.as_str());
            }
        }
    }
    flags
}

/// Ascend has a build of apex, which has this much of it.
fn is_missing(module: &str) -> bool {
    cuda_only::advice(module).is_some() && !["apex", "apex.amp", "apex.parallel"].contains(&module)
}

fn imported_for_cuda<'a>(statement: &'a Stmt, names: &mut HashSet<&'a str>) {
    match statement {
        Stmt::Import(import) => {
            for alias in import.names.iter().filter(|alias| is_missing(alias.name.as_str())) {
                let first = alias.name.split('.').next().unwrap_or_default();
                names.insert(alias.asname.as_ref().map_or(first, |name| name.as_str()));
            }
        }
        Stmt::ImportFrom(import) if import.level == 0 && import.module.as_deref().is_some_and(is_missing) => {
            names.extend(
                import.names.iter().map(|alias| alias.asname.as_ref().unwrap_or(&alias.name).as_str()),
            );
        }
        _ => {}
    }
}

/// A library of others, or a compiled module: `import alignment_train_cuda_binding`.
pub(super) fn only_for_cuda(module: &str) -> Option<String> {
    let last = module.rsplit('.').next().unwrap_or(module);
    let is_compiled = !crate::scope::is_in(module, "torch") && last.contains('_') && names_cuda(last);
    (is_compiled || cuda_only::advice(module).is_some()).then(|| module.to_owned())
}
