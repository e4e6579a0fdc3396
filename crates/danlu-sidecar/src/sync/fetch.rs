//! What earlier attempts saved, fetched before the launcher starts.

use std::cell::RefCell;
use std::fs::{self, File, Permissions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path};

use danlu_client::ClientError;
use danlu_types::api::{TreeArea, TreeEntry, TreeKind, TreeQuery};

use super::{Trees, scan};
use crate::error::SidecarError;
use crate::retry::{insist_if_there, retry_until_answered};
use crate::stage_in::{Brought, refused};

impl Trees {
    /// Brings the checkpoint, if the job keeps one and there is any.
    pub(crate) async fn fetch(&mut self) -> Brought<()> {
        let Some(index) = self.areas.iter().position(|tree| tree.area == TreeArea::Checkpoint) else {
            return Ok(());
        };
        let listed = retry_until_answered(|| self.client.tree_list(self.worker, TreeArea::Checkpoint)).await;
        let entries = listed.map_err(refused("list the job's checkpoint"))?;
        let root = self.areas[index].root.clone();
        let failed = |source| SidecarError::Folder { path: root.clone(), source };
        let plain = |entry: &&TreeEntry| {
            Path::new(&entry.path).components().all(|part| matches!(part, Component::Normal(_)))
        };
        // Links last: nothing is written through them.
        for entry in entries.iter().filter(plain).filter(|entry| entry.kind != TreeKind::Link) {
            let place = root.join(&entry.path);
            if entry.kind == TreeKind::Folder {
                fs::create_dir_all(&place).map_err(failed)?;
            } else {
                self.fetch_file(entry, &place).await?;
            }
        }
        for entry in entries.iter().filter(plain) {
            if let Some(target) = &entry.target {
                symlink(target, root.join(&entry.path)).map_err(failed)?;
            }
        }
        self.areas[index].known = scan::scan(&root).map_err(failed)?;
        Ok(())
    }

    async fn fetch_file(&self, entry: &TreeEntry, place: &Path) -> Brought<()> {
        let failed = |source| SidecarError::Folder { path: place.to_owned(), source };
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let file = RefCell::new(File::create(place).map_err(failed)?);
        // A cut costs what had not arrived, and not the rest.
        let fetched = insist_if_there(|| async {
            let offset = match file.borrow_mut().seek(SeekFrom::End(0)) {
                Ok(offset) => offset,
                Err(error) => return Ok(Err(error)),
            };
            let query = TreeQuery { path: entry.path.clone(), offset };
            let taken = self.client.tree_read(self.worker, TreeArea::Checkpoint, &query, |piece| {
                file.borrow_mut().write_all(piece).map_err(Fetching::Disk)
            });
            match taken.await {
                Ok(()) => Ok(Ok(())),
                Err(Fetching::Disk(error)) => Ok(Err(error)),
                Err(Fetching::Server(error)) => Err(error),
            }
        });
        let fetched = fetched.await.map_err(refused("hand over the job's checkpoint"))?;
        let file = file.into_inner();
        match fetched {
            // Somebody removed it since.
            None => fs::remove_file(place).map_err(failed)?,
            Some(written) => {
                let finish = || -> io::Result<()> {
                    written?;
                    file.set_permissions(Permissions::from_mode(if entry.executable {
                        0o755
                    } else {
                        0o644
                    }))?;
                    file.set_modified(entry.modified_at.into())
                };
                finish().map_err(failed)?;
            }
        }
        Ok(())
    }
}

enum Fetching {
    Server(ClientError),
    Disk(io::Error),
}

impl From<ClientError> for Fetching {
    fn from(error: ClientError) -> Self {
        Fetching::Server(error)
    }
}
