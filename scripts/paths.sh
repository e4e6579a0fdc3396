# shellcheck shell=bash
# Where scripts keep what outlives a run: tools, Python environments, CI's cargo target. Sourced, not run.

DANLU_CACHE="${DANLU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/danlu}"
TOOLS="$DANLU_CACHE/tools"
VENVS="$DANLU_CACHE/venvs"
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
export DANLU_CACHE TOOLS VENVS ROOT
mkdir -p "$TOOLS" "$VENVS"

say() { printf '%s\n' "$*" >&2; }
