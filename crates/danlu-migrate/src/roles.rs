//! What a string is for, told by where it stands: a device, or something that only reads like one.

use ruff_python_ast::{AnyNodeRef, CmpOp, Expr, ExprCall, Operator};
use ruff_text_size::{Ranged, TextRange};

use crate::checker::Checker;
use crate::devices::{is_device_keyword, names_device};
use crate::rules::{Grade, cuda_only};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StringRole {
    Device(Grade),
    /// Certainly none: a path, a key, a message.
    Other,
    /// Nothing here tells.
    Unclear,
}

/// Device types that stand beside `cuda` in lists and tables of devices.
const NEIGHBOURS: &[&str] = &["cpu", "mps", "xpu", "xla", "meta", "hpu", "tpu", "mlu", "musa", "auto"];

/// Callees, by their last name, whose texts are names, paths or messages.
const SPEAKERS: &[&str] = &[
    "join",
    "open",
    "Path",
    "print",
    "info",
    "debug",
    "warning",
    "warn",
    "error",
    "exception",
    "log",
    "getattr",
    "hasattr",
    "setattr",
    "delattr",
    "pop",
    "import_module",
    "add_argument",
    "replace",
    "split",
    "skipif",
    "skipIf",
    "skipUnless",
    "mark",
    "run",
    "system",
    "exists",
    "register_buffer",
    "setdefault",
    "append_field",
    "ValueError",
    "RuntimeError",
    "add_scalar",
    "find",
    "load_library",
    "check_call",
    "check_output",
    "Popen",
    "which",
    "getenv",
];

impl<'a> Checker<'a> {
    /// The role of the string at `range`, whose parent is the last of the ancestors.
    pub(crate) fn role(&self, range: TextRange) -> StringRole {
        let mut child = range;
        let mut steps = self.ancestors.iter().enumerate().rev();
        while let Some((depth, node)) = steps.next() {
            match node {
                AnyNodeRef::ExprIf(conditional) if conditional.test.range().contains_range(child) => {
                    return StringRole::Unclear;
                }
                // `f"{'device' if is_new else 'cuda'}_time_total"`: a part of a name.
                AnyNodeRef::ExprIf(conditional) if [&conditional.body, &conditional.orelse].iter().any(|text| {
                    matches!(&***text, Expr::StringLiteral(text) if text.value.to_str() == "device")
                }) =>
                {
                    return StringRole::Unclear;
                }
                AnyNodeRef::ExprIf(_)
                | AnyNodeRef::ExprBoolOp(_)
                | AnyNodeRef::ExprNamed(_)
                | AnyNodeRef::ExprStarred(_)
                | AnyNodeRef::FString(_)
                | AnyNodeRef::ExprFString(_) => {}
                AnyNodeRef::ExprBinOp(operation) => match operation.op {
                    Operator::Div => return StringRole::Other,
                    Operator::Mod if !operation.left.range().contains_range(child) => {
                        return StringRole::Other;
                    }
                    _ => {}
                },
                AnyNodeRef::ExprAttribute(attribute) => {
                    // `"cuda:{}".format(i)` is still the string; any other method asks something of it.
                    if attribute.attr.as_str() != "format" {
                        return StringRole::Unclear;
                    }
                    // The call of `format` stands between.
                    steps.next();
                    child = self.ancestors[depth.saturating_sub(1)].range();
                    continue;
                }
                AnyNodeRef::Keyword(keyword) => {
                    let name = keyword.arg.as_ref().map_or("", |name| name.as_str());
                    return self.role_of_keyword(name, self.call_above(depth));
                }
                AnyNodeRef::Arguments(arguments) => {
                    let Some(index) =
                        arguments.args.iter().position(|argument| argument.range().contains_range(child))
                    else {
                        return StringRole::Unclear;
                    };
                    return self
                        .call_above(depth)
                        .map_or(StringRole::Unclear, |call| self.role_of_argument(call, index));
                }
                AnyNodeRef::ExprCompare(comparison) => return self.role_of_operand(comparison, child),
                AnyNodeRef::ExprDict(dictionary) if dictionary.items.len() > MOST_NEIGHBOURS => {
                    return StringRole::Unclear;
                }
                AnyNodeRef::ExprDict(dictionary) => {
                    for item in &dictionary.items {
                        if item.value.range().contains_range(child) {
                            return match &item.key {
                                Some(Expr::StringLiteral(key)) => self.role_of_name(key.value.to_str()),
                                _ => StringRole::Unclear,
                            };
                        }
                    }
                    return self.role_of_key(dictionary, child, depth);
                }
                AnyNodeRef::ExprList(list) => {
                    if let Some(role) = role_among(&list.elts, child) {
                        return role;
                    }
                }
                // `Literal["cpu", "cuda"]` says which texts a program takes; its tables have to follow, so a person has to.
                AnyNodeRef::ExprTuple(_)
                    if matches!(self.ancestors[..depth].last(), Some(AnyNodeRef::ExprSubscript(_))) =>
                {
                    return StringRole::Unclear;
                }
                AnyNodeRef::ExprTuple(tuple) => {
                    if let Some(role) = role_among(&tuple.elts, child) {
                        return role;
                    }
                }
                AnyNodeRef::ExprSet(set) => {
                    if let Some(role) = role_among(&set.elts, child) {
                        return role;
                    }
                }
                AnyNodeRef::StmtAssign(assign) => {
                    return assign
                        .targets
                        .first()
                        .map_or(StringRole::Unclear, |target| self.role_of_target(target));
                }
                AnyNodeRef::StmtAnnAssign(assign) => return self.role_of_target(&assign.target),
                AnyNodeRef::ParameterWithDefault(parameter) => {
                    return self.role_of_name(parameter.parameter.name.as_str());
                }
                AnyNodeRef::StmtReturn(_) => {
                    let name = self.functions.last().map_or("", |function| function.name.as_str());
                    // What is looked up by its name in a table of the project's own.
                    let is_key =
                        ["accelerator", "backend", "strategy"].iter().any(|word| name.contains(word));
                    return if names_device(name) {
                        StringRole::Device(Grade::Safe)
                    } else if is_key {
                        StringRole::Unclear
                    } else {
                        StringRole::Device(Grade::Likely)
                    };
                }
                AnyNodeRef::StmtExpr(_)
                | AnyNodeRef::ExprSubscript(_)
                | AnyNodeRef::InterpolatedElement(_) => {
                    return StringRole::Other;
                }
                _ => return StringRole::Unclear,
            }
            child = node.range();
        }
        StringRole::Unclear
    }

    fn call_above(&self, depth: usize) -> Option<&'a ExprCall> {
        self.ancestors[..depth].iter().rev().find_map(|node| match node {
            AnyNodeRef::ExprCall(call) => Some(Some(*call)),
            AnyNodeRef::Arguments(_) => None,
            _ => Some(None),
        })?
    }

    fn role_of_keyword(&self, name: &str, call: Option<&'a ExprCall>) -> StringRole {
        if call.is_some_and(|call| cuda_only::knows_no_npu(self, call)) {
            return StringRole::Other;
        }
        if is_device_keyword(name) {
            return StringRole::Device(Grade::Safe);
        }
        match (name, call) {
            ("default", Some(call)) => self.role_of_option(call),
            ("type", Some(call))
                if self.scopes.path(&call.func).is_some_and(|path| path.full == "torch.device") =>
            {
                StringRole::Device(Grade::Safe)
            }
            _ => self.role_of_name(name),
        }
    }

    /// `add_argument("--device", default="cuda")`
    fn role_of_option(&self, call: &'a ExprCall) -> StringRole {
        let options = call.arguments.args.iter().filter_map(|argument| match argument {
            Expr::StringLiteral(text) => Some(text.value.to_str().trim_start_matches('-')),
            _ => None,
        });
        let destination = call.arguments.find_keyword("dest").and_then(|keyword| match &keyword.value {
            Expr::StringLiteral(text) => Some(text.value.to_str()),
            _ => None,
        });
        for option in options.chain(destination) {
            if let device @ StringRole::Device(_) = self.role_of_name(&option.replace('-', "_")) {
                return device;
            }
        }
        StringRole::Unclear
    }

    fn role_of_argument(&self, call: &'a ExprCall, index: usize) -> StringRole {
        let last = match &*call.func {
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            Expr::Name(name) => name.id.as_str(),
            _ => return StringRole::Unclear,
        };
        if cuda_only::knows_no_npu(self, call) {
            return StringRole::Other;
        }
        if self.scopes.path(&call.func).is_some_and(|path| path.is_in("torch")) {
            return StringRole::Device(Grade::Safe);
        }
        if let Some(parameters) = self.facts.device_parameters.get(last)
            && parameters.iter().any(|(position, _)| *position == index)
        {
            return StringRole::Device(Grade::Safe);
        }
        match last {
            "to" | "to_empty" | "type" | "device" | "set_default_device" | "autocast" | "GradScaler" => {
                StringRole::Device(Grade::Safe)
            }
            // `device.startswith("cuda")`, `config.get("device", "cuda")`
            "startswith" | "count" | "__contains__" => self.role_beside(&call.func),
            // `self.assertEqual(x.device.type, "cuda")`
            "assertEqual" | "assertNotEqual" | "assertIn" | "assertNotIn" => {
                let others = call.arguments.args.iter().enumerate().take(2).filter(|(at, _)| *at != index);
                let mut roles = others.map(|(_, other)| self.role_beside(other));
                roles.find(|role| matches!(role, StringRole::Device(_))).unwrap_or(StringRole::Unclear)
            }
            "get" if index == 1 => match call.arguments.args.first() {
                Some(Expr::StringLiteral(key)) => self.role_of_name(key.value.to_str()),
                _ => StringRole::Unclear,
            },
            "get" => StringRole::Other,
            "getattr" if index == 2 => match call.arguments.args.get(1) {
                Some(Expr::StringLiteral(key)) => self.role_of_name(key.value.to_str()),
                _ => StringRole::Unclear,
            },
            _ if SPEAKERS.contains(&last) => StringRole::Other,
            _ if names_device(last) => StringRole::Device(Grade::Likely),
            _ => StringRole::Unclear,
        }
    }

    fn role_of_operand(&self, comparison: &'a ruff_python_ast::ExprCompare, child: TextRange) -> StringRole {
        let is_membership =
            comparison.ops.iter().any(|operator| matches!(operator, CmpOp::In | CmpOp::NotIn));
        let operands = std::iter::once(&*comparison.left).chain(&comparison.comparators);
        for operand in operands.filter(|operand| !operand.range().contains_range(child)) {
            if let device @ StringRole::Device(_) = self.role_beside(operand) {
                return device;
            }
        }
        if is_membership { StringRole::Other } else { StringRole::Unclear }
    }

    /// What the thing beside a string says of it: `x.device.type == "cuda"`, `"cuda" in str(device)`.
    fn role_beside(&self, expression: &'a Expr) -> StringRole {
        match expression {
            Expr::Name(name) => self.role_of_name(name.id.as_str()),
            Expr::Attribute(attribute) => {
                let name = attribute.attr.as_str();
                match self.role_of_name(name) {
                    StringRole::Unclear => self.role_beside(&attribute.value),
                    role => role,
                }
            }
            Expr::Call(call) => {
                let of_callee = self.role_beside(&call.func);
                match (of_callee, call.arguments.args.first()) {
                    (StringRole::Unclear, Some(argument)) => self.role_beside(argument),
                    (role, _) => role,
                }
            }
            Expr::Subscript(subscript) => match &*subscript.slice {
                Expr::StringLiteral(key) => self.role_of_name(key.value.to_str()),
                _ => self.role_beside(&subscript.value),
            },
            // `"cuda" in (device_from, device_to)`
            Expr::Tuple(tuple) => {
                let is_device =
                    |element: &Expr| matches!(element, Expr::Name(name) if is_device_keyword(&name.id));
                let is_one = tuple.elts.iter().take(MOST_IN_ROW).any(is_device);
                if is_one { StringRole::Device(Grade::Likely) } else { StringRole::Unclear }
            }
            _ => StringRole::Unclear,
        }
    }

    fn role_of_target(&self, target: &'a Expr) -> StringRole {
        match target {
            Expr::Name(name) => {
                let role = self.role_of_name(name.id.as_str());
                if role == StringRole::Unclear && self.uses.variables.contains(name.id.as_str()) {
                    return StringRole::Device(Grade::Safe);
                }
                role
            }
            Expr::Attribute(attribute) => self.role_of_name(attribute.attr.as_str()),
            Expr::Subscript(subscript) => match &*subscript.slice {
                Expr::StringLiteral(key) => self.role_of_name(key.value.to_str()),
                _ => StringRole::Unclear,
            },
            _ => StringRole::Unclear,
        }
    }

    /// Keys of a table of devices are changed only where the table is asked at once: elsewhere somebody may ask by name.
    fn role_of_key(
        &self,
        dictionary: &'a ruff_python_ast::ExprDict,
        child: TextRange,
        depth: usize,
    ) -> StringRole {
        let keys = dictionary.items.iter().filter_map(|item| match &item.key {
            Some(Expr::StringLiteral(key)) => Some(key.value.to_str()),
            _ => None,
        });
        // A row for CUDA follows what is in it: a table that is asked by the device's type must have that type.
        let is_row = |item: &ruff_python_ast::DictItem| {
            let value = self.text(&item.value);
            item.key.as_ref().is_some_and(|key| key.range().contains_range(child))
                && (value.contains("torch.cuda") || matches!(value, "\"nccl\"" | "'nccl'"))
        };
        let is_row = dictionary.items.iter().any(is_row);
        let mut has_neighbour = false;
        for key in keys {
            if key == "npu" {
                return StringRole::Other;
            }
            has_neighbour |= NEIGHBOURS.contains(&key);
        }
        let above = depth.checked_sub(1).map(|above| &self.ancestors[above]);
        let keyword = |node: &&AnyNodeRef<'a>| matches!(node, AnyNodeRef::Keyword(keyword) if keyword.arg.as_ref().is_some_and(|name| is_device_keyword(name)));
        if above.as_ref().is_some_and(keyword) {
            return StringRole::Device(Grade::Safe);
        }
        let is_asked = match above {
            Some(AnyNodeRef::ExprSubscript(subscript)) => !subscript.slice.is_string_literal_expr(),
            Some(AnyNodeRef::ExprAttribute(attribute)) => attribute.attr.as_str() == "get",
            _ => false,
        };
        if is_row || has_neighbour && is_asked {
            StringRole::Device(Grade::Likely)
        } else {
            StringRole::Unclear
        }
    }

    /// What the name of a variable, parameter, attribute, key or option says of its value.
    pub(crate) fn role_of_name(&self, name: &str) -> StringRole {
        if names_device(name) {
            return StringRole::Device(Grade::Safe);
        }
        if self.uses.attributes.contains(name)
            || self.uses.variables.contains(name)
            || self.facts.device_names.contains(name)
        {
            return StringRole::Device(Grade::Likely);
        }
        StringRole::Unclear
    }
}

/// Lists and tables of devices are short; what is longer is data, and would be read once for each of its texts.
const MOST_NEIGHBOURS: usize = 100;
const MOST_IN_ROW: usize = 8;

fn role_among(elements: &[Expr], child: TextRange) -> Option<StringRole> {
    if elements.len() > MOST_NEIGHBOURS {
        return Some(StringRole::Unclear);
    }
    let mut has_neighbour = false;
    let others = elements.iter().filter(|element| !element.range().contains_range(child));
    // Rows of a table: `[("cpu", "cuda"), ("cuda", "cuda")]`
    let others = others.flat_map(|element| match element {
        Expr::Tuple(row) if row.elts.len() <= MOST_IN_ROW => row.elts.as_slice(),
        Expr::List(row) if row.elts.len() <= MOST_IN_ROW => row.elts.as_slice(),
        single => std::slice::from_ref(single),
    });
    for element in others {
        if let Expr::StringLiteral(text) = element {
            let text = text.value.to_str();
            if text == "npu" {
                return Some(StringRole::Other);
            }
            // Beside AMD's, it is about who made the device.
            if text == "rocm" {
                return Some(StringRole::Unclear);
            }
            has_neighbour |= NEIGHBOURS.contains(&text) || text.starts_with("cuda:");
        }
    }
    has_neighbour.then_some(StringRole::Device(Grade::Likely))
}
