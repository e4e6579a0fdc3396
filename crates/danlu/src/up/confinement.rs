//! Which of the rules for programs of jobs hold on this machine, said once at the start.

use std::path::{Path, PathBuf};

use danlu_core::launch::{is_passed_on, is_proxy_with_user};
use danlu_device::cgroup::Groups;
use danlu_device::device_files;
use danlu_device::landlock;
use danlu_device::seccomp::Filter;

pub(super) fn tell_of_system_calls(restricted: bool) {
    if !restricted {
        tracing::warn!(
            "programs of jobs may gain privileges and use all system calls (`--unrestricted-jobs`)"
        );
    } else if Filter::new(false).is_none() {
        tracing::warn!(
            "programs of jobs gain no privileges; their system calls cannot be filtered on this machine"
        );
    } else {
        tracing::info!(
            "programs of jobs gain no privileges, and system calls that no training needs are refused"
        );
    }
}

pub(super) fn tell_of_processes(most: u64, own_users: bool) {
    if Groups::detect().holds_processes() {
        return;
    }
    let why = "no writable cgroup controller `pids`";
    if own_users {
        tracing::warn!("{why}: all workers of an account together are held to {most} processes");
    } else {
        tracing::warn!("a worker is not held to {most} processes: {why}");
    }
}

pub(super) fn tell_of_devices(closed: bool) {
    if closed && device_files::any() && !Groups::detect().closes_devices() {
        tracing::warn!(
            "programs of jobs can open devices that they were not given: only root closes them, through cgroups"
        );
    }
}

pub(super) fn tell_of_proxies(further: &[String]) {
    for (name, value) in std::env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        if is_proxy_with_user(&name, &value)
            && is_passed_on(&name, "", further)
            && !is_passed_on(&name, &value, further)
        {
            tracing::warn!(
                "jobs are not given `{name}`: it names a user of the proxy, and perhaps a password; \
                 `--pass-environment {name}` gives it to them"
            );
        }
    }
}

/// Whether the data folder is closed to programs that run as the server's own user.
pub(super) fn closes_data(data: &Path, asked_to_be_open: bool) -> bool {
    const OPEN: &str = "programs of jobs can read the data folder, with the token and the keys in it";
    if asked_to_be_open {
        tracing::warn!("{OPEN} (`--open-data-folder`, `--unrestricted-jobs`)");
        return false;
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let obstacle = landlock::obstacle(data, home.as_deref());
    match &obstacle {
        None => tracing::info!(
            "the data folder is closed to programs of jobs but for what is their own, and they cannot mount file systems \
             (`--open-data-folder` lets them)"
        ),
        Some(obstacle) => tracing::info!("{OPEN}: {obstacle}; `--unix-users` keeps them out"),
    }
    obstacle.is_none()
}
