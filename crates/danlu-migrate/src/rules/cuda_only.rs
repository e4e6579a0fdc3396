//! Libraries that exist for CUDA only.

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Reference, Text, TextShape};
use ruff_python_ast::{Expr, ExprCall, StmtImport, StmtImportFrom};
use ruff_text_size::{Ranged as _, TextRange};

pub(crate) const RULE: Rule = Rule {
    name: "cuda-only-library",
    grade: Grade::NeedsPerson,
    what: "Reports imports of libraries that need CUDA, with what replaces them: flash-attn, xformers, bitsandbytes, Triton, \
           CuPy, Numba's CUDA, PyCUDA, NVML, TensorRT, DALI, Transformer Engine, apex's compiled parts, extensions built \
           from `.cu` files, kernels of the Hub (`kernels.get_kernel`), and the CUDA provider of ONNX Runtime. Where another file of the \
           project hands such a library on (`from .compat import *`, `compat.triton.jit`), its first use is reported.",
    why: "No change of names makes a compiled CUDA kernel run on an NPU. What a replacement takes for arguments differs, so a \
          person has to write the call.",
    before: "from flash_attn import flash_attn_func\n",
    after: "from flash_attn import flash_attn_func\n",
    references: &["https://www.hiascend.com/document"],
    hooks: Hooks {
        import: Some(on_import),
        import_from: Some(on_import_from),
        call: Some(on_call),
        text: Some(on_text),
        reference: Some(on_reference),
        ..Hooks::NONE
    },
};

/// Module and what to use instead. Also what requirements are checked against.
pub(crate) const LIBRARIES: &[(&str, &str)] = &[
    (
        "flash_attn",
        "use `torch_npu.npu_fusion_attention`, or `torch.nn.functional.scaled_dot_product_attention`",
    ),
    ("flash_attn_interface", "use `torch_npu.npu_fusion_attention`"),
    (
        "xformers",
        "use `torch_npu.npu_fusion_attention`, or `torch.nn.functional.scaled_dot_product_attention`",
    ),
    (
        "bitsandbytes",
        "its optimisers and 8-bit layers are CUDA kernels; use `torch.optim` or `torch_npu.optim.NpuFusedAdamW`",
    ),
    ("triton", "kernels have to be rewritten, with triton-ascend or Ascend C; plain PyTorch runs as it is"),
    ("cupy", "use NumPy on the host or PyTorch on the device"),
    ("numba.cuda", "kernels have to be rewritten, with Ascend C or plain PyTorch"),
    ("pycuda", "kernels have to be rewritten, with Ascend C or plain PyTorch"),
    ("pynvml", "reads NVIDIA's driver; read `npu-smi info` instead"),
    ("py3nvml", "reads NVIDIA's driver; read `npu-smi info` instead"),
    ("GPUtil", "reads `nvidia-smi`; read `npu-smi info` instead"),
    ("tensorrt", "inference for NVIDIA; use ATC and ACL, or torch_npu itself"),
    ("torch_tensorrt", "inference for NVIDIA; use ATC and ACL, or torch_npu itself"),
    ("nvidia.dali", "loads data on NVIDIA devices; use a `DataLoader` on the host"),
    ("transformer_engine", "FP8 kernels for NVIDIA; MindSpeed has fused layers for Ascend"),
    ("amp_C", "apex's compiled part; Ascend's build of apex does not have it"),
    ("apex_C", "apex's compiled part; Ascend's build of apex does not have it"),
    ("fused_layer_norm_cuda", "apex's compiled part; use `torch.nn.LayerNorm`"),
    ("apex.optimizers", "use `torch_npu.optim` (`NpuFusedAdam`, `NpuFusedSGD`, …)"),
    ("apex.normalization", "use `torch.nn.LayerNorm`"),
    ("apex", "install Ascend's build of apex; `torch.npu.amp` needs none"),
    ("mamba_ssm", "its kernels are CUDA and Triton; there is no replacement"),
    ("causal_conv1d", "its kernels are CUDA; use `torch.nn.Conv1d`"),
    ("faiss.contrib.torch_utils", "FAISS on devices is CUDA; use it on the host"),
    ("spconv", "sparse convolutions are CUDA kernels; `mx_driving` has some for Ascend"),
    ("MinkowskiEngine", "sparse convolutions are CUDA kernels; there is no replacement"),
    ("ctranslate2", "computes on CUDA or the CPU only; a model of transformers runs on NPUs"),
    ("faster_whisper", "computes on CUDA or the CPU only; Whisper of transformers runs on NPUs"),
    ("whisperx", "its model computes on CUDA or the CPU only; Whisper of transformers runs on NPUs"),
    ("pytorch_memlab", "reads CUDA's allocator; ask `torch.npu.memory_stats()` instead"),
    ("horovod.torch", "needs NCCL or MPI on CUDA; use `torch.distributed` with `hccl`"),
];

/// Those that take a device by its name and know CUDA and the CPU only.
pub(crate) const WITHOUT_NPUS: &[&str] = &["ctranslate2", "faster_whisper", "whisperx"];

/// Whether a call goes to one of those.
pub(crate) fn knows_no_npu<'a>(checker: &Checker<'a>, call: &'a ExprCall) -> bool {
    let path = checker.scopes.path(&call.func);
    path.is_some_and(|path| WITHOUT_NPUS.iter().any(|library| path.is_in(library)))
}

pub(crate) fn advice(module: &str) -> Option<&'static str> {
    library(module).map(|(_, advice)| *advice)
}

fn library(module: &str) -> Option<&'static (&'static str, &'static str)> {
    LIBRARIES.iter().find(|(name, _)| crate::scope::is_in(module, name))
}

const EXTENSIONS: &[&str] = &["CUDAExtension", "load", "load_inline", "CUDA_HOME", "CppExtension"];

fn on_import<'a>(checker: &mut Checker<'a>, rule: &'static Rule, import: &'a StmtImport) {
    for alias in &import.names {
        look(checker, rule, alias.range, alias.name.as_str());
    }
}

fn on_import_from<'a>(
    checker: &mut Checker<'a>,
    rule: &'static Rule,
    import: &'a StmtImportFrom,
    module: &str,
) {
    if module == "torch.utils.cpp_extension" {
        for alias in import.names.iter().filter(|alias| EXTENSIONS.contains(&alias.name.as_str())) {
            if matches!(alias.name.as_str(), "CUDAExtension" | "CUDA_HOME") {
                let message = "builds CUDA code; use `torch_npu.utils.cpp_extension.NpuExtension` and rewrite the kernels";
                checker.report(
                    rule,
                    FindingKind::NeedsPerson,
                    alias.range,
                    format!("{module}.{}", alias.name),
                    message,
                );
            }
        }
        return;
    }
    for alias in &import.names {
        // Through re-exports of the project's own modules, which may as well have modules of these names.
        let full = checker.facts.follow_text(format!("{module}.{}", alias.name));
        if import.level > 0 && full.starts_with(module) {
            continue;
        }
        if library(&full).is_some() {
            look(checker, rule, import.range, &full);
            return;
        }
    }
}

/// What comes through another file of the project, and so is in no import of this one.
fn on_reference<'a>(checker: &mut Checker<'a>, rule: &'static Rule, reference: &Reference<'a>) {
    let full = reference.path.full.as_str();
    let Some((name, _)) = library(full) else { return };
    let is_aware = checker.is_aware();
    let is_reported = checker.libraries.entry(name).or_insert(false);
    if !*is_reported && !is_aware {
        look(checker, rule, reference.expression.range(), full);
    }
}

/// ONNX Runtime itself runs anywhere; what it runs on is named in texts.
const PROVIDERS: [&str; 2] = ["CUDAExecutionProvider", "TensorrtExecutionProvider"];

fn on_text<'a>(checker: &mut Checker<'a>, rule: &'static Rule, text: &Text<'a>) {
    if text.shape == TextShape::Whole && PROVIDERS.contains(&text.value) && !checker.is_aware() {
        let message = "ONNX Runtime on NVIDIA; with onnxruntime-cann write `CANNExecutionProvider`";
        checker.report(rule, FindingKind::NeedsPerson, text.range, text.value, message);
    }
}

/// `optional_import("cupy")`, `importlib.import_module("triton")`
fn on_call<'a>(checker: &mut Checker<'a>, rule: &'static Rule, call: &'a ExprCall) {
    if checker.scopes.path(&call.func).is_some_and(|path| path.full == "kernels.get_kernel") {
        let message = "fetches a compiled kernel, which is of CUDA unless its repository says otherwise; call what it replaces on an NPU";
        checker.report(rule, FindingKind::NeedsPerson, call.range(), "kernels.get_kernel", message);
        return;
    }
    let name = match &*call.func {
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        Expr::Name(name) => name.id.as_str(),
        _ => return,
    };
    let is_import = name.split('_').any(|part| part.eq_ignore_ascii_case("import"));
    if let Some(Expr::StringLiteral(module)) = call.arguments.args.first()
        && is_import
    {
        look(checker, rule, call.range(), module.value.to_str());
    }
}

fn look(checker: &mut Checker<'_>, rule: &'static Rule, range: TextRange, module: &str) {
    if let Some((name, advice)) = library(module) {
        checker.libraries.insert(name, true);
        checker.report(rule, FindingKind::NeedsPerson, range, module, *advice);
    }
}
