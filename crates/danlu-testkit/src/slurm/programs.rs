//! Slurm's programs as a test wants them: some replaced by scripts.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A folder with Slurm's programs, for `programs` of the settings. Those with a script are that, for a shell: `$REAL` is the
/// program's own path, `$HERE` is `folder`.
pub fn slurm_programs(folder: &Path, scripts: &[(&str, &str)]) -> PathBuf {
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).expect("the folder is the test's");
    for name in ["sbatch", "squeue", "scontrol", "scancel", "srun", "sacct"] {
        let (path, real) = (bin.join(name), format!("/usr/bin/{name}"));
        match scripts.iter().find(|(own, _)| *own == name) {
            Some((_, script)) => {
                let text = format!("#!/bin/sh\nREAL={real}\nHERE='{}'\n{script}\n", folder.display());
                std::fs::write(&path, text).expect("the folder is the test's");
                let executable = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(&path, executable).expect("the file is the test's");
            }
            None => symlink(real, &path).expect("the folder is the test's"),
        }
    }
    bin
}
