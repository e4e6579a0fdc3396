//! The first and the last moment of a child: what it does between fork and exec, and how its parent hears of its end.
//!
//! What runs between fork and exec is plain system calls on values made
//! before the fork: no allocation, no lock, nothing that another thread of the parent could hold.

#![expect(
    unsafe_code,
    reason = "there is no safe way to act between fork and exec, or to wait for any child"
)]

use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use nix::libc;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{ForkResult, Pid, getpid, getppid, setpgid, setsid};

use crate::seccomp::Filter;
use crate::user::{UnixIdentity, become_root_again};

/// The place of a child among its parent's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildPlacement {
    /// A process group of its own.
    Group,
    /// A session of its own, without a terminal.
    Session,
    /// A session of its own whose terminal is the child's standard input.
    Terminal,
}

#[derive(Debug, Clone)]
pub struct ChildSetup {
    pub place: ChildPlacement,
    /// Opened `cgroup.procs` files (see [`crate::cgroup::WorkerGroup::join_files`]); empty to stay in the parent's groups.
    pub join: Arc<[File]>,
    /// Killed when the thread that started it ends: start such children from a thread that lives as long as they may.
    pub die_with_parent: bool,
    /// Whom it becomes, for good; the parent's own user when absent.
    pub become_user: Option<Arc<UnixIdentity>>,
    /// The parent keeps its own files to itself; what the child's are like is its user's affair.
    pub umask: Option<Mode>,
    /// Which system calls it is refused, for good; none when absent.
    pub filter: Option<Arc<Filter>>,
    /// The most processes and threads of its user, all on this machine counted.
    pub processes: Option<u64>,
}

impl ChildSetup {
    /// Nothing but its place.
    pub fn of(place: ChildPlacement) -> Self {
        ChildSetup {
            place,
            join: Arc::from([]),
            die_with_parent: false,
            become_user: None,
            umask: None,
            filter: None,
            processes: None,
        }
    }
}

/// Signals whose handling a child must not inherit: a parent that ignores one would make its children ignore it too.
const RESET: [Signal; 9] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGPIPE,
    Signal::SIGCHLD,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
];

/// Makes `command` start its child as `setup` says. A step that fails makes the start fail.
pub fn prepare(command: &mut Command, setup: ChildSetup) {
    let parent = getpid();
    let steps = move || before_exec(&setup, parent);
    // SAFETY: `before_exec` makes system calls only, all of them async-signal-safe, on memory and descriptors that were
    // there before the fork; it neither allocates nor takes a lock nor drops anything.
    unsafe {
        command.pre_exec(steps);
    }
}

/// What waiting for any child came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaped {
    Ended {
        pid: i32,
        status: ExitStatus,
    },
    /// There are children, and none of them has ended.
    NoneYet,
    /// There are no children at all; for a subreaper: no descendants.
    NoChildren,
}

/// Reaps one child that has ended, whichever it is, without waiting. nix's `waitpid` loses the number of a process
/// that was killed by a real-time signal, so it is not enough for someone who must account for all.
pub fn reap_any() -> Reaped {
    loop {
        let mut status = 0;
        // SAFETY: waitpid writes one int where it is told to.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        match pid {
            0 => return Reaped::NoneYet,
            1.. => return Reaped::Ended { pid, status: ExitStatus::from_raw(status) },
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return Reaped::NoChildren,
        }
    }
}

/// Copies this process: returns the copy's number, and `None` in the copy.
///
/// Refuses where this process has more than one thread: the copy would have only the caller's, and whatever lock another one
/// held would be held for ever.
pub fn fork() -> io::Result<Option<i32>> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        return Err(io::Error::other("a process with several threads must not be copied"));
    }
    // SAFETY: there is no other thread, so nothing is left half done in the copy.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(Some(child.as_raw())),
        ForkResult::Child => Ok(None),
    }
}

fn before_exec(setup: &ChildSetup, parent: Pid) -> io::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in RESET {
        // SAFETY: the default action runs no code of ours.
        unsafe {
            sigaction(signal, &default)?;
        }
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    match setup.place {
        ChildPlacement::Group => setpgid(Pid::from_raw(0), Pid::from_raw(0))?,
        ChildPlacement::Session => {
            setsid()?;
        }
        ChildPlacement::Terminal => {
            setsid()?;
            take_terminal()?;
        }
    }
    if setup.become_user.is_some() {
        // To join groups. The parent may act as that user at the moment, so that pipes and the working directory are
        // looked at with its eyes.
        become_root_again()?;
    }
    for procs in setup.join.iter() {
        // "0" is the writer itself.
        nix::unistd::write(procs, b"0")?;
    }
    if let Some(identity) = &setup.become_user {
        identity.become_for_good()?;
    }
    if let Some(most) = setup.processes {
        // No more than it had already, which only root may exceed.
        let most = most.min(getrlimit(Resource::RLIMIT_NPROC)?.1);
        setrlimit(Resource::RLIMIT_NPROC, most, most)?;
    }
    if let Some(mask) = setup.umask {
        umask(mask);
    }
    if setup.become_user.is_some() || setup.filter.is_some() {
        // Not through `sudo` or any other program with a right of its own either.
        prctl::set_no_new_privs()?;
    }
    // After the change of user, which undoes it.
    if setup.die_with_parent {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have ended before the line above; then nobody would kill us.
        if getppid() != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
    }
    if let Some(filter) = &setup.filter {
        set_filter(filter)?;
    }
    Ok(())
}

/// For a copy of this process ([`fork`]) that is to be a child without being another program: does to it what [`prepare`] has
/// done to a child. `parent` is the process that was copied.
pub fn settle(setup: &ChildSetup, parent: Pid) -> io::Result<()> {
    before_exec(setup, parent)
}

fn set_filter(filter: &Filter) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.0.len()).unwrap_or(0),
        filter: filter.0.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads the program, which lives until the call returns, and keeps a copy.
    let done = unsafe {
        libc::prctl(libc::PR_SET_SECCOMP, libc::c_ulong::from(libc::SECCOMP_MODE_FILTER), &raw const program)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn take_terminal() -> io::Result<()> {
    // SAFETY: TIOCSCTTY takes a number, not a pointer, and acts on descriptor 0 only.
    let answer = unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    fn setup(place: ChildPlacement) -> ChildSetup {
        ChildSetup { die_with_parent: true, ..ChildSetup::of(place) }
    }

    fn fields_of_own_stat(place: ChildPlacement) -> Vec<String> {
        let mut command = Command::new("cat");
        command.arg("/proc/self/stat").stdin(Stdio::null());
        prepare(&mut command, setup(place));
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap().split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_child_leads_its_own_group_or_session() {
        let grouped = fields_of_own_stat(ChildPlacement::Group);
        assert_eq!(grouped[0], grouped[4]);
        assert_ne!(grouped[0], grouped[5]);
        let alone = fields_of_own_stat(ChildPlacement::Session);
        assert_eq!((&alone[0], &alone[0]), (&alone[4], &alone[5]));
    }

    fn filtered(script: &str) -> String {
        let mut command = Command::new("python3");
        command.args(["-c", script]).stdin(Stdio::null());
        let filter = Filter::new(true).map(Arc::new);
        prepare(&mut command, ChildSetup { filter, ..setup(ChildPlacement::Group) });
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_filtered_child_is_refused_what_no_training_needs() {
        if Filter::new(true).is_none() {
            danlu_testkit::skip("system calls of this architecture are not known");
            return;
        }
        // As root all of these would fail otherwise, if at all: bad address, bad descriptor, no such key.
        let calls = [
            libc::SYS_bpf,
            libc::SYS_keyctl,
            libc::SYS_finit_module,
            libc::SYS_kexec_load,
            libc::SYS_mount,
            libc::SYS_setns,
            libc::SYS_open_by_handle_at,
        ];
        let script = format!(
            "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nfor n in {calls:?}:\n  print(c.syscall(n, -1, -1, -1, -1, -1), ctypes.get_errno())\n"
        );
        assert_eq!(filtered(&script), "-1 1\n".repeat(calls.len()));
    }

    #[test]
    fn a_filtered_child_can_do_what_training_and_debugging_need() {
        if Filter::new(true).is_none() {
            danlu_testkit::skip("system calls of this architecture are not known");
            return;
        }
        // Threads, processes, mapped memory, reading memory by process as MPI does, tracing as debuggers do.
        let script = r"
import ctypes, mmap, os, threading
c = ctypes.CDLL(None, use_errno=True)
threading.Thread(target=lambda: None).start()
mmap.mmap(-1, 4096)
class I(ctypes.Structure): _fields_ = [('b', ctypes.c_void_p), ('l', ctypes.c_size_t)]
source, target = ctypes.create_string_buffer(b'word'), ctypes.create_string_buffer(4)
a, b = I(ctypes.addressof(target), 4), I(ctypes.addressof(source), 4)
assert c.process_vm_readv(os.getpid(), ctypes.byref(a), 1, ctypes.byref(b), 1, 0) == 4, ctypes.get_errno()
assert target.raw == b'word'
child = os.fork()
if child == 0: os._exit(0 if c.ptrace(0, 0, None, None) == 0 else 1)
assert os.waitpid(child, 0)[1] == 0
print([line.split()[1] for line in open('/proc/self/status') if line.startswith(('NoNewPrivs', 'Seccomp:'))])
";
        assert_eq!(filtered(script), "['1', '2']\n");
    }

    /// The security review's M8, where no cgroup counts.
    #[test]
    fn a_user_of_its_own_has_no_more_processes_than_it_may() {
        if !nix::unistd::geteuid().is_root() {
            danlu_testkit::skip("only root becomes another user");
            return;
        }
        let user = danlu_core::launch::UnixUser {
            name: "crowd".to_owned(),
            uid: 399_871,
            gid: 399_871,
            groups: Vec::new(),
            home: "/".into(),
        };
        let mut command = Command::new("sh");
        command.args(["-c", "for i in 1 2 3 4 5 6; do cat & done; echo all"]).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let become_user = Some(Arc::new(UnixIdentity::of(&user, &[])));
        prepare(&mut command, ChildSetup { become_user, processes: Some(4), ..setup(ChildPlacement::Group) });
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("fork"), "{output:?}");
    }

    #[test]
    fn a_group_that_cannot_be_joined_fails_the_start() {
        let mut command = Command::new("true");
        let join = Arc::from([File::open("/dev/null").unwrap()]);
        prepare(&mut command, ChildSetup { join, ..setup(ChildPlacement::Group) });
        assert!(command.spawn().is_err());
    }
}
