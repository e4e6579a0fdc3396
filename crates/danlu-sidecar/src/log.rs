//! The sidecar's own words, in the launcher's log: they travel with it.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use danlu_core::log::{LAUNCHER_LOG, encode};
use danlu_types::api::LogStream;
use jiff::Timestamp;

#[derive(Debug, Clone)]
pub(crate) struct Notes {
    path: PathBuf,
}

impl Notes {
    pub(crate) fn new(run_folder: &Path) -> Self {
        Notes { path: run_folder.join(LAUNCHER_LOG) }
    }

    /// A line that cannot be written is lost: the worker matters more.
    pub(crate) fn add(&self, text: impl Display) {
        let mut record = Vec::new();
        let text = format!("sidecar: {text}").replace('\n', " ");
        encode(&mut record, Timestamp::now(), LogStream::Danlu, text.as_bytes());
        if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(&self.path) {
            let _ = file.write_all(&record);
        }
    }
}
