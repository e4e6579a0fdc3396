//! The launcher's own words, in `launcher.log`.
//!
//! The file is opened for each line: most launchers have nothing to say, and those that have say it once.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use danlu_core::log::{LAUNCHER_LOG, encode};
use danlu_types::api::LogStream;
use jiff::Timestamp;

#[derive(Debug, Clone)]
pub(crate) struct LauncherLog {
    path: PathBuf,
}

impl LauncherLog {
    pub(crate) fn new(run_folder: &Path) -> Self {
        LauncherLog { path: run_folder.join(LAUNCHER_LOG) }
    }

    /// A line that cannot be written is lost: the worker matters more than what is said about it.
    pub(crate) fn note(&self, text: impl Display) {
        let mut record = Vec::new();
        let text = text.to_string().replace('\n', " ");
        encode(&mut record, Timestamp::now(), LogStream::Danlu, text.as_bytes());
        if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(&self.path) {
            let _ = file.write_all(&record);
        }
    }
}
