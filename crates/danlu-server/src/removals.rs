//! Removes the folders of forgotten jobs, beside everything else.
//!
//! A job can leave a folder that takes hours to remove, or that cannot be removed at all. So nobody waits for it, no pass and
//! no start, and each folder has its turn: one thread removes a piece of one after a piece of the other, for as long as there is
//! something to remove. Whatever is left when the server ends lies aside, and the next one goes on.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use danlu_walk::{Removal, remove_some};

/// Entries of one folder before it is another's turn: a tenth of a second, about.
const STEPS: u32 = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Removals(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    folders: VecDeque<PathBuf>,
    is_running: bool,
}

impl Removals {
    /// Returns at once. A folder that is not there costs nothing.
    pub(crate) fn add(self: &Arc<Self>, folders: impl IntoIterator<Item = PathBuf>) {
        let mut queue = self.lock();
        queue.folders.extend(folders);
        if queue.is_running || queue.folders.is_empty() {
            return;
        }
        let removals = Arc::clone(self);
        match std::thread::Builder::new().name("removals".to_owned()).spawn(move || removals.run()) {
            Ok(_) => queue.is_running = true,
            // Tried again with the next folder, at the latest by the next server.
            Err(error) => tracing::warn!("could not begin to remove folders of forgotten jobs: {error}"),
        }
    }

    fn run(&self) {
        while let Some(folder) = self.next() {
            match remove_some(&folder, STEPS) {
                Ok(Removal::Done) => {}
                Ok(Removal::Unfinished) => self.lock().folders.push_back(folder),
                Err(error) => tracing::warn!("could not remove {}: {error}", folder.display()),
            }
        }
    }

    fn next(&self) -> Option<PathBuf> {
        let mut queue = self.lock();
        let folder = queue.folders.pop_front();
        queue.is_running = folder.is_some();
        folder
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
