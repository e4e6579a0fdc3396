//! Trees that no stack, no path and no table of descriptors has room for.

#![expect(clippy::unwrap_used, reason = "a panic is how a test says no, in its helpers too")]

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use danlu_walk::{Next, Removal, remove, remove_some, walk};
use nix::fcntl::{OFlag, openat};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::{Mode, mkdirat};

const DEPTH: usize = 100_000;

/// A chain of folders, with a file in the last.
fn deep(root: &Path, depth: usize) {
    fs::create_dir_all(root).unwrap();
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
    let mut folder: OwnedFd = nix::fcntl::open(root, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        mkdirat(&folder, "d", Mode::S_IRWXU).unwrap();
        folder = openat(&folder, "d", flags, Mode::empty()).unwrap();
    }
    openat(&folder, "file", OFlag::O_CREAT | OFlag::O_WRONLY, Mode::S_IRUSR).unwrap();
}

/// In memory where there is such a disk: a hundred thousand folders are much for a busy one.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Few enough that anything which opens a level at a time would run out.
fn few_descriptors() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, 128.min(hard), hard).unwrap();
}

#[test]
fn a_deep_tree_is_removed() {
    few_descriptors();
    let folder = scratch();
    let root = folder.path().join("tree");
    deep(&root, DEPTH);
    remove(&root).unwrap();
    assert!(!root.exists());
    remove(&root).unwrap();
}

#[test]
fn a_deep_tree_is_removed_piece_by_piece() {
    few_descriptors();
    let folder = scratch();
    let root = folder.path().join("tree");
    deep(&root, 5000);
    let mut pieces = 1;
    while remove_some(&root, 1000).unwrap() == Removal::Unfinished {
        pieces += 1;
        assert!(pieces < 1000, "it does not come nearer to its end");
    }
    assert!(pieces > 5 && !root.exists(), "{pieces}");
}

#[test]
fn a_deep_tree_is_walked() {
    few_descriptors();
    let folder = scratch();
    let root = folder.path().join("tree");
    deep(&root, DEPTH);
    let (mut folders, mut files, mut deepest) = (0, 0, 0);
    let walked: io::Result<()> = walk(&root, |found| {
        if found.is_folder() {
            folders += 1;
        } else {
            files += 1;
        }
        assert_eq!(found.path.as_os_str().len(), 2 * found.depth + found.name.count_bytes());
        deepest = deepest.max(found.depth);
        Ok(Next::Into)
    });
    walked.unwrap();
    assert_eq!((folders, files, deepest), (DEPTH, 1, DEPTH));
    remove(&root).unwrap();
}

#[test]
fn links_are_removed_and_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (outside, root) = (folder.path().join("outside"), folder.path().join("tree"));
    for place in [&outside, &root.join("a/b")] {
        fs::create_dir_all(place).unwrap();
        fs::write(place.join("kept"), "").unwrap();
    }
    symlink(&outside, root.join("a/b/link")).unwrap();
    symlink("/", root.join("root")).unwrap();
    symlink(&root, folder.path().join("itself")).unwrap();
    remove(&folder.path().join("itself")).unwrap();
    assert!(root.is_dir());
    let mut seen = Vec::new();
    let walked: io::Result<()> = walk(&root, |found| {
        seen.push(found.path.display().to_string());
        Ok(Next::Into)
    });
    walked.unwrap();
    seen.sort();
    assert_eq!(seen, ["a", "a/b", "a/b/kept", "a/b/link", "root"]);
    remove(&root).unwrap();
    assert!(!root.exists() && outside.join("kept").exists());
}

#[test]
fn folders_that_their_owner_has_closed_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tree");
    fs::create_dir_all(root.join("a/b/c/d")).unwrap();
    fs::write(root.join("a/b/c/d/file"), "").unwrap();
    for place in ["a/b/c/d", "a/b/c", "a/b", "a", ""] {
        fs::set_permissions(root.join(place), Permissions::from_mode(0o000)).unwrap();
    }
    remove(&root).unwrap();
    assert!(!root.exists());
}

#[test]
fn names_that_a_removal_would_give_are_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tree");
    for wide in 0..50 {
        fs::create_dir_all(root.join(format!("{wide}/.removing-0/b/c"))).unwrap();
        fs::write(root.join(format!("{wide}/.removing-0/b/c/x")), "").unwrap();
    }
    remove(&root).unwrap();
    assert!(!root.exists());
}

#[test]
fn a_walk_may_pass_a_folder_by() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("a/b")).unwrap();
    fs::create_dir_all(folder.path().join("c/d")).unwrap();
    let mut seen = Vec::new();
    let walked: io::Result<()> = walk(folder.path(), |found| {
        seen.push(found.path.display().to_string());
        Ok(if found.path.ends_with("a") { Next::Past } else { Next::Into })
    });
    walked.unwrap();
    seen.sort();
    assert_eq!(seen, ["a", "c", "c/d"]);
}
