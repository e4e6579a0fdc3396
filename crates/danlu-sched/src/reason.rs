//! Why a job waits: few reasons, each a stable word with its numbers.

use std::fmt;

use danlu_types::api::Reason;
use danlu_types::{Bytes, Cpus, DeviceKind, DeviceRequest, JobId, JobSpec};
use jiff::Timestamp;

/// The words that programs may rely on. They are only ever added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReasonCode {
    /// Too few devices of the wanted kind and model are free, or too few on one node.
    DevicesBusy,
    /// Devices are free, but not enough CPUs beside them (or, for a job without devices, not enough CPUs).
    CpusBusy,
    /// Devices and CPUs are free, but not enough memory beside them.
    MemoryBusy,
    /// A job further ahead waits for the same kind of device (or for the same CPUs and memory), and goes first.
    BehindOthers,
    /// The last attempt failed; the next is not made before a certain time.
    BackOff,
    /// A person paused it; it starts after `danlu release`.
    Held,
    /// Not even the empty cluster could hold it now: nodes or devices went away, or failed, after it was accepted.
    NoSuchDevices,
    /// It fits; the scheduler's next pass starts it.
    NotYetConsidered,
}

impl ReasonCode {
    pub fn as_str(self) -> &'static str {
        match self {
            ReasonCode::DevicesBusy => "devices_busy",
            ReasonCode::CpusBusy => "cpus_busy",
            ReasonCode::MemoryBusy => "memory_busy",
            ReasonCode::BehindOthers => "behind_others",
            ReasonCode::BackOff => "back_off",
            ReasonCode::Held => "held",
            ReasonCode::NoSuchDevices => "no_such_devices",
            ReasonCode::NotYetConsidered => "not_yet_considered",
        }
    }
}

/// Why a pass of the scheduler did not start a job, as it stood in that pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason {
    DevicesBusy {
        free: u32,
        most_on_one_node: u32,
    },
    /// The most that is free on one node which has the devices.
    CpusBusy {
        most_on_one_node: Cpus,
    },
    MemoryBusy {
        most_on_one_node: Bytes,
    },
    BehindOthers {
        head: JobId,
    },
    BackOff {
        not_before: Timestamp,
    },
    NoSuchDevices,
}

impl WaitReason {
    pub fn code(&self) -> ReasonCode {
        match self {
            WaitReason::DevicesBusy { .. } => ReasonCode::DevicesBusy,
            WaitReason::CpusBusy { .. } => ReasonCode::CpusBusy,
            WaitReason::MemoryBusy { .. } => ReasonCode::MemoryBusy,
            WaitReason::BehindOthers { .. } => ReasonCode::BehindOthers,
            WaitReason::BackOff { .. } => ReasonCode::BackOff,
            WaitReason::NoSuchDevices => ReasonCode::NoSuchDevices,
        }
    }

    /// The reason as lists show it; `spec` is that of the job which waits.
    pub fn reason(&self, spec: &JobSpec) -> Reason {
        let text = match self {
            WaitReason::DevicesBusy { free, most_on_one_node } => {
                devices_sentence(spec, *free, *most_on_one_node)
            }
            WaitReason::CpusBusy { most_on_one_node } => {
                amount_sentence(spec, cores(spec.cpus), most_on_one_node)
            }
            WaitReason::MemoryBusy { most_on_one_node } => {
                let asked = format!("{} of memory", spec.memory.unwrap_or_default());
                amount_sentence(spec, asked, most_on_one_node)
            }
            WaitReason::BehindOthers { head } => {
                let what = if spec.devices.count.devices() == 0 { "CPUs and memory" } else { "devices" };
                format!("behind job {head}, which waits for the same {what}")
            }
            WaitReason::BackOff { not_before } => {
                format!("the last attempt failed; the next is made at {not_before:.0}")
            }
            WaitReason::NoSuchDevices => {
                format!("waiting for {}, which no nodes here could give even if idle", asked(spec))
            }
        };
        Reason { code: self.code().as_str().to_owned(), text }
    }
}

/// "8 Ascend 910B*", "1 device".
pub(crate) fn devices(request: &DeviceRequest, count: u32) -> impl fmt::Display {
    let kind = match request.kind {
        Some(kind) => kind.label(),
        None if count == 1 => "device",
        None => "devices",
    };
    let model = request.model.as_deref().map(|model| format!(" {model}")).unwrap_or_default();
    format!("{count} {kind}{model}")
}

/// "8 Ascend 910B3".
pub(crate) fn model(kind: DeviceKind, model: &str, count: u32) -> String {
    format!("{count} {} {model}", kind.label())
}

/// "96 CPUs", "1 CPU".
pub(crate) fn cores(cpus: Cpus) -> String {
    match cpus.milli {
        1000 => "1 CPU".to_owned(),
        _ => format!("{cpus} CPUs"),
    }
}

/// "2 workers with 8 Ascend 910B*, 96 CPUs and 256Gi each".
pub(crate) fn asked(spec: &JobSpec) -> String {
    let mut parts = Vec::new();
    if spec.devices.count.devices() > 0 {
        parts.push(devices(&spec.devices, spec.devices.count.devices()).to_string());
    }
    parts.push(cores(spec.cpus));
    parts.extend(spec.memory.map(|memory| format!("{memory} of memory")));
    let last = parts.pop().unwrap_or_default();
    let list = if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) };
    match spec.workers {
        1 => list,
        workers => format!("{workers} workers with {list} each"),
    }
}

fn devices_sentence(spec: &JobSpec, free: u32, most_on_one_node: u32) -> String {
    let each = spec.devices.count.devices();
    let all = each.saturating_mul(spec.workers);
    let gang = match spec.workers {
        1 => devices(&spec.devices, each).to_string(),
        workers => format!("{workers} workers of {}", devices(&spec.devices, each)),
    };
    match (free, spec.workers) {
        (free, _) if free < all => format!("waiting for {gang}, {free} free"),
        (free, 1) => {
            format!("waiting for {gang} on one node, {free} free but at most {most_on_one_node} together")
        }
        (free, _) => format!("waiting for {gang}, {free} free but at most {most_on_one_node} on one node"),
    }
}

fn amount_sentence(spec: &JobSpec, each: String, most: impl fmt::Display) -> String {
    let workers = match spec.workers {
        1 => String::new(),
        workers => format!("{workers} workers of "),
    };
    let beside = match spec.devices.count.devices() {
        0 => String::new(),
        count => format!(" beside {}", devices(&spec.devices, count)),
    };
    format!("waiting for {workers}{each}{beside}, at most {most} free on one node")
}
