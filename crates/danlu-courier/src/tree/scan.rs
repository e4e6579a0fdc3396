//! What is in a folder of this node, and below.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use danlu_types::api::{TreeEntry, TreeKind};
use jiff::Timestamp;

/// Follows no link. What is neither file, folder nor link does not travel, and neither do names that are no text.
pub(super) fn scan(root: &Path) -> io::Result<BTreeMap<String, TreeEntry>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(root.join(&folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let below = folder.join(entry.file_name());
            let Some(path) = below.to_str() else { continue };
            // A program works there meanwhile.
            let Some(about) = look(&entry.path(), path)? else { continue };
            if about.kind == TreeKind::Folder {
                folders.push(below.clone());
            }
            found.insert(path.to_owned(), about);
        }
    }
    Ok(found)
}

/// One entry; `None` where nothing is there that travels.
pub(super) fn look(place: &Path, path: &str) -> io::Result<Option<TreeEntry>> {
    let about = match fs::symlink_metadata(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        about => about?,
    };
    let plain = |kind| TreeEntry {
        path: path.to_owned(),
        kind,
        size: 0,
        // Folders change with what is in them, which travels by itself; of links the target counts.
        modified_at: Timestamp::UNIX_EPOCH,
        executable: false,
        target: None,
    };
    let kind = about.file_type();
    if kind.is_dir() {
        return Ok(Some(plain(TreeKind::Folder)));
    }
    if kind.is_symlink() {
        let target = match fs::read_link(place) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            target => target?,
        };
        let target = target.to_str().map(str::to_owned);
        return Ok(target.map(|target| TreeEntry { target: Some(target), ..plain(TreeKind::Link) }));
    }
    if !kind.is_file() {
        return Ok(None);
    }
    let modified_at = about.modified().ok().and_then(|at| Timestamp::try_from(at).ok()).unwrap_or_default();
    let executable = about.permissions().mode() & 0o100 != 0;
    Ok(Some(TreeEntry { size: about.len(), modified_at, executable, ..plain(TreeKind::File) }))
}

/// Whether an entry's time says anything.
pub(super) fn has_time(entry: &TreeEntry) -> bool {
    entry.kind == TreeKind::File
}

#[cfg(test)]
mod tests {
    use super::*;

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
