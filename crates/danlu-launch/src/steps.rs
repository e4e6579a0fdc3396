//! Batch scripts of Slurm's: the script runs once, in the first rank, and `srun` in it has the others run a command.
//!
//! Programs of our own stand in for Slurm's, in `slurm/bin` of the run folder: they are shell, because what they do is
//! what a shell does. Ranks meet in a folder that all of them see; who waits there looks for files, as nothing else
//! reaches from one node to another everywhere.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use danlu_core::launch::{LaunchFile, STEPS_FOLDER};
use danlu_core::srun;

use crate::error::StartError;
use crate::user::WorkerUser;

const FILES: [(&str, &str); 7] = [
    ("library", include_str!("steps/library.sh")),
    ("claims", include_str!("steps/claims.sh")),
    ("rank", include_str!("steps/rank.sh")),
    ("task", include_str!("steps/task.sh")),
    ("bash_env", include_str!("steps/bash_env.sh")),
    ("bin/srun", include_str!("steps/srun.sh")),
    ("bin/scontrol", include_str!("steps/scontrol.sh")),
];

/// Lays down the script and what stands in for Slurm around it.
pub(crate) fn lay_down(launch: &LaunchFile, user: &WorkerUser) -> Result<(), StartError> {
    let folder = launch.folders.run.join(STEPS_FOLDER);
    let make = || -> io::Result<()> {
        fs::create_dir_all(folder.join("bin"))?;
        for (name, text) in FILES {
            write_program(&folder.join(name), text)?;
        }
        write_program(&folder.join("options"), &srun::shell_options())?;
        write_program(&folder.join("script"), &launch.command)
    };
    user.make_folder(&folder)
        .and_then(|()| user.act(make).flatten())
        .map_err(|source| StartError::Folder { path: folder.clone(), source })
}

/// Leaves word that all processes of the worker are being told to end, so that `srun` passes no signal on: everybody gets
/// it from the launcher. Without that word programs get it twice, which some take for haste.
pub(crate) fn announce_end(launch: &LaunchFile, user: &WorkerUser) -> io::Result<()> {
    let path = launch.folders.run.join(STEPS_FOLDER).join("ending");
    user.act(|| fs::write(path, "")).flatten()
}

fn write_program(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// What a rank runs.
pub(crate) fn rank_program(launch: &LaunchFile) -> PathBuf {
    launch.folders.run.join(STEPS_FOLDER).join("rank")
}
