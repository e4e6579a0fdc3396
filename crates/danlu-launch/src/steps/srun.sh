#!/bin/sh
# `srun` in a job of Danlu: a step. Has tasks of the job run a command, waits for all, and ends as the first that failed.
# shellcheck disable=SC2034,SC2154 # shares its variables with `claims` and `options`
# Laid down by Danlu; which options there are is in `options`, made of the same table that scripts are checked with.
# Before any name of our own covers one of the job's.
danlu_environment=$(export -p)
here=$DANLU_RUN_DIR/slurm
steps=$DANLU_STEPS_DIR
# shellcheck source-path=SCRIPTDIR source=library.sh
. "$here/library"
# shellcheck source=/dev/null # made of the table of options
. "$here/options"
# shellcheck source-path=SCRIPTDIR source=claims.sh
. "$here/claims"
# The step's own streams may go to files; what `srun` itself says does not.
exec 4>&2
say() { echo "srun: $1" >&4; }
complain() {
    say "$1"
    exit 1
}
# Signals of whoever ends `srun`, such as `timeout`. When the job itself is ended, every process has got them already.
signals=0
pass_on() {
    [ ! -e "$here/ending" ] || return 0
    signals=$((signals + 1))
    echo "$1" > "$step/signal.new" && mv "$step/signal.new" "$step/signal.$signals"
}

nodes='' tasks='' per_node='' cpus_per_task=${SRUN_CPUS_PER_TASK-} list='' exclude='' relative=0 folder=$PWD
gpus='' gpus_per_node='' gpus_per_task=${SLURM_GPUS_PER_TASK-} tasks_per_gpu='' gpu_bind='' export_list=${SLURM_EXPORT_ENV-}
output='' error='' input='' open_mode=truncate label=${SLURM_LABELIO-} exact='' overlap='' overcommit='' immediate=''
kill_others=${SLURM_KILL_BAD_EXIT-1} wait_seconds=0 time_limit='' many_programs='' distribution=block
while [ $# -gt 0 ]; do
    value='' has_value=''
    case $1 in
    --) shift && break ;;
    --*=*) written=${1%%=*} value=${1#*=} has_value=1 ;;
    --*) written=$1 ;;
    -?*) written=$(printf %.2s "$1") ;;
    *) break ;;
    esac
    name='' argument=''
    option "$written" || complain "\`$written\` is not an option of \`srun\`"
    rest=''
    case $1 in
    --*) ;;
    -?) ;;
    # `-n4`, `-n=4`, and letters without values joined: `-lu`.
    *) if [ "$argument" = none ]; then rest=${1#??}; else value=${1#??} value=${value#=} has_value=1; fi ;;
    esac
    if [ "$argument" = needed ] && [ -z "$has_value" ]; then
        [ $# -gt 1 ] || complain "\`$written\` lacks its value"
        value=$2 && shift
    fi
    shift
    [ -z "$rest" ] || set -- "-$rest" "$@"
    case $name in
    refused) complain "\`$written\` is not possible: $reason" ;;
    ntasks) tasks=$value ;;
    nodes) nodes=${value%%-*} ;;
    ntasks-per-node) per_node=$value ;;
    nodelist) list=$value ;;
    exclude) exclude=$value ;;
    relative) relative=$value ;;
    chdir) folder=$value ;;
    cpus-per-task) cpus_per_task=$value ;;
    gres) gpus_per_node=$(devices_in "$value") ;;
    gpus-per-node) gpus_per_node=$(devices_in "gpu:$value") ;;
    gpus) gpus=$(devices_in "gpu:$value") ;;
    gpus-per-task) gpus_per_task=$(devices_in "gpu:$value") ;;
    tres-per-task)
        case $value in *gpu* | *npu*) gpus_per_task=$(devices_in "$value") ;; esac
        case ,$value in *,cpu[:=]*) cpus_per_task=${value#*cpu?} cpus_per_task=${cpus_per_task%%,*} ;; esac
        ;;
    ntasks-per-gpu) tasks_per_gpu=$value ;;
    gpu-bind) gpu_bind=${value#verbose,} ;;
    tres-bind) gpu_bind=${value#gres/gpu:} ;;
    export) export_list=$value ;;
    output) output=$value ;;
    error) error=$value ;;
    input) input=$value ;;
    open-mode) case $value in a*) open_mode=append ;; *) open_mode=truncate ;; esac ;;
    label) label=1 ;;
    exact | exclusive) exact=1 ;;
    overlap) overlap=1 ;;
    overcommit) overcommit=1 ;;
    immediate) immediate=${value:-1} ;;
    kill-on-bad-exit) kill_others=${value:-1} ;;
    wait) wait_seconds=$value ;;
    time) time_limit=$(seconds_of "$value") || complain "\`$value\` is no time: write minutes or hours:minutes:seconds" ;;
    multi-prog) many_programs=1 ;;
    distribution) distribution=$value ;;
    jobid) [ "$value" = "$SLURM_JOB_ID" ] || complain "a step of job $value cannot be started from job $SLURM_JOB_ID" ;;
    het-group) [ "$value" = 0 ] || complain 'a job has one part here: there is no group but 0' ;;
    version) echo 'slurm 22.05.0 (Danlu)' && exit 0 ;;
    help) echo 'srun [options] program [arguments]: see the guide of Danlu, docs/guide/slurm.md' && exit 0 ;;
    esac
done
[ $# -gt 0 ] || complain 'there is nothing to run'
for word in "$@"; do
    [ "$word" != : ] || complain "steps of unequal parts (\`:\`) are not possible: start each with an \`srun\` of its own, in the background"
done
[ -z "$many_programs" ] || [ -r "$1" ] || complain "the list of programs \`$1\` cannot be read"
for number in "$nodes" "$tasks" "$per_node" "$cpus_per_task" "$tasks_per_gpu"; do
    case $number in *[!0-9]* | 0) complain "\`$number\` is no number of nodes, tasks or cores" ;; esac
done
for number in "$gpus" "$gpus_per_node" "$gpus_per_task" "$relative" "$immediate" "$wait_seconds"; do
    case $number in *[!0-9]*) complain "\`$number\` is no number" ;; esac
done
[ -d "$steps" ] || complain "the folder \`$steps\` is gone"

lay_out
# A step has a folder: what to run, and who. The others look for `ready`.
number=1
[ ! -s "$steps/last" ] || read -r number < "$steps/last"
until mkdir "$steps/$number" 2> /dev/null; do number=$((number + 1)); done
echo "$number" > "$steps/last"
step=$steps/$number
SLURM_STEP_ID=$((number - 1))
# Before its tasks run, a signal just ends it. A whole group may get it, the programs that write a step's files as well.
trap 'rm -f "$step/held"; unlock; [ -e "$step/ready" ] || : > "$step/over"; [ -e "$step/over" ] || : > "$step/kill"' EXIT
trap 'exit 143' TERM INT HUP
claim

# What a step prints goes where its `srun` prints, as long as that is not the log: each task has one of its own there.
[ -e "/proc/$$/fd/0" ] || exec < /dev/null
absolute() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }
is_for_each() { case $1 in *%[0-9]*[tnN]* | *%[tnN]*) ;; *) false ;; esac; }
for stream in output error; do
    eval "wanted=\$$stream"
    eval "each_$stream=''"
    case $wanted in
    '' | all) continue ;;
    none) wanted=/dev/null ;;
    *[!0-9]*) wanted=$(absolute "$wanted") ;;
    *) eval "only_$stream=$wanted" && continue ;;
    esac
    if is_for_each "$wanted"; then
        eval "each_$stream=\$wanted"
        continue
    fi
    wanted=$(danlu_file "$wanted" 0 0 "${SLURMD_NODENAME-}")
    [ "$open_mode" = append ] || : > "$wanted" || complain "\`$wanted\` cannot be written"
    case $stream in
    output) exec >> "$wanted" && { [ -n "$error" ] || exec 2>&1; } ;;
    error) exec 2>> "$wanted" ;;
    esac
done
target() { readlink "/proc/$$/fd/$1" 2> /dev/null; }
collect_output='' collect_error=''
[ "$(target 1)" = "${DANLU_STDOUT-}" ] || collect_output=1
[ "$(target 2)" = "${DANLU_STDERR-}" ] || collect_error=1
[ -z "$collect_output$collect_error" ] || [ "$(target 1)" != "$(target 2)" ] || collect_error=same
exec 3<&0
case $input in
none) feed=none ;;
'' | all) if [ "$(target 0)" = /dev/null ]; then feed=none; elif [ "$ranks_chosen" = ' 0' ]; then feed=own; else feed=all; fi ;;
*[!0-9]*) feed="file $(absolute "$input")" ;;
*) feed="task $input" ;;
esac

layout=''
for count in $counts; do layout="$layout$count "; done
layout=$(echo "$layout" | tr ' ' '\n' | sed '/^$/d' | uniq -c | awk '{ printf "%s%s", sep, ($1 > 1 ? $2 "(x" $1 ")" : $2); sep = "," }')
{
    echo "$danlu_environment"
    cat << END
export SLURM_STEP_ID='$SLURM_STEP_ID' SLURM_STEPID='$SLURM_STEP_ID'
export SLURM_NTASKS='$tasks' SLURM_NPROCS='$tasks' SLURM_STEP_NUM_TASKS='$tasks'
export SLURM_NNODES='$nodes' SLURM_STEP_NUM_NODES='$nodes' SLURM_STEP_TASKS_PER_NODE='$layout' SLURM_TASKS_PER_NODE='$layout'
export SLURM_STEP_NODELIST='$names_chosen'
END
    [ -z "$cpus_per_task" ] || echo "export SLURM_CPUS_PER_TASK='$cpus_per_task'"
    [ -z "$gpus_per_task" ] || echo "export SLURM_GPUS_PER_TASK='$gpus_per_task'"
} > "$step/environment"
quoted() { printf "'" && printf '%s' "$1" | sed "s/'/'\\\\''/g" && printf "'"; }
# `--export=ALL,A=b` adds; without ALL, what is not named is taken away.
restricted='' kept=''
case $export_list in '') ;; ALL | ALL,* | *,ALL | *,ALL,*) ;; *) restricted=1 ;; esac
rest=$export_list,
while [ -n "${rest%,}" ]; do
    item=${rest%%,*} rest=${rest#*,}
    case $item in
    ALL | NONE | NIL | '') ;;
    *=*) kept="$kept ${item%%=*}" && echo "export ${item%%=*}=$(quoted "${item#*=}")" >> "$step/environment" ;;
    *) kept="$kept $item" ;;
    esac
done
[ -z "$restricted" ] || echo "$kept" > "$step/kept"
{
    echo "danlu_folder=$(quoted "$folder") danlu_label='$label' danlu_many_programs='$many_programs' danlu_open_mode='$open_mode'"
    echo "danlu_each_output=$(quoted "$each_output") danlu_each_error=$(quoted "$each_error") danlu_feed=$(quoted "$feed")"
    echo "danlu_only_output='${only_output-}' danlu_only_error='${only_error-}'"
    echo "danlu_collect_output='$collect_output' danlu_collect_error='$collect_error'"
} > "$step/settings"
# What bash exports of its functions has names that no other shell takes on.
functions=''
[ -n "$restricted$many_programs" ] || functions=$(tr '\n\000' '\001\n' < "/proc/$$/environ" | grep '^BASH_FUNC_[^=]*=')
{
    printf exec
    [ -z "$functions" ] || printf ' env'
    printf '%s\n' "$functions" | while IFS= read -r function; do
        [ -z "$function" ] || { printf ' ' && quoted "$(printf '%s' "$function" | tr '\001' '\n')"; }
    done
    for word in "$@"; do printf ' ' && quoted "$word"; done
    echo
} > "$step/command"
# Nobody ends the tasks of an `srun` that was killed outright, so this does.
(
    while kill -0 "$$" 2> /dev/null; do sleep 1; done
    [ -e "$step/over" ] || : > "$step/kill"
    rm -f "$step/held"
) < /dev/null > /dev/null 2>&1 3<&- 4>&- &
helpers=$!
: > "$step/ready"
for signal in TERM INT HUP USR1 USR2; do
    # shellcheck disable=SC2064 # the name of now
    trap "pass_on $signal" "$signal"
done
case $feed in
all | 'task '*)
    (cat <&3 > "$step/input" && : > "$step/input.whole") < /dev/null > /dev/null 2>&1 4>&- &
    helpers="$helpers $!"
    ;;
esac
# Tasks of the first rank are run here, and speak and read for themselves.
own=$(sed -n 's/^0 //p' "$step/tasks") owns=''
if [ -n "$own" ]; then
    while read -r task; do
        # shellcheck disable=SC2086 # four numbers and a list
        DANLU_OWN=1 sh "$here/task" "$step" $task <&3 4>&- &
        owns="$owns ${task%% *}:$!"
    done << END
$own
END
fi
exec 3<&-

# What other tasks wrote since the last look. Files of other nodes are seen when they are opened anew.
pump() {
    [ -s "$1" ] || return 0
    size=$(wc -c < "$1")
    eval "seen=\${seen_$2-0}"
    # shellcheck disable=SC2154 # set by the line above
    [ "$size" -gt "$seen" ] || return 0
    tail -c +"$((seen + 1))" "$1" | head -c "$((size - seen))" >&"$3"
    eval "seen_$2=\$size"
}
pump_all() {
    [ -n "$collect_output$collect_error" ] || return 0
    task=0
    while [ "$task" -lt "$tasks" ]; do
        pump "$step/output.$task" "output_$task" 1
        pump "$step/error.$task" "error_$task" 2
        task=$((task + 1))
    done
}
begun=$(date +%s) first_end=''
failed=0 naps=0
while :; do
    # `timeout` signals its whole group, and may kill what is not ready for it yet.
    for one in $owns; do
        [ -e "$step/exit.${one%:*}" ] || kill -0 "${one#*:}" 2> /dev/null || [ -e "$step/exit.${one%:*}" ] ||
            echo 143 > "$step/exit.${one%:*}"
    done
    ended=0 task=0
    while [ "$task" -lt "$tasks" ]; do
        if [ -e "$step/exit.$task" ]; then
            ended=$((ended + 1))
            read -r code < "$step/exit.$task"
            [ -n "$first_end" ] || first_end=$(date +%s)
            if [ "$code" != 0 ] && [ "$failed" = 0 ]; then
                failed=$code
                if [ "$kill_others" = 0 ] || [ "$tasks" = 1 ]; then
                    say "task $task ended with code $code"
                else
                    say "task $task ended with code $code; the others are ended"
                    : > "$step/kill"
                fi
            fi
        fi
        task=$((task + 1))
    done
    if [ "$ended" -ge "$tasks" ]; then
        pump_all
        : > "$step/over"
        for helper in $helpers; do danlu_signal_tree TERM "$helper" 2> /dev/null; done
        # On a busy machine they take a moment, and the launcher would name them as left behind by the script.
        for helper in $helpers; do wait "$helper" 2> /dev/null; done
        exit "$failed"
    fi
    pump_all
    if [ -n "$time_limit" ] && [ "$(($(date +%s) - begun))" -ge "$time_limit" ] && [ ! -e "$step/kill" ]; then
        say "the step's time is over; its tasks are ended"
        failed=143
        : > "$step/kill"
    fi
    if [ "$wait_seconds" -gt 0 ] && [ -n "$first_end" ] && [ "$(($(date +%s) - first_end))" -ge "$wait_seconds" ] && [ ! -e "$step/kill" ]; then
        say "the first task ended $wait_seconds seconds ago; the others are ended"
        : > "$step/kill"
    fi
    naps=$((naps + 1))
    if [ "$naps" -lt 50 ]; then sleep 0.1; else sleep 1; fi
done
