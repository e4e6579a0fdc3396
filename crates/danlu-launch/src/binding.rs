//! Binding ranks to processors.
//!
//! A child inherits what its parent is bound to, so the launcher, which has one thread, takes on a rank's processors for
//! the moment in which it starts it. Nothing has to happen between fork and exec.

use std::collections::BTreeSet;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

const OURSELVES: Pid = Pid::from_raw(0);

/// The processors this process may use.
pub(crate) fn allowed() -> BTreeSet<usize> {
    let Ok(set) = sched_getaffinity(OURSELVES) else { return BTreeSet::new() };
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect()
}

/// Starts something bound to `processors`.
pub(crate) fn bound<T>(processors: Option<&BTreeSet<usize>>, start: impl FnOnce() -> T) -> T {
    let (Some(processors), Ok(before)) = (processors, sched_getaffinity(OURSELVES)) else { return start() };
    // A rank that is bound to nothing works as well, only slower.
    let _ = sched_setaffinity(OURSELVES, &cpu_set(processors));
    let started = start();
    let _ = sched_setaffinity(OURSELVES, &before);
    started
}

fn cpu_set(processors: &BTreeSet<usize>) -> CpuSet {
    let mut set = CpuSet::new();
    for processor in processors {
        // Beyond what the kernel's type holds there is nothing to bind to.
        let _ = set.set(*processor);
    }
    set
}
