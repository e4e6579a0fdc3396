#!/bin/sh
# One task of a step of `srun`: STEP-FOLDER TASK LOCAL-TASK NODE DEVICES. Laid down by Danlu. Names of our own begin with
# `danlu_`: all others may be the job's.
trap : TERM INT HUP USR1 USR2
# Whatever becomes of this, `srun` hears that it ended.
danlu_code=70 danlu_exit=$1/exit.$2
trap 'echo "$danlu_code" > "$danlu_exit.new" && mv "$danlu_exit.new" "$danlu_exit"' EXIT
danlu_own='DANLU_RUN_DIR DANLU_WORKER DANLU_RANK DANLU_LOCAL_RANK DANLU_NODE DANLU_TOKEN DANLU_STDOUT DANLU_STDERR TMPDIR SLURM_TMPDIR
    SLURMD_NODENAME CUDA_VISIBLE_DEVICES ASCEND_RT_VISIBLE_DEVICES NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME HCCL_IF_IP
    SLURM_JOB_GPUS DANLU_OWN'
# The script's variables, but for those that say where one is.
for danlu_name in $danlu_own; do eval "danlu_own_$danlu_name=\${$danlu_name-}"; done
# shellcheck source=/dev/null # made for each step
. "$1/environment"
for danlu_name in $danlu_own; do eval "export $danlu_name=\"\$danlu_own_$danlu_name\""; done
danlu_is_own=${DANLU_OWN-}
unset DANLU_OWN
# shellcheck source-path=SCRIPTDIR source=library.sh
. "$DANLU_RUN_DIR/slurm/library"
danlu_folder='' danlu_label='' danlu_many_programs='' danlu_open_mode='' danlu_each_output='' danlu_each_error='' danlu_feed=''
danlu_only_output='' danlu_only_error='' danlu_collect_output='' danlu_collect_error=''
# shellcheck source=/dev/null # made for each step
. "$1/settings"

# The devices of the task, by their place among the worker's.
danlu_mine() {
    for danlu_place in $(echo "$1" | tr , ' '); do
        [ "$danlu_place" = - ] || echo "$2" | cut -d, -f "$((danlu_place + 1))"
    done | paste -s -d , -
}
for danlu_name in CUDA_VISIBLE_DEVICES ASCEND_RT_VISIBLE_DEVICES; do
    eval "danlu_all=\$$danlu_name"
    # shellcheck disable=SC2154 # set by the line above
    [ -z "$danlu_all" ] || export "$danlu_name=$(danlu_mine "$5" "$danlu_all")"
done
[ -z "${SLURM_JOB_GPUS-}" ] || SLURM_STEP_GPUS=$(danlu_mine "$5" "$SLURM_JOB_GPUS")
[ -z "${SLURM_JOB_GPUS-}" ] || export SLURM_STEP_GPUS
export SLURM_PROCID="$2" SLURM_LOCALID="$3" SLURM_NODEID="$4" SLURM_TASK_PID=$$

# What was not to be exported is taken away, but for what tells a program where it is.
danlu_restrict() {
    danlu_kept=" $(cat "$1") PATH HOME USER LOGNAME SHELL PWD OMP_NUM_THREADS $danlu_own "
    # shellcheck disable=SC2013 # names
    for danlu_name in $(awk 'BEGIN { for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/) print name }'); do
        case $danlu_name in SLURM_* | SLURMD_* | DANLU_*) continue ;; esac
        case $danlu_kept in *" $danlu_name "*) ;; *) unset "$danlu_name" ;; esac
    done
}
# The line of a file of programs that is this task's, with `%t` its number and `%o` its place in the line's range.
danlu_program_of() {
    awk -v task="$2" '
        /^[ \t]*(#|$)/ { next }
        {
            count = split($1, ranges, ","); offset = 0
            for (i = 1; i <= count; i++) {
                if (ranges[i] == "*") { first = 0; last = task } else { n = split(ranges[i], ends, "-"); first = ends[1]; last = ends[n] }
                if (task + 0 >= first + 0 && task + 0 <= last + 0) {
                    offset += task - first
                    sub(/^[ \t]*[^ \t]+[ \t]+/, ""); gsub(/%t/, task); gsub(/%o/, offset); gsub(/[$`]/, "\\\\&")
                    print; exit
                }
                offset += last - first + 1
            }
        }' "$1"
}
danlu_run() {
    cd "$danlu_folder" || exit 1
    [ ! -e "$1/kept" ] || danlu_restrict "$1/kept"
    if [ -z "$danlu_many_programs" ]; then
        # shellcheck source=/dev/null # made for each step
        . "$1/command"
    fi
    danlu_file_of_programs=$(sed "s/^exec '//; s/' .*//; s/'\$//" "$1/command")
    danlu_program=$(danlu_program_of "$danlu_file_of_programs" "$2")
    [ -n "$danlu_program" ] || { echo "srun: no line of \`$danlu_file_of_programs\` is for task $2" >&2 && exit 1; }
    set -f
    eval "exec $danlu_program"
}

# Where it reads and writes.
danlu_pipes=$(mktemp -d "${TMPDIR:-/tmp}/task.XXXXXX") || exit 70
danlu_helpers=''
case $danlu_feed in
own) danlu_input=/dev/fd/0 ;;
all | "task $2") danlu_input=$danlu_pipes/input ;;
'file '*) danlu_input=$(danlu_file "${danlu_feed#file }" "$2" "$4" "${SLURMD_NODENAME-}") ;;
*) danlu_input=/dev/null ;;
esac
exec 3<&0 4>&1 5>&2
danlu_redirect() { # FD PATTERN COLLECTED ONLY FILE TASK NODE
    if [ -n "$4" ] && [ "$4" != "$6" ]; then
        eval "exec $1> /dev/null"
    elif [ -n "$2" ]; then
        danlu_to=$(danlu_file "$2" "$6" "$7" "${SLURMD_NODENAME-}")
        # Tasks of a node may share the file: the first to come empties it.
        [ "$danlu_open_mode" = append ] || ! mkdir "${5%/*}/opened-$(echo "$danlu_to" | cksum | tr ' ' -)" 2> /dev/null || : > "$danlu_to"
        eval "exec $1>> \"\$danlu_to\""
    elif [ -n "$3" ] && [ -z "$danlu_is_own" ]; then
        eval "exec $1> \"\$5\""
    fi
}
danlu_redirect 4 "$danlu_each_output" "$danlu_collect_output" "$danlu_only_output" "$1/output.$2" "$2" "$4"
danlu_errors_follow=''
[ -z "$danlu_each_output" ] || danlu_errors_follow=1
[ "$danlu_collect_error" != same ] || [ -n "$danlu_is_own" ] || danlu_errors_follow=1
[ -z "$danlu_each_error$danlu_only_error" ] || danlu_errors_follow=''
if [ -n "$danlu_errors_follow" ]; then
    exec 5>&4
else
    danlu_redirect 5 "$danlu_each_error" "$danlu_collect_error" "$danlu_only_error" "$1/error.$2" "$2" "$4"
fi
if [ -n "$danlu_label" ]; then
    mkfifo "$danlu_pipes/output" "$danlu_pipes/error" || exit 70
    sed -u "s/^/$2: /" < "$danlu_pipes/output" >&4 3<&- 4>&- 5>&- &
    danlu_labels=$!
    sed -u "s/^/$2: /" < "$danlu_pipes/error" 3<&- 4>&- >&5 &
    danlu_labels="$danlu_labels $!"
    exec 4> "$danlu_pipes/output" 5> "$danlu_pipes/error"
fi
if [ "$danlu_input" = "$danlu_pipes/input" ]; then
    # What `srun` reads, as it grows.
    mkfifo "$danlu_input" || exit 70
    (
        danlu_seen=0 danlu_whole=''
        while [ -z "$danlu_whole" ]; do
            [ ! -e "$1/input.whole" ] || danlu_whole=1
            danlu_size=0
            [ ! -e "$1/input" ] || danlu_size=$(wc -c < "$1/input")
            [ "$danlu_size" -le "$danlu_seen" ] || tail -c +"$((danlu_seen + 1))" "$1/input" | head -c "$((danlu_size - danlu_seen))" || exit
            danlu_seen=$danlu_size
            [ -n "$danlu_whole" ] || sleep 0.1
        done
    ) < /dev/null > "$danlu_input" 2> /dev/null 3<&- 4>&- 5>&- &
    danlu_helpers=$!
fi

if [ "$danlu_feed" = own ]; then
    (danlu_run "$1" "$2") <&3 >&4 2>&5 3<&- 4>&- 5>&- &
else
    (danlu_run "$1" "$2") < "$danlu_input" >&4 2>&5 3<&- 4>&- 5>&- &
fi
danlu_child=$!
exec < /dev/null > /dev/null 2>&1 3<&- 4>&- 5>&-
# Passes on what whoever ends `srun` sent it, and ends the task where its step is over.
(
    danlu_signal=1
    until [ -e "$1/kill" ]; do
        if [ -e "$1/signal.$danlu_signal" ]; then
            read -r danlu_name < "$1/signal.$danlu_signal"
            # Where the job itself is ended, the launcher has told everybody.
            [ -e "$DANLU_RUN_DIR/slurm/ending" ] || case $danlu_name in
            USR*) kill -s "$danlu_name" "$danlu_child" ;;
            *) danlu_signal_tree "$danlu_name" "$danlu_child" ;;
            esac
            danlu_signal=$((danlu_signal + 1))
        else
            sleep 1
        fi
    done
    danlu_signal_tree TERM "$danlu_child"
    sleep 10
    danlu_signal_tree KILL "$danlu_child"
) &
danlu_helpers="$danlu_helpers $!"
wait "$danlu_child"
danlu_code=$?
# A signal ends a wait, not the task.
while kill -0 "$danlu_child"; do
    wait "$danlu_child"
    danlu_code=$?
done
# shellcheck disable=SC2086 # numbers
[ -z "${danlu_labels-}" ] || wait $danlu_labels
for danlu_helper in $danlu_helpers; do danlu_signal_tree TERM "$danlu_helper"; done
rm -rf "$danlu_pipes"
