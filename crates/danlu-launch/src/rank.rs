//! Starting the processes of a worker.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use danlu_device::seccomp::Filter;
use danlu_device::spawn::{ChildPlacement, ChildSetup, prepare};

use crate::slurm;
use crate::user::{NOT_FOR_OTHERS, WorkerUser};

/// What every process of the worker is started with.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) working_directory: Arc<Path>,
    /// Opened `cgroup.procs` files.
    pub(crate) join: Arc<[File]>,
    pub(crate) user: WorkerUser,
    /// What they are refused.
    pub(crate) filter: Option<Arc<Filter>>,
    /// How many its user may have, where no cgroup counts them.
    pub(crate) processes: Option<u64>,
}

impl Surroundings {
    /// A command with the worker's place and environment. The launcher's own environment shows through, without the
    /// names that are Danlu's: those are set anew for each rank.
    pub(crate) fn command(
        &self,
        program: impl AsRef<OsStr>,
        env: &BTreeMap<String, String>,
        place: ChildPlacement,
    ) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.working_directory);
        for (name, _) in std::env::vars_os() {
            if name.as_bytes().starts_with(b"DANLU_") || slurm::is_of_a_step(&name) {
                command.env_remove(name);
            }
        }
        if self.user.is_another() {
            for name in NOT_FOR_OTHERS {
                command.env_remove(name);
            }
        }
        command.envs(env);
        let setup = ChildSetup {
            place,
            join: Arc::clone(&self.join),
            die_with_parent: true,
            become_user: self.user.for_child(),
            umask: self.user.umask(),
            filter: self.filter.clone(),
            processes: self.processes,
        };
        prepare(&mut command, setup);
        command
    }

    /// One rank, or anything else whose output goes into a log.
    pub(crate) fn start_logged(
        &self,
        arguments: &[&str],
        env: &BTreeMap<String, String>,
    ) -> io::Result<Child> {
        let mut command = self.command("/bin/sh", env, ChildPlacement::Group);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.user.spawn(&mut command)
    }
}

/// How `/bin/sh` is to run `setup`: a file of the working directory is a script, anything else a command.
pub(crate) fn setup_arguments<'a>(working_directory: &Path, setup: &'a str) -> Vec<&'a str> {
    if working_directory.join(setup).is_file() { vec![setup] } else { vec!["-c", setup] }
}
