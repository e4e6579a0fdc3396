//! Which runs to make: from flags, or from a file that names what is different in each.

use std::path::Path;

use danlu_sim::trace::Trace;
use danlu_types::{HeadOfLine, Node, NodeName, Sharing, Workspace};
use serde::Deserialize;

use super::replay::Switch;
use crate::failure::{Failure, USAGE};

/// One run to make.
#[derive(Debug)]
pub(super) struct Variant {
    pub(super) name: String,
    pub(super) nodes: Vec<Node>,
    pub(super) sharing: Sharing,
}

/// What all runs start from.
pub(super) struct Base<'a> {
    pub(super) trace: &'a Trace,
    /// What switching lending on means for this trace, where it is more than the switch.
    pub(super) lend: Option<fn(&mut Sharing)>,
}

/// The file of `--compare`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CompareFile {
    runs: Vec<RunFile>,
}

/// What is different in one run; what is absent is as the flags say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunFile {
    name: String,
    #[serde(default)]
    policy: Option<HeadOfLine>,
    #[serde(default)]
    lending: Option<bool>,
    #[serde(default)]
    nodes: Option<String>,
    /// As the file of `--workspaces`.
    #[serde(default)]
    sharing: Option<Sharing>,
}

/// One of the four, by its name.
pub(super) fn policy(text: &str) -> Result<HeadOfLine, String> {
    ALL.into_iter()
        .find(|policy| word(*policy) == text)
        .ok_or_else(|| "write `backfill`, `strict`, `skip` or `balance`".to_owned())
}

const ALL: [HeadOfLine; 4] =
    [HeadOfLine::Backfill, HeadOfLine::Strict, HeadOfLine::Skip, HeadOfLine::Balance];

fn word(policy: HeadOfLine) -> &'static str {
    match policy {
        HeadOfLine::Backfill => "backfill",
        HeadOfLine::Strict => "strict",
        HeadOfLine::Skip => "skip",
        HeadOfLine::Balance => "balance",
    }
}

impl Base<'_> {
    /// Every policy with every setting of lending.
    pub(super) fn of_flags(
        &self,
        workspaces: Option<&Path>,
        nodes: Option<&str>,
        policies: &[HeadOfLine],
        lending: &[Switch],
    ) -> Result<Vec<Variant>, Failure> {
        let sharing = self.sharing(workspaces)?;
        let nodes = self.nodes(nodes)?;
        let each_or_none = |count: usize| if count == 0 { 1 } else { count };
        let mut variants = Vec::new();
        for lending_at in 0..each_or_none(lending.len()) {
            for policy_at in 0..each_or_none(policies.len()) {
                let policy = policies.get(policy_at).copied();
                let lends = lending.get(lending_at).map(|switch| *switch == Switch::On);
                let mut words = Vec::new();
                words.extend(policy.map(word));
                words.extend(lends.map(|lends| if lends { "lending" } else { "no lending" }));
                let name = if words.is_empty() { "replay".to_owned() } else { words.join(", ") };
                let sharing = self.with(sharing.clone(), policy, lends);
                variants.push(Variant { name, nodes: nodes.clone(), sharing });
            }
        }
        Ok(variants)
    }

    pub(super) fn of_file(
        &self,
        file: &Path,
        workspaces: Option<&Path>,
        nodes: Option<&str>,
    ) -> Result<Vec<Variant>, Failure> {
        let CompareFile { runs } = yaml(file)?;
        if runs.is_empty() {
            return Err(Failure::new(format!("`{}` names no runs", file.display())).with_code(USAGE));
        }
        let sharing = self.sharing(workspaces)?;
        let mut variants = Vec::new();
        for run in runs {
            let sharing = run.sharing.unwrap_or_else(|| sharing.clone());
            let sharing = self.with(sharing, run.policy, run.lending);
            let nodes = self.nodes(run.nodes.as_deref().or(nodes))?;
            variants.push(Variant { name: run.name, nodes, sharing });
        }
        Ok(variants)
    }

    fn sharing(&self, file: Option<&Path>) -> Result<Sharing, Failure> {
        file.map_or_else(|| Ok(self.trace.sharing.clone()), yaml)
    }

    fn with(&self, mut sharing: Sharing, policy: Option<HeadOfLine>, lending: Option<bool>) -> Sharing {
        match (lending, self.lend) {
            (Some(true), Some(lend)) => lend(&mut sharing),
            (Some(lending), _) => sharing.lending = lending,
            (None, _) => {}
        }
        if let Some(policy) = policy {
            // A policy needs a workspace to stand in: without any, those that the jobs name.
            if sharing.workspaces.is_empty() {
                let names = self.trace.workspaces();
                sharing.workspaces =
                    names.into_iter().map(|name| (name.to_owned(), Workspace::default())).collect();
            }
            for workspace in sharing.workspaces.values_mut() {
                workspace.head_of_line = policy;
            }
        }
        sharing
    }

    /// The trace's own, others instead, or (`+`) others in addition.
    fn nodes(&self, text: Option<&str>) -> Result<Vec<Node>, Failure> {
        let more = |text: &str| {
            danlu_device::simulate::parse(text)
                .map_err(|error| Failure::new(error.to_string()).with_code(USAGE))
        };
        let nodes = match text.map(|text| (text.strip_prefix('+'), text)) {
            None => self.trace.nodes.clone(),
            Some((None, text)) => more(text)?,
            Some((Some(added), _)) => add(self.trace.nodes.clone(), more(added)?),
        };
        if nodes.is_empty() {
            return Err(Failure::new(format!("`{}` does not say which machines there are", self.trace.name))
                .with_code(USAGE)
                .hint("name them, for example with `--nodes 4x8:ascend:910B3`"));
        }
        Ok(nodes)
    }
}

/// Names must differ, also from those of simulated nodes that the trace itself had.
fn add(mut nodes: Vec<Node>, added: Vec<Node>) -> Vec<Node> {
    for mut node in added {
        let stem = node.name.0.clone();
        let mut number = 1;
        while nodes.iter().any(|other| other.name == node.name) {
            number += 1;
            node.name = NodeName(format!("{stem}-{number}"));
        }
        nodes.push(node);
    }
    nodes
}

fn yaml<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::new(format!("cannot read `{}`", file.display())).caused_by(&error))?;
    serde_saphyr::from_str(&text).map_err(|error| {
        Failure::new(format!("`{}` is not as it should be", file.display())).caused_by(&error)
    })
}
