//! Devices, and answers to the question for one, that go to libraries of others which know CUDA and the CPU only:
//! `WhisperModel("large", device=device)`, `MergeOptions(cuda=torch.cuda.is_available())`. On a machine without CUDA they chose the CPU.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged as _, TextRange, TextSize};

use crate::facts::ProjectFacts;
use crate::rules::cuda_only;
use crate::scope::is_in;

/// Where a name is bound: nothing for the module, else where its function begins.
type Place = Option<TextSize>;

/// Parameters of others that ask for CUDA.
const SWITCHES: &[&str] = &["cuda", "use_cuda", "gpu", "use_gpu"];
/// Libraries that hand such a switch to PyTorch's device of this machine.
const KNOW_NPUS: &[&str] = &[
    "torch",
    "torch_npu",
    "torchvision",
    "lightning",
    "pytorch_lightning",
    "transformers",
    "accelerate",
    "deepspeed",
    "diffusers",
];

/// What is left as it is, and the call that it goes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Handed {
    pub(super) left: TextRange,
    pub(super) callee: TextRange,
}

#[derive(Debug, Default)]
struct Names<'a> {
    /// The modules of names that imports bind.
    imports: HashMap<&'a str, String>,
    bound: HashSet<(Place, &'a str)>,
    /// The values of names that are only ever assigned.
    values: HashMap<(Place, &'a str), Vec<TextRange>>,
    functions: Vec<TextSize>,
}

pub(super) fn find(body: &[Stmt], facts: &ProjectFacts) -> Vec<Handed> {
    let mut names = Names::default();
    names.visit_body(body);
    if names.imports.is_empty() {
        return Vec::new();
    }
    let mut uses =
        Uses { names: &names, facts, functions: Vec::new(), read: HashMap::new(), handed: Vec::new() };
    uses.visit_body(body);
    let (read, mut handed) = (uses.read, uses.handed);
    for (key, callees) in read {
        // Where PyTorch gets the device as well, it has to be the one of this machine.
        let Some(callee) = callees.and_then(|callees| callees.first().copied()) else { continue };
        handed
            .extend(names.values.get(&key).into_iter().flatten().map(|left| Handed { left: *left, callee }));
    }
    handed.sort_by_key(|one| (one.left.start(), one.callee.start()));
    handed
}

impl<'a> Names<'a> {
    fn place(&self) -> Place {
        self.functions.last().copied()
    }

    fn import(&mut self, name: &'a str, module: String) {
        self.bound.insert((self.place(), name));
        self.imports.insert(name, module);
    }
}

impl<'a> SourceOrderVisitor<'a> for Names<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let name = alias.name.as_str();
                    let first = name.split('.').next().unwrap_or_default();
                    match &alias.asname {
                        Some(asname) => self.import(asname.as_str(), name.to_owned()),
                        None => self.import(first, first.to_owned()),
                    }
                }
            }
            Stmt::ImportFrom(import) if import.level == 0 => {
                let module = import.module.as_deref().unwrap_or_default();
                for alias in &import.names {
                    let bound = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
                    self.import(bound, format!("{module}.{}", alias.name));
                }
            }
            Stmt::Assign(assign) => {
                if let [Expr::Name(name)] = assign.targets.as_slice() {
                    let key = (self.place(), name.id.as_str());
                    self.values.entry(key).or_default().push(assign.value.range());
                }
                source_order::walk_stmt(self, statement);
            }
            Stmt::FunctionDef(function) => {
                self.functions.push(function.range.start());
                for parameter in &function.parameters {
                    self.bound.insert((self.place(), parameter.name().as_str()));
                }
                source_order::walk_stmt(self, statement);
                self.functions.pop();
            }
            _ => source_order::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(name) = expression
            && !name.ctx.is_load()
        {
            self.bound.insert((self.place(), name.id.as_str()));
        }
        source_order::walk_expr(self, expression);
    }
}

fn speaks(call: &ExprCall) -> bool {
    match &*call.func {
        Expr::Name(name) => name.id.as_str() == "print",
        Expr::Attribute(attribute) => matches!(attribute.attr.as_str(), "info" | "debug" | "warning"),
        _ => false,
    }
}

struct Uses<'n, 'a> {
    names: &'n Names<'a>,
    facts: &'n ProjectFacts,
    functions: Vec<TextSize>,
    /// The calls of such libraries that a name goes to; nothing once it is read elsewhere.
    read: HashMap<(Place, &'a str), Option<Vec<TextRange>>>,
    handed: Vec<Handed>,
}

impl<'a> Uses<'_, 'a> {
    fn key(&self, name: &'a str) -> (Place, &'a str) {
        let mut places = self.functions.iter().rev().map(|function| Some(*function));
        (places.find(|place| self.names.bound.contains(&(*place, name))).flatten(), name)
    }

    /// The module that a call goes to, if that is imported by its own name.
    fn module(&self, call: &'a ExprCall) -> Option<&str> {
        let mut root = &*call.func;
        while let Expr::Attribute(attribute) = root {
            root = &attribute.value;
        }
        let Expr::Name(name) = root else { return None };
        self.names.imports.get(name.id.as_str()).map(String::as_str)
    }

    fn call(&mut self, call: &'a ExprCall) {
        let Some(module) = self.module(call).map(str::to_owned) else { return };
        let root = module.split('.').next().unwrap_or_default();
        let is_of_others = !self.facts.roots.contains(root) && !KNOW_NPUS.contains(&root);
        let callee = call.func.range();
        for keyword in call.arguments.keywords.iter().filter(|_| is_of_others) {
            if keyword.arg.as_ref().is_some_and(|name| SWITCHES.contains(&name.as_str())) {
                self.handed.push(Handed { left: keyword.value.range(), callee });
            }
        }
        if cuda_only::WITHOUT_NPUS.iter().any(|library| is_in(&module, library)) {
            let keywords = call.arguments.keywords.iter().map(|keyword| &keyword.value);
            for value in call.arguments.args.iter().chain(keywords) {
                if let Expr::Name(name) = value {
                    let key = self.key(name.id.as_str());
                    if let Some(callees) = self.read.entry(key).or_insert_with(|| Some(Vec::new())) {
                        callees.push(callee);
                    }
                } else {
                    self.handed.push(Handed { left: value.range(), callee });
                    self.visit_expr(value);
                }
            }
        } else {
            self.visit_arguments(&call.arguments);
        }
    }
}

impl<'a> SourceOrderVisitor<'a> for Uses<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::FunctionDef(function) = statement {
            self.functions.push(function.range.start());
            source_order::walk_stmt(self, statement);
            self.functions.pop();
        } else {
            source_order::walk_stmt(self, statement);
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            // A message to people does not count as a use of the device.
            Expr::Call(call) if speaks(call) => {}
            Expr::Call(call) if self.module(call).is_some() => {
                self.visit_expr(&call.func);
                self.call(call);
            }
            Expr::Name(name) if name.ctx.is_load() => {
                let key = self.key(name.id.as_str());
                self.read.insert(key, None);
            }
            _ => source_order::walk_expr(self, expression),
        }
    }
}
