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
        self.exports.get(module)?.get(name).cloned()
    }
}

/// What one file adds.
pub(crate) fn gather(module: &ModModule, module_name: &str, package: &str) -> ProjectFacts {
    let mut facts = ProjectFacts::default();
    let mut exports = HashMap::new();
    gather_exports(&module.body, package, &mut exports);
    if !exports.is_empty() && !module_name.is_empty() {
        facts.exports.insert(module_name.to_owned(), exports);
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

fn gather_exports(body: &[Stmt], package: &str, exports: &mut HashMap<String, String>) {
    for statement in body {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    if is_interesting(alias.name.as_str())
                        && let Some(asname) = &alias.asname
                    {
                        exports.insert(asname.to_string(), alias.name.to_string());
                    } else if is_interesting(alias.name.as_str()) {
                        let first = alias.name.split('.').next().unwrap_or_default();
                        exports.insert(first.to_owned(), first.to_owned());
                    }
                }
            }
            Stmt::ImportFrom(import) => {
                let module = scope::absolute(package, import.module.as_deref(), import.level);
                // A re-export of a re-export is followed step by step, so the project's own modules count as well.
                if is_interesting(&module) || import.level > 0 || module.contains(package) {
                    for alias in &import.names {
                        let bound = alias.asname.as_ref().unwrap_or(&alias.name);
                        exports.insert(bound.to_string(), format!("{module}.{}", alias.name));
                    }
                }
            }
            Stmt::Assign(assign) => {
                // `cuda = torch.cuda`, resolved as far as this file's own imports go.
                if let ([Expr::Name(name)], Some(path)) = (assign.targets.as_slice(), dotted(&assign.value))
                    && let Some((root, rest)) = path.split_once('.')
                    && let Some(root) = exports.get(root)
                {
                    let path = format!("{root}.{rest}");
                    exports.insert(name.id.to_string(), path);
                }
            }
            Stmt::Try(statement) => gather_exports(&statement.body, package, exports),
            Stmt::If(statement) => gather_exports(&statement.body, package, exports),
            _ => {}
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
