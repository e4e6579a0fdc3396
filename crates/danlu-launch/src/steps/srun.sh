#!/bin/sh
# `srun` in a job of Danlu's: has tasks of the job run a command, waits for all, and ends as the first that failed.
# Laid down by Danlu.
# Before any name of our own covers one of the job's.
danlu_environment=$(export -p)
here=$DANLU_RUN_DIR/slurm
steps=$DANLU_STEPS_DIR
complain() {
    echo "srun: $1" >&2
    exit 1
}
# The tasks get the same signals; how they end is what counts.
trap : TERM INT HUP USR1 USR2

nodes='' tasks='' per_node='' gpus=${SLURM_GPUS_PER_TASK-} list='' folder=$PWD
while [ $# -gt 0 ]; do
    case $1 in
    --) shift && break ;;
    --*=*) option=${1%%=*} value=${1#*=} taken=1 ;;
    -[nNwDcpAtJoeimGxCqTMBWr]?*) option=$(printf %.2s "$1") value=${1#??} taken=1 ;;
    -*) option=$1 value=${2-} taken=2 ;;
    *) break ;;
    esac
    case $option in
    -n | --ntasks) tasks=$value ;;
    -N | --nodes) nodes=${value%%-*} ;;
    --ntasks-per-node) per_node=$value ;;
    -w | --nodelist) list=$value ;;
    -D | --chdir) folder=$value ;;
    --gpus-per-task) gpus=${value##*:} ;;
    --multi-prog | --het-group | --pack-group) complain "\`$option\` is not possible: all tasks of a step are alike" ;;
    --container-*) complain "\`$option\` is not possible: jobs run with the node's own programs" ;;
    # Without a value of their own.
    -[lKuvQOksEIH] | -K[01] | --label | --unbuffered | --verbose | --quiet | --exclusive | --exclusive=* | --overlap | \
        --exact | --overcommit | --oversubscribe | --no-kill | --kill-on-bad-exit | --kill-on-bad-exit=* | --pty | \
        --propagate | --immediate | --whole | --nice | --nice=* | --preserve-env | --disable-status) taken=1 ;;
    # How and where a task runs is Danlu's affair.
    -[cpAtJoeimGxCqTMBWr] | --cpus-per-task | --cpus-per-gpu | --cpu-bind | --cpu_bind | --gpu-bind | --mem-bind | --mem | \
        --mem-per-cpu | --mem-per-gpu | --gres | --gpus | --gpus-per-node | --time | --partition | --account | \
        --job-name | --output | --error | --input | --mpi | --distribution | --exclude | --constraint | --qos | \
        --export | --threads-per-core | --ntasks-per-socket | --ntasks-per-core | --ntasks-per-gpu | --hint | \
        --wait | --relative | --jobid | --reservation | --network | --open-mode | --tres-per-task | --comment | \
        --gres-flags | --gpu-freq | --cpu-freq | --signal | --acctg-freq | --extra-node-info | --resv-ports) ;;
    *) complain "Danlu does not know the option \`$option\`" ;;
    esac
    [ "$taken" -le $# ] || complain "\`$option\` lacks its value"
    shift "$taken"
done
[ $# -gt 0 ] || complain 'there is nothing to run'
for number in "$nodes" "$tasks" "$per_node" "$gpus"; do
    case $number in *[!0-9]* | 0) complain "\`$number\` is no number of nodes, tasks or devices" ;; esac
done

# Which of the job's nodes, by their numbers.
each=$((DANLU_WORLD_SIZE / DANLU_WORKERS))
chosen=''
if [ -n "$list" ]; then
    for name in $(echo "$list" | tr , ' '); do
        place=0 found=''
        for host in $(echo "$SLURM_JOB_NODELIST" | tr , ' '); do
            [ -n "$found" ] || [ "$host" != "$name" ] || found=$place
            place=$((place + 1))
        done
        [ -n "$found" ] || complain "the job has no node \`$name\`; it has $SLURM_JOB_NODELIST"
        chosen="$chosen $found"
    done
else
    [ -n "$nodes" ] || nodes=$DANLU_WORKERS
    [ -z "$tasks" ] || [ "$tasks" -ge "$nodes" ] || nodes=$tasks
    [ "$nodes" -le "$DANLU_WORKERS" ] || complain "the job has $DANLU_WORKERS nodes, not $nodes"
    place=0
    while [ "$place" -lt "$nodes" ]; do
        chosen="$chosen $place"
        place=$((place + 1))
    done
fi
# shellcheck disable=SC2086 # numbers
nodes=$(set -- $chosen && echo $#)
if [ -z "$per_node" ]; then
    if [ -n "$tasks" ]; then per_node=$(((tasks + nodes - 1) / nodes)); else per_node=$each; fi
fi
[ -n "$tasks" ] || tasks=$((nodes * per_node))
[ "$per_node" -le "$each" ] ||
    complain "$per_node tasks on a node are more than the $each that the job has: \`#SBATCH --ntasks-per-node=$per_node\` asks for them"

# A step: what to run, and who. The others look for \`ready\`.
[ -d "$steps" ] || complain "the folder \`$steps\` is gone"
number=1
until mkdir "$steps/$number" 2> /dev/null; do number=$((number + 1)); done
step=$steps/$number
layout=$per_node
[ "$nodes" = 1 ] || layout="$per_node(x$nodes)"
{
    echo "$danlu_environment"
    cat << END
export SLURM_STEP_ID='$((number - 1))' SLURM_STEPID='$((number - 1))' SLURM_GPUS_PER_TASK='$gpus'
export SLURM_NTASKS='$tasks' SLURM_NPROCS='$tasks' SLURM_STEP_NUM_TASKS='$tasks'
export SLURM_NNODES='$nodes' SLURM_STEP_NUM_NODES='$nodes' SLURM_STEP_TASKS_PER_NODE='$layout'
export SLURM_STEP_NODELIST='${list:-$SLURM_JOB_NODELIST}'
END
} > "$step/environment"
echo "$folder" > "$step/folder"
{
    printf exec
    for word in "$@"; do
        printf " '"
        printf '%s' "$word" | sed "s/'/'\\\\''/g"
        printf "'"
    done
    echo
} > "$step/command"
task=0 node=0 own=''
for place in $chosen; do
    local_task=0
    while [ "$local_task" -lt "$per_node" ] && [ "$task" -lt "$tasks" ]; do
        rank=$((place * each + local_task))
        echo "$rank $task $local_task $node"
        task=$((task + 1)) local_task=$((local_task + 1))
    done
    node=$((node + 1))
done > "$step/tasks"
tasks=$task
: > "$step/ready"
own=$(sed -n 's/^0 //p' "$step/tasks")
# shellcheck disable=SC2086 # three numbers
[ -z "$own" ] || sh "$here/task" "$step" $own &

failed=0 naps=0
while :; do
    ended=0 task=0
    while [ "$task" -lt "$tasks" ]; do
        if [ -e "$step/exit.$task" ]; then
            ended=$((ended + 1))
            code=$(cat "$step/exit.$task")
            if [ "$code" != 0 ] && [ "$failed" = 0 ]; then
                failed=$code
                echo "srun: task $task ended with code $code; the others are ended" >&2
                : > "$step/kill"
            fi
        fi
        task=$((task + 1))
    done
    [ "$ended" -lt "$tasks" ] || exit "$failed"
    naps=$((naps + 1))
    if [ "$naps" -lt 50 ]; then sleep 0.1; else sleep 1; fi
done
