//! The scheduler's rules once more, as plainly as they can be written and without a thought for speed.
//!
//! No ordinals, no bit sets, no counting ahead: it tries things and looks at lists. Whether a gang fits is found by
//! trying every assignment of workers to nodes.

use std::collections::BTreeSet;

use danlu_core::job::Waiting as Why;
use danlu_core::{Grant, Job, Life};
use danlu_types::{Device, DeviceKind, JobSpec, Node};
use jiff::Timestamp;

/// What is free on one node.
#[derive(Clone)]
struct Left {
    node: Node,
    devices: Vec<Device>,
    milli_cpus: u64,
    bytes: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Start(Vec<Grant>),
    /// The word of the reason.
    Wait(&'static str),
}

/// What becomes of every job, in the queue's order. Nobody holds anything but `held`.
pub(crate) fn reference_plan(nodes: &[Node], held: &[Grant], queue: &[Job], now: Timestamp) -> Vec<Said> {
    let idle: Vec<Left> = nodes
        .iter()
        .map(|node| Left {
            devices: node.devices.iter().filter(|device| device.usable()).cloned().collect(),
            milli_cpus: node.capacity.cpus.milli,
            bytes: node.capacity.memory.0,
            node: node.clone(),
        })
        .collect();
    let mut free = idle.clone();
    for grant in held {
        remove(&mut free, grant);
    }
    let mut closed: BTreeSet<Option<DeviceKind>> = BTreeSet::new();
    queue.iter().map(|job| consider(&idle, &mut free, &mut closed, job, now)).collect()
}

fn consider(
    idle: &[Left],
    free: &mut [Left],
    closed: &mut BTreeSet<Option<DeviceKind>>,
    job: &Job,
    now: Timestamp,
) -> Said {
    let spec = &job.spec;
    if let Life::Queued { since, why: Why::Retry { not_before, .. } } = &job.life
        && now >= *since
        && now < *not_before
    {
        return Said::Wait("back_off");
    }
    let wanted: Vec<Option<DeviceKind>> = match (spec.devices.count, spec.devices.kind) {
        (0, _) => vec![None],
        (_, Some(kind)) => vec![Some(kind)],
        (_, None) => DeviceKind::ALL.map(Some).to_vec(),
    };
    let open: Vec<_> = wanted.iter().copied().filter(|pool| !closed.contains(pool)).collect();
    if let Some(model) = best_model(free, spec, &open) {
        let grants: Vec<Grant> = (0..spec.workers).map(|_| place_one(free, spec, model.as_ref())).collect();
        return Said::Start(grants);
    }
    let possible = |pool: &Option<DeviceKind>| best_model(idle, spec, &[*pool]).is_some();
    if !wanted.iter().any(possible) {
        // A job is only found to be impossible when its turn comes.
        return Said::Wait(if open.is_empty() { "behind_others" } else { "no_such_devices" });
    }
    let waits_in: Vec<_> = open.into_iter().filter(possible).collect();
    if waits_in.is_empty() {
        return Said::Wait("behind_others");
    }
    let without = |cpus: bool, memory: bool| {
        let mut less = (**spec).clone();
        if cpus {
            less.cpus.milli = 0;
        }
        if memory {
            less.memory = None;
        }
        best_model(free, &less, &waits_in).is_some()
    };
    let word = if !without(true, true) {
        "devices_busy"
    } else if !without(false, true) {
        "cpus_busy"
    } else {
        "memory_busy"
    };
    closed.extend(waits_in);
    if word != "devices_busy" {
        closed.insert(None);
    }
    Said::Wait(word)
}

type Model = (DeviceKind, String);

/// The model with the fewest free devices that can hold the gang; `Some(None)` for a gang without devices that fits.
#[allow(clippy::option_option, reason = "two questions, as plainly as they are asked")]
fn best_model(free: &[Left], spec: &JobSpec, pools: &[Option<DeviceKind>]) -> Option<Option<Model>> {
    if spec.devices.count == 0 {
        return (pools.contains(&None) && some_assignment(free, spec, None, spec.workers)).then_some(None);
    }
    let mut models: Vec<Model> = Vec::new();
    for device in free.iter().flat_map(|left| &left.node.devices) {
        let model = (device.kind, device.model.clone());
        if pools.contains(&Some(device.kind)) && spec.devices.accepts(device) && !models.contains(&model) {
            models.push(model);
        }
    }
    let count = |model: &Model| free.iter().map(|left| of_model(left, model).len()).sum::<usize>();
    models.sort_by_key(count);
    models.into_iter().find(|model| some_assignment(free, spec, Some(model), spec.workers)).map(Some)
}

/// Tries every node for every worker.
fn some_assignment(free: &[Left], spec: &JobSpec, model: Option<&Model>, workers: u32) -> bool {
    if workers == 0 {
        return true;
    }
    (0..free.len()).any(|node| {
        let mut rest = free.to_vec();
        if !has_room(&rest[node], spec, model) {
            return false;
        }
        let devices: Vec<u32> = match model {
            Some(model) => indices(&of_model(&rest[node], model)[..spec.devices.count as usize]),
            None => Vec::new(),
        };
        let grant = grant(&rest[node], devices, spec);
        remove(&mut rest, &grant);
        some_assignment(&rest, spec, model, workers - 1)
    })
}

fn has_room(left: &Left, spec: &JobSpec, model: Option<&Model>) -> bool {
    let devices = model.is_none_or(|model| of_model(left, model).len() >= spec.devices.count as usize);
    devices && left.milli_cpus >= spec.cpus.milli && left.bytes >= spec.memory.unwrap_or_default().0
}

/// The best node for one worker, and the best devices there.
fn place_one(free: &mut [Left], spec: &JobSpec, model: Option<&Model>) -> Grant {
    let mut candidates = Vec::new();
    for (order, left) in free.iter().enumerate().filter(|(_, left)| has_room(left, spec, model)) {
        let devices =
            model.map_or_else(Vec::new, |model| best_devices(left, model, spec.devices.count as usize));
        let mut islands: Vec<u32> = left
            .devices
            .iter()
            .filter(|device| devices.contains(&device.index))
            .map(|device| device.island)
            .collect();
        islands.dedup();
        let left_over = left.devices.len() - devices.len();
        candidates.push(((islands.len() > 1, left_over, order), devices));
    }
    candidates.sort();
    let ((_, _, order), devices) = candidates.remove(0);
    let grant = grant(&free[order], devices, spec);
    remove(free, &grant);
    grant
}

/// Whole large islands until one suffices for the rest; then the smallest such one.
fn best_devices(left: &Left, model: &Model, wanted: usize) -> Vec<u32> {
    if wanted == 0 {
        return Vec::new();
    }
    let mut islands: Vec<Vec<Device>> = Vec::new();
    for device in of_model(left, model) {
        match islands.iter_mut().find(|island| island[0].island == device.island) {
            Some(island) => island.push(device),
            None => islands.push(vec![device]),
        }
    }
    islands.sort_by_key(Vec::len);
    let enough = islands.iter().find(|island| island.len() >= wanted);
    let most = islands.iter().map(Vec::len).max().unwrap_or(0);
    let largest = || islands.iter().find(|island| island.len() == most).unwrap();
    let island = enough.unwrap_or_else(largest);
    let mut taken = indices(&island[..island.len().min(wanted)]);
    let mut rest = left.clone();
    rest.devices.retain(|device| !taken.contains(&device.index));
    let missing = wanted - taken.len();
    taken.extend(best_devices(&rest, model, missing));
    taken.sort_unstable();
    taken
}

fn of_model(left: &Left, model: &Model) -> Vec<Device> {
    let same = |device: &&Device| device.kind == model.0 && device.model == model.1;
    left.devices.iter().filter(same).cloned().collect()
}

fn indices(devices: &[Device]) -> Vec<u32> {
    devices.iter().map(|device| device.index).collect()
}

fn grant(left: &Left, devices: Vec<u32>, spec: &JobSpec) -> Grant {
    let (node, cpus, memory) = (left.node.name.clone(), spec.cpus, spec.memory.unwrap_or_default());
    Grant { node, devices, cpus, memory }
}

fn remove(free: &mut [Left], grant: &Grant) {
    let left = free.iter_mut().find(|left| left.node.name == grant.node).unwrap();
    left.devices.retain(|device| !grant.devices.contains(&device.index));
    left.milli_cpus -= grant.cpus.milli;
    left.bytes -= grant.memory.0;
}
