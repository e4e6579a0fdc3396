//! Which names of a file hold devices, told by how they are used: `x.to(where)` makes `where` one.
//!
//! One walk without scopes. It collects names, not values, so a name that is a device in one function counts as one in
//! the whole file; strings that are given to it still have to spell a device to be changed.

use std::collections::HashSet;

use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor};
use ruff_python_ast::{Arguments, Expr, ExprCall, ModModule, Stmt};

/// Names that our rules would take for PyTorch's, so a project that defines them itself is asked about.
const WATCHED: &[&str] = &["cuda", "is_cuda", "npu"];

#[derive(Debug, Default)]
pub(crate) struct DeviceUse<'a> {
    /// Variables.
    pub(crate) variables: HashSet<&'a str>,
    /// Attributes and string keys.
    pub(crate) attributes: HashSet<&'a str>,
    /// Function, position without `self`, and parameter.
    pub(crate) parameters: Vec<(&'a str, usize, &'a str)>,
    pub(crate) own_definitions: HashSet<&'a str>,
}

impl<'a> DeviceUse<'a> {
    pub(crate) fn of(module: &'a ModModule) -> Self {
        let mut found = DeviceUse::default();
        found.visit_body(&module.body);
        found
    }

    fn note(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) => {
                self.variables.insert(name.id.as_str());
            }
            Expr::Attribute(attribute) => {
                self.attributes.insert(attribute.attr.as_str());
            }
            Expr::Subscript(subscript) => {
                if let Expr::StringLiteral(key) = &*subscript.slice {
                    self.attributes.insert(key.value.to_str());
                }
            }
            Expr::Call(call) => {
                // `config.get("where")`
                if let (Expr::Attribute(method), Some(Expr::StringLiteral(key))) =
                    (&*call.func, call.arguments.args.first())
                    && method.attr.as_str() == "get"
                {
                    self.attributes.insert(key.value.to_str());
                }
            }
            _ => {}
        }
    }

    fn note_arguments(&mut self, callee: &Expr, arguments: &'a Arguments) {
        for keyword in &arguments.keywords {
            if keyword.arg.as_ref().is_some_and(|name| is_device_keyword(name)) {
                self.note(&keyword.value);
            }
        }
        if let Some(position) = device_position(callee)
            && let Some(argument) = arguments.args.get(position)
        {
            self.note(argument);
        }
    }
}

/// Where the last name of a callee alone tells that an argument is a device.
fn device_position(callee: &Expr) -> Option<usize> {
    let name = match callee {
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        Expr::Name(name) => name.id.as_str(),
        _ => return None,
    };
    match name {
        "to" | "to_empty" | "device" | "set_default_device" | "autocast" => Some(0),
        _ => None,
    }
}

/// Arguments of PyTorch, and of most code around it, that take devices.
pub(crate) fn is_device_keyword(name: &str) -> bool {
    matches!(name, "device" | "device_type" | "map_location" | "devices" | "default_device" | "output_device")
        || name.ends_with("_device")
        || name.starts_with("device_")
            && !matches!(name, "device_ids" | "device_id" | "device_count" | "device_mesh")
}

impl<'a> SourceOrderVisitor<'a> for DeviceUse<'a> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(ExprCall { func, arguments, .. }) = expression {
            self.note_arguments(func, arguments);
        }
        source_order::walk_expr(self, expression);
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                if WATCHED.contains(&function.name.as_str()) {
                    self.own_definitions.insert(function.name.as_str());
                }
                let before = std::mem::take(&mut self.variables);
                source_order::walk_stmt(self, statement);
                let parameters = function.parameters.iter_non_variadic_params();
                let names: Vec<&str> =
                    parameters.map(|parameter| parameter.parameter.name.as_str()).collect();
                let is_method = matches!(names.first(), Some(&("self" | "cls")));
                for (index, name) in names.into_iter().enumerate() {
                    if self.variables.contains(name) {
                        // A call does not write the first parameter of a method.
                        let index = index - usize::from(is_method && index > 0);
                        self.parameters.push((function.name.as_str(), index, name));
                    }
                }
                self.variables.extend(before);
            }
            Stmt::ClassDef(class) => {
                // A class is called by its name, with the parameters of its constructor.
                let first = self.parameters.len();
                source_order::walk_stmt(self, statement);
                for parameter in &mut self.parameters[first..] {
                    if parameter.0 == "__init__" {
                        parameter.0 = class.name.as_str();
                    }
                }
            }
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    if let Expr::Attribute(attribute) = target
                        && attribute.attr.as_str() == "is_cuda"
                    {
                        self.own_definitions.insert(attribute.attr.as_str());
                    }
                }
                source_order::walk_stmt(self, statement);
            }
            _ => source_order::walk_stmt(self, statement),
        }
    }
}
