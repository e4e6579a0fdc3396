#!/bin/sh
# One task of a job that comes from a batch script of Slurm's. The first runs the script; the others wait for what
# `srun` in it has them do. Laid down by Danlu.
# Names of our own begin with `danlu_`: all others may be the job's.
danlu_here=$DANLU_RUN_DIR/slurm
danlu_steps=$DANLU_STEPS_DIR

# Scripts of Slurm's expect none of these, and programs that find them take their rank from there.
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK
SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0
# `#!/bin/bash -l` begins with a PATH of its own.
[ -z "${BASH_ENV-}" ] || export DANLU_BASH_ENV="$BASH_ENV"
BASH_ENV=$danlu_here/bash_env PATH=$danlu_here/bin:$PATH
# By which `srun` knows whether it was redirected.
DANLU_STDOUT=$(readlink /proc/$$/fd/1) DANLU_STDERR=$(readlink /proc/$$/fd/2)
export SLURM_PROCID SLURM_LOCALID SLURM_NODEID BASH_ENV PATH DANLU_STDOUT DANLU_STDERR

if [ "$DANLU_RANK" = 0 ]; then
    mkdir -p "$danlu_steps" || exit 70
    read -r danlu_first < "$danlu_here/script"
    case $danlu_first in
    '#!'*) danlu_interpreter=${danlu_first#??} ;;
    *) danlu_interpreter=/bin/sh ;;
    esac
    # The script decides what a signal means, and is waited for.
    trap : TERM INT HUP USR1 USR2
    # shellcheck disable=SC2086 # the words after `#!` are the program and its arguments
    $danlu_interpreter "$danlu_here/script" < /dev/null
    danlu_code=$?
    echo "$danlu_code" > "$danlu_steps/done.new" && mv "$danlu_steps/done.new" "$danlu_steps/done"
    exit "$danlu_code"
fi

# Tasks that are told to end may take their time.
trap 'danlu_told=1' TERM INT HUP
trap : USR1 USR2
# Steps begin in any order: one may wait for what others hold. All below `danlu_next` have begun.
danlu_next=1 danlu_begun='' danlu_naps=0 danlu_told=''
while [ ! -e "$danlu_steps/done" ]; do
    [ -z "$danlu_told" ] || { wait && exit 143; }
    danlu_step=$danlu_next
    while [ -d "$danlu_steps/$danlu_step" ]; do
        case "$danlu_begun " in
        *" $danlu_step "*) ;;
        *)
            if [ -e "$danlu_steps/$danlu_step/ready" ]; then
                danlu_tasks=$(sed -n "s/^$DANLU_RANK //p" "$danlu_steps/$danlu_step/tasks")
                while read -r danlu_task; do
                    # shellcheck disable=SC2086 # three numbers and a list
                    [ -z "$danlu_task" ] || sh "$danlu_here/task" "$danlu_steps/$danlu_step" $danlu_task &
                done << END
$danlu_tasks
END
                danlu_begun="$danlu_begun $danlu_step" danlu_naps=0
            elif [ -e "$danlu_steps/$danlu_step/over" ]; then
                danlu_begun="$danlu_begun $danlu_step"
            fi
            ;;
        esac
        danlu_step=$((danlu_step + 1))
    done
    while case "$danlu_begun " in *" $danlu_next "*) ;; *) false ;; esac do
        danlu_next=$((danlu_next + 1))
    done
    [ "$danlu_step" != "$danlu_next" ] || danlu_begun=''
    danlu_naps=$((danlu_naps + 1))
    if [ "$danlu_naps" -gt 240 ] && [ ! -d "$danlu_steps" ]; then
        echo "danlu: the first node's folder \`$danlu_steps\` is not seen here: \`srun\` needs a disk that all nodes share" >&2
        exit 70
    fi
    # Files of others on a shared disk are seen seconds later anyway.
    if [ "$danlu_naps" -lt 100 ]; then sleep 0.1; else sleep 1; fi
done
exit 0
