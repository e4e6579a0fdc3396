#!/usr/bin/env bash
# test.sh [STEP...]: all checks, or those named, with a summary at the end. What CI runs and what a developer runs.
# A failing step does not hide the ones after it.
set -euo pipefail
# shellcheck source=scripts/paths.sh
. "$(dirname "$0")/paths.sh"
cd "$ROOT"

STEPS=(format layers files words deny advisories shell clippy web examples test newslurm console jax fresh)
if [ $# -gt 0 ]; then STEPS=("$@"); fi

step_format() { cargo fmt --all -- --check; }
step_layers() { cargo xtask layers; }
step_files() { cargo xtask files; }
step_words() { cargo xtask words; }
# Two versions of one crate are only a warning, so not shown here: `cargo deny check bans` tells.
step_deny() {
  PATH="$TOOLS/cargo-deny:$PATH" cargo deny --log-level error --locked check --hide-inclusion-graph licenses bans sources
}
# Known vulnerabilities, as of the database that `make advisories` fetched last; nothing is fetched here.
step_advisories() {
  PATH="$TOOLS/cargo-deny:$PATH" cargo deny --log-level error --locked check --disable-fetch --hide-inclusion-graph advisories
}
step_shell() { git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck -x; }
step_clippy() { cargo clippy --workspace --all-targets --locked -- -D warnings; }
step_examples() {
  python3 -m unittest discover --quiet python
  python3 examples/check.py digits-stdlib
}
# The console by itself: style, types, what nobody uses, unit tests, types that are those of the API, its weight.
step_web() {
  scripts/node-modules.sh
  cd web
  npm run --silent lint
  npm run --silent check
  npm run --silent unused
  npm run --silent test
  npx --no-install openapi-typescript ../docs/openapi.json | cmp - src/api/schema.ts ||
    { say "hint: \`cd web && npm run types\` renews web/src/api/schema.ts; commit the result"; return 1; }
  npm run --silent build
  npm run --silent budget
}
# The console as people use it: a real server with simulated devices, a real browser. Pictures are left in web/pictures.
step_console() {
  scripts/console.sh
  cargo build --locked --package danlu
  local target="${CARGO_TARGET_DIR:-$ROOT/target}"
  cd web
  DANLU_BINARY="$(realpath "$target")/debug/danlu" npm run --silent e2e
}
# Trains with JAX under a real server, pushed out midway and resumed.
step_jax() {
  DANLU_PYTHON_DIGITS="$(scripts/venv.sh examples/digits/requirements.txt)/bin" \
    cargo test --locked --package danlu --test training -- --ignored --test-threads=1 a_training_with_jax
}
# The same with PyTorch too. Not among the steps that run unasked: PyTorch alone is 3 GB.
step_training() {
  local jax torch
  jax="$(scripts/venv.sh examples/digits/requirements.txt)"
  torch="$(scripts/venv.sh examples/digits-torch/requirements.txt)"
  DANLU_PYTHON_DIGITS="$jax/bin" DANLU_PYTHON_DIGITS_TORCH="$torch/bin" \
    cargo test --locked --package danlu --test training -- --include-ignored
}
# Trains programs as they were and as they were migrated, on the CPU. Not among the steps that run unasked: it needs PyTorch.
step_migrate() {
  local torch out programs
  torch="$(scripts/venv.sh examples/digits-torch/requirements.txt)"
  out="$(mktemp -d)"
  programs=crates/danlu-migrate/tests/executed/programs
  migrate() { cargo run --locked --quiet --package danlu-migrate --example measure -- "$@"; }
  migrate "$programs" "$out/migrated" to_ddp.py
  migrate "$programs" "$out/reversed" --reverse
  migrate "$programs" "$out/portable" --portable
  migrate "$out/migrated" "$out/back" --reverse
  "$torch/bin/python" crates/danlu-migrate/tests/executed/check.py "$out/migrated" "$out/reversed" "$out/portable" "$out/back"
  rm -rf "$out"
}
# Asks a live server everything its description allows, as everybody. Not among the steps that run unasked: it is random.
step_api() {
  cargo build --locked --package danlu
  scripts/api/fuzz.sh "${CARGO_TARGET_DIR:-target}/debug/danlu"
}
# Kills, freezes and starves the platform under hundreds of jobs, and holds what it says afterwards against witnesses of our own
# (docs/reliability.md). STORMS and STORM_JOBS choose. Not among the steps that run unasked: it takes half an hour, and is random.
step_storms() {
  local target storm failures=0
  target="$(realpath "${CARGO_TARGET_DIR:-target}")"
  cargo build --locked --package danlu
  rustc --edition 2024 -O -o "$target/debug/storm-witness" scripts/storms/witness.rs
  # First, that the check finds what it is there to find.
  PYTHONDONTWRITEBYTECODE=1 python3 scripts/storms/storm.py --danlu "$target/debug/danlu" --witness "$target/debug/storm-witness" \
    --storm server --jobs 24 --tamper
  for storm in ${STORMS:-server launchers frozen power graceful locked disk postgres}; do
    if [ "$storm" = postgres ] && [ -z "${DANLU_TEST_PG_BIN:-}" ]; then printf 'storms\tno PostgreSQL\n' >>"$skipped"; continue; fi
    if [ "$storm" = disk ] && [ "$(id -u)" != 0 ]; then printf 'storms\tonly root may mount a small disk\n' >>"$skipped"; continue; fi
    PYTHONDONTWRITEBYTECODE=1 python3 scripts/storms/storm.py --danlu "$target/debug/danlu" --witness "$target/debug/storm-witness" \
      --storm "$storm" --jobs "${STORM_JOBS:-240}" --postgres "${DANLU_TEST_PG_BIN:-}" || failures=$((failures + 1))
  done
  [ "$failures" = 0 ]
}
step_fresh() { cargo xtask fresh; }
# The same random cases every time: who changes something else does not meet a fault that was there before.
step_test() {
  DANLU_SKIPPED="$skipped" PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-1}" \
    cargo test --workspace --locked --no-fail-fast
}
# What the engine does on Slurm, and jobs on it, on a newer Slurm than this machine's. All of the workspace is named, so that
# what the tests before have built serves here too.
step_newslurm() {
  cargo build --locked --workspace --example engine_launcher
  DANLU_SKIPPED="$skipped" scripts/newer-slurm.sh test --locked --workspace --test slurm --test slurm_again \
    --test slurm_replanning
}
# All tests of clusters there. Not among the steps that run unasked: they take some minutes.
step_newslurmall() {
  cargo build --locked --workspace --example engine_launcher
  DANLU_SKIPPED="$skipped" scripts/newer-slurm.sh test --locked --workspace --no-fail-fast --test slurm --test slurm_again \
    --test slurm_placement --test slurm_replanning --test slurm_crashes --test unshared --test slurm_scripts --test slurm_guide \
    --test slurm_leftovers --test slurm_users
}
# Sixty jobs and forty-five random faults on a Slurm cluster, with a shared disk and without. Not among the steps that run unasked:
# it is random, and takes a quarter of an hour.
step_campaign() {
  cargo test --locked --package danlu --test slurm_campaign -- --ignored --test-threads=1
}
# All tests AGAIN_ROUNDS times on a machine that is busy with something else: what passes by luck does not pass here. Not
# among the steps that run unasked.
step_again() {
  local round processor failures=0
  busy=()
  trap 'kill "${busy[@]}"' EXIT
  for ((processor = 0; processor < $(nproc); processor++)); do
    (while :; do :; done) &
    busy+=("$!")
  done
  for ((round = 1; round <= ${AGAIN_ROUNDS:-3}; round++)); do
    say "round $round"
    step_test || failures=$((failures + 1))
  done
  [ "$failures" = 0 ]
}
# Other random cases in each of SOAK_ROUNDS rounds, in search of such faults: histories of jobs and clusters, and torn or
# mutated texts for every parser and the migrator. Not among the steps that run unasked.
step_soak() {
  local round seed
  for ((round = 1; round <= ${SOAK_ROUNDS:-100}; round++)); do
    seed="$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')"
    say "round $round: PROPTEST_RNG_SEED=$seed"
    PROPTEST_RNG_SEED="$seed" cargo test --quiet --locked --package danlu-types --package danlu-core --package danlu-device \
      --package danlu-sched --package danlu-migrate
  done
}

# The same for texts that nobody wrote to be read, FUZZ_CASES of each kind: every property test of a parser of what users and
# programs send. Which those are is read from the source (scripts/fuzz/fuzz.py), so that none is forgotten. What is found is kept
# beside the test (`proptest-regressions`) and tried first ever after. Not among the steps that run unasked: 256 of each kind are
# part of `test`, and `scripts/fuzz-long.sh` is for hours.
step_fuzz() {
  local folder
  folder="$(mktemp -d)"
  python3 scripts/fuzz/fuzz.py collect "$folder" --profile test
  python3 scripts/fuzz/fuzz.py run "$folder" --first-cases "${FUZZ_CASES:-10000}"
  rm -rf "$folder"
}

# Why a step cannot run on this machine, or nothing. Under CI provisioning has already refused to go on without.
obstacle() {
  case "$1" in
    deny) [ -x "$TOOLS/cargo-deny/cargo-deny" ] || echo "no cargo-deny" ;;
    advisories)
      [ -x "$TOOLS/cargo-deny/cargo-deny" ] || echo "no cargo-deny"
      [ -n "$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/advisory-dbs/*/ 2>/dev/null)" ] ||
        echo "no advisory database on this machine: known vulnerabilities were NOT looked up; \`make advisories\` fetches one"
      ;;
    shell) command -v shellcheck >/dev/null || echo "no shellcheck" ;;
    jax) scripts/venv.sh examples/digits/requirements.txt >/dev/null || echo "JAX cannot be installed from PyPI" ;;
    newslurm*) scripts/newer-slurm.sh there || echo "no newer Slurm (as root: scripts/newer-slurm.sh make)" ;;
    web) scripts/node-version.sh 2>&1 || true ;;
    console)
      scripts/node-version.sh 2>&1 || true
      command -v chromium >/dev/null || echo "no chromium"
      ;;
    examples) command -v python3 >/dev/null || echo "no python3" ;;
  esac
}

skipped="$(mktemp)"
trap 'rm -f "$skipped"' EXIT
summary=()
failed=0

note() { summary+=("$(printf '%-8s  %-12s  %s' "$1" "$2" "$3")"); }

run() {
  local name="$1" began="$SECONDS" reason
  reason="$(obstacle "$name")"
  if [ -n "$reason" ]; then
    note skipped "$name" "$reason"
    # The database comes from the internet, which CI need not have; the summary says that nothing was looked up.
    [ "${CI:-}" != true ] || [ "$name" = advisories ] || failed=1
    return
  fi
  printf '\n== %s\n' "$name"
  # In a shell of its own and in no condition, so that `set -e` holds inside although we look at the result.
  local rc
  set +e
  (set -e; "step_$name")
  rc=$?
  set -e
  if [ "$rc" = 0 ]; then
    note passed "$name" "$((SECONDS - began)) s"
  else
    note FAILED "$name" "$((SECONDS - began)) s, exit status $rc"
    failed=1
  fi
}

provision() {
  local what=lint name
  for name in "${STEPS[@]}"; do case "$name" in test | newslurm*) what="test" ;; esac; done
  DANLU_SKIPPED="$skipped" scripts/provision.sh "$what"
}

began="$SECONDS"
for name in "${STEPS[@]}"; do
  declare -F "step_$name" >/dev/null || { say "error: no step '$name'; there are: $(declare -F | sed -n 's/^declare -f step_//p' | tr '\n' ' ')"; exit 2; }
done
provision
note passed provision "$((SECONDS - began)) s"

# The tests of the store start a PostgreSQL of their own from these programs.
DANLU_TEST_PG_BIN="$(scripts/postgres-bin.sh)"
if [ -n "$DANLU_TEST_PG_BIN" ]; then export DANLU_TEST_PG_BIN; else unset DANLU_TEST_PG_BIN; fi

for name in "${STEPS[@]}"; do run "$name"; done

printf '\n== summary (%s s)\n' "$((SECONDS - began))"
printf '%s\n' "${summary[@]}"
sort -u "$skipped" | while IFS=$'\t' read -r name reason; do printf '%-8s  %-12s  %s\n' skipped "$name" "$reason"; done
if [ "$failed" = 1 ]; then
  echo "some checks did not pass"
  exit 1
fi
echo "all well"
