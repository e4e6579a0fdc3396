//! Ending what is left of a worker.

use std::io;
use std::time::{Duration, Instant};

use danlu_core::launch::RUN_FOLDER_VARIABLE;
use danlu_device::{cgroup, process};
use danlu_types::WorkerId;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Workers;

/// Killed processes are gone within a millisecond or two unless they wait for a device or a network disk; those are
/// left to the next pass.
const PATIENCE: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(1);

impl Workers {
    /// Kills every process of the worker but its launcher; true once none is left.
    ///
    /// The cgroup finds them all. Where there is none they are known by their environment, which a process keeps
    /// through forks, new sessions and a lost parent; one that cleared it has escaped.
    pub(super) fn sweep(&self, worker: WorkerId) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let run = self.layout.run_folder(worker).display().to_string();
        let group = cgroup::open(&self.groups, &self.group_name(worker));
        loop {
            let mut left = Vec::new();
            if let Some(group) = &group {
                left = group.processes();
                if !left.is_empty()
                    && let Err(error) = group.kill()
                {
                    tracing::warn!(worker.id = %worker, %error, "could not kill the cgroup of worker {worker}");
                }
            }
            left.extend(process::with_environment(RUN_FOLDER_VARIABLE, &run));
            if left.is_empty() {
                return true;
            }
            for pid in left {
                // Gone already is as good as killed; not ours to kill shows in the next round.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Kills what is in the worker's cgroup and removes the group. No group is no error.
    pub(super) fn remove_group(&self, worker: WorkerId) -> io::Result<()> {
        let Some(group) = cgroup::open(&self.groups, &self.group_name(worker)) else { return Ok(()) };
        let deadline = Instant::now() + PATIENCE;
        loop {
            match group.remove() {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                    group.kill()?;
                    std::thread::sleep(PAUSE);
                }
                done => return done,
            }
        }
    }

    fn group_name(&self, worker: WorkerId) -> String {
        cgroup::worker_group_name(&self.layout.data, worker)
    }
}
