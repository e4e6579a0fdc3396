//! Which names of a file hold devices, told by how they are used: `x.to(where)` makes `where` one.
//!
//! One walk without scopes. It collects names, not values, so a name that is a device in one function counts as one in
//! the whole file; strings that are given to it still have to spell a device to be changed.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor};
use ruff_python_ast::{Arguments, Expr, ExprCall, ModModule, Stmt};

/// Names that our rules would take for PyTorch's, so a project that defines them itself is asked about.
const WATCHED: &[&str] = &["cuda", "is_cuda", "npu"];

#[derive(Debug, Default)]
pub(crate) struct CudaDeviceUse<'a> {
    /// Variables.
    pub(crate) variables: HashSet<&'a str>,
    /// Attributes and string keys.
    pub(crate) attributes: HashSet<&'a str>,
    /// Function, position without `self`, and parameter.
    pub(crate) parameters: Vec<(&'a str, usize, &'a str)>,
    pub(crate) own_definitions: HashSet<&'a str>,
    /// Options that hold numbers (`add_argument("--gpu", type=int)`), and whether they always do.
    pub(crate) number_options: HashMap<String, bool>,
    /// Attributes that something is stored in.
    pub(crate) stored: HashSet<&'a str>,
}

impl<'a> CudaDeviceUse<'a> {
    pub(crate) fn of(module: &'a ModModule) -> Self {
        let mut found = CudaDeviceUse::default();
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

    fn note_stored(&mut self, target: &'a Expr) {
        if let Expr::Attribute(attribute) = target {
            self.stored.insert(attribute.attr.as_str());
            if attribute.attr.as_str() == "is_cuda" {
                self.own_definitions.insert(attribute.attr.as_str());
            }
        }
    }

    /// `is_cuda = False` in a class.
    fn note_class_attribute(&mut self, statement: &'a Stmt) {
        let targets = match statement {
            Stmt::Assign(assign) => assign.targets.as_slice(),
            Stmt::AnnAssign(assign) => std::slice::from_ref(&*assign.target),
            _ => return,
        };
        for target in targets {
            if let Expr::Name(name) = target
                && name.id.as_str() == "is_cuda"
            {
                self.own_definitions.insert(name.id.as_str());
            }
        }
    }

    /// `parser.add_argument("--gpu", type=int, default=0)`
    fn note_option(&mut self, call: &'a ExprCall) {
        if !matches!(&*call.func, Expr::Attribute(attribute) if attribute.attr.as_str() == "add_argument") {
            return;
        }
        let text = |expression: &'a Expr| match expression {
            Expr::StringLiteral(text) => Some(text.value.to_str()),
            _ => None,
        };
        let value = |name: &str| call.arguments.find_keyword(name).map(|keyword| &keyword.value);
        let flags = || call.arguments.args.iter().filter_map(text);
        let name = value("dest")
            .and_then(text)
            .or_else(|| flags().find(|flag| flag.starts_with("--")))
            .or_else(|| flags().next());
        let Some(name) = name else { return };
        let name = name.trim_start_matches('-').replace('-', "_");
        if name == "is_cuda" {
            self.own_definitions.insert("is_cuda");
        }
        let is_int = matches!(value("type"), Some(Expr::Name(kind)) if kind.id.as_str() == "int");
        let is_many = value("nargs").is_some() || value("action").is_some();
        // Without a default it may be missing, and so no number.
        let is_always = matches!(value("default"), Some(Expr::NumberLiteral(_)))
            || matches!(value("required"), Some(Expr::BooleanLiteral(literal)) if literal.value);
        if is_int && !is_many {
            self.number_options.entry(name).and_modify(|always| *always &= is_always).or_insert(is_always);
        } else {
            // Another option of this name holds something else.
            self.number_options.insert(name, false);
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

/// `device`, `DEVICE`, `device_type`, `map_location`, `train_device`; not `device_name` or `visible_devices_file`.
pub(crate) fn names_device(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.trim_matches('_');
    name == "map_location"
        || name == "dev"
        || name.ends_with("device")
        || name.ends_with("devices")
        || name.ends_with("device_type")
        || name.ends_with("device_str")
        || name.ends_with("device_string")
        || name.ends_with("device_kind")
        || name == "device_backend"
}

impl<'a> SourceOrderVisitor<'a> for CudaDeviceUse<'a> {
    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call @ ExprCall { func, arguments, .. }) = expression {
            self.note_arguments(func, arguments);
            self.note_option(call);
            let keywords = arguments.keywords.iter().filter_map(|keyword| keyword.arg.as_deref());
            // `Namespace(is_cuda=True)`
            self.own_definitions.extend(keywords.filter(|name| *name == "is_cuda"));
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
                for statement in &class.body {
                    self.note_class_attribute(statement);
                }
                source_order::walk_stmt(self, statement);
                for parameter in &mut self.parameters[first..] {
                    if parameter.0 == "__init__" {
                        parameter.0 = class.name.as_str();
                    }
                }
            }
            Stmt::Assign(assign) => {
                assign.targets.iter().for_each(|target| self.note_stored(target));
                source_order::walk_stmt(self, statement);
            }
            Stmt::AnnAssign(assign) => {
                self.note_stored(&assign.target);
                source_order::walk_stmt(self, statement);
            }
            _ => source_order::walk_stmt(self, statement),
        }
    }
}
