//! `"cuda"`, `"cuda:0"` and `f"cuda:{i}"` where they are devices.

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Text, TextShape};
use crate::roles::StringRole;

pub(crate) const RULE: Rule = Rule {
    name: "device-string",
    grade: Grade::Safe,
    what: "Turns texts that spell a device into the NPU's: `\"cuda\"`, `\"cuda:0\"`, `f\"cuda:{rank}\"`, `\"cuda:%d\" % i`, \
           `\"cuda:{}\".format(i)`. Whether a text is a device is told by where it stands: arguments and keywords of PyTorch, \
           `map_location`, defaults of parameters and of options, variables, attributes and keys that hold devices \
           anywhere in the project, comparisons with a device, lists beside `\"cpu\"`. A bare `\"cuda\"` for which nothing \
           tells is reported, and so is an expression in a text. `\"gpu:0\"` counts where no other framework calls its devices so. Paths, messages, keys and names that only contain the word are left alone.",
    why: "The device type that torch_npu registers is called `npu`.",
    before: "device = torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")\nprint(\"cuda is fast\")\n",
    after: "device = torch.device(\"npu\" if torch.npu.is_available() else \"cpu\")\nprint(\"cuda is fast\")\n",
    references: &["https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device"],
    hooks: Hooks { text: Some(on_text), ..Hooks::NONE },
};

fn on_text<'a>(checker: &mut Checker<'a>, rule: &'static Rule, text: &Text<'a>) {
    let Some(spelled) = spelled("cuda", text.value, text.shape) else {
        return on_other_text(checker, rule, text);
    };
    let range = text.range;
    let role = checker.role(range);
    let grade = match (role, spelled) {
        (StringRole::Device(grade), _) => grade,
        // Nothing else is spelled like this.
        (StringRole::Unclear, Spelled::Numbered) => Grade::Likely,
        (StringRole::Unclear, Spelled::Bare) => {
            if checker.imports_torch() && !checker.is_aware() {
                let message = "may be a device; if it is, write \"npu\"";
                checker.report(rule, FindingKind::NeedsPerson, range, text.value, message);
            }
            return;
        }
        (StringRole::Other, _) => return,
    };
    let new = text.value.replacen("cuda", "npu", 1);
    let message = format!("replace string \"{}\" with \"{new}\"", text.value);
    checker.replace_with_npu(rule, grade, range, new, message);
}

/// Frameworks whose own devices are called `gpu:0`.
const CALL_IT_GPU: &[&str] = &["tensorflow", "paddle", "mxnet", "jax", "mindspore"];

fn on_other_text<'a>(checker: &mut Checker<'a>, rule: &'static Rule, text: &Text<'a>) {
    let range = text.range;
    // `"gpu:0"`, which people write for PyTorch's devices as well.
    if spelled("gpu", text.value, text.shape) == Some(Spelled::Numbered) && checker.imports_torch() {
        let is_other = CALL_IT_GPU.iter().any(|name| checker.source.contains(name));
        match checker.role(range) {
            StringRole::Device(_) if !is_other => {
                let new = text.value.replacen("gpu", "npu", 1);
                let message = format!("replace string \"{}\" with \"{new}\"", text.value);
                checker.replace_with_npu(rule, Grade::Likely, range, new, message);
            }
            StringRole::Other => {}
            _ if checker.is_aware() => {}
            _ => checker.report(
                rule,
                FindingKind::NeedsPerson,
                range,
                text.value,
                "may be a device; if it is PyTorch's, write \"npu\"",
            ),
        }
        return;
    }
    let is_expression = text.shape == TextShape::Whole
        && text.value.contains('(')
        && (text.value.contains("torch.cuda.")
            || text.value.contains("torch.device(") && text.value.contains("cuda"));
    if is_expression
        && checker.role(range) != StringRole::Other
        && !checker.is_aware()
        && ruff_python_parser::parse_expression(text.value.trim_start_matches('$')).is_ok()
    {
        let message = "an expression in a text, which is left as it is; if a program evaluates it, write it for `torch.npu`";
        checker.report(rule, FindingKind::NeedsPerson, range, text.value, message);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelled {
    Bare,
    Numbered,
}

/// Whether a text spells the device type `word`, and if so, whether without a number.
pub(crate) fn spells(word: &str, value: &str, shape: TextShape) -> Option<bool> {
    spelled(word, value, shape).map(|spelled| spelled == Spelled::Bare)
}

fn spelled(word: &str, value: &str, shape: TextShape) -> Option<Spelled> {
    let number = value.strip_prefix(word)?;
    if number.is_empty() && shape == TextShape::Whole {
        return Some(Spelled::Bare);
    }
    let number = number.strip_prefix(':')?;
    let is_number = match shape {
        TextShape::Whole => {
            number.is_empty()
                || number.bytes().all(|byte| byte.is_ascii_digit())
                || matches!(number, "%d" | "%s" | "%i")
                || number.starts_with('{') && number.ends_with('}') && !number.contains(' ')
        }
        TextShape::Prefix => number.is_empty(),
        TextShape::Part => false,
    };
    is_number.then_some(Spelled::Numbered)
}
