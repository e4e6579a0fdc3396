//! Looking at processes from outside, through `/proc`.

use std::path::Path;

/// Whether a process runs; a zombie does not.
pub fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name may hold anything, including parentheses; the state follows the last one.
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Processes whose command line or environment names the given folder: launchers and ranks of a data folder.
pub fn processes_of(folder: &Path) -> Vec<i32> {
    let needle = folder.as_os_str().as_encoded_bytes();
    let mentions = |pid: i32, file: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.windows(needle.len()).any(|window| window == needle)
    };
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if pid != own && alive(pid) && (mentions(pid, "cmdline") || mentions(pid, "environ")) {
            found.push(pid);
        }
    }
    found
}
