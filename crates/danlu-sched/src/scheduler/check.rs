//! What can never run here, said at submission with what would be accepted instead.
//!
//! Measured against everything the nodes have, whether held or not and whether it works just now or not: a job that
//! only has to wait is not refused. Nothing here runs for a job that is accepted, so the answers are found by asking
//! about changed jobs rather than by a second set of rules.

use danlu_types::reason::{QuotaResource, RequestedResources};
use danlu_types::{Bytes, Cpus, DeviceCount, DeviceRequest, FieldError, JobSpec, Node, format};

use super::quota_filter::kinds_of;
use super::usage::ResourceVector;
use super::workspaces::Bound;
use super::{Scheduler, why};
use crate::fleet::Need;
use crate::shape::{DeviceAsk, Shape};
use crate::words::{listed, model};

/// More than any node has.
const MOST_DEVICES: u32 = 128;

impl Scheduler {
    /// Why a job could never run here, with what would be accepted.
    pub fn check(&mut self, spec: &JobSpec) -> Result<(), FieldError> {
        if self.fleet.nodes().is_empty() {
            return Err(FieldError::new("", "the cluster has no nodes yet; see `danlu nodes`"));
        }
        if !self.could_ever_run(spec) {
            return Err(self.impossible(spec));
        }
        self.check_limits(spec)
    }

    /// A job larger than its workspace or its owner may ever use would wait for ever, and so would one that would fit only
    /// on devices of which it may not have so many.
    fn check_limits(&mut self, spec: &JobSpec) -> Result<(), FieldError> {
        let id = self.accounts.id(&spec.workspace);
        let mut shape = Shape::of(spec);
        let mut refused = None;
        let mut allowed: Vec<DeviceAsk> = Vec::new();
        for ask in &shape.alternatives {
            for kind in kinds_of(ask) {
                let usage = ResourceVector::of_gang(&shape, ask, kind);
                match self.accounts.bound_exceeded_by(id, &usage, spec.preemptible) {
                    None => allowed.push(DeviceAsk { kind: kind.or(ask.kind), ..ask.clone() }),
                    Some((resource, most, whose)) => {
                        refused = refused.or(Some((resource, usage.get(resource), most, whose)));
                    }
                }
            }
        }
        shape.alternatives = allowed;
        if self.fleet.would_ever_fit(&shape) {
            return Ok(());
        }
        let Some((resource, wanted, most, whose)) = refused else { return Ok(()) };
        let (wanted, most) = (why::amount(resource, wanted), why::amount(resource, most));
        let (workspace, what) = (&spec.workspace, resource.label());
        let message = match whose {
            Bound::Limit { is_user } if most == "0" => format!(
                "asks for {wanted} {what} in all, but {}workspace `{workspace}` may use none; use another workspace",
                if is_user { "each person in " } else { "" }
            ),
            Bound::Limit { is_user } => format!(
                "asks for {wanted} {what} in all, but {}workspace `{workspace}` may use at most {most}; ask for less, or use another workspace",
                if is_user { "each person in " } else { "" }
            ),
            Bound::Guarantees => {
                let left = if most == "0" { "all" } else { &format!("all beside {most}") };
                let lends = self.accounts.lends();
                let borrow = if lends { ", and only preemptible jobs may borrow them" } else { "" };
                let instead = match (most.as_str(), lends) {
                    ("0", true) => "set `preemptible: true`, or use another workspace".to_owned(),
                    ("0", false) => "use another workspace".to_owned(),
                    (most, true) => format!("ask for at most {most}, or set `preemptible: true`"),
                    (most, false) => format!("ask for at most {most}"),
                };
                format!(
                    "asks for {wanted} {what} in all, but {left} are guaranteed to other workspaces{borrow}; {instead}"
                )
            }
        };
        Err(FieldError::new(field_of(resource, spec), message))
    }

    /// Whether some board gives such devices to a worker, be it alone or one of several.
    fn could_be_worker(&mut self, spec: &JobSpec) -> bool {
        spec.alternatives().iter().any(|request| {
            let (ask, need) = (DeviceAsk::of(request), Need::new(request.count, spec.workers));
            let one = JobSpec { workers: 1, devices: request.clone(), any_of: Vec::new(), ..spec.clone() };
            let accepts = self.fleet.boards(&ask).iter().any(|(board, _)| board.accepts(need));
            (accepts || request.count.is_none()) && self.could_ever_run(&one)
        })
    }

    fn could_ever_run(&mut self, spec: &JobSpec) -> bool {
        self.fleet.would_ever_fit(&Shape::of(spec))
    }

    /// Narrowed from devices to CPUs to memory to workers: each sentence speaks of nodes that have what was checked
    /// before it.
    fn impossible(&mut self, spec: &JobSpec) -> FieldError {
        let one = JobSpec { workers: 1, cpus: Cpus::default(), memory: None, ..spec.clone() };
        if !self.could_ever_run(&one) {
            return self.no_such_devices(&one, spec);
        }
        if !self.could_be_worker(&JobSpec { workers: spec.workers, ..one.clone() })
            && let Some(request) = spec.alternatives().first()
        {
            let message = self.wrong_count(&one, spec, request);
            return FieldError::new(
                if spec.any_of.is_empty() { "devices.count" } else { "any_of.0.count" },
                message,
            );
        }
        let whose = if spec.is_cpu_only() {
            "the largest node".to_owned()
        } else {
            format!("the largest node with {}", RequestedResources::from(spec).alternatives())
        };
        let with_cpus = |cpus| JobSpec { cpus, ..one.clone() };
        if !self.could_ever_run(&with_cpus(spec.cpus)) {
            let cpus = self.largest(|node| node.capacity.cpus, |cpus| with_cpus(*cpus));
            let message = format!("is {}, but {whose} has {cpus}; use at most `cpus: {cpus}`", spec.cpus);
            return FieldError::new("cpus", message);
        }
        let with_memory = |memory: Bytes| JobSpec { cpus: spec.cpus, memory: Some(memory), ..one.clone() };
        let wanted = spec.memory.unwrap_or_default();
        if !self.could_ever_run(&with_memory(wanted)) {
            let memory = self.largest(|node| node.capacity.memory, |memory| with_memory(*memory));
            // The CPUs are worth a word only if it is for their sake that the larger nodes are out.
            let without_cpus = |memory: &Bytes| JobSpec { memory: Some(*memory), ..one.clone() };
            let mut whose = whose;
            if self.largest(|node| node.capacity.memory, without_cpus) > memory {
                let with = if spec.is_cpu_only() { "with" } else { "and" };
                whose = format!("{whose} {with} {}", format::cpus(spec.cpus));
            }
            let message = format!("is {wanted}, but {whose} has {memory}; use at most `memory: {memory}`");
            return FieldError::new("memory", message);
        }
        self.too_many_workers(spec)
    }

    fn too_many_workers(&mut self, spec: &JobSpec) -> FieldError {
        let (mut fits, mut too_many) = (1, spec.workers);
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if self.could_ever_run(&JobSpec { workers: middle, ..spec.clone() }) {
                fits = middle;
            } else {
                too_many = middle;
            }
        }
        let each = RequestedResources { workers: 1, ..RequestedResources::from(spec) };
        let rack = if spec.nodes.same_rack { " in one rack" } else { "" };
        let message = format!(
            "is {}, but the nodes together have room for {fits}{rack} with {each} each; use at most `workers: {fits}`",
            spec.workers
        );
        FieldError::new("workers", message)
    }

    /// The largest of the nodes' capacities with which the job could run.
    fn largest<T: Ord + Default>(&mut self, of: impl Fn(&Node) -> T, with: impl Fn(&T) -> JobSpec) -> T {
        let mut capacities: Vec<T> = self.fleet.nodes().iter().map(of).collect();
        capacities.sort_unstable();
        capacities.dedup();
        let largest = capacities.into_iter().rev().find(|capacity| self.could_ever_run(&with(capacity)));
        largest.unwrap_or_default()
    }

    /// No node could hold even one worker's devices.
    fn no_such_devices(&mut self, one: &JobSpec, spec: &JobSpec) -> FieldError {
        let anywhere = JobSpec { nodes: danlu_types::NodeSelection::default(), ..one.clone() };
        if self.could_ever_run(&anywhere) {
            return self.no_such_nodes(one);
        }
        let prefix = if spec.any_of.is_empty() { "devices" } else { "any_of.0" };
        let Some(request) = spec.alternatives().first() else {
            return FieldError::new("devices", "is missing");
        };
        let names = |pass: &dyn Fn(&danlu_types::Device) -> bool| {
            let devices =
                self.fleet.nodes().iter().flat_map(|node| &node.devices).filter(|device| pass(device));
            let mut names: Vec<(danlu_types::DeviceKind, String)> =
                devices.map(|device| (device.kind, device.model.clone())).collect();
            names.sort();
            names.dedup();
            names
        };
        let all = names(&|_| true);
        if all.is_empty() {
            let message = "asks for devices, and the cluster has none; use `count: 0` to compute on CPUs";
            return FieldError::new(format!("{prefix}.count"), message);
        }
        let of_kind = names(&|device| request.kind.is_none_or(|kind| kind == device.kind));
        if let (Some(kind), true) = (request.kind, of_kind.is_empty()) {
            let mut kinds: Vec<&str> = all.iter().map(|(kind, _)| kind.as_str()).collect();
            kinds.dedup();
            let message = format!("there is no `{kind}` device here; there are {}", listed(&kinds));
            return FieldError::new(format!("{prefix}.kind"), message);
        }
        let accepted = names(&|device| request.accepts(device));
        if accepted.is_empty() {
            let models: Vec<&String> = of_kind.iter().map(|(_, model)| model).collect();
            let pattern = request.model.as_deref().unwrap_or("*");
            let message = format!("`{pattern}` matches no device here; there are {}", listed(&models));
            return FieldError::new(format!("{prefix}.model"), message);
        }
        FieldError::new(format!("{prefix}.count"), self.wrong_count(one, spec, request))
    }

    /// Models are there, but no node can give so many of them to one worker.
    fn wrong_count(&mut self, one: &JobSpec, spec: &JobSpec, request: &DeviceRequest) -> String {
        let with = |count: u32, workers: u32| JobSpec {
            devices: DeviceRequest { count: DeviceCount::whole(count), ..request.clone() },
            any_of: Vec::new(),
            workers,
            ..one.clone()
        };
        let count = request.count.devices();
        let accepted: Vec<u32> =
            (1..=MOST_DEVICES).filter(|count| self.could_be_worker(&with(*count, spec.workers))).collect();
        let most = accepted.last().copied().unwrap_or(0);
        if count <= most {
            let counts: Vec<String> = accepted.iter().map(ToString::to_string).collect();
            let (asked, whom) =
                (request.count, if spec.workers > 1 { "each of several workers" } else { "one worker" });
            return format!(
                "is {asked}, which these boards cannot give to {whom}; they give {}",
                counts.join(", ")
            );
        }
        let nodes = self.fleet.nodes().iter();
        let largest = nodes.flat_map(|node| &node.devices).find(|device| request.accepts(device));
        let what = largest.map_or_else(|| most.to_string(), |device| model(device.kind, &device.model, most));
        let all = u64::from(count) * u64::from(spec.workers);
        let workers = u32::try_from(all / u64::from(most.max(1))).unwrap_or(u32::MAX);
        // As many devices in more workers, if they come out even and that would be accepted.
        let offer = if all.is_multiple_of(u64::from(most.max(1))) && self.could_ever_run(&with(most, workers))
        {
            format!("use `workers: {workers}` with `count: {most}`")
        } else {
            format!("use at most `count: {most}`")
        };
        let of_node = |node: &danlu_types::Node| node.devices.iter().filter(|it| request.accepts(it)).count();
        let there = self.fleet.nodes().iter().map(of_node).max().unwrap_or(0);
        if there > most as usize {
            // Boards of some generations give a worker only devices that are wired together.
            return format!(
                "is {count}, but one worker gets at most {what} here, though the largest node has {there}: only so many are \
                 wired together, or have the memory and CPUs that are asked for; {offer}"
            );
        }
        format!("is {count}, but the largest node has {what}; {offer}")
    }

    fn no_such_nodes(&mut self, one: &JobSpec) -> FieldError {
        let mut without = one.clone();
        without.nodes.architecture = None;
        if let (Some(wanted), true) = (&one.nodes.architecture, self.could_ever_run(&without)) {
            let mut here: Vec<&String> = self.fleet.nodes().iter().map(|node| &node.architecture).collect();
            here.sort_unstable();
            here.dedup();
            let message = format!("no node that would do is `{wanted}`; there are {}", listed(&here));
            return FieldError::new("nodes.architecture", message);
        }
        let mut here: Vec<String> = self
            .fleet
            .nodes()
            .iter()
            .flat_map(|node| node.labels.iter().map(|(name, value)| format!("{name}: {value}")))
            .collect();
        here.sort_unstable();
        here.dedup();
        let message = format!("no node that would do has these labels; there are {}", listed(&here));
        FieldError::new("nodes.labels", message)
    }
}

fn field_of(resource: QuotaResource, spec: &JobSpec) -> &'static str {
    match resource {
        _ if spec.workers > 1 => "workers",
        QuotaResource::Nvidia | QuotaResource::Ascend if spec.any_of.is_empty() => "devices.count",
        QuotaResource::Nvidia | QuotaResource::Ascend => "any_of",
        QuotaResource::Cpus => "cpus",
        QuotaResource::Memory => "memory",
    }
}
