#!/usr/bin/env bash
# What the launcher costs a training on a real GPU: five alternating runs, bare and under `danlu launch`.
# usage: bench/gpu/run.sh DANLU [PYTHON]; needs an NVIDIA GPU and PyTorch.
set -euo pipefail
danlu="$1"
python="${2:-python3}"
here="$(cd "$(dirname "$0")" && pwd)"

rate() { grep -o 'samples_per_second [0-9.]*' | cut -d' ' -f2; }

"$danlu" devices --local
"$python" "$here/train.py" >/dev/null # fills caches
bare=() launched=()
for _ in 1 2 3 4 5; do
  bare+=("$("$python" "$here/train.py" | rate)")
  launched+=("$("$danlu" launch --devices 0 -- "$python" "$here/train.py" | rate)")
done
"$python" - "${bare[*]}" "${launched[*]}" <<'PYTHON'
import statistics
import sys

bare, launched = ([float(number) for number in text.split()] for text in sys.argv[1:])
print("bare       ", *(f"{rate:10.1f}" for rate in bare), "samples/s")
print("launched   ", *(f"{rate:10.1f}" for rate in launched), "samples/s")
ratio = statistics.median(launched) / statistics.median(bare)
print(f"medians     {statistics.median(bare):.1f} and {statistics.median(launched):.1f}: {100 * (ratio - 1):+.2f} %")
PYTHON
