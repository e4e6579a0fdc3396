//! What can never run here, said at submission with what would be accepted instead.
//!
//! Measured against everything the nodes have, whether held or not and whether it works just now or not: a job that
//! only has to wait is not refused.

use danlu_types::{Bytes, Cpus, FieldError, JobSpec, Node};

use crate::cluster::Cluster;
use crate::fit::{Ask, Hardware, room, total_room};
use crate::reason::{devices, model};

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
        let ask = Ask::of(spec);
        let largest_cpus = self.nodes().iter().map(|node| node.capacity.cpus).max().unwrap_or_default();
        let largest_memory = self.nodes().iter().map(|node| node.capacity.memory).max().unwrap_or_default();
        if spec.devices.count == 0 {
            check_amounts(spec, largest_cpus, largest_memory, "the largest node")?;
            return self.check_gang(spec, &ask, &[Hardware::CpuOnly]);
        }
        let models = self.layout.accepted(&spec.devices);
        if models.is_empty() {
            return Err(self.no_such_devices(spec));
        }
        self.check_devices(spec, &models)?;
        let models: Vec<usize> =
            models.into_iter().filter(|&model| self.most_on_one_node(model) >= spec.devices.count).collect();
        let has_devices = |node: &usize| {
            let enough =
                |&model: &usize| self.layout.free_on(&self.whole, *node, Some(model)) >= spec.devices.count;
            models.iter().any(enough)
        };
        let candidates: Vec<&Node> =
            (0..self.nodes().len()).filter(has_devices).map(|node| &self.nodes()[node]).collect();
        let cpus = candidates.iter().map(|node| node.capacity.cpus).max().unwrap_or_default();
        let memory = candidates.iter().map(|node| node.capacity.memory).max().unwrap_or_default();
        let whose = format!("the largest node with {}", devices(&spec.devices, spec.devices.count));
        check_amounts(spec, cpus, memory, &whose)?;
        let choices: Vec<Hardware> = models.into_iter().map(Hardware::Model).collect();
        self.check_gang(spec, &ask, &choices)
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
        let count = spec.devices.count;
        let largest = models.iter().map(|&model| (self.most_on_one_node(model), model));
        let Some((most, best)) = largest.max_by_key(|&(most, model)| (most, std::cmp::Reverse(model))) else {
            return Ok(());
        };
        if count <= most {
            return Ok(());
        }
        let best = &self.layout.models[best];
        let has = format!("is {count}, but the largest node has {}", model(best.kind, &best.name, most));
        let all = u64::from(count) * u64::from(spec.workers);
        let offer = if all.is_multiple_of(u64::from(most)) {
            format!("use `workers: {}` with `count: {most}`", all / u64::from(most))
        } else {
            format!("use at most `count: {most}`, and `workers` for more")
        };
        Err(FieldError::new("devices.count", format!("{has}; {offer}")))
    }

    /// Each worker fits somewhere; but do all of them, at once, on devices of one model?
    fn check_gang(&self, spec: &JobSpec, ask: &Ask, choices: &[Hardware]) -> Result<(), Impossible> {
        let rooms = choices.iter().map(|&choice| total_room(&self.layout, &self.whole, ask, choice));
        let most = rooms.max().unwrap_or(0);
        if most >= ask.workers {
            return Ok(());
        }
        if most == 0 {
            // Devices here, CPUs there, memory elsewhere.
            let fits_without = |ask: Ask| {
                let nodes = 0..self.nodes().len();
                let pairs = nodes.flat_map(|node| choices.iter().map(move |&choice| (node, choice)));
                pairs
                    .into_iter()
                    .any(|(node, choice)| room(&self.layout, &self.whole, &ask, node, choice) > 0)
            };
            let field = if fits_without(Ask { bytes: 0, ..*ask }) { "memory" } else { "cpus" };
            let message = "no one node has all that a worker asks for; ask for less of this";
            return Err(FieldError::new(field, message));
        }
        let each = crate::reason::asked(&JobSpec { workers: 1, ..spec.clone() });
        let message = format!(
            "is {}, but all nodes together have room for {most} with {each} each; use at most `workers: {most}`",
            spec.workers
        );
        Err(FieldError::new("workers", message))
    }

    fn most_on_one_node(&self, model: usize) -> u32 {
        let nodes = 0..self.nodes().len();
        nodes.map(|node| self.layout.free_on(&self.whole, node, Some(model))).max().unwrap_or(0)
    }
}

fn check_amounts(spec: &JobSpec, cpus: Cpus, memory: Bytes, whose: &str) -> Result<(), Impossible> {
    if spec.cpus > cpus {
        let message = format!("is {}, but {whose} has {cpus}; use at most `cpus: {cpus}`", spec.cpus);
        return Err(FieldError::new("cpus", message));
    }
    if let Some(asked) = spec.memory.filter(|asked| *asked > memory) {
        let message = format!("is {asked}, but {whose} has {memory}; use at most `memory: {memory}`");
        return Err(FieldError::new("memory", message));
    }
    Ok(())
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
