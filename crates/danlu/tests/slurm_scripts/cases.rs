//! The scripts, in the idioms that tutorials and sites teach.

pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Options, as `#SBATCH` lines have them.
    pub(crate) header: &'static str,
    pub(crate) body: &'static str,
    pub(crate) same: Same,
    /// Danlu is to put all its workers on one node, which Slurm has on nodes of their own.
    pub(crate) on_one_node: bool,
}

pub(crate) enum Same {
    Yes,
    /// Submission names the difference with these words, and this is printed instead.
    But {
        named: &'static str,
        prints: &'static str,
    },
}

const fn same(name: &'static str, header: &'static str, body: &'static str) -> Case {
    Case { name, header, body, same: Same::Yes, on_one_node: false }
}

/// Several nodes, each whole, so that Danlu's workers are on as many as Slurm's tasks.
pub(crate) static CASES: &[Case] = &[
    // Each waits until all run, so that no two can have had the same device in turn.
    same(
        "packed steps have devices of their own",
        "--nodes=1 --ntasks=4 --gres=gpu:4 --cpus-per-task=2",
        r#"
        for number in 1 2 3 4; do
            srun -n1 -N1 --mem=50M --gres=gpu:1 --exclusive bash -c '
                tell packed; echo "$CUDA_VISIBLE_DEVICES" > "device-$0"
                until [ "$(ls device-* | wc -l)" = 4 ]; do sleep 0.2; done' "$number" &
        done
        wait
        echo "$(cat device-* | sort -u | wc -l) devices in all""#,
    ),
    same(
        "exact steps wait for what others hold",
        "-N 1 -n 2 --gres=gpu:2",
        r#"
        for number in 1 2 3; do srun --exact --mem=50M -N1 -n1 --gpus=1 bash -c 'mkdir "d$CUDA_VISIBLE_DEVICES" && tell exact; sleep 0.3; rmdir "d$CUDA_VISIBLE_DEVICES"' & done
        wait"#,
    ),
    same(
        "variables are exported",
        "-N 1 -n 2",
        r#"
        export FOO=script GONE=script
        srun -n2 bash -c 'echo "$FOO ${GONE-unset}"'
        srun -n1 --export=ALL,NEW=new,OTHER=bar bash -c 'echo "$FOO $NEW $OTHER ${GONE-unset}"'
        srun -n1 --export=FOO /bin/bash -c 'echo "$FOO ${GONE-unset}"'
        srun -n1 --export=NONE /bin/bash -c 'echo "${FOO-unset} ${GONE-unset}"'"#,
    ),
    same(
        "output goes to files by pattern",
        "-N 1 -n 2",
        r#"
        srun -n2 -o 'out-%j-%t.txt' -e 'err-%2t.txt' bash -c 'echo "out $SLURM_PROCID"; echo "err $SLURM_PROCID" >&2'
        ls | grep -E '^(out|err)-' | sed "s/$SLURM_JOB_ID/JOB/"
        cat "out-$SLURM_JOB_ID-0.txt" "out-$SLURM_JOB_ID-1.txt" err-00.txt err-01.txt
        srun -n2 -o one-%N-%n.txt tell one; cat one-*-0.txt
        srun -n2 --output=both.txt bash -c 'echo to both; echo bad to both >&2'; cat both.txt
        srun -n1 -o both.txt --open-mode=append echo more; wc -l < both.txt
        srun -n2 -o /dev/null echo nothing; srun -n2 -o none echo nothing"#,
    ),
    same(
        "tasks read what srun reads",
        "-N 1 -n 2",
        r#"
        printf 'a\nb\n' | srun -n2 bash -c 'echo "read $(tr "\n" ,)"'
        printf 'a\nb\n' | srun -n2 -i none bash -c 'echo "read $(tr "\n" ,)"'
        srun -n1 cat <<< 'a here string'
        printf '1\n2\n' | while read -r word; do srun -n1 -i none echo "loop $word"; done"#,
    ),
    same(
        "steps go to the nodes that they name",
        "--nodes=2 --ntasks-per-node=1 --gres=gpu:8 --cpus-per-task=4",
        r#"
        scontrol show hostnames | wc -l
        scontrol show hostnames "$SLURM_JOB_NODELIST" | sort -u | wc -l
        nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
        here=$(srun -N1 -n1 -w "${nodes[0]}" bash -c 'echo $SLURMD_NODENAME')
        there=$(srun -N1 -n1 -w "${nodes[1]}" bash -c 'echo $SLURMD_NODENAME')
        [ "$here" != "$there" ] && echo "two nodes"
        [ "$here" = "$SLURMD_NODENAME" ] && echo "the first is where the script runs"
        [ "$(srun -r1 -N1 -n1 bash -c 'echo $SLURMD_NODENAME')" = "$there" ] && echo "-r1 is the second"
        [ "$(srun -x "${nodes[0]}" -N1 -n1 bash -c 'echo $SLURMD_NODENAME')" = "$there" ] && echo "-x leaves the second"
        srun -N2 -n2 -w "$SLURM_JOB_NODELIST" tell both
        srun --nodes=1 --ntasks=1 -w "${nodes[1]}" tell second
        srun -l -n2 echo labelled"#,
    ),
    // Each worker is a node to its script, and is found by the name that it has there.
    Case {
        on_one_node: true,
        ..same(
            "two workers on one node are told apart",
            "-N 2 --ntasks-per-node=1 --gres=gpu:2",
            r#"
            names=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
            who='echo "$SLURMD_NODENAME has $CUDA_VISIBLE_DEVICES"'
            for name in "${names[@]}"; do
                srun -N1 -n1 -w "$name" tell one
                srun -N1 -n1 -w "$name" bash -c "$who" >> each
            done
            echo "$(sort -u each | wc -l) by their names"
            srun -N2 -n2 -w "$SLURM_JOB_NODELIST" tell both
            srun -N2 -n2 -w "$SLURM_JOB_NODELIST" bash -c "$who" > both
            echo "$(sort -u both | wc -l) by their list"
            cmp <(sort each) <(sort both) && echo "the same two""#,
        )
    },
    same(
        "the first step on each node, as Ray is started",
        "--nodes=2 --ntasks-per-node=1 --gres=gpu:8 --cpus-per-task=8",
        r#"
        nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST"); array=($nodes)
        head=${array[0]}
        address=$(srun --nodes=1 --ntasks=1 -w "$head" hostname --ip-address)
        [ -n "$address" ] && echo "an address"
        srun --nodes=1 --ntasks=1 --overlap -w "$head" bash -c 'tell head; touch head; until [ -e over ]; do sleep 0.2; done' &
        for ((i = 1; i < SLURM_JOB_NUM_NODES; i++)); do
            srun --nodes=1 --ntasks=1 --overlap -w "${array[$i]}" bash -c 'tell worker; touch worker; until [ -e over ]; do sleep 0.2; done' &
        done
        until [ -e head ] && [ -e worker ]; do sleep 0.2; done
        touch over
        wait"#,
    ),
    same(
        "tasks by devices",
        "--nodes=1 --ntasks=2 --gres=gpu:2",
        r"
        srun --ntasks-per-gpu=1 --gpus=2 tell per-gpu
        srun -n2 --gpus-per-task=1 tell per-task",
    ),
    same(
        "two tasks on a node that was asked for without any",
        "-N 1 -c 4",
        "srun -n 2 -c 2 --cpu-bind=none tell two",
    ),
    same(
        "tasks per node by its other name",
        "-N 1 --tasks-per-node=3",
        "srun tell three; srun --tasks-per-node=3 -n3 tell again",
    ),
    Case {
        name: "tasks per node beside a header that counts tasks",
        header: "-N 1 -n 2",
        body: "srun --ntasks-per-node=1 tell one",
        same: Same::But {
            named: "`--ntasks-per-node=1` of `srun` is honoured; Slurm ignores it",
            prints: "one: task 0 of 1, local 0, node 0 of 1, gpus 0",
        },
        on_one_node: false,
    },
    same(
        "what ends srun ends its tasks",
        "-N 1 -n 2",
        r#"
        timeout 3 srun -n2 sleep 600; echo "timeout: $?"
        srun -n2 sleep 600 & pid=$!
        sleep 2; kill -TERM $pid; wait $pid; [ $? != 0 ] && echo ended
        trap 'echo "the script is told"' USR1; kill -USR1 $$"#,
    ),
    same(
        "exit codes",
        "-N 1 -n 2",
        r#"
        srun -n1 bash -c 'exit 3'; echo "one: $?"
        srun -n2 bash -c 'exit $SLURM_PROCID'; echo "the second: $?"
        srun -n2 bash -c '[ $SLURM_PROCID = 0 ] && exit 5; exit 5'; echo "both: $?"
        srun -n2 true && echo fine
        exit 7"#,
    ),
    same("set -e ends a script", "-N 1", "set -euo pipefail\necho before\nsrun -n1 false\necho after"),
    same(
        "many programs",
        "-N 1 -n 4",
        r"
        printf '0 echo first %%t\n1-2 echo middle %%t %%o\n3 echo last\n' > programs
        srun -n4 --multi-prog programs",
    ),
    same(
        "tasks in turn over nodes",
        "--nodes=2 --ntasks-per-node=2 --gres=gpu:8",
        "srun -m block tell block; srun -m cyclic tell cyclic; srun -N1 -n2 tell narrow",
    ),
    same(
        "what the script is told of itself",
        "--job-name=told --nodes=2 --ntasks-per-node=4 --cpus-per-task=2 --gres=gpu:8",
        r#"
        for name in SLURM_JOB_NAME SLURM_JOB_NUM_NODES SLURM_NNODES SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE \
            SLURM_CPUS_PER_TASK SLURM_CPUS_ON_NODE SLURM_JOB_CPUS_PER_NODE SLURM_GPUS_ON_NODE SLURM_PROCID SLURM_LOCALID SLURM_NODEID; do
            echo "$name=${!name-unset}"
        done
        [ "$SLURM_JOB_ID" = "$SLURM_JOBID" ] && echo "one number"
        [ "$PWD" = "$SLURM_SUBMIT_DIR" ] && echo "where it was submitted"
        [ "$SLURM_JOB_NODELIST" = "$SLURM_NODELIST" ] && echo "one list""#,
    ),
    same(
        "what tasks are told of their step",
        "--nodes=2 --ntasks-per-node=2 --cpus-per-task=2 --gres=gpu:8",
        r#"
        srun bash -c 'echo "$SLURM_STEP_ID $SLURM_STEP_NUM_TASKS $SLURM_STEP_NUM_NODES $SLURM_STEP_TASKS_PER_NODE $SLURM_NTASKS ${SLURM_GPUS_ON_NODE-}"'
        srun -N1 -n1 bash -c 'echo "$SLURM_STEP_ID $SLURM_STEPID $SLURM_NTASKS $SLURM_NNODES $SLURM_TASKS_PER_NODE"'"#,
    ),
    same(
        "torchrun on each node",
        "--nodes=2 --ntasks-per-node=1 --gpus-per-node=8 --cpus-per-task=16",
        r#"
        export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1) MASTER_PORT=29500
        [ -n "$MASTER_ADDR" ] && echo "a master"
        launch() { echo "$* rank $SLURM_NODEID of $SLURM_NNODES"; }; export -f launch
        srun bash -c 'launch torchrun --nnodes=$SLURM_NNODES --nproc_per_node=$SLURM_GPUS_ON_NODE'"#,
    ),
    same(
        "heredocs, functions and traps",
        "-N 1 -n 2",
        r#"
        trap 'echo cleaned' EXIT
        run() { srun -n2 "$@"; }
        run bash <<'END'
        echo "from a heredoc, if anybody read it"
END
        run bash -c 'echo "$0 $1" $SLURM_PROCID' 'two words' '$NOT expanded'
        out=$(srun -n1 bash -c 'echo captured') && echo "got $out"
        srun -n2 tell piped | sort | sed 's/^/through a pipe: /'"#,
    ),
    same("overcommitted tasks", "-N 1 -n 2", "srun --overcommit -n4 tell four"),
    same(
        "steps beside each other that say so",
        "-N 1 -n 2 -c 2",
        r"
        srun -n1 --overlap bash -c 'touch a; until [ -e b ]; do sleep 0.2; done; echo first' &
        srun -n1 --overlap bash -c 'until [ -e a ]; do sleep 0.2; done; touch b; echo second' &
        wait -n; wait; echo both",
    ),
    Case {
        name: "MPI is named",
        header: "-N 1 -n 2",
        body: "srun --mpi=pmi2 tell mpi",
        same: Same::But {
            named: "`--mpi` of `srun` is not honoured",
            prints: "mpi: task 0 of 2, local 0, node 0 of 1, gpus 0\nmpi: task 1 of 2, local 1, node 0 of 1, gpus 0",
        },
        on_one_node: false,
    },
];
