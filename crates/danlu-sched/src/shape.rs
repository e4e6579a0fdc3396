//! What a gang asks for, as placement sees it: everything that decides where it may go, and nothing else.
//!
//! Two jobs of equal shape are interchangeable for placement, so that whatever is computed per shape is computed once.

use std::collections::BTreeMap;

use danlu_types::device::glob_matches;
use danlu_types::{Bytes, Cpus, Device, DeviceCount, DeviceKind, DeviceRequest, JobSpec, Node};

/// What a gang asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    pub workers: u32,
    /// In order of preference; a gang that computes on processors only has one that asks for no device.
    pub alternatives: Vec<DeviceAsk>,
    /// For each worker.
    pub cpus: Cpus,
    /// For each worker; 0 where the job sets no limit: what it will use is not known, so nothing is set aside for it.
    pub memory: Bytes,
    pub architecture: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub same_rack: bool,
}

/// Devices that would do for each worker. Among the models named here placement chooses freely.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceAsk {
    /// Any kind when absent.
    pub kind: Option<DeviceKind>,
    /// Globs over model names; any model when empty.
    pub models: Vec<String>,
    pub count: DeviceCount,
}

impl Shape {
    pub fn of(spec: &JobSpec) -> Self {
        let mut alternatives: Vec<DeviceAsk> = spec.alternatives().iter().map(DeviceAsk::of).collect();
        if spec.is_cpu_only() {
            alternatives = vec![DeviceAsk::none()];
        }
        Shape {
            workers: spec.workers,
            alternatives,
            cpus: spec.cpus,
            memory: spec.memory.unwrap_or_default(),
            architecture: spec.nodes.architecture.clone(),
            labels: spec.nodes.labels.clone(),
            same_rack: spec.nodes.same_rack,
        }
    }

    /// Whether a node is one of those that the gang may run on, and has some of the devices it names.
    pub(crate) fn may_run_on(&self, node: &Node) -> bool {
        let has_label = |(name, value): (&String, &String)| node.labels.get(name) == Some(value);
        self.architecture.as_ref().is_none_or(|wanted| *wanted == node.architecture)
            && self.labels.iter().all(has_label)
            && self.alternatives.iter().any(|ask| {
                let would_do = |device: &Device| ask.accepts(device.kind, &device.model);
                ask.count.is_none() || node.devices.iter().any(would_do)
            })
    }
}

impl DeviceAsk {
    /// Processors only.
    pub fn none() -> Self {
        DeviceAsk { kind: None, models: Vec::new(), count: DeviceCount::default() }
    }

    /// So many like this one.
    pub(crate) fn exactly(device: &Device, count: usize) -> Self {
        let milli = u32::try_from(count).unwrap_or(u32::MAX).saturating_mul(1000);
        DeviceAsk {
            kind: Some(device.kind),
            models: vec![device.model.clone()],
            count: DeviceCount::from_milli(milli).unwrap_or_default(),
        }
    }

    pub fn of(request: &DeviceRequest) -> Self {
        let patterns = request.model.as_deref().unwrap_or("").split('|').map(str::trim);
        DeviceAsk {
            kind: request.kind,
            models: patterns.filter(|pattern| !pattern.is_empty()).map(str::to_owned).collect(),
            count: request.count,
        }
    }

    pub fn accepts(&self, kind: DeviceKind, model: &str) -> bool {
        self.kind.is_none_or(|asked| asked == kind)
            && (self.models.is_empty() || self.models.iter().any(|pattern| glob_matches(pattern, model)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_in_the_model_means_either() {
        let ask = DeviceAsk::of(&"nvidia:V100M16|V100M32:1".parse().unwrap());
        assert_eq!(ask.models, ["V100M16", "V100M32"]);
        assert!(ask.accepts(DeviceKind::Nvidia, "V100M32"));
        assert!(!ask.accepts(DeviceKind::Nvidia, "V100"));
        assert!(!ask.accepts(DeviceKind::Ascend, "V100M32"));
    }

    #[test]
    fn a_job_without_devices_has_one_alternative_that_asks_for_none() {
        assert_eq!(Shape::of(&JobSpec::of_command("true")).alternatives, [DeviceAsk::none()]);
    }
}
