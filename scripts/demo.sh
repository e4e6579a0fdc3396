#!/usr/bin/env bash
# From nothing to a trained model: builds Danlu, starts it on its embedded defaults, trains digits on 2 workers of 2 ranks
# while showing the logs, and says where everything is. On a terminal it keeps serving until Ctrl-C.
set -euo pipefail
# shellcheck source=scripts/paths.sh
. "$(dirname "$0")/paths.sh"
cd "$ROOT"

READY_SECONDS=30
data="${DANLU_DEMO_DATA:-$ROOT/.cache/demo}"
server=""

stop_server() {
  [ -n "$server" ] || return 0
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=""
}
trap stop_server EXIT
trap 'exit 130' INT TERM

say "== building"
scripts/console.sh
cargo build --profile demo --locked --package danlu
danlu="${CARGO_TARGET_DIR:-$ROOT/target}/demo/danlu"

say "== getting Python ready"
if venv="$(scripts/venv.sh examples/digits/requirements.txt)"; then
  example=digits
  path="$venv/bin:$PATH"
else
  say "notice: jax and scikit-learn cannot be installed (is PyPI out of reach?); training with the standard library instead"
  example=digits-stdlib
  path="$PATH"
fi

say "== starting Danlu"
mkdir -p "$data"
export DANLU_DATA="$data"
"$danlu" up --data "$data" --listen 127.0.0.1:0 >"$data/demo-server.log" 2>&1 &
server=$!
ready() { "$danlu" nodes --json >/dev/null 2>&1; }
began=$SECONDS
until ready; do
  if ! kill -0 "$server" 2>/dev/null || [ $((SECONDS - began)) -ge "$READY_SECONDS" ]; then
    say "error: Danlu did not come up; its last words:"
    tail -n 20 "$data/demo-server.log" >&2
    exit 1
  fi
  sleep 0.05
done

# Port 0 lets the system choose; the server writes down what it got.
address="$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["address"])' "$data/server.json")"

say "== training examples/$example"
log="$data/demo-training.log"
status=0
"$danlu" run "examples/$example/job.yaml" --env "PATH=$path" | tee "$log" || status=$?
if [ "$status" != 0 ]; then
  say "error: the training failed (exit status $status); the server's log is $data/demo-server.log"
  exit "$status"
fi

echo
echo "trained:      $(grep -o 'final accuracy [0-9.]*' "$log" | tail -n 1)"
echo "TensorBoard:  $(grep -o 'TensorBoard file .*' "$log" | tail -n 1 | sed 's/^TensorBoard file //')"
# A new one each time: the link that a first start prints may be used up, or be in a log that scrolled away.
echo "console:      $("$danlu" login --link 2>/dev/null)   (signs you in, once, within ten minutes)"
echo "API:          $address/api/v1 (its description: docs/openapi.json)"
echo "data:         $data"

if [ -t 0 ] && [ -t 1 ]; then
  echo
  echo "still serving; try: DANLU_DATA=$data $danlu jobs        Ctrl-C ends it"
  trap 'exit 0' INT
  wait "$server" || true
fi
