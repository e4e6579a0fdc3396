use std::fs::{self, File};
use std::process::{Command, Stdio};

use danlu_types::{AttemptNumber, Bytes, Cpus, JobId, WorkerIndex};

use super::*;
use crate::spawn::{ChildPlacement, ChildSetup, prepare};

fn limits() -> Limits {
    Limits {
        cpus: Cpus { milli: 1500 },
        memory: Some(Bytes(64 << 20)),
        shared_memory: None,
        processes: Some(500),
    }
}

fn text(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn the_name_of_a_group_is_that_of_its_data_folder_and_worker() {
    let worker = WorkerId { job: JobId(7), attempt: AttemptNumber(1), worker: WorkerIndex(0) };
    let here = worker_group_name(Path::new("/var/lib/danlu"), worker);
    assert_eq!(here, worker_group_name(Path::new("/var/lib/danlu"), worker));
    assert_ne!(here, worker_group_name(Path::new("/srv/danlu"), worker));
    assert!(here.ends_with(&format!("/{worker}")), "{here}");
}

#[test]
fn v1_writes_each_limit_into_its_hierarchy() {
    let root = tempfile::tempdir().unwrap();
    for controller in ["cpu", "memory", "pids", "unified"] {
        fs::create_dir(root.path().join(controller)).unwrap();
    }
    let groups = Groups::at(root.path());
    assert_eq!(groups.limitation(), None);
    let group = create(&groups, "danlu-x/1", &limits(), &[]).unwrap();
    assert_eq!(text(root.path().join("cpu/danlu-x/1/cpu.cfs_quota_us")), "150000");
    assert_ne!(text(root.path().join("cpu/danlu-x/cpu.shares")), "");
    assert_eq!(text(root.path().join("memory/danlu-x/1/memory.limit_in_bytes")), "67108864");
    assert_eq!(text(root.path().join("pids/danlu-x/1/pids.max")), "500");
    assert_eq!(group.procs_files().len(), 4);
    fs::write(root.path().join("memory/danlu-x/1/memory.oom_control"), "under_oom 0\noom_kill 2\n").unwrap();
    assert_eq!(open(&groups, "danlu-x/1").unwrap().oom_kills(), 2);
    assert!(open(&groups, "danlu-x/2").is_none());
}

#[test]
fn v2_hands_controllers_down_to_the_leaf() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("cgroup.controllers"), "cpuset cpu io memory pids\n").unwrap();
    fs::write(root.path().join("cgroup.procs"), "").unwrap();
    let groups = Groups::at(root.path());
    assert_eq!(groups.limitation(), None);
    create(&groups, "danlu-x/1", &limits(), &[]).unwrap();
    assert_eq!(text(root.path().join("cgroup.subtree_control")), "+cpu +memory +pids");
    assert_eq!(text(root.path().join("danlu-x/cgroup.subtree_control")), "+cpu +memory +pids");
    assert_eq!(text(root.path().join("danlu-x/1/pids.max")), "500");
    assert_eq!(text(root.path().join("danlu-x/1/cpu.max")), "150000 100000");
    assert_eq!(text(root.path().join("danlu-x/1/memory.max")), "67108864");
}

#[test]
fn without_controllers_the_group_is_empty_and_says_why() {
    let root = tempfile::tempdir().unwrap();
    let groups = Groups::at(root.path());
    assert!(groups.limitation().unwrap().contains("processor and memory limits are not enforced"));
    let group = create(&groups, "danlu-x/1", &limits(), &[]).unwrap();
    assert!(group.is_empty_handed() && group.processes().is_empty());
    group.kill().unwrap();
    group.remove().unwrap();
}

#[test]
fn a_real_group_holds_kills_and_goes_away() {
    let groups = Groups::detect();
    if let Some(limitation) = groups.limitation() {
        danlu_testkit::skip(&limitation);
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let worker = WorkerId { job: JobId(1), attempt: AttemptNumber(1), worker: WorkerIndex(0) };
    let name = worker_group_name(data.path(), worker);
    let group = create(&groups, &name, &limits(), &[]).unwrap();
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped());
    let join = group.join_files().unwrap();
    prepare(
        &mut command,
        ChildSetup {
            place: ChildPlacement::Group,
            join,
            die_with_parent: true,
            ..ChildSetup::of(ChildPlacement::Group)
        },
    );
    let mut child = command.spawn().unwrap();
    assert_eq!(group.processes(), vec![i32::try_from(child.id()).unwrap()]);
    assert_eq!(group.remove().unwrap_err().kind(), io::ErrorKind::ResourceBusy);
    group.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    group.remove().unwrap();
    assert!(open(&groups, &name).is_none());
    for folder in group.procs_files() {
        let _ = fs::remove_dir(folder.parent().unwrap().parent().unwrap());
    }
}

/// The security review's M7, by each way there is; the files of zeros stand for those of accelerators.
#[test]
fn device_files_are_closed_to_a_real_group() {
    if !nix::unistd::geteuid().is_root() {
        danlu_testkit::skip("only root closes device files");
        return;
    }
    let detected = Groups::detect();
    let mut ways = vec![detected];
    // A machine with both versions has two ways.
    let unified = Path::new("/sys/fs/cgroup/unified");
    if unified.is_dir() {
        ways.push(Groups::at(unified));
    }
    let zeros = DeviceNumber { major: 1, minor: 5 };
    let data = tempfile::tempdir().unwrap();
    for (way, groups) in ways.iter().enumerate() {
        let worker = WorkerId { job: JobId(1), attempt: AttemptNumber(1), worker: WorkerIndex(0) };
        let name = worker_group_name(&data.path().join(way.to_string()), worker);
        let group = create(groups, &name, &limits(), &[zeros]).unwrap();
        let mut command = Command::new("sh");
        let script = "for f in /dev/zero /dev/null /dev/full; do head -c0 $f 2>/dev/null && echo $f; done; exec 9>/dev/zero";
        command.args(["-c", script]).stdin(Stdio::null());
        let join = group.join_files().unwrap();
        let place = ChildSetup { join, die_with_parent: true, ..ChildSetup::of(ChildPlacement::Group) };
        prepare(&mut command, place);
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "/dev/null\n/dev/full\n", "{groups:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("not permitted"), "{output:?}");
        assert!(File::open("/dev/zero").is_ok(), "only members of the group are refused");
        group.remove().unwrap();
        for folder in group.procs_files() {
            let _ = fs::remove_dir(folder.parent().unwrap().parent().unwrap());
        }
    }
}

#[test]
fn the_group_of_a_data_folder_is_removed_only_when_it_is_empty() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("unified")).unwrap();
    let groups = Groups::at(root.path());
    let name = folder_group_name(Path::new("/var/lib/danlu"));
    let folder = root.path().join("unified").join(&name);
    fs::create_dir_all(folder.join("7.1.0")).unwrap();
    open(&groups, &name).unwrap().remove_if_empty();
    assert!(folder.join("7.1.0").is_dir());
    fs::remove_dir(folder.join("7.1.0")).unwrap();
    open(&groups, &name).unwrap().remove_if_empty();
    assert!(!folder.exists());
}
