//! Options of `srun` in batch scripts: what steps hold, where they run, read and write, and how they are ended.

use danlu_core::job::WorkerEnd;
use danlu_core::launch::LaunchFile;
use danlu_types::{Cpus, NodeName, Rank, Span, WorkerIndex};

use crate::harness::{Bench, Launched};
use crate::steps::script;

/// What the ranks of one worker printed.
fn told(launched: &Launched, ranks: std::ops::Range<u32>) -> String {
    let of_rank = |rank: u32| format!("--- {rank}\n{}", launched.lines(rank).join("\n"));
    ranks.map(of_rank).collect::<Vec<_>>().join("\n")
}

/// All lines of a script's output in an order of their own, for steps that run beside each other.
fn sorted(launched: &Launched, ranks: std::ops::Range<u32>) -> String {
    let mut lines: Vec<String> = ranks.flat_map(|rank| launched.lines(rank)).collect();
    lines.sort();
    lines.join("\n")
}

fn run(ranks: u32, text: &str) -> (Bench, Launched) {
    let bench = Bench::new();
    let (launched, exit) = Launched::run(script(&bench, ranks, text));
    assert_eq!(exit, WorkerEnd::Succeeded, "{}", told(&launched, 0..ranks));
    (bench, launched)
}

#[test]
fn packed_steps_hold_devices_of_their_own() {
    // Each waits for the other, so that both run at once.
    let text = r#"
        mkfifo "$TMPDIR/a" "$TMPDIR/b"
        step() { srun -n1 --gres=gpu:1 --exclusive sh -c "$1"; }
        step 'echo > $TMPDIR/a; read word < $TMPDIR/b; echo "task $SLURM_PROCID sees $CUDA_VISIBLE_DEVICES"' &
        step 'read word < $TMPDIR/a; echo > $TMPDIR/b; echo "task $SLURM_PROCID sees $CUDA_VISIBLE_DEVICES"' &
        wait
        srun -n1 --gpus=1 --overlap sh -c 'echo "overlapping sees $CUDA_VISIBLE_DEVICES"'
        srun -n1 --gres=none sh -c 'echo "without sees ${CUDA_VISIBLE_DEVICES:-none}"'"#;
    let (_bench, launched) = run(2, text);
    insta::assert_snapshot!(sorted(&launched, 0..2), @r"
    overlapping sees 4
    task 0 sees 4
    task 0 sees 5
    without sees none
    ");
}

#[test]
fn steps_wait_for_what_others_hold() {
    let text = r#"
        for number in 1 2 3 4 5 6; do
            srun -n1 --gpus=1 --exact sh -c 'mkdir "$0/$CUDA_VISIBLE_DEVICES" && echo ran; rmdir "$0/$CUDA_VISIBLE_DEVICES"' "$TMPDIR" &
        done
        wait"#;
    let (_bench, launched) = run(2, text);
    let lines = sorted(&launched, 0..2);
    assert_eq!(lines.matches("ran").count(), 6, "{lines}");
    assert!(!lines.contains("exists"), "two steps had a device at once: {lines}");
}

#[test]
fn a_step_that_was_killed_gives_back_what_it_held() {
    let text = r#"
        mkfifo "$TMPDIR/ready"
        srun --exclusive sh -c 'echo > "$0/ready"; exec tail -f /dev/null' "$TMPDIR" &
        read word < "$TMPDIR/ready"
        kill -9 $!
        srun -n1 --exclusive --gpus=2 sh -c 'echo "after it: $CUDA_VISIBLE_DEVICES"'"#;
    let (_bench, launched) = run(2, text);
    assert!(sorted(&launched, 0..2).contains("after it: 4,5"), "{}", told(&launched, 0..2));
}

#[test]
fn output_goes_where_srun_says_or_is_sent() {
    let text = r#"
        exec 2>&1
        cd "$TMPDIR"
        srun -o all.txt sh -c 'echo "out $SLURM_PROCID"; echo "err $SLURM_PROCID" >&2'
        sort all.txt
        srun -o 'own-%j-%t.txt' -e 'err-%2t.txt' sh -c 'echo "mine $SLURM_PROCID"; echo "bad $SLURM_PROCID" >&2'
        head own-* err-*
        srun -o own-1-0.txt --open-mode=append -n1 echo more
        cat own-1-0.txt
        echo "captured: $(srun sh -c 'echo "word $SLURM_PROCID"' | sort | tr '\n' ' ')"
        srun -l sh -c 'echo labelled' | sort
        srun -o none echo nothing
        srun sh -c 'echo "in the log of rank $SLURM_PROCID"'"#;
    let (_bench, launched) = run(2, text);
    insta::assert_snapshot!(told(&launched, 0..2), @r"
    --- 0
    err 0
    err 1
    out 0
    out 1
    ==> own-1-0.txt <==
    mine 0

    ==> own-1-1.txt <==
    mine 1

    ==> err-00.txt <==
    bad 0

    ==> err-01.txt <==
    bad 1
    mine 0
    more
    captured: word 0 word 1 
    0: labelled
    1: labelled
    in the log of rank 0
    --- 1
    in the log of rank 1
    ");
}

#[test]
fn tasks_read_what_srun_reads() {
    let text = r#"
        cd "$TMPDIR"
        printf 'a\nb\n' | srun sh -c 'echo "$SLURM_PROCID read $(tr "\n" ,)"' | sort
        printf 'a\nb\n' | srun -i 1 sh -c 'echo "$SLURM_PROCID read $(tr "\n" ,)"' | sort
        echo own > in-1; echo first > in-0
        srun -i in-%t cat | sort
        echo one | srun -n1 cat
        printf 'x\ny\n' | while read -r word; do srun -n1 -i none echo "loop $word"; done"#;
    let (_bench, launched) = run(2, text);
    insta::assert_snapshot!(told(&launched, 0..1), @r"
    --- 0
    0 read a,b,
    1 read a,b,
    0 read 
    1 read a,b,
    first
    own
    one
    loop x
    loop y
    ");
}

#[test]
fn variables_are_exported_as_said() {
    let text = r#"
        export KEPT=kept LOST=lost
        tell='echo "$1 KEPT=$KEPT LOST=$LOST NEW=$NEW path ${PATH:+set} task $SLURM_PROCID"'
        srun -n1 sh -c "$tell" - default
        srun -n1 --export=ALL,NEW="it's" sh -c "$tell" - all
        srun -n1 -w "$SLURMD_NODENAME" --export=NONE sh -c "$tell" - none
        srun -n1 --export=KEPT,NEW=new sh -c "$tell" - some
        SLURM_EXPORT_ENV=NONE srun -n1 sh -c "$tell" - inherited"#;
    let (_bench, launched) = run(1, text);
    insta::assert_snapshot!(told(&launched, 0..1), @r"
    --- 0
    default KEPT=kept LOST=lost NEW= path set task 0
    all KEPT=kept LOST=lost NEW=it's path set task 0
    none KEPT= LOST= NEW= path set task 0
    some KEPT=kept LOST= NEW=new path set task 0
    inherited KEPT= LOST= NEW= path set task 0
    ");
}

#[test]
fn tasks_are_as_many_as_fit_and_are_numbered() {
    let text = r#"
        exec 2>&1
        tell='echo "$SLURM_PROCID of $SLURM_NTASKS, local $SLURM_LOCALID, sees $CUDA_VISIBLE_DEVICES"'
        srun -n4 sh -c "$tell" | sort; echo
        srun --ntasks-per-gpu=1 --gpus=2 sh -c "$tell" | sort; echo
        srun --tres-per-task=gres/gpu:1,cpu=2 -n2 sh -c "$tell" | sort; echo
        srun --tasks-per-node=2 --gpu-bind=map_gpu:1,0 sh -c "$tell" | sort; echo
        srun -n5 true; echo $?
        srun -n5 --overcommit echo "five" | wc -l
        srun -n2 -c3 true; echo $?
        srun --gpus=3 true; echo $?
        printf '0 echo zero %%t\n1-2 echo others %%t %%o\n' > "$TMPDIR/programs"
        srun -n3 --multi-prog "$TMPDIR/programs" | sort"#;
    let bench = Bench::new();
    let mut launch = script(&bench, 2, text);
    launch.limits.cpus = Cpus::whole(4);
    let (launched, exit) = Launched::run(launch);
    assert_eq!(exit, WorkerEnd::Succeeded);
    insta::assert_snapshot!(told(&launched, 0..1), @r"
    --- 0
    0 of 4, local 0, sees 4,5
    1 of 4, local 1, sees 4,5
    2 of 4, local 2, sees 4,5
    3 of 4, local 3, sees 4,5

    0 of 2, local 0, sees 4
    1 of 2, local 1, sees 5

    0 of 2, local 0, sees 4
    1 of 2, local 1, sees 5

    0 of 2, local 0, sees 5
    1 of 2, local 1, sees 4

    srun: 5 tasks on a node need 5 cores, and the job has 4: `#SBATCH --ntasks-per-node=5` asks for more, `srun --overcommit` does without
    1
    5
    0
    srun: the step asks for 3 devices of a node, and the job has 2
    1
    others 1 0
    others 2 1
    zero 0
    ");
}

/// Two workers at one address, as where both fit on a node.
fn of_two(bench: &Bench, index: u32, text: &str) -> LaunchFile {
    let mut launch = script(bench, 2, text);
    launch.worker.worker = WorkerIndex(index);
    launch.node = NodeName("the-node".to_owned());
    launch.folders.run = bench.path().join(format!("runs/1/1.{index}"));
    launch.gang.workers = 2;
    launch.env.insert("SHARED".to_owned(), bench.path().display().to_string());
    launch.world_size = 4;
    for rank in &mut launch.ranks {
        rank.rank = Rank(rank.rank.0 + 2 * index);
    }
    launch
}

#[test]
fn two_workers_of_one_node_have_names_of_their_own() {
    let bench = Bench::new();
    let text = r#"
        scontrol show hostnames
        tell='echo "worker $DANLU_WORKER: $SLURM_PROCID of $SLURM_NTASKS on node $SLURM_NODEID of $SLURM_NNODES, $SLURM_STEP_NODELIST"'
        for node in $(scontrol show hostnames); do srun -N1 -n1 -w "$node" sh -c "$tell" | cat; done
        srun -N2 -n2 -w "$SLURM_JOB_NODELIST" sh -c "$tell" | sort
        srun -n2 -w the-node,the-node sh -c "$tell" | sort
        srun -r1 sh -c "$tell" | sort
        srun -x "$(scontrol show hostnames | head -n 1)" -n1 sh -c "$tell" | cat
        srun -n3 -m cyclic sh -c "$tell" | sort
        mkfifo "$SHARED/a" "$SHARED/b"
        srun -N1 -n1 --exact --gpus=2 sh -c 'echo > "$0/a"; read word < "$0/b"; echo "packed: $SLURM_STEP_NODELIST"' "$SHARED" > "$SHARED/1" &
        srun -N1 -n1 --exact --gpus=2 sh -c 'read word < "$0/a"; echo > "$0/b"; echo "packed: $SLURM_STEP_NODELIST"' "$SHARED" > "$SHARED/2" &
        wait
        sort "$SHARED/1" "$SHARED/2""#;
    let (mut first, mut second) =
        (Launched::start(of_two(&bench, 0, text)), Launched::start(of_two(&bench, 1, text)));
    assert_eq!((first.exit(), second.exit()), (WorkerEnd::Succeeded, WorkerEnd::Succeeded));
    insta::assert_snapshot!(told(&first, 0..1), @r"
    --- 0
    127.0.0.1
    127.0.0.1-w1
    worker 0: 0 of 1 on node 0 of 1, 127.0.0.1
    worker 1: 0 of 1 on node 0 of 1, 127.0.0.1-w1
    worker 0: 0 of 2 on node 0 of 2, 127.0.0.1,127.0.0.1-w1
    worker 1: 1 of 2 on node 1 of 2, 127.0.0.1,127.0.0.1-w1
    worker 0: 0 of 2 on node 0 of 2, 127.0.0.1,127.0.0.1-w1
    worker 1: 1 of 2 on node 1 of 2, 127.0.0.1,127.0.0.1-w1
    worker 1: 0 of 2 on node 0 of 1, 127.0.0.1-w1
    worker 1: 1 of 2 on node 0 of 1, 127.0.0.1-w1
    worker 1: 0 of 1 on node 0 of 1, 127.0.0.1-w1
    worker 0: 0 of 3 on node 0 of 2, 127.0.0.1,127.0.0.1-w1
    worker 0: 2 of 3 on node 0 of 2, 127.0.0.1,127.0.0.1-w1
    worker 1: 1 of 3 on node 1 of 2, 127.0.0.1,127.0.0.1-w1
    packed: 127.0.0.1
    packed: 127.0.0.1-w1
    ");
}

#[test]
fn what_ends_srun_ends_its_tasks() {
    let bench = Bench::new();
    let text = r#"
        exec 2>&1
        srun sh -c 'echo > "$0/ready-$SLURM_PROCID"; tail -f /dev/null; echo never' "$SHARED" &
        pid=$!
        for number in 0 1 2 3; do read word < "$SHARED/ready-$number"; done
        kill -TERM $pid
        wait $pid
        echo "ended with $?"
        timeout 1 srun tail -f /dev/null
        echo "timeout ended with $?""#;
    for number in 0..4 {
        bench.fifo(&format!("ready-{number}"));
    }
    let (mut first, mut second) =
        (Launched::start(of_two(&bench, 0, text)), Launched::start(of_two(&bench, 1, text)));
    assert_eq!((first.exit(), second.exit()), (WorkerEnd::Succeeded, WorkerEnd::Succeeded));
    let lines = first.lines(0);
    assert!(lines.contains(&"ended with 143".to_owned()), "{lines:?}");
    assert!(lines.contains(&"timeout ended with 124".to_owned()), "{lines:?}");
}

#[test]
fn a_task_is_told_once_that_its_job_ends() {
    let bench = Bench::new();
    let ready = bench.fifo("ready");
    // As long as a second signal would take to come through files, and longer.
    let text = format!(
        "srun bash -c 'trap \"echo told; told=1\" TERM; echo > {}; until [ -n \"$told\" ]; do sleep 0.1; done; sleep 4'",
        ready.display(),
    );
    let mut launched = Launched::start(script(&bench, 1, &text));
    std::fs::read(&ready).unwrap();
    launched.order_stop(Span::from_seconds(60));
    assert_eq!(launched.exit(), WorkerEnd::Stopped);
    let told = launched.lines(0).iter().filter(|line| *line == "told").count();
    assert_eq!(told, 1, "{:?}", launched.lines(0));
}
