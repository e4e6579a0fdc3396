//! What is in a folder of this node, and below.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;

use danlu_types::api::{TreeEntry, TreeKind};
use danlu_walk::{Next, walk};
use jiff::Timestamp;
use nix::errno::Errno;
use nix::fcntl::{readlink, readlinkat};
use nix::sys::stat::{FileStat, SFlag, lstat};

/// One more than the server takes, so that it is said which folder is too deep.
const DEEPEST: usize = 65;

/// Follows no link. What is neither file, folder nor link does not travel, and neither do names that are no text.
pub(super) fn scan(root: &Path) -> io::Result<BTreeMap<String, TreeEntry>> {
    let mut entries = BTreeMap::new();
    let walked = walk(root, |found| -> io::Result<Next> {
        let Some(path) = found.path.to_str() else { return Ok(Next::Past) };
        let target = || readlinkat(found.folder, found.name);
        // A program works there meanwhile.
        if let Some(entry) = entry(path, &found.about, target)? {
            entries.insert(path.to_owned(), entry);
        }
        Ok(if found.depth + 1 < DEEPEST { Next::Into } else { Next::Past })
    });
    match walked {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(entries),
    }
}

/// One entry; `None` where nothing is there that travels.
pub(super) fn look(place: &Path, path: &str) -> io::Result<Option<TreeEntry>> {
    match lstat(place) {
        Err(Errno::ENOENT) => Ok(None),
        about => entry(path, &about?, || readlink(place)),
    }
}

fn entry(
    path: &str,
    about: &FileStat,
    target: impl FnOnce() -> nix::Result<std::ffi::OsString>,
) -> io::Result<Option<TreeEntry>> {
    let plain = |kind| TreeEntry {
        path: path.to_owned(),
        kind,
        size: 0,
        // Folders change with what is in them, which travels by itself; of links the target counts.
        modified_at: Timestamp::UNIX_EPOCH,
        executable: false,
        target: None,
    };
    let kind = SFlag::from_bits_truncate(about.st_mode & SFlag::S_IFMT.bits());
    if kind == SFlag::S_IFDIR {
        return Ok(Some(plain(TreeKind::Folder)));
    }
    if kind == SFlag::S_IFLNK {
        let target = match target() {
            // Gone since, or no link any more.
            Err(Errno::ENOENT | Errno::EINVAL) => return Ok(None),
            target => target?,
        };
        let target = target.to_str().map(str::to_owned);
        return Ok(target.map(|target| TreeEntry { target: Some(target), ..plain(TreeKind::Link) }));
    }
    if kind != SFlag::S_IFREG {
        return Ok(None);
    }
    let nanoseconds = i32::try_from(about.st_mtime_nsec).unwrap_or_default();
    let modified_at = Timestamp::new(about.st_mtime, nanoseconds).unwrap_or_default();
    let size = u64::try_from(about.st_size).unwrap_or_default();
    let executable = about.st_mode & 0o100 != 0;
    Ok(Some(TreeEntry { size, modified_at, executable, ..plain(TreeKind::File) }))
}

/// Whether an entry's time says anything.
pub(super) fn has_time(entry: &TreeEntry) -> bool {
    entry.kind == TreeKind::File
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_without_a_bottom_is_looked_at_as_far_as_it_travels() {
        let folder = tempfile::tempdir().unwrap();
        let mut path = folder.path().to_owned();
        for _ in 0..100 {
            path.push("d");
        }
        fs::create_dir_all(&path).unwrap();
        let found = scan(folder.path()).unwrap();
        assert_eq!(found.keys().map(|path| path.split('/').count()).max(), Some(DEEPEST));
    }

    #[test]
    fn links_are_shown_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/model"), "xyz").unwrap();
        std::os::unix::fs::symlink("b", folder.path().join("a/latest")).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("root")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
        let show = |entry: TreeEntry| {
            format!("{} {:?} {} {}", entry.path, entry.kind, entry.size, entry.target.unwrap_or_default())
        };
        let shown: Vec<String> = scan(folder.path()).unwrap().into_values().map(show).collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        a Folder 0 
        a/b Folder 0 
        a/b/model File 3 
        a/latest Link 0 b
        root Link 0 /
        ");
        assert!(scan(&folder.path().join("nowhere")).unwrap().is_empty());
    }
}
