//! The folders a worker finds: where it runs, its temporary files, its checkpoint, its output.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use danlu_core::launch::LaunchFile;

use crate::error::{StartError, chain};
use crate::inside;
use crate::user::WorkerUser;

/// Makes them all and returns the ranks' working directory.
pub(crate) fn prepare(
    launch: &LaunchFile,
    user: &WorkerUser,
    join: &Arc<[File]>,
) -> Result<PathBuf, StartError> {
    let make = |path: &Path| {
        user.make_folder(path).map_err(|source| StartError::Folder { path: path.to_owned(), source })
    };
    let folders = &launch.folders;
    make(&folders.run.join("tmp"))?;
    make(&folders.output)?;
    if launch.checkpoint.is_some() {
        make(&folders.checkpoint)?;
    }
    if let (Some(elsewhere), None) = (&launch.working_directory, &folders.code) {
        // Its `.` is seen by those only who may enter it.
        let seen = user.act(|| elsewhere.join(".").metadata()).flatten();
        return match seen {
            Ok(_) => Ok(elsewhere.clone()),
            Err(_) => Err(StartError::WorkingDirectory(elsewhere.clone())),
        };
    }
    let own = folders.run.join("work");
    make(&own)?;
    if let Some(archive) = &folders.code {
        unpack(archive, &own, user, join)?;
    }
    if let Some(checkpoint) = &launch.checkpoint {
        user.act(|| link_checkpoint(&own, checkpoint, &folders.checkpoint)).map_err(StartError::User)??;
    }
    Ok(own)
}

/// Whether an earlier attempt left a checkpoint.
pub(crate) fn has_checkpoint(launch: &LaunchFile) -> bool {
    let first = launch.worker.attempt.0 <= 1;
    !first && fs::read_dir(&launch.folders.checkpoint).is_ok_and(|mut entries| entries.next().is_some())
}

/// Blocks, and with it all else of this launcher; there is nothing else to do yet, and an order to stop is read
/// right afterwards.
fn unpack(archive: &Path, into: &Path, user: &WorkerUser, join: &Arc<[File]>) -> Result<(), StartError> {
    let archive = danlu_objects::open(archive).map_err(StartError::Code)?;
    let work = || danlu_objects::unpack(archive, into).map_err(|error| chain(&error));
    inside::run(user, join, work).map_err(StartError::Unpack)
}

/// The program writes to a path of its own choice; what it writes is kept outside of the attempt.
fn link_checkpoint(work: &Path, checkpoint: &Path, kept: &Path) -> Result<(), StartError> {
    let inner = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    let named = checkpoint.components().any(|part| matches!(part, Component::Normal(_)));
    if !named || !checkpoint.components().all(inner) {
        return Err(StartError::CheckpointPath(checkpoint.to_owned()));
    }
    // Without the `.` of `./ckpt`, which `symlink` would take for a name.
    let link: PathBuf = work.join(checkpoint).components().collect();
    if let Some(parent) = link.parent() {
        make(parent)?;
    }
    // An empty folder in the code is only there to be found by the program.
    let _ = fs::remove_dir(&link);
    match symlink(kept, &link) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(StartError::CheckpointTaken(checkpoint.to_owned()))
        }
        Err(source) => Err(StartError::CheckpointLink { path: link, source }),
    }
}

fn make(path: &Path) -> Result<(), StartError> {
    fs::create_dir_all(path).map_err(|source| StartError::Folder { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_linked_below_the_working_directory_only() {
        let work = tempfile::tempdir().unwrap();
        let kept = tempfile::tempdir().unwrap();
        link_checkpoint(work.path(), Path::new("./out/ckpt"), kept.path()).unwrap();
        fs::write(work.path().join("out/ckpt/step"), "7").unwrap();
        assert_eq!(fs::read_to_string(kept.path().join("step")).unwrap(), "7");
        for escape in ["../ckpt", "/ckpt", "a/../../b", ".", ""] {
            let refused = link_checkpoint(work.path(), Path::new(escape), kept.path());
            assert!(matches!(refused, Err(StartError::CheckpointPath(_))), "{escape}");
        }
    }

    #[test]
    fn files_of_the_code_are_not_hidden_by_a_checkpoint() {
        let work = tempfile::tempdir().unwrap();
        fs::create_dir(work.path().join("ckpt")).unwrap();
        link_checkpoint(work.path(), Path::new("ckpt"), work.path()).unwrap();
        fs::create_dir(work.path().join("full")).unwrap();
        fs::write(work.path().join("full/file"), "").unwrap();
        let refused = link_checkpoint(work.path(), Path::new("full"), work.path());
        assert!(matches!(refused, Err(StartError::CheckpointTaken(_))));
    }
}
