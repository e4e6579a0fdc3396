//! One step towards the server's having what the node has.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};

use danlu_types::api::{TreeEntry, TreeKind, TreePut};
use nix::fcntl::OFlag;

use super::{Step, Trees, scan};
use crate::error::chain;
use crate::retry::{RetryError, retry_until_answered};

const PIECE_BYTES: u64 = 4 << 20;

/// What became of a file on its way.
#[derive(Debug)]
enum Sent {
    Whole,
    /// It changed meanwhile: the next pass sends it.
    Changed,
}

impl Trees {
    pub(super) async fn take_step(
        &mut self,
        index: usize,
        step: Step,
        is_last: bool,
    ) -> Result<(), RetryError> {
        let area = self.areas[index].area;
        match step {
            Step::Remove(path) => {
                match retry_until_answered(|| self.client.tree_remove(self.worker, area, &path)).await {
                    Err(RetryError::Over) => return Err(RetryError::Over),
                    // It is somebody else's by now.
                    Ok(()) | Err(RetryError::Refused(_)) => {}
                }
                self.areas[index].known.remove(&path);
            }
            Step::Send(entry) => match self.send(index, &entry, is_last).await {
                Ok(Ok(Sent::Whole)) => drop(self.areas[index].known.insert(entry.path.clone(), entry)),
                Ok(Ok(Sent::Changed)) => self.is_incomplete |= is_last,
                Ok(Err(error)) => self.give_up(index, entry, &format!("cannot be read: {error}")),
                Err(RetryError::Refused(error)) => {
                    self.give_up(index, entry, &format!("is not taken: {}", chain(&error)));
                }
                Err(RetryError::Over) => return Err(RetryError::Over),
            },
        }
        Ok(())
    }

    fn give_up(&mut self, index: usize, entry: TreeEntry, why: &str) {
        let tree = &mut self.areas[index];
        self.notes.add(format_args!(
            "`{}` of the {} stays on the node: it {why}",
            entry.path,
            tree.area.as_str()
        ));
        tree.refused.insert(entry.path.clone(), entry);
        self.is_incomplete = true;
    }

    async fn send(
        &self,
        index: usize,
        entry: &TreeEntry,
        is_last: bool,
    ) -> Result<io::Result<Sent>, RetryError> {
        let tree = &self.areas[index];
        let place = tree.root.join(&entry.path);
        let put = |offset| TreePut {
            path: entry.path.clone(),
            kind: entry.kind,
            offset,
            size: entry.size,
            modified_at: entry.modified_at,
            executable: entry.executable,
            target: entry.target.clone(),
        };
        let piece = |offset, bytes: Vec<u8>| {
            let put = put(offset);
            async move {
                retry_until_answered(|| self.client.tree_put(self.worker, tree.area, &put, bytes.clone()))
                    .await
            }
        };
        if entry.kind != TreeKind::File {
            piece(0, Vec::new()).await?;
            return Ok(Ok(Sent::Whole));
        }
        let file = match OpenOptions::new().read(true).custom_flags(OFlag::O_NOFOLLOW.bits()).open(&place) {
            Ok(file) => file,
            Err(error) => return Ok(gone_or(error)),
        };
        let mut offset = 0;
        loop {
            let length = PIECE_BYTES.min(entry.size - offset);
            let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
            match file.read_exact_at(&mut bytes, offset) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Ok(Sent::Changed)),
                Err(error) => return Ok(Err(error)),
            }
            let reaches_the_end = offset + length == entry.size;
            // Half of one and half of another would take the place of a good one. At the end nobody writes any more.
            if reaches_the_end && !is_last {
                match scan::look(&place, &entry.path) {
                    Ok(now) if now.as_ref() == Some(entry) => {}
                    Ok(_) => return Ok(Ok(Sent::Changed)),
                    Err(error) => return Ok(Err(error)),
                }
            }
            let there = piece(offset, bytes).await?;
            if reaches_the_end && there == entry.size {
                return Ok(Ok(Sent::Whole));
            }
            offset = there.min(entry.size);
        }
    }
}

fn gone_or(error: io::Error) -> io::Result<Sent> {
    if error.kind() == io::ErrorKind::NotFound { Ok(Sent::Changed) } else { Err(error) }
}
