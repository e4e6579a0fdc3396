//! How a site wants its Slurm used.

use std::collections::BTreeMap;
use std::path::PathBuf;

use danlu_types::{Bytes, DeviceKind, Span};
use serde::Deserialize;

/// The file of `danlu up --slurm`. Everything in it may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlurmSettings {
    /// Where jobs are submitted to; only its nodes are offered. The site's default partition, and all nodes, when absent.
    pub partition: Option<String>,
    pub account: Option<String>,
    pub qos: Option<String>,
    /// Where jobs of a workspace differ from that.
    pub workspaces: BTreeMap<String, WorkspaceSettings>,
    /// What generic resources are devices, and which. `gpu` is taken for NVIDIA's and `npu` for Ascend where nothing
    /// here says otherwise.
    pub gres: Vec<GresRule>,
    /// This program, as the nodes see it; its own path when absent.
    pub program: Option<PathBuf>,
    /// Where Slurm's programs are, where that is not on the server's `PATH`.
    pub programs: Option<PathBuf>,
    /// `slurm.conf`, where it is not where Slurm's programs look for it.
    pub configuration: Option<PathBuf>,
    /// The time limit in Slurm of jobs that have no `max_time`; the partition's default when absent, which Slurm fits into no gap
    /// where it is long.
    pub time: Option<Span>,
    /// How often Slurm is asked how jobs are doing; one question for all of them.
    pub poll: Span,
    /// Further options for `sbatch`, such as `--reservation=night`.
    pub options: Vec<String>,
    /// Who says which nodes a job gets.
    pub placement: PlacementMode,
    /// Whether nodes see the data folder by the same path. If not, a sidecar on each node carries what workers read and
    /// write to and from the server.
    pub shared: bool,
    /// Where nodes reach the server; needed where nothing is shared.
    pub server: Option<String>,
    /// A folder of each node's own, for the workers that it runs where nothing is shared; made if need be.
    pub work: PathBuf,
}

impl Default for SlurmSettings {
    fn default() -> Self {
        SlurmSettings {
            partition: None,
            account: None,
            qos: None,
            workspaces: BTreeMap::new(),
            gres: Vec::new(),
            program: None,
            programs: None,
            configuration: None,
            time: None,
            poll: Span::from_seconds(2),
            options: Vec::new(),
            placement: PlacementMode::Danlu,
            shared: true,
            server: None,
            work: PathBuf::from("/var/tmp/danlu"),
        }
    }
}

/// Who says which nodes a job gets. When it starts is Danlu's to say in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacementMode {
    /// Nodes are asked for by name.
    Danlu,
    /// Slurm chooses among those that would do: for sites whose topology or policies it knows better.
    Engine,
}

/// Settings that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSettings {
    pub what: &'static str,
    pub hint: &'static str,
}

impl SlurmSettings {
    /// What is wrong with them, if anything.
    pub fn objection(&self) -> Option<InvalidSettings> {
        if self.shared {
            return None;
        }
        let is_address = |server: &String| server.starts_with("http://") || server.starts_with("https://");
        let (what, hint) = match &self.server {
            None => (
                "nodes that share no disk with the server have to know where it is",
                "add `server: https://HOST:PORT`, as the nodes reach it",
            ),
            Some(server) if !is_address(server) => {
                ("`server` is not an address", "write `http://HOST:PORT` or `https://HOST:PORT`")
            }
            Some(_) if !self.work.is_absolute() => (
                "`work` is not an absolute path",
                "name a folder of the nodes' own, such as `/var/tmp/danlu`",
            ),
            Some(_) => return None,
        };
        Some(InvalidSettings { what, hint })
    }

    /// The account that a workspace's jobs are submitted to.
    pub fn account(&self, workspace: &str) -> Option<&String> {
        self.workspaces.get(workspace).and_then(|own| own.account.as_ref()).or(self.account.as_ref())
    }

    pub fn qos(&self, workspace: &str) -> Option<&String> {
        self.workspaces.get(workspace).and_then(|own| own.qos.as_ref()).or(self.qos.as_ref())
    }

    /// The reservation that all jobs are submitted to; several names have commas between them.
    pub fn reservation(&self) -> Option<&str> {
        let following = self.options.iter().skip(1).map(|word| Some(word.as_str())).chain([None]);
        // `sbatch` takes the last, in one word or in two.
        let named = self.options.iter().zip(following).filter_map(|(option, next)| match option.as_str() {
            "--reservation" => next,
            option => option.strip_prefix("--reservation="),
        });
        named.last()
    }

    /// Those of all jobs, then the workspace's own: of one that is given twice, `sbatch` takes the last.
    pub fn options(&self, workspace: &str) -> impl Iterator<Item = &String> {
        let own = self.workspaces.get(workspace).map(|own| &own.options);
        self.options.iter().chain(own.into_iter().flatten())
    }
}

/// What Slurm knows a workspace by.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkspaceSettings {
    pub account: Option<String>,
    pub qos: Option<String>,
    pub options: Vec<String>,
}

/// What a generic resource stands for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GresRule {
    /// `gpu:a100`, or `gpu` for all of them.
    pub gres: String,
    pub kind: DeviceKind,
    /// As jobs are to ask for it; the resource's own type when absent.
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub memory: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nodes_without_a_shared_disk_need_is_asked_for() {
        let unshared = |server: Option<&str>, work: &str| SlurmSettings {
            shared: false,
            server: server.map(str::to_owned),
            work: work.into(),
            ..SlurmSettings::default()
        };
        let objection = |settings: SlurmSettings| settings.objection().map_or("none", |it| it.what);
        let shown = [
            objection(SlurmSettings::default()),
            objection(unshared(None, "/var/tmp/danlu")),
            objection(unshared(Some("head:8080"), "/var/tmp/danlu")),
            objection(unshared(Some("http://head:8080"), "danlu")),
            objection(unshared(Some("http://head:8080"), "/var/tmp/danlu")),
        ];
        insta::assert_snapshot!(shown.join("\n"), @r"
        none
        nodes that share no disk with the server have to know where it is
        `server` is not an address
        `work` is not an absolute path
        none
        ");
    }

    #[test]
    fn a_reservation_is_named_in_one_word_or_in_two() {
        let reservation = |options: &[&str]| {
            let options = options.iter().map(|word| (*word).to_owned()).collect();
            SlurmSettings { options, ..SlurmSettings::default() }.reservation().map(str::to_owned)
        };
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(reservation(&["--reservation", "night"]), named("night"));
        assert_eq!(reservation(&["--nice", "5", "--reservation=night", "--exclusive"]), named("night"));
        assert_eq!(reservation(&["--reservation", "day", "--reservation=night"]), named("night"));
        assert_eq!(reservation(&["--reservation=day", "--reservation", "night,late"]), named("night,late"));
        assert_eq!(
            [reservation(&[]), reservation(&["--nice"]), reservation(&["--reservation"])],
            [const { None }; 3]
        );
    }

    #[test]
    fn a_workspace_has_an_account_of_its_own_or_everybodys() {
        let text = "account: lab\noptions: [--nice=5]\n\
                    workspaces: {vision: {account: vision-lab, qos: high, options: [--nice=0]}, speech: {qos: low}}";
        let settings: SlurmSettings = serde_saphyr::from_str(text).unwrap();
        let shown = |workspace| {
            let options: Vec<&String> = settings.options(workspace).collect();
            format!("{:?} {:?} {options:?}", settings.account(workspace), settings.qos(workspace))
        };
        insta::assert_snapshot!([shown("vision"), shown("speech"), shown("default")].join("\n"), @r#"
        Some("vision-lab") Some("high") ["--nice=5", "--nice=0"]
        Some("lab") Some("low") ["--nice=5"]
        Some("lab") None ["--nice=5"]
        "#);
        let error = serde_saphyr::from_str::<SlurmSettings>("workspaces: {vision: {acount: x}}").unwrap_err();
        assert!(error.to_string().contains("acount"), "{error}");
    }
}
