#!/usr/bin/env bash
# fuzz-long.sh SECONDS [ARGUMENT...]: runs every property test of a parser for so long, all processors busy, with another seed in
# every round. Programs are optimised and keep their checks (`[profile.fuzz]`). ARGUMENTs go to `scripts/fuzz/fuzz.py run`:
# `--processes 8`, `--seed 7`. What was run and found is in summary.txt of the folder that is named at the end.
set -euo pipefail
# shellcheck source=scripts/paths.sh
. "$(dirname "$0")/paths.sh"
cd "$ROOT"
seconds="${1:?usage: fuzz-long.sh SECONDS [ARGUMENT...]}"
shift
folder="${CARGO_TARGET_DIR:-target}/fuzz-programs"
python3 scripts/fuzz/fuzz.py collect "$folder"
say "the summary is kept in $folder/summary.txt; what fails is in $folder/logs"
python3 scripts/fuzz/fuzz.py run "$folder" --seconds "$seconds" "$@"
