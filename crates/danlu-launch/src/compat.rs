//! Folders and scripts that programs written for other platforms count on.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::Path;

use danlu_core::launch::{LaunchFile, MODELARTS_FOLDER, ROLES_OF_A_RANK};

use crate::error::StartError;
use crate::user::WorkerUser;

/// ModelArts runs this in each worker before the program, and the program sees what it exported.
pub(crate) const PRE_START: &str = "ma-pre-start.sh";
/// Where [`pre_start_arguments`] leaves the environment, below the run folder.
pub(crate) const SOURCED: &str = "tmp/sourced.env";

/// `inputs`, `outputs`, `log` and `user-job-dir` below `$MA_MOUNT_PATH`; what is written to `outputs` is the job's output.
pub(crate) fn modelarts_folders(
    launch: &LaunchFile,
    work: &Path,
    user: &WorkerUser,
) -> Result<(), StartError> {
    let home = launch.folders.run.join(MODELARTS_FOLDER);
    let mount = home.join("modelarts");
    let make = || -> io::Result<()> {
        fs::create_dir_all(mount.join("inputs/data_url_0"))?;
        fs::create_dir_all(mount.join("log"))?;
        fs::create_dir_all(mount.join("user-job-dir"))?;
        fs::create_dir_all(launch.folders.output.join("train_url_0"))?;
        link(&launch.folders.output, &mount.join("outputs"))?;
        // There it has the name of the folder that was uploaded, which is not kept here.
        link(work, &mount.join("user-job-dir").join(&launch.job_name))
    };
    user.make_folder(&home)
        .and_then(|()| user.act(make).flatten())
        .map_err(|source| StartError::Folder { path: mount.clone(), source })
}

fn link(to: &Path, at: &Path) -> io::Result<()> {
    match symlink(to, at) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

/// For `/bin/sh`: sources the script, by bash where there is one because that is what it was written for, and writes down
/// what the environment is afterwards.
pub(crate) fn pre_start_arguments(script: &str) -> Vec<&str> {
    let shell = r#"if command -v bash >/dev/null; then exec bash -c "$0"; else exec sh -c "$0"; fi"#;
    vec!["-c", shell, script]
}

pub(crate) fn pre_start_script(launch: &LaunchFile) -> String {
    let file = launch.folders.run.join(SOURCED).display().to_string().replace('\'', r"'\''");
    format!(". ./{PRE_START} && env -0 > '{file}'")
}

/// What the script set or changed, for all ranks: not what tells ranks apart, and not what is Danlu's.
pub(crate) fn sourced(environ: &[u8], before: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let entries = environ.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok());
    let pairs = entries.filter_map(|entry| entry.split_once('='));
    let shells_own = ["_", "SHLVL", "PWD", "OLDPWD"];
    pairs
        .filter(|(name, _)| !name.starts_with("DANLU_"))
        .filter(|(name, _)| !ROLES_OF_A_RANK.contains(name) && !shells_own.contains(name))
        .filter(|(name, value)| before.get(*name).map(String::as_str) != Some(value))
        .filter(|(name, value)| std::env::var(name).ok().as_deref() != Some(value))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_changes_what_all_ranks_share_and_nothing_else() {
        let before = BTreeMap::from([("MASTER_PORT".to_owned(), "1".to_owned())]);
        let environ =
            b"LD_LIBRARY_PATH=/opt/lib\0RANK=0\0DANLU_RANK=0\0MASTER_PORT=1\0_=/bin/env\0TEXT=a=b\nc\0";
        let found = sourced(environ, &before);
        let expected = [("LD_LIBRARY_PATH", "/opt/lib"), ("TEXT", "a=b\nc")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }
}
