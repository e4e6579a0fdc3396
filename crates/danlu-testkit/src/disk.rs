//! A disk that a test may fill and lock.

use std::path::PathBuf;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use tempfile::TempDir;

/// A small file system of our own, so that it can be filled and locked. Only root can mount one.
#[derive(Debug)]
pub struct SmallDisk {
    pub path: PathBuf,
}

impl SmallDisk {
    /// At `data` in the folder; `None`, with a notice, for whoever is not root.
    pub fn below(folder: &TempDir) -> Option<Self> {
        let path = folder.path().join("data");
        std::fs::create_dir(&path).expect("root may do this");
        let options = "size=24m,mode=0700";
        match mount(Some("danlu-test"), &path, Some("tmpfs"), MsFlags::empty(), Some(options)) {
            Ok(()) => Some(SmallDisk { path }),
            Err(error) => {
                crate::skip(&format!("only root can mount the small disk that this test fills ({error})"));
                None
            }
        }
    }

    /// To the last byte; the file that does it.
    pub fn fill(&self) -> PathBuf {
        let file = self.path.join("ballast");
        let filled = std::fs::write(&file, vec![0; 23 << 20]);
        // Whatever is left after the large write goes byte by byte.
        let mut rest =
            std::fs::OpenOptions::new().append(true).create(true).open(&file).expect("root may do this");
        while std::io::Write::write_all(&mut rest, &[0; 512]).is_ok() {}
        drop(filled);
        file
    }

    /// While files on it are open: whoever opens or creates one from now on is refused.
    pub fn lock(&self) {
        let bind = MsFlags::MS_BIND;
        mount(Some(&self.path), &self.path, None::<&str>, bind, None::<&str>).expect("root may do this");
        let read_only = bind | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(None::<&str>, &self.path, None::<&str>, read_only, None::<&str>).expect("root may do this");
    }

    /// Undoes `lock`.
    pub fn unlock(&self) {
        umount2(&self.path, MntFlags::MNT_DETACH).expect("root may do this");
    }

    /// While nothing on it is open for writing.
    pub fn remount(&self, read_only: bool) {
        let flags = if read_only { MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY } else { MsFlags::MS_REMOUNT };
        // Open files keep a file system writable; an emergency remount by `mount` says so instead of waiting.
        mount(None::<&str>, &self.path, None::<&str>, flags, Some("size=24m")).expect("root may do this");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Twice, if a test failed while it was locked.
        while umount2(&self.path, MntFlags::MNT_DETACH).is_ok() {}
    }
}
