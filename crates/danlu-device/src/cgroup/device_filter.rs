//! Device files that are closed to a group of the second version: a program of BPF that the kernel asks at each opening.
//!
//! The program is a list of comparisons, made by hand, as the filter of system calls is. It stays with the group until that is
//! removed, and what others have attached further up goes on to hold.

#![expect(unsafe_code, reason = "bpf() has no wrapper, and takes addresses as numbers")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::libc;

use crate::device_files::DeviceNumber;

// `enum bpf_cmd`, `enum bpf_prog_type`, `enum bpf_attach_type` of linux/bpf.h.
const PROG_LOAD: libc::c_int = 5;
const PROG_ATTACH: libc::c_int = 8;
const TYPE_CGROUP_DEVICE: u32 = 15;
const ATTACH_CGROUP_DEVICE: u32 = 6;
/// Programs of groups further up, such as systemd's, stay.
const ALLOW_MULTI: u32 = 2;

/// `struct bpf_insn`; the registers share a byte, source above destination.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

const LOAD_WORD: u8 = 0x61;
const AND: u8 = 0x57;
const SET: u8 = 0xb7;
const JUMP_UNLESS_EQUAL: u8 = 0x55;
const EXIT: u8 = 0x95;

// `struct bpf_cgroup_dev_ctx`: what is done to which type, and the file's number.
const AT_TYPE: i16 = 0;
const AT_MAJOR: i16 = 4;
const AT_MINOR: i16 = 8;
const TYPE_MASK: i32 = 0xffff;
const CHARACTER_DEVICE: i32 = 2;

/// Answers 0 (refuse) for the files named and 1 for all others.
fn program(closed: &[DeviceNumber]) -> io::Result<Vec<Instruction>> {
    let step = |code, to: u8, from: u8, offset, immediate| Instruction {
        code,
        registers: from << 4 | to,
        offset,
        immediate,
    };
    let too_many = || io::Error::other("more devices than a program can compare");
    let length = i16::try_from(closed.len() * 4).map_err(|_| too_many())?;
    let mut program = vec![
        step(LOAD_WORD, 2, 1, AT_TYPE, 0),
        step(AND, 2, 0, 0, TYPE_MASK),
        step(LOAD_WORD, 3, 1, AT_MAJOR, 0),
        step(LOAD_WORD, 4, 1, AT_MINOR, 0),
        step(JUMP_UNLESS_EQUAL, 2, 0, length, CHARACTER_DEVICE),
    ];
    for number in closed {
        program.extend([
            step(JUMP_UNLESS_EQUAL, 3, 0, 3, number.major.cast_signed()),
            step(JUMP_UNLESS_EQUAL, 4, 0, 2, number.minor.cast_signed()),
            step(SET, 0, 0, 0, 0),
            step(EXIT, 0, 0, 0, 0),
        ]);
    }
    program.extend([step(SET, 0, 0, 0, 1), step(EXIT, 0, 0, 0, 0)]);
    Ok(program)
}

/// The beginning of `union bpf_attr` for loading; what is not named is zero.
#[repr(C)]
struct Load {
    kind: u32,
    length: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// The same for attaching.
#[repr(C)]
struct Attach {
    group: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

/// Closes these files to everybody who is in the group of this folder, and in groups below it.
pub(super) fn close(group: &Path, closed: &[DeviceNumber]) -> io::Result<()> {
    let program = program(closed)?;
    let load = Load {
        kind: TYPE_CGROUP_DEVICE,
        length: u32::try_from(program.len()).map_err(io::Error::other)?,
        instructions: program.as_ptr().expose_provenance() as u64,
        license: c"Apache-2.0".as_ptr().expose_provenance() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    let descriptor = bpf(PROG_LOAD, &load)?;
    // SAFETY: loading answers with a new descriptor, which nobody else has.
    let loaded = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let group = File::open(group)?;
    let attach = Attach {
        group: group.as_raw_fd().cast_unsigned(),
        program: loaded.as_raw_fd().cast_unsigned(),
        kind: ATTACH_CGROUP_DEVICE,
        flags: ALLOW_MULTI,
    };
    bpf(PROG_ATTACH, &attach)?;
    Ok(())
}

fn bpf<T>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_int> {
    // SAFETY: the kernel reads as many bytes as it is told from a value that lives until the call returns, and what that points to
    // (instructions, licence) is the caller's and lives longer. It writes to none of it.
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) };
    let answer = Errno::result(answer)?;
    libc::c_int::try_from(answer).map_err(io::Error::other)
}
