//! Small files that others read while they are written, and sockets in deep folders.
//!
//! Nothing here waits for the disk (`fsync`): files must survive the death of the server at any line, which the page
//! cache does. After a power cut nothing runs, every lock is free, and a missing file leads to the same verdict.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use danlu_core::launch::{
    LAUNCH_FILE, LaunchFile, LauncherStatus, PYTHON_HELPER, PYTHON_HELPER_NAME, RunLayout, STATUS_FILE,
};
use danlu_core::sample::{MOST_SAMPLE_BYTES, SAMPLES_FILE};
use danlu_types::WorkerId;
use danlu_walk::{Removal, remove_some};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use serde::de::DeserializeOwned;

/// A status with the most ranks there can be stays far below; more is not ours.
const LONGEST_FILE: u64 = 1 << 20;
/// Launchers write a sample every few seconds; where they miss so many, something is wrong. One that has written very many writes no more.
const LONG_SILENCE: Duration = Duration::from_mins(5);

/// Makes a folder and those above it, for this user only: launch files hold users' environment.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Gives a file or folder these permissions, whatever this process's mask is.
pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    if fs::metadata(path)?.mode() & 0o7777 == mode {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Puts a file in place in one step: a reader sees the old one or the new one. Callers see to it that there is one
/// writer at a time. A folder that stands in its place is put aside: programs of the job can make one, and must not keep an
/// order from being written.
pub(crate) fn replace(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let draft = folder.join(format!(".{name}.draft"));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| match fs::rename(&draft, folder.join(name)) {
            Err(error) if error.kind() == ErrorKind::IsADirectory => {
                fs::rename(folder.join(name), folder.join(format!("{name}.in-the-way")))?;
                fs::rename(&draft, folder.join(name))
            }
            done => done,
        });
    if written.is_err() {
        // On a full disk the half that was written is in the way of others.
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Reads a value; `None` where there is no file, or where what is there is not such a value: programs of the job can
/// write in their run folder, and what they scribble must not stop the engine.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    Ok(read_bytes(path)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// What the launcher of a worker last said in its run folder, if that can be understood and is about this worker.
pub(crate) fn read_status(run: &Path, worker: WorkerId) -> io::Result<Option<LauncherStatus>> {
    let text = read_bytes(&run.join(STATUS_FILE))?;
    let status = text.as_deref().and_then(LauncherStatus::last_in);
    Ok(status.filter(|status| status.worker == worker))
}

/// How long a launcher has written no sample, where that is long; `None` as long as it need not have written one.
pub(crate) fn long_silence(run: &Path) -> Option<Duration> {
    let samples = fs::symlink_metadata(run.join(SAMPLES_FILE)).ok()?;
    if samples.len() >= MOST_SAMPLE_BYTES {
        return None;
    }
    samples.modified().ok()?.elapsed().ok().filter(|age| *age >= LONG_SILENCE)
}

/// Whether what was launched in this run folder is what this launch file asks for: the same command of the same person. Places, ports
/// and tokens differ from one time to the next.
pub(crate) fn is_of_same_work(run: &Path, launch_file: &[u8]) -> io::Result<bool> {
    let earlier: Option<LaunchFile> = read(&run.join(LAUNCH_FILE))?;
    let asked: Option<LaunchFile> = serde_json::from_slice(launch_file).ok();
    let work = |launch: LaunchFile| (launch.worker, launch.owner, launch.setup, launch.command);
    Ok(earlier.zip(asked).is_some_and(|(earlier, asked)| work(earlier) == work(asked)))
}

/// The workers that were launched and not released, by their markers. Names that are no worker's are left alone.
pub(crate) fn live_workers(layout: &RunLayout) -> io::Result<Vec<WorkerId>> {
    let entries = match fs::read_dir(layout.live_folder()) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut live = Vec::new();
    for entry in entries {
        let entry = entry?;
        // A folder is nobody's marker, whatever its name.
        if entry.file_type().is_ok_and(|kind| !kind.is_dir()) {
            live.extend(entry.file_name().to_str().and_then(|name| name.parse::<WorkerId>().ok()));
        }
    }
    live.sort_unstable();
    Ok(live)
}

/// Reads a small file; `None` where there is none. A folder, a link or a pipe in its place is as good as none: programs of
/// the job can put one there, and it is neither followed nor waited for.
pub(crate) fn read_bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) if file.metadata()?.is_file() => file,
        Ok(_) => return Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        // A link, and a socket.
        Err(error)
            if [Some(Errno::ELOOP as i32), Some(Errno::ENXIO as i32)].contains(&error.raw_os_error()) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(LONGEST_FILE).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Lays down `danlu.py`: nobody's secret, and read by whichever users jobs run as.
pub(crate) fn lay_down_python(folder: &Path) -> io::Result<()> {
    make_folder(folder)?;
    // Where nothing can be written, the one of before does.
    if fs::read(folder.join(PYTHON_HELPER_NAME)).is_ok_and(|found| found == PYTHON_HELPER.as_bytes()) {
        return Ok(());
    }
    replace(folder, PYTHON_HELPER_NAME, PYTHON_HELPER.as_bytes())?;
    set_mode(&folder.join(PYTHON_HELPER_NAME), 0o644)?;
    set_mode(folder, 0o755)
}

/// Makes a marker, which may be there already; what it holds does not matter.
///
/// A second name for a file that is there anyway, where the disk can do that: a marker lives as briefly as its worker,
/// and ext4 goes through all inodes freed of late, one by one, before it gives out another. With a thousand short jobs a
/// minute that search would cost more than everything else the engine does.
pub(crate) fn mark(file: &Path, marker: &Path) -> io::Result<()> {
    match fs::hard_link(file, marker) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(marker).map(drop)
        }
        _ => Ok(()),
    }
}

/// Removes a file; one that is gone already is no error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// A folder of secrets holds what the job's programs have put there, too, and there may be no end of it.
const STEPS_OF_REMOVAL: u32 = 5000;

/// Removes a folder that is the job's own, as far as one look at one worker may take: fails where the next is to go on. What
/// cannot be removed at all is said and left; it lies where nobody but the job's user comes.
pub(crate) fn remove_secrets(folder: &Path, worker: WorkerId) -> io::Result<()> {
    match remove_some(folder, STEPS_OF_REMOVAL) {
        Ok(Removal::Done) => Ok(()),
        Ok(Removal::Unfinished) => {
            let text = "the folder of its secrets holds so much that it is not removed yet";
            Err(io::Error::new(ErrorKind::ResourceBusy, text))
        }
        Err(error) => {
            let folder = folder.display();
            tracing::warn!(worker.id = %worker, %error, "could not remove `{folder}`, secrets are left there");
            Ok(())
        }
    }
}

/// A name for `folder/name` that fits the 108 bytes of a socket's address, however deep the folder lies. It is good for
/// as long as the returned folder stays open.
pub(crate) fn socket_path(folder: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    let folder = File::open(folder)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()));
    Ok((folder, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_value_reads_as_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stop.json");
        assert_eq!(read::<Vec<u8>>(&path).unwrap(), None);
        assert_eq!(read::<Vec<u8>>(&path.join("below")).unwrap(), None);
        fs::write(&path, "[1, 2").unwrap();
        assert_eq!(read::<Vec<u8>>(&path).unwrap(), None);
        assert_eq!(read::<Vec<u8>>(&path.join("below")).unwrap(), None);
        replace(folder.path(), "stop.json", b"[1, 2]").unwrap();
        assert_eq!(read::<Vec<u8>>(&path).unwrap(), Some(vec![1, 2]));
    }

    #[test]
    fn a_failed_replacement_leaves_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["stop.json", "stop.json.in-the-way"] {
            fs::create_dir_all(folder.path().join(name).join("full")).unwrap();
        }
        replace(folder.path(), "stop.json", b"[]").unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_stands_in_the_place_of_a_file_is_neither_read_nor_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.jsonl");
        fs::create_dir(&path).unwrap();
        assert_eq!(read_bytes(&path).unwrap(), None);
        replace(folder.path(), "status.jsonl", b"[1]").unwrap();
        assert_eq!(read_bytes(&path).unwrap(), Some(b"[1]".to_vec()));
        let others = ["loop", "pipe", "socket"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink("loop", &others[0]).unwrap();
        nix::unistd::mkfifo(&others[1], nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&others[2]).unwrap();
        for other in others {
            assert_eq!(read_bytes(&other).unwrap(), None, "{}", other.display());
        }
    }

    #[test]
    fn a_folder_is_no_marker() {
        let data = tempfile::tempdir().unwrap();
        let layout = RunLayout { data: data.path().to_owned() };
        fs::create_dir_all(layout.live_folder().join("7.1.0")).unwrap();
        fs::write(layout.live_folder().join("8.1.0"), "").unwrap();
        let live: Vec<String> = live_workers(&layout).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(live, ["8.1.0"]);
    }
}
