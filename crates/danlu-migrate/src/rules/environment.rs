//! Environment variables.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{TextRange, TextSize};

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Text, TextShape};
use crate::text::words;

pub(crate) const RULE: Rule = Rule {
    name: "environment",
    grade: Grade::Safe,
    what: "Turns variables that have a counterpart into it: `CUDA_VISIBLE_DEVICES` into `ASCEND_RT_VISIBLE_DEVICES`, \
           `CUDA_LAUNCH_BLOCKING` into `ASCEND_LAUNCH_BLOCKING`, `PYTORCH_CUDA_ALLOC_CONF` into `PYTORCH_NPU_ALLOC_CONF`, \
           `NCCL_SOCKET_IFNAME` into `HCCL_SOCKET_IFNAME`; in Python, shell scripts, Makefiles, Dockerfiles and configuration. \
           Others of CUDA and NCCL are reported.",
    why: "CANN and torch_npu read other names. A variable that nobody reads fails silently: all devices stay visible.",
    before: "os.environ[\"CUDA_VISIBLE_DEVICES\"] = \"0,1\"\n",
    after: "os.environ[\"ASCEND_RT_VISIBLE_DEVICES\"] = \"0,1\"\n",
    references: &["https://www.hiascend.com/document"],
    hooks: Hooks { text: Some(on_text), call: Some(on_call), ..Hooks::NONE },
};

/// Names with a counterpart that takes the same values.
pub(crate) const COUNTERPARTS: &[(&str, &str)] = &[
    ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"),
    ("CUDA_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING"),
    ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF"),
    ("NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME"),
];

/// Families whose other members mean nothing to an NPU.
const FAMILIES: &[&str] = &["CUDA_", "NCCL_", "TORCH_NCCL_", "CUBLAS_", "CUDNN_", "NVIDIA_", "TORCH_CUDA_"];

pub(crate) fn counterpart(name: &str) -> Option<&'static str> {
    COUNTERPARTS.iter().find(|(cuda, _)| *cuda == name).map(|(_, npu)| *npu)
}

/// Whether a word is a variable that has a counterpart, on either side.
pub(crate) fn is_of_one_device(name: &str) -> bool {
    COUNTERPARTS.iter().any(|(cuda, npu)| *cuda == name || *npu == name)
}

/// Members of other families that are about CUDA: MVAPICH2's switch for buffers on devices.
const OTHERS: &[&str] = &["MV2_USE_CUDA"];

/// Whether a word is a variable that only CUDA's libraries read.
pub(crate) fn is_foreign(name: &str) -> bool {
    if OTHERS.contains(&name) {
        return true;
    }
    name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        && FAMILIES.iter().any(|family| name.strip_prefix(family).is_some_and(|rest| !rest.is_empty()))
}

pub(crate) const FOREIGN: &str = "a variable of CUDA's libraries; nothing on an NPU reads it";

/// `dict(os.environ, CUDA_VISIBLE_DEVICES="0")`
fn on_call<'a>(checker: &mut Checker<'a>, rule: &'static Rule, call: &'a ExprCall) {
    let is_table = match &*call.func {
        Expr::Name(name) => name.id.as_str() == "dict",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "update",
        _ => false,
    };
    for name in call.arguments.keywords.iter().filter_map(|keyword| keyword.arg.as_ref()).filter(|_| is_table)
    {
        if let Some(new) = counterpart(name.as_str()) {
            let message = format!("replace attribute \"{name}\" with \"{new}\"");
            checker.replace(rule, Grade::Safe, name.range, new, message);
        }
    }
}

/// `"CUDA_VISIBLE_DEVICES=0 python train.py"`: a command, or a message about one.
fn on_command<'a>(checker: &mut Checker<'a>, rule: &'static Rule, text: &Text<'a>) {
    for (at, word) in words(text.value) {
        let Some(new) = counterpart(word).filter(|_| text.value[at + word.len()..].starts_with('=')) else {
            continue;
        };
        let (Ok(at), Ok(length)) = (TextSize::try_from(at), TextSize::try_from(word.len())) else { continue };
        let range = TextRange::at(text.range.start() + at, length);
        let message = format!("replace string \"{word}\" with \"{new}\"");
        checker.replace(rule, Grade::Likely, range, new, message);
    }
}

fn on_text<'a>(checker: &mut Checker<'a>, rule: &'static Rule, text: &Text<'a>) {
    on_command(checker, rule, text);
    if text.shape != TextShape::Whole {
        return;
    }
    if let Some(new) = counterpart(text.value) {
        let message = format!("replace string \"{}\" with \"{new}\"", text.value);
        checker.replace(rule, Grade::Safe, text.range, new, message);
    } else if is_foreign(text.value) && !checker.is_aware() {
        checker.report(rule, FindingKind::NeedsPerson, text.range, text.value, FOREIGN);
    }
}
