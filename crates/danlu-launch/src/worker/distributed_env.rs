//! What follows from having found the others: where ranks meet, and the files that tell programs so.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use danlu_core::launch::{
    Present, RANK_TABLE_FILE, Rendezvous, mpi_hostfile, pod_env, rank_environment, rank_table,
};
use danlu_ranktable::{INITIALIZING, Version, convert, render};
use danlu_types::{Compat, DeviceKind, Framework};

use super::Worker;
use crate::error::{StartError, chain};
use crate::{compat, folders, interface, steps};

impl Worker<'_> {
    pub(super) fn meet(&self, workers: Vec<Present>, work: &Path) -> Result<Rendezvous, StartError> {
        let launch = self.launch;
        let first = workers.first().cloned();
        let (address, port) = first.map_or((launch.address.clone(), 0), |first| (first.address, first.port));
        let talks = launch.world_size > 1 || launch.devices.len() > 1;
        let rank_table = self.make_rank_table(&workers)?;
        let rendezvous = Rendezvous {
            address,
            port,
            resume: folders::has_checkpoint(launch),
            workers,
            interface: talks.then(|| interface::of_address(&launch.address)).flatten(),
            rank_table,
        };
        if launch.framework == Framework::Mpi {
            self.write_beside("hostfile", &mpi_hostfile(launch, &rendezvous))?;
        }
        if launch.options.is_compatible_with(Compat::Modelarts) {
            compat::modelarts_folders(launch, work, &self.user)?;
        }
        if launch.options.is_compatible_with(Compat::Slurm) {
            steps::lay_down(launch, &self.user)?;
        }
        if launch.options.is_compatible_with(Compat::Apulis)
            && let Some(first) = launch.ranks.first()
        {
            self.write_beside("pod.env", &pod_env(&rank_environment(launch, &rendezvous, first)))?;
            self.write_apulis_files(&rendezvous)?;
        }
        Ok(rendezvous)
    }

    /// The table of this world, in this worker's folder. Readers that look at the file's status see `initializing` until it
    /// is whole.
    fn make_rank_table(&self, workers: &[Present]) -> Result<Option<PathBuf>, StartError> {
        let launch = self.launch;
        let is_ascend = launch.devices.iter().any(|device| device.kind == DeviceKind::Ascend);
        if !is_ascend || !launch.is_rank_per_device() {
            return Ok(None);
        }
        self.write_beside(RANK_TABLE_FILE, INITIALIZING)?;
        match rank_table(workers) {
            Ok(Some(table)) => {
                self.write_beside(RANK_TABLE_FILE, &render(&table))?;
                Ok(Some(launch.folders.run.join(RANK_TABLE_FILE)))
            }
            Ok(None) => Ok(None),
            Err(error) if launch.options.needs_rank_table() => Err(StartError::RankTable(error)),
            Err(error) => {
                self.launcher_log.note(format_args!("no rank table is made: {}", chain(&error)));
                Ok(None)
            }
        }
    }

    /// What Apulis leaves in a user's home for the programs of a job: the table in its two old forms, and the mark that all
    /// is there.
    fn write_apulis_files(&self, rendezvous: &Rendezvous) -> Result<(), StartError> {
        let launch = self.launch;
        let own = || match &launch.user {
            Some(user) => Some(user.home.display().to_string()),
            None => std::env::var("HOME").ok(),
        };
        let home = launch.env.get("HOME").cloned().or_else(own);
        let Some(home) = home.filter(|_| launch.world_worker() == 0) else { return Ok(()) };
        let folder = Path::new(&home).join(".npu").join(launch.worker.job.to_string());
        let make = || -> io::Result<()> {
            fs::create_dir_all(&folder)?;
            if let Ok(Some(table)) = rank_table(&rendezvous.workers) {
                for (name, version) in
                    [("hccl_ms.json", Version::BoardId), ("hccl_tf.json", Version::GroupList)]
                {
                    match convert(table.clone(), version) {
                        Ok(table) => {
                            let table = table.on_architecture(std::env::consts::ARCH);
                            write_whole(&folder.join(name), &render(&table))?;
                        }
                        Err(error) => self.launcher_log.note(format_args!("no `{name}` is made: {error}")),
                    }
                }
            }
            write_whole(&folder.join("setup_environment_done"), "")
        };
        self.user.act(make).flatten().map_err(|source| StartError::File { path: folder.clone(), source })
    }

    /// Into the run folder, whole or not at all.
    fn write_beside(&self, name: &str, text: &str) -> Result<(), StartError> {
        let path = self.launch.folders.run.join(name);
        let fresh = path.with_extension("new");
        let write = || {
            fs::write(&fresh, text)
                .and_then(|()| self.user.give(&fresh))
                .and_then(|()| fs::rename(&fresh, &path))
        };
        write().map_err(|source| StartError::File { path: path.clone(), source })
    }
}

/// A reader sees the old file or the whole new one.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let fresh = path.with_extension("new");
    fs::write(&fresh, text)?;
    fs::rename(fresh, path)
}
