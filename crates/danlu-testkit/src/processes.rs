//! Looking at processes from outside, through `/proc`.

use std::path::Path;

/// Whether a process runs. A zombie does not, unless other threads of it do: the first thread of a process that is killed may
/// end before those, which hold its ports and locks until they end as well.
pub fn alive(pid: i32) -> bool {
    const THREADS_AFTER_STATE: usize = 17;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name may hold anything, including parentheses; the state follows the last one.
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut fields = rest.split_ascii_whitespace();
    let has_ended = fields.next().is_none_or(|state| matches!(state, "Z" | "X"));
    let threads = fields.nth(THREADS_AFTER_STATE - 1).and_then(|threads| threads.parse().ok());
    !has_ended || threads.is_some_and(|threads: u32| threads > 1)
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
