//! What the kernel keeps from the programs of a worker, besides what its cgroup and its user do.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use danlu_device::cgroup::Groups;
use danlu_device::device_files::{DeviceNumber, withheld};
use danlu_device::landlock::Closure;
use danlu_device::seccomp::Filter;

use super::{Confinement, Worker};
use crate::error::StartError;
use crate::session::SessionKey;

impl Worker<'_> {
    /// Files of devices that are others'; none where nobody asked for it.
    pub(super) fn closed_devices(&self, groups: &Groups) -> Vec<DeviceNumber> {
        let is_wanted = self.launch.sandbox.as_ref().is_some_and(|sandbox| sandbox.closed_devices);
        let closed = if is_wanted { withheld(Path::new("/"), &self.launch.devices) } else { Vec::new() };
        if !closed.is_empty() && !groups.closes_devices() {
            self.launcher_log.note("devices that this worker was not given are open to it: only root closes them, through cgroups");
            return Vec::new();
        }
        closed
    }

    /// What programs are refused; nothing where nobody asked for it.
    pub(super) fn filter(&self) -> Option<Arc<Filter>> {
        let is_wanted = self.launch.sandbox.as_ref().is_some_and(|sandbox| sandbox.restricted);
        let filter = is_wanted.then(|| Filter::new(self.user.is_root()))?;
        if filter.is_none() {
            self.launcher_log.note("system calls are not restricted: this kernel has no filters for them, or other calls than are known here");
        }
        filter.map(Arc::new)
    }

    /// Keeps programs from what is the server's and other jobs', and this launcher with them: what it starts is inside from the
    /// beginning, so that ranks, sessions and debuggers of the worker may look into each other.
    pub(super) fn close_data(&self) -> Result<(), StartError> {
        let folders = &self.launch.folders;
        let Some(data) = self.closed_data() else { return Ok(()) };
        let open = [&folders.run, &folders.output, &folders.checkpoint, &folders.gang].map(PathBuf::as_path);
        let readings = data.join("readings");
        let readable: Vec<&Path> =
            folders.python.as_deref().into_iter().chain([readings.as_path()]).collect();
        Closure::new(data, &open, &readable).and_then(|closure| closure.enter()).map_err(StartError::Closure)
    }

    /// The folder that is to be closed, if one is.
    fn closed_data(&self) -> Option<&Path> {
        let is_wanted = self.launch.sandbox.as_ref().is_some_and(|sandbox| sandbox.closed_data);
        let is_ours = matches!(self.confinement, Confinement::Ours);
        self.launch.folders.hints.parent().filter(|_| is_wanted && is_ours)
    }

    /// Where other jobs' files are closed to programs, their sockets are closed by this.
    pub(super) fn session_key(&self) -> io::Result<Option<SessionKey>> {
        self.closed_data().map(|_| SessionKey::lay_down()).transpose()
    }

    /// Where no cgroup counts its processes, those of its user are counted: of all its jobs on this machine together. Nothing
    /// is counted for the user of the server, who would be kept from starting anything, too.
    pub(super) fn processes_of_user(&self) -> Option<u64> {
        let most = self.launch.limits.processes.filter(|_| self.user.is_another())?;
        (!Groups::detect().holds_processes()).then_some(most)
    }
}
