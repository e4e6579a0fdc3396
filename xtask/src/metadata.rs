//! The part of `cargo metadata` that the checks need, as plain values.
//!
//! Only normal and build dependencies become edges: what tests use is not part of the product, and is dropped here so that
//! no rule can look at it by accident.

use std::collections::{BTreeMap, VecDeque};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Packages by id, and who depends on whom in the product.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) packages: BTreeMap<String, Package>,
    edges: BTreeMap<String, Vec<String>>,
}

#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Whether it is one of ours.
    pub(crate) member: bool,
}

impl Graph {
    /// Asks cargo about the workspace of the current folder.
    pub(crate) fn load() -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--locked"])
            .output()
            .context("starting `cargo metadata`")?;
        if !output.status.success() {
            bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Self::parse(&serde_json::from_slice(&output.stdout).context("reading `cargo metadata`")?)
    }

    pub(crate) fn parse(metadata: &Value) -> Result<Self> {
        let members = array(metadata, "workspace_members")?;
        let mut graph = Self::default();
        for package in array(metadata, "packages")? {
            let id = string(package, "id")?;
            let member = members.iter().any(|member| member.as_str() == Some(id));
            graph
                .packages
                .insert(id.to_owned(), Package { name: string(package, "name")?.to_owned(), member });
        }
        for node in array(&metadata["resolve"], "nodes")? {
            let mut targets = Vec::new();
            for dependency in array(node, "deps")? {
                let kinds = array(dependency, "dep_kinds")?;
                if kinds.iter().any(|kind| kind["kind"] != "dev") {
                    targets.push(string(dependency, "pkg")?.to_owned());
                }
            }
            graph.edges.insert(string(node, "id")?.to_owned(), targets);
        }
        Ok(graph)
    }

    /// Our own packages with their ids.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &Package)> {
        self.packages.iter().filter(|(_, package)| package.member).map(|(id, package)| (id.as_str(), package))
    }

    /// What a package depends on directly.
    pub(crate) fn direct(&self, id: &str) -> impl Iterator<Item = &Package> {
        self.targets(id).iter().filter_map(|target| self.packages.get(target))
    }

    /// The shortest chain of names from a package to each one that `wanted` picks out of its whole tree. What lies
    /// below a picked one is not looked at: it comes and goes with it.
    pub(crate) fn chains<'a>(&'a self, from: &'a str, wanted: impl Fn(&str) -> bool) -> Vec<Vec<&'a str>> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut queue = VecDeque::from([from]);
        let mut found = Vec::new();
        while let Some(id) = queue.pop_front() {
            for target in self.targets(id) {
                if target == from || came_from.contains_key(target.as_str()) {
                    continue;
                }
                came_from.insert(target, id);
                if wanted(self.name(target)) {
                    found.push(self.chain_to(target, from, &came_from));
                } else {
                    queue.push_back(target);
                }
            }
        }
        found
    }

    fn chain_to<'a>(
        &'a self,
        target: &'a str,
        from: &str,
        came_from: &BTreeMap<&'a str, &'a str>,
    ) -> Vec<&'a str> {
        let mut chain = vec![self.name(target)];
        let mut id = target;
        while id != from {
            id = came_from[id];
            chain.push(self.name(id));
        }
        chain.reverse();
        chain
    }

    fn targets(&self, id: &str) -> &[String] {
        self.edges.get(id).map_or(&[], Vec::as_slice)
    }

    fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.packages.get(id).map_or(id, |package| package.name.as_str())
    }
}

fn array<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("`cargo metadata` has no list `{key}`"))
}

fn string<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().with_context(|| format!("`cargo metadata` has no text `{key}`"))
}
