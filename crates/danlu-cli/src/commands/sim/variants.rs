//! Which runs to make: from flags, or from a file that names what is different in each.

use std::path::Path;

use danlu_sim::trace::Trace;
use danlu_sim::variant::{with_nodes, with_policy};
use danlu_types::api::SimulationRun;
use danlu_types::{HeadOfLine, Node, Sharing};
use serde::Deserialize;

use super::replay::Switch;
use crate::failure::{CliError, USAGE};
use crate::workspaces_file;

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
    runs: Vec<SimulationRun>,
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
    ) -> Result<Vec<Variant>, CliError> {
        let sharing = self.sharing(workspaces)?;
        let nodes = inhabited(self.nodes(nodes)?, self.trace)?;
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
    ) -> Result<Vec<Variant>, CliError> {
        let CompareFile { runs } = yaml(file)?;
        if runs.is_empty() {
            return Err(CliError::new(format!("`{}` names no runs", file.display())).with_code(USAGE));
        }
        let sharing = self.sharing(workspaces)?;
        let usual = self.nodes(nodes)?;
        let mut variants = Vec::new();
        for run in runs {
            let sharing = run.sharing.unwrap_or_else(|| sharing.clone());
            let sharing = self.with(sharing, run.policy, run.lending);
            let nodes = inhabited(changed(&usual, run.nodes.as_deref())?, self.trace)?;
            variants.push(Variant { name: run.name, nodes, sharing });
        }
        Ok(variants)
    }

    fn sharing(&self, file: Option<&Path>) -> Result<Sharing, CliError> {
        file.map_or_else(|| Ok(self.trace.sharing.clone()), workspaces_file::open)
    }

    fn with(&self, mut sharing: Sharing, policy: Option<HeadOfLine>, lending: Option<bool>) -> Sharing {
        match (lending, self.lend) {
            (Some(true), Some(lend)) => lend(&mut sharing),
            (Some(lending), _) => sharing.lending = lending,
            (None, _) => {}
        }
        policy.map_or(sharing.clone(), |policy| with_policy(sharing, policy, self.trace))
    }

    fn nodes(&self, text: Option<&str>) -> Result<Vec<Node>, CliError> {
        changed(&self.trace.nodes, text)
    }
}

/// The usual ones, others instead, or (`+`) others in addition.
fn changed(usual: &[Node], text: Option<&str>) -> Result<Vec<Node>, CliError> {
    let made = |text: &str| {
        danlu_device::simulate::parse(text).map_err(|error| CliError::new(error.to_string()).with_code(USAGE))
    };
    match text.map(|text| (text.strip_prefix('+'), text)) {
        None => Ok(usual.to_vec()),
        Some((None, text)) => made(text),
        Some((Some(added), _)) => Ok(with_nodes(usual.to_vec(), made(added)?)),
    }
}

fn inhabited(nodes: Vec<Node>, trace: &Trace) -> Result<Vec<Node>, CliError> {
    if nodes.is_empty() {
        return Err(CliError::new(format!("`{}` does not say which machines there are", trace.name))
            .with_code(USAGE)
            .hint("name them, for example with `--nodes 4x8:ascend:910B3`"));
    }
    Ok(nodes)
}

fn yaml<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T, CliError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| CliError::new(format!("cannot read `{}`", file.display())).caused_by(&error))?;
    serde_saphyr::from_str(&text).map_err(|error| {
        CliError::new(format!("`{}` is not as it should be", file.display())).caused_by(&error)
    })
}

#[cfg(test)]
mod tests {
    use danlu_sim::trace::{Assumptions, philly, simple};

    use super::*;

    fn jobs() -> Trace {
        let text = "submit,duration,workspace\n0s,1h,vision\n0s,1h,speech\n";
        simple::read("jobs.csv", text.as_bytes(), &Assumptions::default()).unwrap()
    }

    fn names(variants: &[Variant]) -> Vec<&str> {
        variants.iter().map(|variant| variant.name.as_str()).collect()
    }

    #[test]
    fn every_policy_is_run_with_every_setting_of_lending() {
        let trace = jobs();
        let base = Base { trace: &trace, lend: None };
        let policies = [HeadOfLine::Strict, HeadOfLine::Skip];
        let switches = [Switch::Off, Switch::On];
        let variants = base.of_flags(None, Some("1x8:ascend:910B3"), &policies, &switches).unwrap();
        let expected = ["strict, no lending", "skip, no lending", "strict, lending", "skip, lending"];
        assert_eq!(names(&variants), expected);
        let last = &variants[3].sharing;
        assert!(last.lending && last.workspaces["speech"].head_of_line == HeadOfLine::Skip);
        let plain = base.of_flags(None, Some("1x8:ascend:910B3"), &[], &[]).unwrap();
        assert_eq!((names(&plain), &plain[0].sharing), (vec!["replay"], &Sharing::default()));
    }

    #[test]
    fn switching_lending_on_lifts_the_limits_of_virtual_clusters() {
        let trace = Trace { sharing: philly::sharing(1.0), nodes: vec![], ..jobs() };
        let base = Base { trace: &trace, lend: Some(philly::lend) };
        let variants = base.of_flags(None, Some("1x8:nvidia:GPU"), &[], &[Switch::Off, Switch::On]).unwrap();
        let limit = |variant: &Variant| variant.sharing.workspaces["6214e9"].limit.nvidia;
        assert!(limit(&variants[0]).is_some() && limit(&variants[1]).is_none());
    }

    #[test]
    fn added_nodes_get_names_of_their_own() {
        let usual = changed(&[], Some("2x8:ascend:910B3")).unwrap();
        let nodes = changed(&usual, Some("+1x8:ascend:910B3")).unwrap();
        let names: Vec<&str> = nodes.iter().map(|node| node.name.0.as_str()).collect();
        assert_eq!(names, ["sim-ascend-910b3-0", "sim-ascend-910b3-1", "sim-ascend-910b3-0-2"]);
        assert!(inhabited(Vec::new(), &jobs()).is_err());
    }

    #[test]
    fn a_file_says_what_is_different_in_each_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("runs.yaml");
        let text = "runs:\n  - name: today\n  - name: more\n    nodes: +1x8:ascend:910B3\n    policy: strict\n    lending: false\n";
        std::fs::write(&file, text).unwrap();
        let trace = jobs();
        let base = Base { trace: &trace, lend: None };
        let variants = base.of_file(&file, None, Some("1x8:ascend:910B3")).unwrap();
        assert_eq!(names(&variants), ["today", "more"]);
        assert_eq!((variants[0].nodes.len(), variants[1].nodes.len()), (1, 2));
        assert!(variants[0].sharing.lending && !variants[1].sharing.lending);
    }
}
