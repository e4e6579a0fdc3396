#!/usr/bin/env bash
# migrate.sh [FOLDER [PACKAGE[==VERSION]...]]: migrates the source distributions of public projects, checks every output, measures
# speed beside `ast.parse` in the same run. FOLDER keeps sources and outputs [default: a new one]; projects that are in FOLDER/in
# already are taken as they are. Needs the internet otherwise. MEASURE names a built `measure`.
set -euo pipefail
cd "$(dirname "$0")/.."
folder="${1:-$(mktemp -d)}"
shift || true
packages=("$@")
[ $# -gt 0 ] || packages=(timm accelerate pytorch-lightning transformers ultralytics effdet openai-whisper mmcv torchvision)

measure="${MEASURE:-${CARGO_TARGET_DIR:-target}/release/examples/measure}"
[ -n "${MEASURE:-}" ] || cargo build --release --locked --package danlu-migrate --example measure
[ -d "$folder/in" ] || python3 bench/migrate_corpus.py fetch "$folder/in" "${packages[@]}"
rm -rf "$folder/out" "$folder/again"
mkdir -p "$folder/out" "$folder/again"
for project in "$folder/in"/*; do
  name="$(basename "$project")"
  printf '%s ' "$name"
  /usr/bin/time -f 'cpu_seconds=%U+%S memory_kb=%M' "$measure" "$project" "$folder/out/$name" 2>&1 | tr '\n' ' '
  echo
  printf '  again: '
  "$measure" "$folder/out/$name"
done
python3 -W ignore bench/migrate_corpus.py check "$folder/in" "$folder/out"
echo "the changes are in $folder: diff -ru $folder/in $folder/out"
