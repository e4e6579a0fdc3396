//! A machine with Ascend devices, as far as anybody can tell who asks `npu-smi` and `hccn_tool`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Answers with the file that is named after its arguments, `info_-m` for `info -m`; hangs where there is one named `hang`.
const TOOL: &str = r#"#!/bin/sh
answers="$(dirname "$0")/../answers/$(basename "$0")"
if [ -e "$answers/hang" ]; then exec sleep 1000; fi
name="$(echo "$*" | tr ' ' '_')"
if [ -e "$answers/$name" ]; then exec cat "$answers/$name"; fi
echo "This device does not support querying $*."
exit 1
"#;

/// A folder to be taken for `/`, with fake tools in its `bin`.
#[derive(Debug)]
pub struct FakeAscend {
    folder: TempDir,
}

impl FakeAscend {
    /// One whose `npu-smi info` prints this table.
    pub fn new(report: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("danlu-ascend-").tempdir().expect("a temporary folder");
        let fake = FakeAscend { folder };
        for tool in ["npu-smi", "hccn_tool"] {
            let path = fake.write(&format!("bin/{tool}"), TOOL);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("an executable file");
        }
        fake.answer("npu-smi", "info", report);
        fake
    }

    /// What a tool prints for these arguments.
    pub fn answer(&self, tool: &str, arguments: &str, text: &str) {
        self.write(&format!("answers/{tool}/{}", arguments.replace(' ', "_")), text);
    }

    pub fn hang(&self, tool: &str) {
        self.write(&format!("answers/{tool}/hang"), "");
    }

    /// Ends what [`Self::hang`] began.
    pub fn answer_again(&self, tool: &str) {
        fs::remove_file(self.folder.path().join(format!("answers/{tool}/hang"))).expect("it hung");
    }

    /// A file of the machine, such as `etc/hccn.conf`.
    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a path below the folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }
}
