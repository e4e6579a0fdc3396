//! What programs of certain frameworks and other platforms find.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use danlu_core::job::{FailureCause, ProcessExit, WorkerEnd};
use danlu_core::launch::LaunchFile;
use danlu_types::{
    Bytes, Compat, Cpus, Device, DeviceKind, Framework, Health, NodeName, Rank, RankTableUse, Wiring,
    WorkerIndex,
};

use crate::harness::{Bench, Launched, is_gone};

#[test]
fn mindspores_scheduler_is_one_process_more_and_ends_with_the_ranks() {
    let bench = Bench::new();
    let fifo = bench.fifo("scheduler");
    let command = format!(
        "if [ $MS_ROLE = MS_SCHED ]; then echo serving ${{RANK-nobody}}; echo $$ > {0}; exec sleep 1000; fi; \
         [ $RANK = 1 ] || cat {0}",
        fifo.display()
    );
    let mut launch = bench.launch_file_of_ranks(2, &command);
    launch.framework = Framework::Mindspore;
    let (launched, exit) = Launched::run(launch);
    assert_eq!(exit, WorkerEnd::Succeeded);
    let scheduler: i32 = launched.lines(0)[0].parse().unwrap();
    assert!(is_gone(scheduler));
    let log = fs::read_to_string(launched.launch.folders.run.join("scheduler.log")).unwrap();
    assert!(log.contains("serving nobody"), "{log}");
}

#[test]
fn ranks_do_not_wait_for_a_scheduler_that_is_gone() {
    let bench = Bench::new();
    let mut launch =
        bench.launch_file_of_ranks(2, "if [ $MS_ROLE = MS_SCHED ]; then exit 9; fi; exec sleep 1000");
    launch.framework = Framework::Mindspore;
    let failure = Launched::start(launch).failure();
    assert_eq!((failure.cause, failure.exit), (FailureCause::Exit, Some(ProcessExit::Code(9))));
    assert!(failure.detail.contains("scheduler"), "{}", failure.detail);
}

#[test]
fn modelarts_script_runs_once_and_its_exports_reach_every_rank() {
    let bench = Bench::new();
    let work = bench.path().join("code");
    fs::create_dir(&work).unwrap();
    let script = "echo once >> times\nexport ASCEND_HOME=/opt/ascend RANK=99\n[[ -n $BASH_VERSION ]]";
    fs::write(work.join("ma-pre-start.sh"), script).unwrap();
    let command =
        r#"echo "$RANK $ASCEND_HOME $(cat times) $(ls $MA_MOUNT_PATH)"; touch $DLS_TRAIN_URL/model"#;
    let mut launch = bench.launch_file_of_ranks(2, command);
    launch.working_directory = Some(work);
    launch.options.compat = vec![Compat::Modelarts];
    let output = launch.folders.output.clone();
    let (launched, exit) = Launched::run(launch);
    assert_eq!(exit, WorkerEnd::Succeeded, "{:?}", launched.lines(0));
    assert_eq!(launched.lines(1).join(" "), "1 /opt/ascend once inputs log outputs user-job-dir");
    assert!(output.join("train_url_0/model").exists());
}

#[test]
fn a_script_of_modelarts_that_fails_is_named() {
    let bench = Bench::new();
    let work = bench.path().join("code");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("ma-pre-start.sh"), "echo no such wheel; return 3").unwrap();
    let mut launch = bench.launch_file("true");
    launch.working_directory = Some(work);
    let failure = Launched::start(launch).failure();
    assert_eq!((failure.cause, failure.exit), (FailureCause::SetupFailed, Some(ProcessExit::Code(3))));
    assert!(failure.detail.contains("`ma-pre-start.sh`"), "{}", failure.detail);
}

#[test]
fn a_host_file_lists_the_workers() {
    let bench = Bench::new();
    let mut launch = bench.launch_file_of_ranks(4, "cat $DANLU_HOSTFILE");
    launch.framework = Framework::Mpi;
    let (launched, _) = Launched::run(launch);
    assert_eq!(launched.lines(3), ["127.0.0.1 slots=4"]);
}

#[test]
fn ranks_of_a_worker_with_the_whole_machine_have_processors_of_their_own() {
    let bench = Bench::new();
    let machine = std::thread::available_parallelism().unwrap().get();
    if machine < 2 {
        return;
    }
    let command = "grep Cpus_allowed_list /proc/self/status | cut -f2; echo $OMP_NUM_THREADS";
    let mut launch = bench.launch_file_of_ranks(2, command);
    launch.limits.cpus = Cpus::whole(machine as u64);
    let (launched, _) = Launched::run(launch);
    let (first, second) = (launched.lines(0), launched.lines(1));
    assert_ne!(first[0], second[0]);
    assert_eq!(first[1], (machine / 2).to_string());
}

fn ascend(index: u32, address: Option<&str>) -> Device {
    Device {
        index,
        kind: DeviceKind::Ascend,
        model: "910B3".to_owned(),
        memory: Bytes(64 << 30),
        island: 0,
        health: Health::Ok,
        wiring: Wiring { address: address.map(|text| text.parse().unwrap()), ..Wiring::default() },
    }
}

/// One of two workers on nodes of their own, with one device each.
fn on_ascend(bench: &Bench, index: u32, address: Option<&str>) -> LaunchFile {
    let mut launch = bench.launch_file("cat $RANK_TABLE_FILE; echo rank $RANK_ID of $RANK_SIZE");
    launch.worker.worker = WorkerIndex(index);
    launch.node = NodeName(format!("node-{index}"));
    launch.folders.run = bench.path().join(format!("runs/1/1/{index}"));
    launch.gang.workers = 2;
    launch.ranks[0].rank = Rank(index);
    launch.world_size = 2;
    launch.framework = Framework::Pytorch;
    launch.devices = vec![ascend(index + 4, address)];
    launch.options.rank_table = RankTableUse::Always;
    launch
}

#[test]
fn all_workers_make_the_same_rank_table() {
    let bench = Bench::new();
    let mut first = Launched::start(on_ascend(&bench, 0, Some("192.168.4.1")));
    let mut second = Launched::start(on_ascend(&bench, 1, Some("192.168.5.2")));
    assert_eq!((first.exit(), second.exit()), (WorkerEnd::Succeeded, WorkerEnd::Succeeded));
    let (first, second) = (first.launch.folders.run.join("hccl.json"), second.lines(1));
    let table = fs::read_to_string(&first).unwrap();
    assert_eq!(second.last().unwrap(), "rank 1 of 2");
    assert_eq!(second[..second.len() - 1].join("\n").trim(), table.trim());
    for part in ["\"completed\"", "\"192.168.5.2\"", "\"node-1\""] {
        assert!(table.contains(part), "{part} is not in {table}");
    }
    let file = fs::symlink_metadata(&first).unwrap();
    assert!(file.is_file() && file.permissions().mode() & 0o777 == 0o644, "{file:?}");
}

#[test]
fn a_device_without_an_address_is_named_with_its_node() {
    let bench = Bench::new();
    let mut first = Launched::start(on_ascend(&bench, 0, Some("192.168.4.1")));
    let mut second = Launched::start(on_ascend(&bench, 1, None));
    let (first, second) = (first.failure(), second.failure());
    assert_eq!(first, second);
    assert_eq!(first.cause, FailureCause::StartFailed);
    assert!(first.detail.contains("node-1") && first.detail.contains("-i 5"), "{}", first.detail);
    assert!(first.detail.contains("hccn"), "{}", first.detail);
}

#[test]
fn apulis_finds_its_files_at_home() {
    let bench = Bench::new();
    let home = bench.path().join("home");
    fs::create_dir(&home).unwrap();
    let mut launch =
        bench.launch_file(". ./../pod.env; echo $DLWS_ROLE_NAME $POD_NAME; ls ~/.npu/$DLWS_JOB_ID");
    launch.env.insert("HOME".to_owned(), home.display().to_string());
    launch.devices = vec![ascend(0, Some("192.168.1.1"))];
    launch.options.compat = vec![Compat::Apulis];
    let (launched, exit) = Launched::run(launch);
    assert_eq!(exit, WorkerEnd::Succeeded, "{}", launched.launcher_log());
    let lines = launched.lines(0).join(" ");
    assert_eq!(lines, "worker 1-worker0 hccl_ms.json hccl_tf.json setup_environment_done");
}
