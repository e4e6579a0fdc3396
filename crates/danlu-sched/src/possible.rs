//! What can never run here, said at submission with what would be accepted instead.
//!
//! Measured against everything the nodes have, whether held or not and whether it works just now or not: a job that
//! only has to wait is not refused.

use danlu_types::{FieldError, JobSpec, Node};

use crate::cluster::Cluster;
use crate::fit::{Ask, Hardware, fits, room, total_room};
use crate::reason::{asked, cores, devices, model};

/// Why a job can never run on these nodes: the field to change, and what would be accepted.
pub type Impossible = FieldError;

/// Refuses a job that these nodes could not run even if they were idle.
pub fn can_ever_run(nodes: &[Node], spec: &JobSpec) -> Result<(), Impossible> {
    Cluster::new(nodes).can_ever_run(spec)
}

impl Cluster {
    /// [`can_ever_run`] for whoever has the cluster at hand.
    pub fn can_ever_run(&self, spec: &JobSpec) -> Result<(), Impossible> {
        if self.nodes().is_empty() {
            return Err(FieldError::new("", "there are no nodes here; wait for the engine to offer some"));
        }
        if spec.devices.count.devices() == 0 {
            return self.check_workers(spec, &[Hardware::CpuOnly]);
        }
        let mut models = self.layout.accepted(&spec.devices);
        if models.is_empty() {
            return Err(self.no_such_devices(spec));
        }
        self.check_devices(spec, &models)?;
        models.retain(|&model| self.most_on_one_node(model) >= spec.devices.count.devices());
        let choices: Vec<Hardware> = models.into_iter().map(Hardware::Model).collect();
        self.check_workers(spec, &choices)
    }

    fn no_such_devices(&self, spec: &JobSpec) -> Impossible {
        let layout = &self.layout;
        let of_kind =
            layout.models.iter().filter(|model| spec.devices.kind.is_none_or(|kind| kind == model.kind));
        let names: Vec<&str> = of_kind.map(|model| model.name.as_str()).collect();
        if let (Some(pattern), false) = (&spec.devices.model, names.is_empty()) {
            let message = format!("`{pattern}` matches no device here; there are {}", listed(&names));
            return FieldError::new("devices.model", message);
        }
        if layout.models.is_empty() {
            let message = "there are no devices here; use `count: 0` to compute on processors";
            return FieldError::new("devices.count", message);
        }
        let mut kinds: Vec<&str> = layout.models.iter().map(|model| model.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let kind = spec.devices.kind.map_or("", |kind| kind.as_str());
        FieldError::new(
            "devices.kind",
            format!("there is no `{kind}` device here; there are {}", listed(&kinds)),
        )
    }

    fn check_devices(&self, spec: &JobSpec, models: &[usize]) -> Result<(), Impossible> {
        let count = spec.devices.count.devices();
        let largest = models.iter().map(|&model| (self.most_on_one_node(model), model));
        let Some((most, best)) = largest.max_by_key(|&(most, model)| (most, std::cmp::Reverse(model))) else {
            return Ok(());
        };
        if count <= most {
            return Ok(());
        }
        let about = &self.layout.models[best];
        let has = format!("is {count}, but the largest node has {}", model(about.kind, &about.name, most));
        // As many devices in more workers, if they come out even and that would be accepted.
        let all = u64::from(count) * u64::from(spec.workers);
        let workers = usize::try_from(all / u64::from(most)).unwrap_or(usize::MAX);
        let ask = Ask { workers, devices: most, ..Ask::of(spec) };
        let even = all.is_multiple_of(u64::from(most));
        let offer = if even && fits(&self.layout, &self.whole, &ask, &[best]) {
            format!("use `workers: {workers}` with `count: {most}`")
        } else {
            format!("use at most `count: {most}`")
        };
        Err(FieldError::new("devices.count", format!("{has}; {offer}")))
    }

    /// Is there a node for one worker; and room for all of them at once, on one choice of hardware?
    fn check_workers(&self, spec: &JobSpec, choices: &[Hardware]) -> Result<(), Impossible> {
        let ask = Ask::of(spec);
        // Narrowed from devices to CPUs to memory: each sentence speaks of nodes that have what was checked before it.
        let holds = |ask: &Ask, node: usize| {
            choices.iter().any(|&choice| room(&self.layout, &self.whole, ask, node, choice) > 0)
        };
        let nodes = |ask: Ask| {
            let holding = (0..self.nodes().len()).filter(move |&node| holds(&ask, node));
            holding.map(|node| &self.nodes()[node].capacity)
        };
        let mut whose = "the largest node".to_owned();
        if spec.devices.count.devices() > 0 {
            whose = format!("{whose} with {}", devices(&spec.devices, spec.devices.count.devices()));
        }
        let cpus =
            nodes(Ask { milli_cpus: 0, bytes: 0, ..ask }).map(|node| node.cpus).max().unwrap_or_default();
        if spec.cpus > cpus {
            let message = format!("is {}, but {whose} has {cpus}; use at most `cpus: {cpus}`", spec.cpus);
            return Err(FieldError::new("cpus", message));
        }
        let most_memory = |ask| nodes(ask).map(|node| node.memory).max().unwrap_or_default();
        let memory = most_memory(Ask { bytes: 0, ..ask });
        if let Some(wanted) = spec.memory.filter(|wanted| *wanted > memory) {
            // The CPUs are worth a word only if it is for their sake that the larger nodes are out.
            if most_memory(Ask { milli_cpus: 0, bytes: 0, ..ask }) > memory {
                let with = if spec.devices.count.devices() > 0 { "and" } else { "with" };
                whose = format!("{whose} {with} {}", cores(spec.cpus));
            }
            let message = format!("is {wanted}, but {whose} has {memory}; use at most `memory: {memory}`");
            return Err(FieldError::new("memory", message));
        }
        self.check_gang(spec, &ask, choices)
    }

    fn check_gang(&self, spec: &JobSpec, ask: &Ask, choices: &[Hardware]) -> Result<(), Impossible> {
        let rooms = choices.iter().map(|&choice| total_room(&self.layout, &self.whole, ask, choice));
        let most = rooms.max().unwrap_or(0);
        if most >= ask.workers {
            return Ok(());
        }
        let each = asked(&JobSpec { workers: 1, ..spec.clone() });
        let model = if choices.len() > 1 { ", all on one model," } else { "" };
        let message = format!(
            "is {}, but all nodes together have room for {most}{model} with {each} each; use at most `workers: {most}`",
            spec.workers
        );
        Err(FieldError::new("workers", message))
    }

    fn most_on_one_node(&self, model: usize) -> u32 {
        let nodes = 0..self.nodes().len();
        nodes.map(|node| self.layout.free_on(&self.whole, node, Some(model))).max().unwrap_or(0)
    }
}

/// "`910B3` and `A100-80G`".
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match &quoted[..] {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}
