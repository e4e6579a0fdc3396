#!/usr/bin/env bash
# Measures Danlu and, where they can be had, its peers beside it in the same run, and prints one table.
# Only ratios of one run mean something: machines differ, and so do their busy hours.
set -euo pipefail
# shellcheck source=scripts/paths.sh
. "$(dirname "$0")/../scripts/paths.sh"
cd "$ROOT"

figures="$(mktemp -d)"
trap 'rm -rf "$figures"' EXIT
columns=()

# measure SYSTEM COMMAND...: keeps the figures; a peer that is missing or fails is said and left out.
measure() {
  local system="$1"
  shift
  say "== $system"
  if "$@" | tee "$figures/$system" >&2; then
    columns+=("$system=$figures/$system")
  else
    say "-- $system is left out of the table"
  fi
}

# Its own program where that is on PATH, or named by HQ: PyPI has only the library, whose server and worker share a process.
hyperqueue() {
  local venv hq
  hq="${HQ:-$(command -v hq || true)}"
  if [ -n "$hq" ]; then
    bench/peers/hyperqueue_native.sh "$hq"
    return
  fi
  say "notice: no \`hq\` on PATH; measuring HyperQueue's library, which is slower than its server and worker apart"
  venv="$(scripts/venv.sh bench/peers/requirements.txt)" || { say "skipped: HyperQueue cannot be installed from PyPI"; return 3; }
  "$venv/bin/python" bench/peers/hyperqueue_peer.py
}

scripts/provision.sh bench
cargo bench --locked --package danlu --no-run
say "== danlu"
cargo bench --quiet --locked --package danlu | tee "$figures/danlu" >&2
columns+=("danlu=$figures/danlu")
measure slurm bench/peers/slurm.sh
measure hyperqueue hyperqueue
measure floor python3 bench/spawn_floor.py

echo
printf 'on %s processors, %s\n' "$(nproc)" "$(date -u +%F)"
echo "(N×): how many times better Danlu is than the peer; floor: bare processes one after another, nobody managing them"
echo
python3 bench/table.py "${columns[@]}"
