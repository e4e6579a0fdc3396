//! What follows from having found the others: where ranks meet, and the files that tell programs so.

use std::fs;
use std::io;
use std::path::Path;

use danlu_core::launch::{Present, Rendezvous, mpi_hostfile, pod_env, rank_environment};
use danlu_types::{Compat, Framework};

use super::Worker;
use crate::error::StartError;
use crate::{compat, folders, interface};

impl Worker<'_> {
    pub(super) fn meet(&self, workers: Vec<Present>, work: &Path) -> Result<Rendezvous, StartError> {
        let launch = self.launch;
        let first = workers.first().cloned();
        let (address, port) = first.map_or((launch.address.clone(), 0), |first| (first.address, first.port));
        let talks = launch.world_size > 1 || launch.devices.len() > 1;
        let rendezvous = Rendezvous {
            address,
            port,
            resume: folders::has_checkpoint(launch),
            workers,
            interface: talks.then(|| interface::of_address(&launch.address)).flatten(),
            rank_table: None,
        };
        if launch.framework == Framework::Mpi {
            self.write_beside("hostfile", &mpi_hostfile(launch, &rendezvous))?;
        }
        if launch.options.is_compatible_with(Compat::Modelarts) {
            compat::modelarts_folders(launch, work)?;
        }
        if launch.options.is_compatible_with(Compat::Apulis)
            && let Some(first) = launch.ranks.first()
        {
            self.write_beside("pod.env", &pod_env(&rank_environment(launch, &rendezvous, first)))?;
        }
        Ok(rendezvous)
    }

    /// Into the run folder, whole or not at all.
    fn write_beside(&self, name: &str, text: &str) -> Result<(), StartError> {
        let path = self.launch.folders.run.join(name);
        write_whole(&path, text).map_err(|source| StartError::File { path, source })
    }
}

/// A reader sees the old file or the whole new one.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let fresh = path.with_extension("new");
    fs::write(&fresh, text)?;
    fs::rename(fresh, path)
}
