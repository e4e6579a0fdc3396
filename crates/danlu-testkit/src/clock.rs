//! A wall clock that a test sets, for a server and everything it starts, without touching the machine's.

use std::path::{Path, PathBuf};

const LIBRARIES: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
];

/// libfaketime, told by a file how far from the truth to be.
#[derive(Debug)]
pub struct FakeClock {
    library: &'static str,
    file: PathBuf,
}

impl FakeClock {
    /// A clock that is right as yet. `None` where libfaketime is not installed; with `CI=true` that is a failure.
    pub fn below(folder: &Path) -> Option<Self> {
        let Some(library) = LIBRARIES.into_iter().find(|path| Path::new(path).exists()) else {
            crate::skip("libfaketime is not installed (Debian: `apt-get install faketime`)");
            return None;
        };
        remove_leftovers();
        let clock = FakeClock { library, file: folder.join("clock") };
        clock.jump("+0");
        Some(clock)
    }

    /// What processes need in their environment to live by it.
    pub fn environment(&self) -> [(&str, &str); 5] {
        [
            ("LD_PRELOAD", self.library),
            ("FAKETIME_TIMESTAMP_FILE", self.file.to_str().expect("temporary folders have plain names")),
            ("FAKETIME_NO_CACHE", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]
    }

    /// Sets it so far from the machine's: `+3d`.
    pub fn jump(&self, offset: &str) {
        std::fs::write(&self.file, format!("{offset}\n")).expect("the folder can be written");
    }
}

impl Drop for FakeClock {
    fn drop(&mut self) {
        remove_leftovers();
    }
}

/// A killed process leaves files of libfaketime's with its number, and a later one with that number would not start.
fn remove_leftovers() {
    for entry in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| {
            let number =
                name.strip_prefix("faketime_shm_").or_else(|| name.strip_prefix("sem.faketime_sem_"))?;
            number.parse().ok()
        });
        if number.is_some_and(|pid| !crate::alive(pid)) {
            // Those of other people cannot be, and need not be.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
