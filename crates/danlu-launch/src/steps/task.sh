#!/bin/sh
# One task of a step of `srun`: STEP-FOLDER TASK LOCAL-TASK NODE. Laid down by Danlu. Names of our own begin with
# `danlu_`: all others may be the job's.
danlu_own='DANLU_RUN_DIR DANLU_WORKER DANLU_RANK DANLU_LOCAL_RANK DANLU_NODE DANLU_TOKEN TMPDIR SLURM_TMPDIR
    SLURMD_NODENAME CUDA_VISIBLE_DEVICES ASCEND_RT_VISIBLE_DEVICES NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME HCCL_IF_IP'
# The script's variables, but for those that say where one is.
for danlu_name in $danlu_own; do eval "danlu_own_$danlu_name=\${$danlu_name-}"; done
# shellcheck source=/dev/null # made for each step
. "$1/environment"
for danlu_name in $danlu_own; do eval "export $danlu_name=\"\$danlu_own_$danlu_name\""; done

# Each its own devices, where the job asked for so many per task.
danlu_mine() {
    [ -z "$2" ] || echo "$2" | cut -d, -f "$(($1 * SLURM_GPUS_PER_TASK + 1))-$((($1 + 1) * SLURM_GPUS_PER_TASK))"
}
if [ -n "${SLURM_GPUS_PER_TASK-}" ]; then
    CUDA_VISIBLE_DEVICES=$(danlu_mine "$3" "$CUDA_VISIBLE_DEVICES")
    ASCEND_RT_VISIBLE_DEVICES=$(danlu_mine "$3" "$ASCEND_RT_VISIBLE_DEVICES")
fi
export SLURM_PROCID="$2" SLURM_LOCALID="$3" SLURM_NODEID="$4"

trap : TERM INT HUP USR1 USR2
(
    cd "$(cat "$1/folder")" || exit 1
    # shellcheck source=/dev/null # made for each step
    . "$1/command"
) &
danlu_child=$!
(
    until [ -e "$1/kill" ]; do sleep 1; done
    kill "$danlu_child" && sleep 10 && kill -9 "$danlu_child"
) > /dev/null 2>&1 &
danlu_watcher=$!
wait "$danlu_child"
danlu_code=$?
# A signal ends a wait, not the task.
while kill -0 "$danlu_child" 2> /dev/null; do
    wait "$danlu_child"
    danlu_code=$?
done
kill "$danlu_watcher" 2> /dev/null
echo "$danlu_code" > "$1/exit.$2.new" && mv "$1/exit.$2.new" "$1/exit.$2"
