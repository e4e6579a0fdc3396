//! Batch scripts of Slurm's: the script once, what `srun` starts in every rank.

use danlu_core::job::{ProcessExit, WorkerEnd};
use danlu_core::launch::LaunchFile;
use danlu_types::{
    Bytes, Compat, Cpus, Device, DeviceKind, Health, NodeName, Rank, Span, Wiring, WorkerIndex,
};

use crate::harness::{Bench, Launched};

pub(crate) fn script(bench: &Bench, ranks: u32, text: &str) -> LaunchFile {
    let mut launch = bench.launch_file_of_ranks(ranks, &format!("#!/bin/bash\n{text}\n"));
    launch.options.compat = vec![Compat::Slurm];
    launch.limits.cpus = Cpus::whole(u64::from(ranks));
    let device = |index| Device {
        index,
        kind: DeviceKind::Nvidia,
        model: "A100".to_owned(),
        memory: Bytes(0),
        island: 0,
        health: Health::Ok,
        wiring: Wiring::default(),
    };
    launch.devices = (4..4 + ranks).map(device).collect();
    launch
}

#[test]
fn the_script_runs_once_and_srun_in_every_rank() {
    let bench = Bench::new();
    let text = r#"
        echo "script: task $SLURM_PROCID of $SLURM_NTASKS, RANK is ${RANK-unset}"
        export WORD="it's
two lines" name=mine nodes=mine
        cd /
        srun --label -u bash -c 'echo "task $SLURM_PROCID of $SLURM_NTASKS in $PWD sees $CUDA_VISIBLE_DEVICES: $WORD, $name, $nodes"' | sort -s -k 1,1
        srun --gpus-per-task=1 sh -c 'echo "own device $CUDA_VISIBLE_DEVICES"'
        one=$(srun --nodes=1 --ntasks 1 -w "$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)" echo the first)
        echo "only $one"
        (srun -n1 echo beside) &
        wait"#;
    let (launched, exit) = Launched::run(script(&bench, 3, text));
    let shown: Vec<String> =
        (0..3).map(|rank| format!("--- {rank}\n{}", launched.lines(rank).join("\n"))).collect();
    assert_eq!(exit, WorkerEnd::Succeeded, "{shown:?}");
    insta::assert_snapshot!(shown.join("\n"), @r"
    --- 0
    script: task 0 of 3, RANK is unset
    0: task 0 of 3 in / sees 4,5,6: it's
    0: two lines, mine, mine
    1: task 1 of 3 in / sees 4,5,6: it's
    1: two lines, mine, mine
    2: task 2 of 3 in / sees 4,5,6: it's
    2: two lines, mine, mine
    own device 4
    only the first
    beside
    --- 1
    own device 5
    --- 2
    own device 6
    ");
}

#[test]
fn the_first_task_that_fails_ends_the_step_and_the_script_goes_on() {
    let bench = Bench::new();
    let text = r#"srun sh -c '[ "$SLURM_PROCID" != 1 ] || exit 7; exec sleep 1000'; echo "srun ended with $?"; exit 3"#;
    let mut launched = Launched::start(script(&bench, 3, text));
    let failure = launched.failure();
    assert_eq!(failure.exit, Some(ProcessExit::Code(3)));
    assert!(launched.lines(0).contains(&"srun ended with 7".to_owned()), "{:?}", launched.lines(0));
}

#[test]
fn what_srun_cannot_do_it_says() {
    let bench = Bench::new();
    let text = r"
        exec 2>&1
        srun -n 4 true; echo $?
        srun --multi-prog tasks.conf; echo $?
        srun --container-image=x true; echo $?
        srun --no-such-option true; echo $?
        srun -w elsewhere true; echo $?
        srun -N 2 true; echo $?
        srun -n x true; echo $?
        srun; echo $?
        srun -n1 sh -c 'exit 5'; echo $?
        scontrol show job | head -n 2; scontrol show node; echo $?";
    let (launched, exit) = Launched::run(script(&bench, 2, text));
    assert_eq!(exit, WorkerEnd::Succeeded);
    insta::assert_snapshot!(launched.lines(0).join("\n"), @r"
    srun: 4 tasks on a node need 4 cores, and the job has 2: `#SBATCH --ntasks-per-node=4` asks for more, `srun --overcommit` does without
    1
    srun: the list of programs `tasks.conf` cannot be read
    1
    srun: `--container-image` is not possible: jobs run with the programs of their node
    1
    srun: `--no-such-option` is not an option of `srun`
    1
    srun: the job has no node `elsewhere`; it has 127.0.0.1
    1
    srun: the step asks for 2 nodes, and can have 1 of the job's 1
    1
    srun: `x` is no number of nodes, tasks or cores
    1
    srun: there is nothing to run
    1
    srun: task 0 ended with code 5
    5
    JobId=1 JobName=probe
       UserId=admin JobState=RUNNING Restarts=0
    scontrol: in a job of Danlu it can `show hostnames` and `show job`, and nothing else
    1
    ");
}

#[test]
fn tasks_have_time_to_save_when_the_job_is_stopped() {
    let bench = Bench::new();
    let ready = [bench.fifo("ready-0"), bench.fifo("ready-1")];
    let text = format!(
        "srun bash -c 'trap \"echo saved; exit 0\" TERM; echo > {}/ready-$SLURM_PROCID; while :; do sleep 0.01; done'",
        bench.path().display()
    );
    let mut launched = Launched::start(script(&bench, 2, &text));
    for fifo in &ready {
        std::fs::read(fifo).unwrap();
    }
    launched.order_stop(Span::from_seconds(30));
    assert_eq!(launched.exit(), WorkerEnd::Stopped);
    for rank in 0..2 {
        assert!(launched.lines(rank).contains(&"saved".to_owned()), "{:?}", launched.lines(rank));
    }
}

#[test]
fn ranks_of_other_workers_are_reached() {
    let bench = Bench::new();
    let text = r#"
        echo "$(scontrol show hostnames | wc -l) hosts, $SLURM_TASKS_PER_NODE"
        srun sh -c 'echo "task $SLURM_PROCID local $SLURM_LOCALID node $SLURM_NODEID of $SLURM_NNODES"'
        srun --ntasks-per-node=1 sh -c 'echo "one for each node: $SLURM_PROCID of $SLURM_NTASKS"'"#;
    let worker = |index: u32| {
        let mut launch = script(&bench, 2, text);
        launch.worker.worker = WorkerIndex(index);
        launch.node = NodeName(format!("node-{index}"));
        launch.folders.run = bench.path().join(format!("runs/1/1.{index}"));
        launch.gang.workers = 2;
        launch.world_size = 4;
        for rank in &mut launch.ranks {
            rank.rank = Rank(rank.rank.0 + 2 * index);
        }
        launch
    };
    let (mut first, mut second) = (Launched::start(worker(0)), Launched::start(worker(1)));
    assert_eq!((first.exit(), second.exit()), (WorkerEnd::Succeeded, WorkerEnd::Succeeded));
    let shown: Vec<String> = [(&first, 0), (&first, 1), (&second, 2), (&second, 3)]
        .iter()
        .map(|(launched, rank)| format!("--- {rank}\n{}", launched.lines(*rank).join("\n")))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    --- 0
    2 hosts, 2(x2)
    task 0 local 0 node 0 of 2
    one for each node: 0 of 2
    --- 1
    task 1 local 1 node 0 of 2
    --- 2
    task 2 local 0 node 1 of 2
    one for each node: 1 of 2
    --- 3
    task 3 local 1 node 1 of 2
    ");
}
