//! What the files of a project have to know of each other: re-exports, methods of its own, names that hold devices.
//!
//! Gathered in one pass before any file is changed; changing a file reads it and never writes it.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::{Expr, ModModule, Stmt};

use crate::devices::CudaDeviceUse;
use crate::rules::cuda_only;
use crate::scope::{self, DottedPath};

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ProjectFacts {
    /// Names at the top of a module that stand for a path elsewhere, by module.
    pub(crate) exports: HashMap<String, HashMap<String, String>>,
    /// The modules of which a module imports everything, by module.
    pub(crate) stars: HashMap<String, Vec<String>>,
    /// The first names of the project's modules.
    pub(crate) roots: HashSet<String>,
    /// Methods and functions that the project defines itself and whose names ours would take for PyTorch's.
    pub(crate) own_definitions: HashSet<String>,
    /// Attributes and keys under which the project keeps devices: `args.where`, `config["where"]`.
    pub(crate) device_names: HashSet<String>,
    /// Functions of the project and those of their parameters that are devices, by position and name.
    pub(crate) device_parameters: HashMap<String, Vec<(usize, String)>>,
    /// Options of the command line that hold numbers, and whether they always do.
    pub(crate) number_options: HashMap<String, bool>,
    /// Attributes that something is stored in.
    pub(crate) stored: HashSet<String>,
}

impl ProjectFacts {
    pub fn merge(&mut self, other: ProjectFacts) {
        for (module, names) in other.exports {
            self.exports.entry(module).or_default().extend(names);
        }
        self.roots.extend(other.roots);
        for (module, mut starred) in other.stars {
            self.stars.entry(module).or_default().append(&mut starred);
        }
        self.own_definitions.extend(other.own_definitions);
        for (option, always) in other.number_options {
            self.number_options.entry(option).and_modify(|known| *known &= always).or_insert(always);
        }
        self.stored.extend(other.stored);
        self.device_names.extend(other.device_names);
        for (function, mut parameters) in other.device_parameters {
            let known = self.device_parameters.entry(function).or_default();
            known.append(&mut parameters);
            known.sort();
            known.dedup();
        }
    }

    /// Takes a path through the project's own re-exports: `pkg.compat.torch.cuda` is `torch.cuda`.
    pub(crate) fn follow_text(&self, mut path: String) -> String {
        for _ in 0..4 {
            let Some(next) = self.followed_once(&path) else { break };
            path = next;
        }
        path
    }

    pub(crate) fn follow(&self, path: DottedPath) -> DottedPath {
        if self.exports.is_empty() {
            return path;
        }
        let before = scope::dots(&path.full);
        let full = self.follow_text(path.full);
        // Parts after the one that was replaced keep their text, so only the distance changes.
        DottedPath { shift: path.shift + scope::dots(&full) - before, full }
    }

    fn followed_once(&self, path: &str) -> Option<String> {
        if self.exports.is_empty() {
            return None;
        }
        let (module, name) = path.rsplit_once('.')?;
        self.exports
            .get(module)
            .and_then(|names| names.get(name))
            .cloned()
            .or_else(|| self.starred(module, name))
    }

    /// What a star import brings under a name: the path of the first module behind the stars of `module` that has it.
    fn starred(&self, module: &str, name: &str) -> Option<String> {
        let (mut seen, mut next) = (vec![module], 0);
        while let Some(module) = seen.get(next).copied() {
            for starred in self.stars.get(module).into_iter().flatten().take(MOST_STARS) {
                if let Some(path) = self.exports.get(starred).and_then(|names| names.get(name)) {
                    return Some(path.clone());
                }
                if seen.len() < MOST_STARS && !seen.contains(&starred.as_str()) {
                    seen.push(starred);
                }
            }
            next += 1;
        }
        None
    }

    /// What `from module import *` binds a name to, if that is PyTorch's or of a library for CUDA.
    pub(crate) fn imported_by_star(&self, module: &str, name: &str) -> Option<String> {
        let path = self.followed_once(&format!("{module}.{name}"))?;
        Some(self.follow_text(path)).filter(|path| is_interesting(path))
    }
}

/// Star imports that are followed, of one module and behind each other: every name that nothing binds is looked for behind them.
pub(crate) const MOST_STARS: usize = 50;

/// What one file adds.
pub(crate) fn gather(module: &ModModule, module_name: &str, package: &str) -> ProjectFacts {
    let mut facts = ProjectFacts::default();
    facts.roots.extend(module_name.split('.').next().filter(|root| !root.is_empty()).map(str::to_owned));
    let mut exports = Exports { package, ..Exports::default() };
    exports.gather(&module.body, false);
    if !exports.names.is_empty() && !module_name.is_empty() {
        facts.exports.insert(module_name.to_owned(), exports.names);
    }
    if !exports.stars.is_empty() && !module_name.is_empty() {
        facts.stars.insert(module_name.to_owned(), exports.stars);
    }
    let uses = CudaDeviceUse::of(module);
    facts.own_definitions = uses.own_definitions.iter().map(|name| (*name).to_owned()).collect();
    facts.number_options = uses.number_options;
    facts.stored = uses.stored.iter().map(|name| (*name).to_owned()).collect();
    facts.device_names = uses.attributes.iter().map(|name| (*name).to_owned()).collect();
    for (function, index, parameter) in uses.parameters {
        facts.device_parameters.entry(function.to_owned()).or_default().push((index, parameter.to_owned()));
    }
    facts
}

/// What one file gives to those that import it.
#[derive(Default)]
struct Exports<'a> {
    package: &'a str,
    names: HashMap<String, String>,
    stars: Vec<String>,
}

impl Exports<'_> {
    /// In blocks that run instead of another (`except ImportError:`, `else:`), only libraries for CUDA count, and only under names that the
    /// other block does not bind: what is taken for PyTorch's own is changed.
    fn gather(&mut self, body: &[Stmt], is_instead: bool) {
        for statement in body {
            match statement {
                Stmt::Import(import) => {
                    for alias in &import.names {
                        let name = alias.name.as_str();
                        let first = name.split('.').next().unwrap_or_default();
                        match &alias.asname {
                            _ if !is_interesting(name) => {}
                            Some(asname) => self.bind(asname.as_str(), name.to_owned(), is_instead),
                            None => self.bind(first, first.to_owned(), is_instead),
                        }
                    }
                }
                Stmt::ImportFrom(import) => {
                    let module = scope::absolute(self.package, import.module.as_deref(), import.level);
                    // A re-export of a re-export is followed step by step, so the project's own modules count as well.
                    if !(is_interesting(&module) || import.level > 0 || module.contains(self.package)) {
                        continue;
                    }
                    for alias in &import.names {
                        if alias.name.as_str() == "*" {
                            self.stars.push(module.clone());
                            continue;
                        }
                        let bound = alias.asname.as_ref().unwrap_or(&alias.name);
                        self.bind(bound.as_str(), format!("{module}.{}", alias.name), is_instead);
                    }
                }
                Stmt::Assign(assign) => {
                    // `cuda = torch.cuda`, resolved as far as this file's own imports go.
                    if let ([Expr::Name(name)], Some(path)) =
                        (assign.targets.as_slice(), dotted(&assign.value))
                        && let Some((root, rest)) = path.split_once('.')
                        && let Some(root) = self.names.get(root)
                    {
                        let path = format!("{root}.{rest}");
                        self.bind(name.id.as_str(), path, is_instead);
                    }
                }
                Stmt::Try(statement) => {
                    self.gather(&statement.body, is_instead);
                    self.gather(&statement.orelse, is_instead);
                    for ruff_python_ast::ExceptHandler::ExceptHandler(handler) in &statement.handlers {
                        self.gather(&handler.body, true);
                    }
                }
                Stmt::If(statement) => {
                    self.gather(&statement.body, is_instead);
                    for clause in &statement.elif_else_clauses {
                        self.gather(&clause.body, true);
                    }
                }
                _ => {}
            }
        }
    }

    fn bind(&mut self, name: &str, path: String, is_instead: bool) {
        let is_new = || !scope::is_in(&path, "torch") && !self.names.contains_key(name);
        if !is_instead || is_new() {
            self.names.insert(name.to_owned(), path);
        }
    }
}

/// What files ask other files of the project for instead of importing it themselves.
fn is_interesting(module: &str) -> bool {
    scope::is_in(module, "torch") || cuda_only::advice(module).is_some()
}

fn dotted(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Name(name) => Some(name.id.to_string()),
        Expr::Attribute(attribute) => Some(format!("{}.{}", dotted(&attribute.value)?, attribute.attr)),
        _ => None,
    }
}
