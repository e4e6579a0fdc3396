//! Which processes there are, read from `/proc`.
//!
//! A process number alone names nothing: numbers are used again. Whoever remembers a process across time remembers its
//! [`ProcessIdentity`]. Zombies count as gone: they run nothing and hold nothing but their number. A process whose first thread has
//! ended looks like one, and is not gone as long as another thread of it runs: it holds its files and devices until then.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use danlu_core::launch::ProcessIdentity;
use danlu_types::{Bytes, DeviceProcess, JobId, WorkerId};

/// The process with this number, told apart from later ones by its start time; `None` if there is none.
pub fn identity(pid: i32) -> Option<ProcessIdentity> {
    let stat = stat(pid)?;
    (!stat.is_gone()).then_some(ProcessIdentity { pid, start_ticks: stat.start_ticks })
}

pub fn is_alive(process: ProcessIdentity) -> bool {
    identity(process.pid) == Some(process)
}

/// Whether the process has this very file as its standard input; not if nobody may tell.
pub fn has_as_standard_input(pid: i32, file: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let opened = identity(Path::new(&format!("/proc/{pid}/fd/0")));
    opened.is_some() && opened == identity(file)
}

/// Every live process that descends from `pid`, without `pid` itself.
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let mut gone = HashSet::new();
    for candidate in all() {
        let Some(stat) = stat(candidate) else { continue };
        children.entry(stat.parent).or_default().push(candidate);
        if stat.is_gone() {
            gone.insert(candidate);
        }
    }
    let (mut found, mut open) = (Vec::new(), vec![pid]);
    while let Some(parent) = open.pop() {
        // Taking the list out also ends the walk if numbers were used again while we read and made a loop.
        for child in children.remove(&parent).unwrap_or_default() {
            open.push(child);
            if !gone.contains(&child) {
                found.push(child);
            }
        }
    }
    found
}

/// Processes that were started with `NAME=value` in their environment, except the caller. Those of other users stay
/// unseen unless the caller may look into them.
pub fn with_environment(name: &str, value: &str) -> Vec<i32> {
    let wanted = format!("{name}={value}");
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let holds = |pid: &i32| {
        environment(*pid).is_some_and(|environment| {
            environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
        })
    };
    all().filter(|pid| *pid != own).filter(holds).filter(|pid| identity(*pid).is_some()).collect()
}

/// A process that a vendor's tool names as holding a device, with what this machine knows of it: its owner, its whole name,
/// the job that its environment names. `name` is what the tool calls it, for processes that are not to be seen from here.
pub fn on_device(pid: i32, name: Option<&str>, memory: Option<Bytes>) -> DeviceProcess {
    let folder = format!("/proc/{pid}");
    // One that has ended and is only listed still is not to be seen, and so is nobody's.
    let is_here = identity(pid).is_some();
    let own_name = fs::read_to_string(format!("{folder}/comm")).ok().filter(|_| is_here);
    let own_name = own_name.map(|name| name.trim_end().to_owned());
    let owner = fs::metadata(&folder).ok().filter(|_| is_here).map(|folder| folder.uid());
    let user = owner.map(|uid| match nix::unistd::User::from_uid(uid.into()) {
        Ok(Some(user)) => user.name,
        _ => uid.to_string(),
    });
    let job = job_of(pid)
        .or_else(|| job_of_group(&fs::read_to_string(format!("{folder}/cgroup")).ok()?))
        .or_else(|| ancestors(pid).into_iter().find_map(job_of));
    let name = own_name.or_else(|| name.map(str::to_owned)).unwrap_or_else(|| "unknown".to_owned());
    DeviceProcess { pid, name, user, memory, job }
}

/// The job that the process's environment names: programs of jobs start with it.
pub fn job_of(pid: i32) -> Option<JobId> {
    let environment = environment(pid)?;
    let mut entries = environment.split(|byte| *byte == 0);
    entries.find_map(|entry| std::str::from_utf8(entry).ok()?.strip_prefix("DANLU_JOB_ID=")?.parse().ok())
}

/// The job whose worker's cgroup a process is in, from `/proc/PID/cgroup`. It tells of processes that cleared their environment,
/// lost their parents or may not be looked into.
fn job_of_group(text: &str) -> Option<JobId> {
    text.lines().find_map(|line| {
        let path = line.splitn(3, ':').nth(2)?;
        let mut parts = path.split('/').skip_while(|part| !part.starts_with("danlu-"));
        let _installation = parts.next()?;
        parts.next()?.parse::<WorkerId>().ok().map(|worker| worker.job)
    })
}

/// What the process was started with; `None` if there is no such process, or it is not ours to look into.
///
/// Whoever starts a program is told so when the kernel has put the old one away, which is before it has laid out the
/// new one's stack. In between a process shows neither arguments nor environment, and is looked at again: to take it
/// for one without any would let a worker's newest process outlive its worker.
fn environment(pid: i32) -> Option<Vec<u8>> {
    const PAUSE: Duration = Duration::from_millis(1);
    const LOOKS: usize = 100;
    let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).ok();
    let environment = read("environ")?;
    if !environment.is_empty() {
        return Some(environment);
    }
    for _ in 0..LOOKS {
        // Zombies and the kernel's own threads have no program, and never will have arguments.
        let has_program = fs::read_link(format!("/proc/{pid}/exe")).is_ok();
        let is_laid_out = !has_program || !read("cmdline")?.is_empty();
        let environment = read("environ")?;
        if is_laid_out || !environment.is_empty() {
            return Some(environment);
        }
        std::thread::sleep(PAUSE);
    }
    Some(environment)
}

/// From its parent on.
pub(crate) fn ancestors(pid: i32) -> Vec<i32> {
    // As many as there can be on a machine whose processes change under our eyes.
    const MOST: usize = 1000;
    let parent = |pid: &i32| stat(*pid).map(|stat| stat.parent).filter(|parent| *parent > 0);
    std::iter::successors(parent(&pid), parent).take(MOST).collect()
}

/// The live processes of the session that `leader` leads or led.
pub fn session_members(leader: i32) -> Vec<i32> {
    let is_member = |pid: &i32| stat(*pid).is_some_and(|stat| stat.session == leader && !stat.is_gone());
    all().filter(is_member).collect()
}

/// What the kernel calls it: the program's name, cut off after 15 characters.
pub fn name(pid: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| name.trim_end().to_owned())
}

pub fn parent(pid: i32) -> Option<i32> {
    stat(pid).map(|stat| stat.parent)
}

/// The session that it is in.
pub fn session(pid: i32) -> Option<i32> {
    stat(pid).map(|stat| stat.session)
}

/// Whether somebody has stopped it, with SIGSTOP or a debugger.
pub fn is_stopped(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| matches!(stat.state, b'T' | b't'))
}

/// What its descriptors stand for, as `/proc` names it: paths, `pipe:[…]` and others. Empty where nobody may look.
pub fn open_files(pid: i32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(fs::read_link(entry.path()).ok()?.to_str()?.to_owned())).collect()
}

/// Whether its standard output goes into an ordinary file; not if nobody may tell.
pub fn prints_into_a_file(pid: i32) -> bool {
    fs::metadata(format!("/proc/{pid}/fd/1")).is_ok_and(|file| file.is_file())
}

/// Whether it was made to outlive its shell, as `nohup` does.
pub fn ignores_hangup(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// The process group that a terminal's keys act upon, seen from a process on that terminal.
pub fn foreground_group(pid: i32) -> Option<i32> {
    stat(pid).map(|stat| stat.foreground).filter(|group| *group > 0)
}

struct Stat {
    state: u8,
    parent: i32,
    session: i32,
    foreground: i32,
    threads: u32,
    start_ticks: u64,
}

impl Stat {
    fn is_gone(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }
}

fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The second field is the program's name in brackets, which may hold spaces and brackets: the last one closes it.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let after_name = line.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(&line[after_name..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    // `nth` counts from the field after the last one taken: the group (5) is passed over, and so is the terminal (7).
    let session = fields.nth(1)?.parse().ok()?;
    let foreground = fields.nth(1)?.parse().ok()?;
    let threads = fields.nth(20 - 9)?.parse().ok()?;
    let start_ticks = fields.nth(1)?.parse().ok()?;
    Some(Stat { state, parent, session, foreground, threads, start_ticks })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let line = b"42 (a) b (c)) S 7 42 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.state, stat.parent, stat.start_ticks), (b'S', 7, 98765));
        assert_eq!((stat.session, stat.foreground, stat.threads), (41, -1, 1));
    }

    #[test]
    fn a_process_is_alive_while_any_of_its_threads_is() {
        let program = "import ctypes, sys, threading\n\
                       threading.Thread(target=sys.stdin.read).start()\n\
                       ctypes.CDLL(None).pthread_exit(None)";
        let mut child = Command::new("python3").args(["-c", program]).stdin(Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        while stat(pid).unwrap().state != b'Z' {
            std::thread::yield_now();
        }
        assert!(identity(pid).is_some(), "a thread of it still runs");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(identity(pid).is_none());
    }

    #[test]
    fn a_process_is_of_the_job_whose_group_it_is_in() {
        let group = "5:cpu:/user.slice\n0::/danlu.slice/danlu-00f1/7.2.0/inner\n";
        assert_eq!(job_of_group(group), Some(JobId(7)));
        for other in ["", "0::/", "0::/danlu-00f1", "0::/danlu-00f1/x", "nonsense"] {
            assert_eq!(job_of_group(other), None, "{other}");
        }
    }

    #[test]
    fn a_process_is_alive_until_it_has_ended() {
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).env("DANLU_PROBE", "alive").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let seen = identity(pid).unwrap();
        assert!(is_alive(seen));
        assert!(descendants(i32::try_from(std::process::id()).unwrap()).contains(&pid));
        assert!(!is_alive(ProcessIdentity { start_ticks: seen.start_ticks + 1, ..seen }));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!is_alive(seen));
    }

    #[test]
    fn a_process_is_found_by_its_environment_from_its_first_moment_on() {
        let mark = format!("of-{}", std::process::id());
        // One look in about thirty comes before the kernel has laid the process out.
        for _ in 0..300 {
            let mut child =
                Command::new("cat").stdin(Stdio::piped()).env("DANLU_PROBE", &mark).spawn().unwrap();
            let pid = i32::try_from(child.id()).unwrap();
            let environment = environment(pid).unwrap();
            assert!(environment.split(|byte| *byte == 0).any(|entry| entry.ends_with(mark.as_bytes())));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let mut child = Command::new("cat").stdin(Stdio::piped()).env("DANLU_PROBE", &mark).spawn().unwrap();
        assert_eq!(with_environment("DANLU_PROBE", &mark), vec![i32::try_from(child.id()).unwrap()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(with_environment("DANLU_PROBE", &mark).is_empty());
    }

    #[test]
    fn a_process_without_an_environment_has_an_empty_one() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).env_clear().spawn().unwrap();
        assert_eq!(environment(i32::try_from(child.id()).unwrap()).unwrap(), b"");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
