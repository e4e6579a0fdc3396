//! The dependency rule of ARCHITECTURE.md, as a table and a check over `cargo metadata`.
//!
//! Three kinds of rule: which of our crates may use which (`ALLOWED`), what the pure crates must not have anywhere
//! below them (`IMPURE`), and which libraries live in one place only (`HOMES`). The check never judges
//! dev-dependencies: a test may reach further than the product.

use std::fmt;

use anyhow::{Result, bail};

use crate::metadata::Graph;

/// Each of our crates and those it may use. Lower layers stand first.
const ALLOWED: &[(&str, &[&str])] = &[
    ("danlu-types", &[]),
    ("danlu-ranktable", &["danlu-types"]),
    ("danlu-core", &["danlu-types", "danlu-ranktable"]),
    // Job files and batch scripts, read alike by the command line and the server.
    ("danlu-jobfile", &["danlu-types", "danlu-core"]),
    // What Slurm says and is told, for the engine, the launcher, the sidecar and the command line.
    ("danlu-slurm", &["danlu-types", "danlu-core"]),
    // What users' trees are removed and walked with, and nothing else.
    ("danlu-walk", &[]),
    ("danlu-sched", &["danlu-types", "danlu-core"]),
    ("danlu-sim", &["danlu-types", "danlu-core", "danlu-sched"]),
    ("danlu-store", &["danlu-types", "danlu-core"]),
    ("danlu-device", &["danlu-types", "danlu-core"]),
    ("danlu-objects", &["danlu-types", "danlu-walk"]),
    ("danlu-engine", &["danlu-types", "danlu-core", "danlu-slurm", "danlu-device", "danlu-walk"]),
    (
        "danlu-launch",
        &[
            "danlu-types",
            "danlu-core",
            "danlu-ranktable",
            "danlu-slurm",
            "danlu-device",
            "danlu-objects",
            "danlu-walk",
        ],
    ),
    ("danlu-gateway", &["danlu-types", "danlu-engine"]),
    // The console's files and nothing else, so that a changed page compiles little again.
    ("danlu-console", &[]),
    // The migrator is useful without the platform, and stays that way.
    ("danlu-migrate", &[]),
    (
        "danlu-server",
        &[
            "danlu-types",
            "danlu-core",
            "danlu-jobfile",
            "danlu-slurm",
            "danlu-sched",
            "danlu-sim",
            "danlu-store",
            "danlu-engine",
            "danlu-objects",
            "danlu-gateway",
            "danlu-console",
            "danlu-migrate",
            "danlu-walk",
        ],
    ),
    ("danlu-client", &["danlu-types"]),
    // Beside the launcher and not in it: a launcher needs no server (ADR 12).
    ("danlu-sidecar", &["danlu-types", "danlu-core", "danlu-slurm", "danlu-client", "danlu-walk"]),
    (
        "danlu-cli",
        &[
            "danlu-types",
            "danlu-core",
            "danlu-ranktable",
            "danlu-jobfile",
            "danlu-client",
            "danlu-objects",
            "danlu-device",
            "danlu-launch",
            "danlu-sim",
            "danlu-migrate",
            "danlu-walk",
        ],
    ),
    // The server only by its feature of that name: what it adds to the command line is `danlu up`.
    (
        "danlu",
        &[
            "danlu-types",
            "danlu-core",
            "danlu-slurm",
            "danlu-device",
            "danlu-launch",
            "danlu-client",
            "danlu-sidecar",
            "danlu-cli",
            "danlu-server",
        ],
    ),
    // Only a dev-dependency of others, so it may stand on whatever it builds clusters from.
    (
        TESTKIT,
        &[
            "danlu-types",
            "danlu-core",
            "danlu-client",
            "danlu-engine",
            "danlu-store",
            "danlu-server",
            "danlu-walk",
        ],
    ),
    ("xtask", &[]),
];

const TESTKIT: &str = "danlu-testkit";

/// Crates that decide and never act: the simulator runs them under virtual time.
const PURE: &[&str] =
    &["danlu-ranktable", "danlu-core", "danlu-jobfile", "danlu-slurm", "danlu-sched", "danlu-sim"];

/// Families of libraries that act, know the time or roll dice. None may be anywhere in a pure crate's tree.
const IMPURE: &[&str] = &["tokio", "sqlx", "reqwest", "axum", "rand"];

/// Families of libraries with one home: only these crates may name them directly.
const HOMES: &[(&str, &[&str])] = &[
    ("sqlx", &["danlu-store"]),
    ("axum", &["danlu-server", "danlu-gateway"]),
    ("kube", &["danlu-engine"]),
    ("ruff", &["danlu-migrate"]),
];

/// One broken rule, with what it takes to say what to do about it.
#[derive(Debug, PartialEq, Eq)]
enum Violation {
    UnknownCrate { name: String },
    Edge { from: String, to: String, allowed: &'static [&'static str] },
    TestkitInProduct { from: String },
    Impure { chain: Vec<String> },
    AwayFromHome { from: String, library: String, homes: &'static [&'static str] },
}

pub(crate) fn run() -> Result<()> {
    let graph = Graph::load()?;
    let violations = check(&graph);
    if violations.is_empty() {
        println!("layers: {} crates keep the dependency rule", graph.members().count());
        return Ok(());
    }
    for violation in &violations {
        println!("layers: {violation}");
    }
    bail!("the dependency rule is broken (its table is in xtask/src/layers.rs)")
}

fn check(graph: &Graph) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (id, package) in graph.members() {
        let name = package.name.as_str();
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            violations.push(Violation::UnknownCrate { name: name.to_owned() });
            continue;
        };
        for dependency in graph.direct(id) {
            violations.extend(check_edge(name, allowed, &dependency.name, dependency.member));
        }
        if PURE.contains(&name) {
            // Another pure crate on the way is told about its own fault already.
            let is_impure = |below: &str| IMPURE.iter().any(|family| is_of(family, below));
            let chains = graph.chains(id, |below| PURE.contains(&below) || is_impure(below));
            let faults = chains.into_iter().filter(|chain| chain.last().is_some_and(|last| is_impure(last)));
            violations
                .extend(faults.map(|chain| Violation::Impure {
                    chain: chain.into_iter().map(str::to_owned).collect(),
                }));
        }
    }
    violations
}

fn check_edge(from: &str, allowed: &'static [&'static str], to: &str, ours: bool) -> Option<Violation> {
    if !ours {
        let (_, homes) = HOMES.iter().find(|(family, homes)| is_of(family, to) && !homes.contains(&from))?;
        return Some(Violation::AwayFromHome { from: from.to_owned(), library: to.to_owned(), homes });
    }
    if to == TESTKIT {
        return Some(Violation::TestkitInProduct { from: from.to_owned() });
    }
    if allowed.contains(&to) {
        return None;
    }
    Some(Violation::Edge { from: from.to_owned(), to: to.to_owned(), allowed })
}

/// `tokio` has `tokio-util` in its family, but `rand` does not have `randomize`.
fn is_of(family: &str, name: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownCrate { name } => write!(
                f,
                "`{name}` is not in the table: decide its layer and add it to `ALLOWED` in xtask/src/layers.rs"
            ),
            Self::Edge { from, to, allowed: [] } => {
                write!(f, "`{from}` -> `{to}`: `{from}` stands alone and uses no other crate of ours")
            }
            Self::Edge { from, to, allowed } => {
                write!(f, "`{from}` -> `{to}`: `{from}` may use only {}", quoted(allowed))
            }
            Self::TestkitInProduct { from } => {
                write!(f, "`{from}` -> `{TESTKIT}`: the test kit may only be a dev-dependency")
            }
            Self::Impure { chain } => write!(
                f,
                "{}: pure crates ({}) have none of {} anywhere below them",
                chain.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" -> "),
                quoted(PURE),
                quoted(IMPURE),
            ),
            Self::AwayFromHome { from, library, homes } => {
                write!(f, "`{from}` -> `{library}`: that library is for {} only", quoted(homes))
            }
        }
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
