#!/bin/sh
# With a third word, nodes see the folders `hidden` and `node` of $1 as empty ones of their own: they share no disk there.
# Runs munge, slurmctld and slurmds in the folder $1 until its input ends, then ends them and removes the folder.
# With a fourth word, there are accounts, in a database of their own.
# The daemons must be started by these names: under Debian's own (slurmctld-wlm) Slurm 22.05 ignores all Gres lines.
trap '' INT HUP
rig=$1
nodes=$2
disks=$3
accounting=$4
PATH="$PATH:/usr/sbin:/sbin"
database=
# Whoever waits for the cluster says what its logs say, so they stay till then.
fail() {
  for pid in $daemons $database; do kill "$pid" 2>/dev/null; done
  while read -r _; do :; done
  rm -rf "$rig"
  exit 1
}
export SLURM_CONF="$rig/slurm.conf"
munged --foreground --key-file="$rig/munge.key" --socket="$rig/run/munge.socket" --pid-file="$rig/run/munged.pid" \
  --log-file="$rig/log/munged.log" --seed-file="$rig/munge.seed" --num-threads=4 </dev/null >/dev/null 2>&1 &
daemons=$!
until [ -S "$rig/run/munge.socket" ]; do kill -0 "$daemons" || fail; sleep 0.02; done
if [ -n "$accounting" ]; then
  # Slurm finds it by this.
  export MYSQL_UNIX_PORT="$rig/run/database.socket"
  mariadb-install-db --no-defaults --user=root --datadir="$rig/database" --auth-root-authentication-method=socket \
    --skip-test-db >"$rig/log/install.log" 2>&1 </dev/null || fail
  mariadbd --no-defaults --user=root --datadir="$rig/database" --socket="$MYSQL_UNIX_PORT" --skip-networking \
    --pid-file="$rig/run/mariadbd.pid" --innodb-flush-log-at-trx-commit=0 --innodb-buffer-pool-size=32M \
    </dev/null >"$rig/log/mariadbd.log" 2>&1 &
  database=$!
  until [ -S "$MYSQL_UNIX_PORT" ]; do kill -0 "$database" || fail; sleep 0.02; done
  slurmdbd -D </dev/null >/dev/null 2>&1 &
  accounts=$!
  daemons="$accounts $daemons"
  until sacctmgr --immediate add cluster danlu </dev/null >"$rig/log/sacctmgr.log" 2>&1; do
    kill -0 "$accounts" || fail
    sleep 0.1
  done
fi
slurmctld -D -c -f "$SLURM_CONF" </dev/null >/dev/null 2>&1 &
node=1
while [ "$node" -le "$nodes" ]; do
  if [ -n "$disks" ]; then
    # shellcheck disable=SC2016 # the inner shell's own
    unshare --mount sh -c 'mount -t tmpfs none "$1/hidden" && mount -t tmpfs none "$1/node" &&
      exec slurmd -D -N "$2" -f "$SLURM_CONF"' sh "$rig" "n$node" </dev/null >/dev/null 2>&1 &
  else
    slurmd -D -N "n$node" -f "$SLURM_CONF" </dev/null >/dev/null 2>&1 &
  fi
  daemons="$! $daemons"
  node=$((node + 1))
done
while read -r _; do :; done
# First the jobs, so that nothing of them is left; the controller may have been killed, or be another one by now.
for job in $(timeout 5 squeue --noheader --format=%A 2>/dev/null); do
  timeout 5 scancel --quiet --full --signal=KILL "$job"
  timeout 5 scancel --quiet "$job"
done
turns=0
while [ "$turns" -lt 50 ] && [ -n "$(timeout 5 squeue --noheader --format=%i 2>/dev/null)" ]; do
  sleep 0.1
  turns=$((turns + 1))
done
controller="$(cat "$rig/run/slurmctld.pid" 2>/dev/null)"
# Nodes' daemons that a test started again are no children of ours.
nodes="$(cat "$rig"/run/slurmd-*.pid 2>/dev/null)"
for pid in $controller $nodes $daemons; do kill "$pid" 2>/dev/null; done
# It is the last to go: the others still write to it.
if [ -n "$database" ]; then
  for pid in $daemons; do wait "$pid"; done
  kill "$database"
fi
wait
# The controller, where a test started it again, writes its state down when it ends.
turns=0
while [ "$turns" -lt 200 ] && [ -n "$controller" ] && kill -0 "$controller" 2>/dev/null; do
  sleep 0.05
  turns=$((turns + 1))
done
rm -rf "$rig"
