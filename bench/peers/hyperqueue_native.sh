#!/usr/bin/env bash
# hyperqueue_native.sh HQ: HyperQueue as its users run it, server and worker apart, no journal, 64 claimed processors.
# Prints `name<TAB>value<TAB>unit` lines, as hyperqueue_peer.py does for its library.
set -euo pipefail
hq="$1"
jobs=2000
rounds=20
cores=64

folder="$(mktemp -d)"
export HQ_SERVER_DIR="$folder/server"
processes=()
finish() {
  "$hq" server stop >/dev/null 2>&1 || true
  for process in "${processes[@]}"; do
    kill "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  done
  rm -rf "$folder"
}
trap finish EXIT

"$hq" server start >"$folder/server.log" 2>&1 &
processes+=($!)
until "$hq" server info >/dev/null 2>&1; do sleep 0.1; done
"$hq" worker start --cpus "$cores" >"$folder/worker.log" 2>&1 &
processes+=($!)
until "$hq" worker list 2>/dev/null | grep -q RUNNING; do sleep 0.1; done

now() { date +%s%N; }
submit() { "$hq" submit --wait --stdout=none --stderr=none "$@" >/dev/null; }

submit --array=1-50 true
began="$(now)"
submit --array="1-$jobs" true
printf 'throughput\t%d\tjobs/s\n' "$((jobs * 1000000000 / ($(now) - began)))"

# Until the program has run, not until `--wait` has heard of it.
for ((round = 0; round < rounds; round++)); do
  rm -f "$folder/done"
  began="$(now)"
  submit sh -c "date +%s%N > $folder/done"
  echo "$((($(cat "$folder/done") - began) / 10000))"
done | sort -n | sed -n "$((rounds / 2 + 1))p" | awk '{ printf "latency\t%.1f\tms\n", $1 / 100 }'
