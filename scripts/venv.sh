#!/usr/bin/env bash
# venv.sh REQUIREMENTS: prints the folder of a Python environment that has these packages, making it if it is not cached.
# The cache goes by the content of the file. uv is quick; pip steps in where uv does not know the machine's mirror.
set -euo pipefail
# shellcheck source=scripts/paths.sh
. "$(dirname "$0")/paths.sh"

requirements="$1"
venv="$VENVS/$(sha256sum "$requirements" | cut -c1-16)"
if [ -e "$venv/.complete" ]; then
  echo "$venv"
  exit
fi

uv="$(command -v uv || echo "$TOOLS/uv/bin/uv")"
if [ ! -x "$uv" ]; then
  say "installing uv into $TOOLS/uv"
  python3 -m venv "$TOOLS/uv"
  "$TOOLS/uv/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 10 uv >&2 || say "uv cannot be installed; trying pip alone"
fi

say "making a Python environment for $requirements"
rm -rf "$venv"
python3 -m venv "$venv"
if ! { [ -x "$uv" ] && "$uv" pip install --quiet --python "$venv/bin/python" --requirement "$requirements" >&2; }; then
  "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 10 --requirement "$requirements" >&2
fi
touch "$venv/.complete"
echo "$venv"
