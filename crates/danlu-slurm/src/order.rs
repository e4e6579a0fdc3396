//! One allocation: which workers run in it, how it is submitted, and the script that runs first inside it.
//!
//! Invariant: however often an order is submitted, its workers start once. The script takes the order for itself before
//! it starts anything, by making a file that must not be there yet (`O_EXCL`, by the shell itself), which only one can; a
//! submission that was thought lost and arrives after all finds it and ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use danlu_types::{Bytes, Cpus, Device, Span, WorkerId};
use serde::{Deserialize, Serialize};

use super::settings::SlurmSettings;
use super::{ALLOCATION_LOG, CLAIM_FILE, CLAIMANT_FILE, GRANTED_FILE};
use danlu_core::launch::UnixUser;

/// What is submitted as one job of Slurm's: workers of one attempt, on nodes that have equally many of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationRequest {
    /// The name of the job, which no other job has or will have: by this it is found again.
    pub name: String,
    /// What people find in Slurm's lists of it.
    #[serde(default)]
    pub comment: String,
    /// Of the data folder whose server wrote it; not known of orders from before there was this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    #[serde(default)]
    pub workspace: String,
    /// Who submits it, where that is not the server's own user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UnixUser>,
    pub workers: Vec<RequestedWorker>,
    /// Set where Slurm chooses the nodes: those of the workers are only the shape that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegated: Option<Delegated>,
    pub cpus: Cpus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time: Option<Span>,
}

/// What is to be known of nodes that nobody has chosen yet.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Delegated {
    /// Nodes that will not do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsuitable: Vec<String>,
    /// By what address nodes are reached, for those that are not reached by their name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedWorker {
    pub worker: WorkerId,
    pub node: String,
    pub run: PathBuf,
    pub needs: Vec<GresNeed>,
}

/// Devices that are one resource of Slurm's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GresNeed {
    /// `gpu:a100`, as `--gres` wants it.
    pub label: String,
    /// The devices as planned. Which of its kind they are is Slurm's to say.
    pub devices: Vec<Device>,
    /// The node's number of the first device of this resource, which Slurm calls 0.
    pub first: u32,
}

/// Workers, by the nodes they are on, in groups that one submission can ask for: Slurm gives each node of a job the same.
pub fn parts(workers: Vec<RequestedWorker>) -> Vec<Vec<RequestedWorker>> {
    let mut nodes: BTreeMap<String, Vec<RequestedWorker>> = BTreeMap::new();
    for worker in workers {
        nodes.entry(worker.node.clone()).or_default().push(worker);
    }
    let mut parts: BTreeMap<(usize, BTreeMap<String, usize>), Vec<RequestedWorker>> = BTreeMap::new();
    for workers in nodes.into_values() {
        let shape = (workers.len(), totals(&workers));
        parts.entry(shape).or_default().extend(workers);
    }
    parts.into_values().collect()
}

/// How many of each resource these workers need together.
fn totals(workers: &[RequestedWorker]) -> BTreeMap<String, usize> {
    let mut totals = BTreeMap::new();
    for need in workers.iter().flat_map(|worker| &worker.needs) {
        *totals.entry(need.label.clone()).or_default() += need.devices.len();
    }
    totals
}

impl AllocationRequest {
    /// The nodes, each once, in the order of their names.
    pub fn nodes(&self) -> Vec<&str> {
        let mut nodes: Vec<&str> = self.workers.iter().map(|worker| worker.node.as_str()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Of those on one node, in the order in which tasks there are numbered.
    pub fn workers_on(&self, node: &str) -> Vec<&RequestedWorker> {
        self.workers.iter().filter(|worker| worker.node == node).collect()
    }

    /// Which GPUs are ours Slurm says in the environment, by numbers that may count only those; of all else it has to be
    /// asked.
    pub(super) fn asks_what_was_granted(&self) -> bool {
        let is_known =
            |need: &GresNeed| need.label.split(':').next() == Some("gpu") && self.delegated.is_none();
        self.workers.iter().flat_map(|worker| &worker.needs).any(|need| !is_known(need))
    }

    fn workers_per_node(&self) -> usize {
        self.workers.len() / self.nodes().len().max(1)
    }
}

/// The arguments of `sbatch`, without the script.
pub fn submission(order: &AllocationRequest, settings: &SlurmSettings, folder: &Path) -> Vec<String> {
    let (nodes, per_node) = (order.nodes(), order.workers_per_node());
    // A path that the node does not have would fail the job before its script runs.
    let output = if settings.shared { folder.join(ALLOCATION_LOG) } else { PathBuf::from("/dev/null") };
    let mut arguments = vec![
        "--parsable".to_owned(),
        format!("--job-name={}", order.name),
        format!("--comment={}", if order.comment.is_empty() { "danlu" } else { &order.comment }),
        // `%` begins a pattern there.
        format!("--output={}", output.display().to_string().replace('%', "%%")),
        "--open-mode=append".to_owned(),
        "--chdir=/".to_owned(),
        // Another attempt is Danlu's to make: Slurm would run the same one again.
        "--no-requeue".to_owned(),
        // What `sbatch` itself is given to see, which is little.
        "--export=ALL".to_owned(),
        format!("--nodes={}", nodes.len()),
        format!("--ntasks-per-node={per_node}"),
        format!("--cpus-per-task={}", whole_cpus(order.cpus)),
    ];
    match &order.delegated {
        None => arguments.push(format!("--nodelist={}", nodes.join(","))),
        Some(Delegated { unsuitable, .. }) if !unsuitable.is_empty() => {
            arguments.push(format!("--exclude={}", unsuitable.join(",")));
        }
        Some(_) => {}
    }
    if let Some(memory) = order.memory {
        let megabytes = memory.0.div_ceil(1 << 20).max(1).saturating_mul(per_node as u64);
        arguments.push(format!("--mem={megabytes}M"));
    }
    let on_first: Vec<RequestedWorker> =
        nodes.first().map(|node| order.workers_on(node).into_iter().cloned().collect()).unwrap_or_default();
    let gres: Vec<String> =
        totals(&on_first).into_iter().map(|(label, count)| format!("{label}:{count}")).collect();
    if !gres.is_empty() {
        arguments.push(format!("--gres={}", gres.join(",")));
    }
    // The launcher notices `max_time` by itself; what a site sets is Slurm's to keep.
    let own = order.max_time.map(minutes);
    let limit = own.or_else(|| settings.time.map(|time| time.milliseconds.div_ceil(60_000).max(1)));
    arguments.extend(limit.map(|minutes| format!("--time={minutes}")));
    let workspace = &order.workspace;
    for (option, value) in [
        ("partition", settings.partition.as_ref()),
        ("account", settings.account(workspace)),
        ("qos", settings.qos(workspace)),
    ] {
        arguments.extend(value.map(|value| format!("--{option}={value}")));
    }
    arguments.extend(settings.options(workspace).cloned());
    arguments
}

fn whole_cpus(cpus: Cpus) -> u64 {
    cpus.milli.div_ceil(1000).max(1)
}

/// Slurm counts in minutes and from the start of the job. The launcher is to notice first: it says what happened.
fn minutes(limit: Span) -> u64 {
    const MARGIN: u64 = 5;
    limit.milliseconds.div_ceil(60_000).saturating_add(MARGIN)
}

/// The script that Slurm runs on the first node. `worker` is the program that stands in for the launcher until it knows
/// what was granted, and takes the allocation's folder.
pub fn batch_script(order: &AllocationRequest, folder: &Path, worker: &[String]) -> String {
    let folder = quoted(&folder.display().to_string());
    let program: Vec<String> = worker.iter().map(|word| quoted(word)).collect();
    let program = program.join(" ");
    let ask = if order.asks_what_was_granted() {
        format!(
            "# Which devices of each node are ours.\n\
             scontrol --details show job \"$SLURM_JOB_ID\" > {GRANTED_FILE} 2>&1\n"
        )
    } else {
        String::new()
    };
    let start = if order.workers.len() == 1 {
        // Already where it is to run: a step of its own would cost the controller three more messages.
        format!("exec {program} {folder}")
    } else {
        format!("exec {} {program} {folder}", step(order))
    };
    format!(
        "#!/bin/sh\n\
         # Written by Danlu: starts the workers of one attempt.\n\
         cd {folder} || exit 70\n\
         # Whoever comes second runs nothing: the job may have been submitted twice, or be run again.\n\
         set -C\n\
         {{ true > {CLAIM_FILE}; }} 2>/dev/null || {{ [ -e {CLAIM_FILE} ] && exit 0; exit 71; }}\n\
         set +C\n\
         echo \"$SLURM_JOB_ID\" > {CLAIMANT_FILE}\n\
         {ask}{start}\n"
    )
}

/// The step that starts one process for each worker.
pub(super) fn step(order: &AllocationRequest) -> String {
    format!(
        "srun --mpi=none --cpu-bind=none --kill-on-bad-exit=1 --wait=0 --nodes={} --ntasks={} \
         --ntasks-per-node={} --cpus-per-task={}",
        order.nodes().len(),
        order.workers.len(),
        order.workers_per_node(),
        whole_cpus(order.cpus),
    )
}

/// For a shell, whatever is in it.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// An order that nothing is special about.
#[cfg(test)]
pub(super) fn order_of(workers: Vec<RequestedWorker>) -> AllocationRequest {
    AllocationRequest {
        name: "danlu-7.1-ab".to_owned(),
        comment: super::order_comment(danlu_types::JobId(7), "it's, mine\n", "ada", "vision"),
        identity: None,
        workspace: "default".to_owned(),
        user: None,
        workers,
        delegated: None,
        cpus: Cpus::whole(1),
        memory: None,
        max_time: None,
    }
}

#[cfg(test)]
mod tests {
    use danlu_types::{DeviceKind, Health, Wiring};

    use super::*;

    fn worker(index: u32, node: &str, devices: u32) -> RequestedWorker {
        let device = |index| Device {
            index,
            kind: DeviceKind::Nvidia,
            model: "A100".to_owned(),
            memory: Bytes(0),
            island: 0,
            health: Health::Ok,
            wiring: Wiring::default(),
        };
        let need =
            GresNeed { label: "gpu:a100".to_owned(), devices: (0..devices).map(device).collect(), first: 0 };
        RequestedWorker {
            worker: format!("7.1.{index}").parse().unwrap(),
            node: node.to_owned(),
            run: format!("/data/runs/7/1.{index}").into(),
            needs: if devices > 0 { vec![need] } else { Vec::new() },
        }
    }

    fn order(workers: Vec<RequestedWorker>) -> AllocationRequest {
        let (cpus, memory) = (Cpus { milli: 2500 }, Some(Bytes(3 << 30)));
        let (workspace, max_time) = ("vision".to_owned(), Some(Span::from_seconds(90)));
        AllocationRequest { workspace, cpus, memory, max_time, ..order_of(workers) }
    }

    #[test]
    fn nodes_with_equally_many_workers_are_one_submission() {
        let workers = vec![worker(0, "n1", 2), worker(1, "n1", 2), worker(2, "n2", 2), worker(3, "n3", 2)];
        let shown: Vec<String> = parts(workers)
            .iter()
            .map(|part| {
                part.iter().map(|it| format!("{}@{}", it.worker, it.node)).collect::<Vec<_>>().join(" ")
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        7.1.2@n2 7.1.3@n3
        7.1.0@n1 7.1.1@n1
        ");
    }

    #[test]
    fn a_gang_is_asked_for_whole_and_by_name() {
        let order =
            order(vec![worker(0, "n2", 4), worker(1, "n2", 4), worker(2, "n1", 4), worker(3, "n1", 4)]);
        let settings = SlurmSettings {
            partition: Some("main".to_owned()),
            options: vec!["--reservation=night".to_owned()],
            ..SlurmSettings::default()
        };
        let arguments = submission(&order, &settings, Path::new("/data/runs/7/1.slurm.0"));
        insta::assert_snapshot!(arguments.join("\n"), @r"
        --parsable
        --job-name=danlu-7.1-ab
        --comment=danlu job 7 `it's, mine ` of ada in vision
        --output=/data/runs/7/1.slurm.0/slurm.log
        --open-mode=append
        --chdir=/
        --no-requeue
        --export=ALL
        --nodes=2
        --ntasks-per-node=2
        --cpus-per-task=3
        --nodelist=n1,n2
        --mem=6144M
        --gres=gpu:a100:8
        --time=7
        --partition=main
        --reservation=night
        ");
    }

    #[test]
    fn jobs_without_a_limit_have_the_sites() {
        let order = AllocationRequest { max_time: None, ..order(vec![worker(0, "n1", 1)]) };
        let time = |time: Option<u64>| {
            let settings = SlurmSettings { time: time.map(Span::from_seconds), ..SlurmSettings::default() };
            let arguments = submission(&order, &settings, Path::new("/data"));
            arguments.into_iter().find(|it| it.starts_with("--time"))
        };
        assert_eq!(time(Some(90)).as_deref(), Some("--time=2"));
        assert_eq!(time(None), None);
    }

    #[test]
    fn where_slurm_chooses_it_is_told_what_will_not_do() {
        let delegated = |unsuitable: &[&str]| {
            let unsuitable = unsuitable.iter().map(|node| (*node).to_owned()).collect();
            let delegated = Some(Delegated { unsuitable, ..Delegated::default() });
            let order =
                AllocationRequest { delegated, ..order(vec![worker(0, "n1", 2), worker(1, "n2", 2)]) };
            assert!(order.asks_what_was_granted(), "of which node those numbers are is not known beforehand");
            let arguments = submission(&order, &SlurmSettings::default(), Path::new("/data"));
            let of_nodes = arguments.into_iter().filter(|it| it.contains("node") || it.contains("exclude"));
            of_nodes.collect::<Vec<_>>().join(" ")
        };
        insta::assert_snapshot!([delegated(&[]), delegated(&["n3", "n4"])].join("\n"), @r"
        --nodes=2 --ntasks-per-node=1
        --nodes=2 --ntasks-per-node=1 --exclude=n3,n4
        ");
    }

    #[test]
    fn the_script_takes_the_order_before_it_starts_anything() {
        let folder = Path::new("/data/it's here/1.slurm.0");
        let program = ["/opt/danlu".to_owned(), "slurm-worker".to_owned()];
        let mut npu = worker(0, "n1", 1);
        npu.needs[0].label = "npu:910b".to_owned();
        let one = batch_script(&order(vec![npu]), folder, &program);
        let two = batch_script(&order(vec![worker(0, "n1", 1), worker(1, "n2", 1)]), folder, &program);
        let last = two.lines().last().unwrap();
        assert!(!two.contains("scontrol"), "a question that need not be asked");
        insta::assert_snapshot!(format!("{one}---\n{last}"), @r#"
        #!/bin/sh
        # Written by Danlu: starts the workers of one attempt.
        cd '/data/it'\''s here/1.slurm.0' || exit 70
        # Whoever comes second runs nothing: the job may have been submitted twice, or be run again.
        set -C
        { true > claim; } 2>/dev/null || { [ -e claim ] && exit 0; exit 71; }
        set +C
        echo "$SLURM_JOB_ID" > claim.job
        # Which devices of each node are ours.
        scontrol --details show job "$SLURM_JOB_ID" > granted 2>&1
        exec '/opt/danlu' 'slurm-worker' '/data/it'\''s here/1.slurm.0'
        ---
        exec srun --mpi=none --cpu-bind=none --kill-on-bad-exit=1 --wait=0 --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=3 '/opt/danlu' 'slurm-worker' '/data/it'\''s here/1.slurm.0'
        "#);
    }
}
