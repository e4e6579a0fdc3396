# shellcheck shell=bash
# Where scripts keep what outlives a run: tools, Python environments, CI's cargo target. Sourced, not run.

DANLU_CACHE="${DANLU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/danlu}"
TOOLS="$DANLU_CACHE/tools"
VENVS="$DANLU_CACHE/venvs"
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
export DANLU_CACHE TOOLS VENVS ROOT
mkdir -p "$TOOLS" "$VENVS"

say() { printf '%s\n' "$*" >&2; }

# A port of loopback that nobody listens on at this moment.
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
