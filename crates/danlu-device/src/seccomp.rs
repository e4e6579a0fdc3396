//! The filter of system calls for programs of jobs: what no training needs and what attacks on the kernel begin with is refused
//! with "operation not permitted". Everything else is left as it is.
//!
//! Left on purpose: `ptrace` and `process_vm_readv` (debuggers and profilers within the job; MPI copies between its ranks that
//! way), `perf_event_open` and `io_uring` (profilers and data loaders; the machine's own settings govern both), `mount`,
//! `unshare` and `setns` for whoever is not root (containers without root). See ADR 27.

use nix::libc::{self, c_long, sock_filter};

/// For everybody.
const REFUSED: &[c_long] = &[
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_bpf,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// For programs that run as root: other users may do this only in namespaces of their own, where the kernel asks.
const REFUSED_TO_ROOT: &[c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_chroot,
];

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// Numbers of the x32 interface have this bit: the same calls by other names.
const X32_BIT: u32 = 0x4000_0000;

// `struct seccomp_data`: the number of the call, then the architecture.
const AT_NUMBER: u32 = 0;
const AT_ARCHITECTURE: u32 = 4;

const LOAD: u16 = operation(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS);
const JUMP_IF_EQUAL: u16 = operation(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
const JUMP_IF_NOT_BELOW: u16 = operation(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K);
const RETURN: u16 = operation(libc::BPF_RET | libc::BPF_K);

#[expect(
    clippy::cast_possible_truncation,
    reason = "operations have 16 bits; the constants are of the type of others"
)]
const fn operation(code: u32) -> u16 {
    code as u16
}

/// A filter as the kernel takes it.
#[derive(Clone)]
pub struct Filter(pub(crate) Vec<sock_filter>);

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Filter of {} instructions", self.0.len())
    }
}

impl Filter {
    /// For programs that run as root, or as somebody else; none where the kernel has no filters, or other calls than we know.
    pub fn new(for_root: bool) -> Option<Self> {
        let architecture = ARCHITECTURE?;
        if !std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nSeccomp:")) {
            return None;
        }
        let refused: Vec<c_long> =
            REFUSED.iter().chain(REFUSED_TO_ROOT.iter().filter(|_| for_root)).copied().collect();
        let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
        let refuse = step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned());
        let mut program = vec![
            step(LOAD, 0, 0, AT_ARCHITECTURE),
            // Programs for 32 bits have other numbers for the same calls, so they have none at all.
            step(JUMP_IF_EQUAL, 1, 0, architecture),
            step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()),
            step(LOAD, 0, 0, AT_NUMBER),
        ];
        if cfg!(target_arch = "x86_64") {
            program.push(step(JUMP_IF_NOT_BELOW, 0, 1, X32_BIT));
            program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()));
        }
        for call in refused {
            program.push(step(JUMP_IF_EQUAL, 0, 1, u32::try_from(call).ok()?));
            program.push(refuse);
        }
        program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
        Some(Filter(program))
    }
}
