//! What earlier sidecars left on this node: those that died with it, what could not be delivered, and programs of servers
//! from before. A week later it goes, unless somebody works with it.
//!
//! Nothing here fails: what stays is in nobody's way.

use std::fs::{self, DirEntry, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use danlu_slurm::order_of_name;

/// How long people have to fetch what could not be delivered.
const KEPT: Duration = Duration::from_hours(7 * 24);

/// Keeps a folder or a program, as long as this is not dropped.
pub(crate) fn keep(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    file.lock_shared()?;
    Ok(file)
}

/// Removes what is left over in the folder of this node's own.
pub(crate) fn clear(work: &Path) {
    let is_ours = |entry: &DirEntry| {
        let name = entry.file_name().into_string().ok();
        name.is_some_and(|name| order_of_name(name.strip_suffix(".log").unwrap_or(&name)).is_some())
    };
    let (folders, files): (Vec<DirEntry>, Vec<DirEntry>) = entries(work).filter(is_ours).partition(is_folder);
    for folder in folders {
        let workers = entries(&folder.path()).filter(is_folder).map(|worker| worker.path());
        if workers.filter(|worker| remove_if_left_over(worker)).count() > 0 {
            let _ = fs::remove_dir(folder.path());
        }
    }
    // A job that runs on may still have something to say. After the folders: what was theirs goes with them.
    for log in files.iter().filter(|entry| is_file(entry) && !entry.path().with_extension("").exists()) {
        remove_if_left_over(&log.path());
    }
    for program in entries(&work.join("bin")).filter(is_file) {
        remove_if_left_over(&program.path());
    }
}

fn remove_if_left_over(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    if !is_old(path) || file.try_lock().is_err() {
        return false;
    }
    danlu_walk::remove(path).is_ok()
}

/// Whether nobody has written to it, or in a worker's run folder, for long.
fn is_old(path: &Path) -> bool {
    let inner = entries(&path.join("run")).map(|entry| entry.path());
    inner.chain([path.to_owned()]).all(|path| {
        let modified = fs::symlink_metadata(path).and_then(|about| about.modified());
        let age = modified.ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
        age.is_some_and(|age| age > KEPT)
    })
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_file())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const OLD: &str = "danlu-7.1-0-00000000000000ab";

    fn age(path: &Path, by: Duration) {
        File::open(path).unwrap().set_modified(SystemTime::now() - by).unwrap();
    }

    fn folder_of_a_worker(work: &Path, order: &str, by: Duration) -> PathBuf {
        let folder = work.join(order).join("0");
        fs::create_dir_all(folder.join("run")).unwrap();
        fs::write(folder.join("run/launch.json"), "{}").unwrap();
        for part in ["run/launch.json", "run", "."] {
            age(&folder.join(part), by);
        }
        folder
    }

    fn file(path: PathBuf, by: Duration) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "text").unwrap();
        age(&path, by);
        path
    }

    #[test]
    fn what_nobody_works_with_goes_after_a_week() {
        let work = tempfile::tempdir().unwrap();
        let work = work.path();
        let (long, short) = (KEPT + Duration::from_mins(1), KEPT / 2);
        let gone = [
            folder_of_a_worker(work, OLD, long),
            file(work.join(format!("{OLD}.log")), long),
            file(work.join("danlu-6.1-0-00000000000000ab.log"), long),
            file(work.join("bin/danlu-0a"), long),
        ];
        let held = folder_of_a_worker(work, "danlu-8.1-0-00000000000000ab", long);
        let program = file(work.join("bin/danlu-0b"), long);
        let _held = [keep(&held).unwrap(), keep(&program).unwrap()];
        let written = folder_of_a_worker(work, "danlu-9.1-0-00000000000000ab", long);
        age(&written.join("run/launch.json"), short);
        let stays = [
            file(work.join("danlu-8.1-0-00000000000000ab.log"), long),
            held,
            program,
            written,
            folder_of_a_worker(work, "danlu-10.1-0-00000000000000ab", short),
            folder_of_a_worker(work, "data", long),
            file(work.join("notes.log"), long),
            file(work.join("bin/danlu-0c"), short),
        ];
        clear(work);
        for path in gone {
            assert!(!path.exists(), "{} is left", path.display());
        }
        assert!(!work.join(OLD).exists(), "nor is the folder around it");
        for path in stays {
            assert!(path.exists(), "{} is gone", path.display());
        }
    }

    #[test]
    fn links_lead_nowhere() {
        let (work, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let long = KEPT + Duration::from_mins(1);
        let target = folder_of_a_worker(other.path(), "their", long);
        std::os::unix::fs::symlink(other.path().join("their"), work.path().join(OLD)).unwrap();
        fs::create_dir(work.path().join("danlu-8.1-0-00000000000000ab")).unwrap();
        std::os::unix::fs::symlink(&target, work.path().join("danlu-8.1-0-00000000000000ab/0")).unwrap();
        clear(work.path());
        assert!(target.join("run/launch.json").exists());
    }
}
