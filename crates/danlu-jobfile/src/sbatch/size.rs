//! How many nodes, tasks, cores and devices: Slurm takes them in many combinations, Danlu as so many equal workers.

use super::options::Field;

/// What the options say; whatever is missing follows from the others.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SizeRequest {
    pub(super) nodes: Option<u32>,
    pub(super) tasks: Option<u32>,
    pub(super) tasks_per_node: Option<u32>,
    pub(super) tasks_per_device: Option<u32>,
    pub(super) devices: Option<u32>,
    pub(super) devices_per_node: Option<u32>,
    pub(super) devices_per_task: Option<u32>,
    pub(super) cpus_per_task: Option<u32>,
    pub(super) cpus_per_device: Option<u32>,
}

/// The same of each node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) nodes: u32,
    pub(super) tasks_per_node: u32,
    pub(super) devices: u32,
    pub(super) cpus: u32,
}

impl Default for Size {
    fn default() -> Self {
        Size { nodes: 1, tasks_per_node: 1, devices: 0, cpus: 1 }
    }
}

/// The option that does not go with the others, and why.
pub(super) fn size(asked: &SizeRequest) -> Result<Size, (Field, String)> {
    let nodes = asked.nodes.or_else(|| nodes_by_the_rest(asked)).unwrap_or(1);
    let divided = |field: Field, total: u32, what: &str| {
        let each = total / nodes;
        if total.is_multiple_of(nodes) && each > 0 {
            Ok(each)
        } else {
            Err((field, format!("{total} {what} cannot be shared equally by {nodes} nodes")))
        }
    };
    let total_devices = asked.devices.filter(|devices| *devices > 0);
    let devices_by_total = total_devices.map(|total| divided(Field::Gpus, total, "devices")).transpose()?;
    let devices = asked.devices_per_node.or(devices_by_total);
    let tasks_by_total = asked.tasks.map(|total| divided(Field::Ntasks, total, "tasks")).transpose()?;
    let tasks_by_devices =
        asked.tasks_per_device.zip(devices).map(|(tasks, devices)| tasks.saturating_mul(devices));
    let tasks_per_node = tasks_by_total.or(asked.tasks_per_node).or(tasks_by_devices).unwrap_or(1).max(1);
    let devices_by_tasks = asked.devices_per_task.map(|devices| devices.saturating_mul(tasks_per_node));
    let devices = devices.or(devices_by_tasks).unwrap_or(0);
    let cpus_by_tasks = asked.cpus_per_task.map(|cpus| cpus.saturating_mul(tasks_per_node));
    let cpus_by_devices =
        asked.cpus_per_device.map(|cpus| cpus.saturating_mul(devices)).filter(|cpus| *cpus > 0);
    let cpus = cpus_by_tasks.or(cpus_by_devices).unwrap_or(tasks_per_node);
    Ok(Size { nodes, tasks_per_node, devices, cpus })
}

fn nodes_by_the_rest(asked: &SizeRequest) -> Option<u32> {
    let by_tasks = asked.tasks.zip(asked.tasks_per_node).map(|(all, each)| all.div_ceil(each));
    let by_devices = asked.devices.zip(asked.devices_per_node.filter(|each| *each > 0));
    by_tasks.or_else(|| by_devices.map(|(all, each)| all.div_ceil(each))).map(|nodes| nodes.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_follows_from_the_rest() {
        let two_by_eight = Size { nodes: 2, tasks_per_node: 8, devices: 8, cpus: 64 };
        let none = SizeRequest::default();
        for (asked, expected) in [
            (none, Size::default()),
            (
                SizeRequest {
                    nodes: Some(2),
                    tasks_per_node: Some(8),
                    devices_per_node: Some(8),
                    cpus_per_task: Some(8),
                    ..none
                },
                two_by_eight,
            ),
            (
                SizeRequest {
                    nodes: Some(2),
                    tasks: Some(16),
                    devices: Some(16),
                    cpus_per_device: Some(8),
                    ..none
                },
                two_by_eight,
            ),
            (
                SizeRequest {
                    tasks: Some(16),
                    tasks_per_node: Some(8),
                    devices_per_task: Some(1),
                    cpus_per_task: Some(8),
                    ..none
                },
                two_by_eight,
            ),
            (
                SizeRequest {
                    nodes: Some(2),
                    devices_per_node: Some(8),
                    tasks_per_device: Some(1),
                    cpus_per_task: Some(8),
                    ..none
                },
                two_by_eight,
            ),
            (SizeRequest { tasks: Some(4), ..none }, Size { tasks_per_node: 4, cpus: 4, ..Size::default() }),
            (
                SizeRequest { devices: Some(16), devices_per_node: Some(8), ..none },
                Size { nodes: 2, tasks_per_node: 1, devices: 8, cpus: 1 },
            ),
        ] {
            assert_eq!(size(&asked), Ok(expected), "{asked:?}");
        }
    }

    #[test]
    fn nodes_that_would_be_unequal_are_refused() {
        let none = SizeRequest::default();
        let tasks = size(&SizeRequest { nodes: Some(3), tasks: Some(4), ..none });
        assert_eq!(tasks, Err((Field::Ntasks, "4 tasks cannot be shared equally by 3 nodes".to_owned())));
        assert!(size(&SizeRequest { nodes: Some(4), devices: Some(2), ..none }).is_err());
    }
}
