#!/usr/bin/env bash
# Slurm doing what we measure of ourselves: a controller and four nodes of its own on loopback, tuned for short jobs,
# in a scratch folder, as the user who calls this. Prints `name<TAB>value<TAB>unit` lines; stops what it started, by pid.
set -euo pipefail

JOBS=2000
SUBMISSIONS=400
ROUNDS=20
NODES=4

for program in munged slurmctld slurmd sbatch srun squeue; do
  PATH="$PATH:/usr/sbin" command -v "$program" >/dev/null || { echo "skipped: no $program (Debian: munge slurm-wlm)" >&2; exit 3; }
done

rig="$(mktemp -d "${TMPDIR:-/tmp}/danlu-slurm.XXXXXX")"
export SLURM_CONF="$rig/slurm.conf"

stop() {
  local file pid
  for file in "$rig"/run/slurmd-*.pid "$rig/run/slurmctld.pid" "$rig/run/munged.pid"; do
    [ -s "$file" ] || continue
    pid="$(cat "$file")"
    kill "$pid" 2>/dev/null || true
    # Gone before the folder goes: a daemon that still writes would make it anew.
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
  done
  rm -rf "$rig"
}
trap stop EXIT

free_ports() {
  python3 - "$1" <<'PY'
import socket, sys
held = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in held:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in held))
PY
}

configure() {
  local ports node
  read -r -a ports <<<"$(free_ports $((NODES + 1)))"
  # munged wants to know that everyone can reach its socket.
  mkdir -p "$rig"/{run,log,state,spool}
  chmod 755 "$rig" "$rig/run"
  {
    cat <<CONF
ClusterName=bench
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=${ports[0]}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$rig/run/munge.socket
CredType=cred/munge
StateSaveLocation=$rig/state
SlurmdSpoolDir=$rig/spool/%n
SlurmctldPidFile=$rig/run/slurmctld.pid
SlurmdPidFile=$rig/run/slurmd-%n.pid
SlurmctldLogFile=$rig/log/slurmctld.log
SlurmdLogFile=$rig/log/slurmd-%n.log
SlurmctldDebug=error
SlurmdDebug=error
# No accounting, no process tracking beyond /proc: the least Slurm can do for a job.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
MailProg=/bin/true
# Start as many as fit at once, without the usual pauses between passes.
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=default_queue_depth=2000,sched_min_interval=0,batch_sched_delay=0,sched_max_job_start=0,bf_continue,bf_interval=5
MaxJobCount=100000
MaxArraySize=10001
# Finished jobs stay visible for as long as we count them.
MinJobAge=600
MessageTimeout=60
ReturnToService=2
# The nodes claim more processors than the machine has.
SlurmdParameters=config_overrides
CONF
    for node in $(seq "$NODES"); do
      echo "NodeName=n$node NodeAddr=127.0.0.1 Port=${ports[node]} CPUs=64 RealMemory=64000 State=UNKNOWN"
    done
    echo "PartitionName=main Nodes=n[1-$NODES] Default=YES MaxTime=INFINITE State=UP DefMemPerCPU=100"
  } >"$SLURM_CONF"
  (umask 077; head -c 1024 /dev/urandom >"$rig/munge.key")
}

start() {
  local node
  PATH="$PATH:/usr/sbin"
  munged --key-file="$rig/munge.key" --socket="$rig/run/munge.socket" --pid-file="$rig/run/munged.pid" \
    --log-file="$rig/log/munged.log" --seed-file="$rig/munge.seed" --num-threads=4
  slurmctld -c -f "$SLURM_CONF"
  for node in $(seq "$NODES"); do
    mkdir -p "$rig/spool/n$node"
    slurmd -N "n$node" -f "$SLURM_CONF"
  done
  for _ in $(seq 100); do
    [ "$(timeout 5 sinfo -h -t idle -o %D 2>/dev/null)" = "$NODES" ] && return
    sleep 0.2
  done
  echo "error: Slurm's nodes did not come up" >&2
  tail -n 5 "$rig"/log/*.log >&2
  exit 1
}

seconds_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.4f", b - a }'; }

wait_for_empty_queue() {
  while [ -n "$(squeue -h -o %i | head -n 1)" ]; do sleep 0.1; done
}

# The array that everyone compares with: one submission, JOBS tasks, through to the end.
measure_throughput() {
  local began took id completed
  began="$EPOCHREALTIME"
  id="$(sbatch --parsable --array="1-$JOBS" --output=/dev/null --wrap=true)"
  wait_for_empty_queue
  took="$(seconds_since "$began")"
  completed="$(scontrol -o show job "$id" | grep -c JobState=COMPLETED)"
  [ "$completed" = "$JOBS" ] || { echo "error: Slurm completed $completed of $JOBS tasks" >&2; exit 1; }
  awk -v n="$JOBS" -v s="$took" 'BEGIN { printf "throughput\t%.0f\tjobs/s\n", n / s }'
}

measure_latency() {
  local began
  for _ in $(seq "$ROUNDS"); do
    began="$EPOCHREALTIME"
    srun true
    seconds_since "$began"
    echo
  done | sort -n | awk -v middle=$((ROUNDS / 2)) 'NR == middle { printf "latency\t%.1f\tms\n", $1 * 1000 }'
}

# Separate submissions, eight clients at a time, held so that nothing but submitting is measured.
measure_submit() {
  local began
  began="$EPOCHREALTIME"
  seq "$SUBMISSIONS" | xargs -P 8 -I{} sbatch --parsable --hold --output=/dev/null --wrap=true >/dev/null
  awk -v n="$SUBMISSIONS" -v s="$(seconds_since "$began")" 'BEGIN { printf "submit\t%.0f\tjobs/s\n", n / s }'
}

configure
start
srun true
measure_latency
measure_throughput
measure_submit
