//! Where groups can be made on this machine, and which files carry which limit.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use danlu_core::launch::Limits;
use nix::unistd::{AccessFlags, access, geteuid};

use super::{CgroupError, WorkerGroup, device_filter};
use crate::device_files::DeviceNumber;

const MOUNT: &str = "/sys/fs/cgroup";
/// In a delegated v2 subtree we are in the very group whose children get controllers, which v2 forbids. So whoever is
/// there moves one level down, into this group.
const LAUNCHERS: &str = "danlu-launchers";
/// The kernel's default period of the processor quota.
const PERIOD_MICROSECONDS: u64 = 100_000;
/// The kernel refuses shorter quotas.
const SHORTEST_QUOTA_MICROSECONDS: u64 = 1_000;

/// The hierarchies in which workers' groups can be made.
#[derive(Debug, Clone)]
pub struct Groups {
    version: Version,
    limitation: Option<String>,
}

#[derive(Debug, Clone)]
enum Version {
    /// Each is a folder below which groups can be made.
    V1 {
        cpu: Option<PathBuf>,
        memory: Option<PathBuf>,
        pids: Option<PathBuf>,
        devices: Option<PathBuf>,
        unified: Option<PathBuf>,
    },
    V2 {
        base: PathBuf,
        cpu: bool,
        memory: bool,
        pids: bool,
    },
    Absent,
}

impl Groups {
    pub fn detect() -> Self {
        let root = Path::new(MOUNT);
        if !root.join("cgroup.controllers").exists() {
            return Groups::at(root);
        }
        let root_groups = Groups::v2(root);
        if root_groups.limitation.is_none() {
            return root_groups;
        }
        // Not root, or in a container: perhaps a part of the tree was given to us.
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        match own.lines().find_map(|line| line.strip_prefix("0::/")) {
            Some(own) => {
                let own = root.join(own);
                Groups::v2(if own.ends_with(LAUNCHERS) { own.parent().unwrap_or(root) } else { &own })
            }
            None => root_groups,
        }
    }

    /// As if the cgroup file systems were mounted below `root`.
    pub fn at(root: &Path) -> Self {
        if root.join("cgroup.controllers").exists() { Groups::v2(root) } else { Groups::v1(root) }
    }

    /// What will not hold for workers on this machine, and what to do about it.
    pub fn limitation(&self) -> Option<String> {
        self.limitation.clone()
    }

    /// Whether a worker can be held to a number of processes.
    pub fn holds_processes(&self) -> bool {
        match &self.version {
            Version::Absent => false,
            Version::V1 { pids, .. } => pids.is_some(),
            Version::V2 { pids, .. } => *pids,
        }
    }

    fn v1(root: &Path) -> Self {
        let usable = |name: &str| Some(root.join(name)).filter(|path| is_writable(path));
        let (cpu, memory, unified) = (usable("cpu"), usable("memory"), usable("unified"));
        let (pids, devices) = (usable("pids"), usable("devices"));
        let limitation = limitation(cpu.is_some(), memory.is_some(), root);
        let version = if cpu.is_none() && memory.is_none() && unified.is_none() {
            Version::Absent
        } else {
            Version::V1 { cpu, memory, pids, devices, unified }
        };
        Groups { version, limitation }
    }

    fn v2(base: &Path) -> Self {
        let controllers = fs::read_to_string(base.join("cgroup.controllers")).unwrap_or_default();
        let writable = is_writable(base) && is_writable(&base.join("cgroup.procs"));
        let has = |name: &str| writable && controllers.split_ascii_whitespace().any(|word| word == name);
        let (cpu, memory, pids) = (has("cpu"), has("memory"), has("pids"));
        let version =
            if writable { Version::V2 { base: base.to_owned(), cpu, memory, pids } } else { Version::Absent };
        Groups { version, limitation: limitation(cpu, memory, base) }
    }

    pub(super) fn create(&self, name: &str, limits: &Limits) -> Result<(), CgroupError> {
        match &self.version {
            Version::Absent => {}
            Version::V1 { cpu, memory, pids, unified, .. } => {
                // A hierarchy costs every process of the worker a join, so one that would limit nothing is left out,
                // as long as another holds the worker together.
                let mut held = false;
                if let Some(cpu) = cpu.as_ref().filter(|_| limits.cpus.milli > 0) {
                    let folder = make_folders_then(cpu, name, |parent| {
                        let _ = fs::write(parent.join("cpu.shares"), (1024 * processors()).to_string());
                    })?;
                    write(&folder.join("cpu.cfs_quota_us"), &quota(limits).to_string())?;
                    held = true;
                }
                if let (Some(memory), Some(bytes)) = (memory, limits.memory) {
                    let folder = make_folders(memory, name)?;
                    write(&folder.join("memory.limit_in_bytes"), &bytes.0.to_string())?;
                    // There only where the kernel counts swap; it must not be below the line above.
                    let with_swap = folder.join("memory.memsw.limit_in_bytes");
                    if with_swap.exists() {
                        write(&with_swap, &bytes.0.to_string())?;
                    }
                    held = true;
                }
                if let (Some(pids), Some(most)) = (pids, limits.processes) {
                    let folder = make_folders(pids, name)?;
                    write(&folder.join("pids.max"), &most.to_string())?;
                    held = true;
                }
                if let Some(unified) = unified {
                    make_folders(unified, name)?;
                } else if !held && let Some(any) = cpu.as_ref().or(memory.as_ref()) {
                    make_folders(any, name)?;
                }
            }
            Version::V2 { base, cpu, memory, pids } => {
                let wanted: Vec<&str> = [("+cpu", *cpu), ("+memory", *memory), ("+pids", *pids)]
                    .iter()
                    .filter(|it| it.1)
                    .map(|it| it.0)
                    .collect();
                let wanted = wanted.join(" ");
                let folder = base.join(name);
                let parent = folder.parent().unwrap_or(base);
                make_folder(parent)?;
                match enable(base, &wanted) {
                    // Only a group that holds processes is busy, and the root of the whole machine never is: so this
                    // moves the processes of a container or of a scope that was given to us, never all there are.
                    Err(error) if error.source.kind() == ErrorKind::ResourceBusy => {
                        step_aside(base)?;
                        enable(base, &wanted)?;
                    }
                    done => done?,
                }
                enable(parent, &wanted)?;
                let weight = parent.join("cpu.weight");
                let full = (100 * processors()).min(10_000).to_string();
                if *cpu && fs::read_to_string(&weight).is_ok_and(|now| now.trim() != full) {
                    let _ = fs::write(weight, full);
                }
                make_folder(&folder)?;
                if *cpu && limits.cpus.milli > 0 {
                    write(&folder.join("cpu.max"), &format!("{} {PERIOD_MICROSECONDS}", quota(limits)))?;
                }
                if let (true, Some(bytes)) = (*memory, limits.memory) {
                    write(&folder.join("memory.max"), &bytes.0.to_string())?;
                    let swap = folder.join("memory.swap.max");
                    if swap.exists() {
                        write(&swap, "0")?;
                    }
                }
                if let (true, Some(most)) = (*pids, limits.processes) {
                    write(&folder.join("pids.max"), &most.to_string())?;
                }
            }
        }
        Ok(())
    }

    /// Closes device files to the group of that name, which is there.
    pub(super) fn close_devices(&self, name: &str, closed: &[DeviceNumber]) -> Result<(), CgroupError> {
        let by_program = |base: &Path| {
            let folder = base.join(name);
            device_filter::close(&folder, closed).map_err(failed("close devices to", &folder))
        };
        match &self.version {
            Version::V1 { devices: Some(devices), .. } => {
                let denied = make_folders(devices, name)?.join("devices.deny");
                closed.iter().try_for_each(|number| {
                    write(&denied, &format!("c {}:{} rwm", number.major, number.minor))
                })
            }
            Version::V1 { unified: Some(unified), .. } => by_program(unified),
            Version::V2 { base, .. } => by_program(base),
            Version::V1 { .. } | Version::Absent => Ok(()),
        }
    }

    /// Whether device files can be closed to a worker. In a delegated group of the second version only root can: it takes `bpf`.
    pub fn closes_devices(&self) -> bool {
        match &self.version {
            Version::V1 { devices: Some(_), .. } => true,
            Version::V1 { unified, .. } => unified.is_some() && geteuid().is_root(),
            Version::V2 { .. } => geteuid().is_root(),
            Version::Absent => false,
        }
    }

    pub(super) fn open(&self, name: &str) -> Option<WorkerGroup> {
        let bases: Vec<&PathBuf> = match &self.version {
            Version::Absent => Vec::new(),
            // The unified hierarchy first: it is asked who is in the group, and it can kill.
            Version::V1 { cpu, memory, pids, devices, unified } => {
                [unified, cpu, memory, pids, devices].into_iter().flatten().collect()
            }
            Version::V2 { base, .. } => vec![base],
        };
        let folders: Vec<PathBuf> =
            bases.into_iter().map(|base| base.join(name)).filter(|folder| folder.is_dir()).collect();
        (!folders.is_empty()).then_some(WorkerGroup::new(folders))
    }
}

fn limitation(cpu: bool, memory: bool, at: &Path) -> Option<String> {
    let missing = match (cpu, memory) {
        (true, true) => return None,
        (false, true) => "processor limits are",
        (true, false) => "memory limits are",
        (false, false) => "processor and memory limits are",
    };
    Some(format!(
        "{missing} not enforced: no writable cgroup controller for that under `{}` \
         (run as root, or in a delegated group: `systemd-run --user --scope -p Delegate=yes danlu up`)",
        at.display()
    ))
}

fn quota(limits: &Limits) -> u64 {
    // Thousandths of a core, of a period: 1000 is the whole period.
    (limits.cpus.milli.saturating_mul(PERIOD_MICROSECONDS) / 1000).max(SHORTEST_QUOTA_MICROSECONDS)
}

/// The weight of a group against what else runs on the machine is that of one process unless told otherwise: all
/// workers together would get no more than a single busy process beside them. So their common parent weighs as much as the
/// machine has processors, as Kubernetes does it for its pods. Failing at that is no reason to fail.
fn processors() -> u64 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
}

fn is_writable(path: &Path) -> bool {
    access(path, AccessFlags::W_OK).is_ok()
}

fn make_folders(base: &Path, name: &str) -> Result<PathBuf, CgroupError> {
    make_folders_then(base, name, |_| {})
}

/// `on_parent` is done to a parent that had to be made.
fn make_folders_then(base: &Path, name: &str, on_parent: impl FnOnce(&Path)) -> Result<PathBuf, CgroupError> {
    let folder = base.join(name);
    // Nearly always the parent is there, so try the leaf first.
    match fs::create_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let parent = folder.parent().unwrap_or(base);
            make_folder(parent)?;
            on_parent(parent);
            make_folder(&folder)?;
        }
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(failed("make the group", &folder)(error));
        }
        _ => {}
    }
    Ok(folder)
}

fn make_folder(path: &Path) -> Result<(), CgroupError> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        done => done.map_err(failed("make the group", path)),
    }
}

fn enable(group: &Path, controllers: &str) -> Result<(), CgroupError> {
    let control = group.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&control).unwrap_or_default();
    let is_enabled = |wanted: &str| enabled.split_ascii_whitespace().any(|name| wanted.ends_with(name));
    // Writing locks all cgroups of the machine, so it is worth a look first.
    if controllers.split_ascii_whitespace().all(is_enabled) {
        return Ok(());
    }
    write(&control, controllers)
}

/// Moves every process of `base` into a child group, because a v2 group that gives controllers to its children may not
/// hold processes itself. Several launchers may do this at once: moving is idempotent, and processes that ended
/// meanwhile are no loss.
fn step_aside(base: &Path) -> Result<(), CgroupError> {
    let aside = base.join(LAUNCHERS);
    make_folder(&aside)?;
    let procs = base.join("cgroup.procs");
    for pid in fs::read_to_string(&procs).map_err(failed("read", &procs))?.lines() {
        let _ = fs::write(aside.join("cgroup.procs"), pid);
    }
    Ok(())
}

fn write(path: &Path, value: &str) -> Result<(), CgroupError> {
    fs::write(path, value).map_err(failed("write", path))
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    move |source| CgroupError { action, path: path.to_owned(), source }
}
