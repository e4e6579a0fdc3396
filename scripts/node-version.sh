#!/usr/bin/env bash
# node-version.sh: succeeds where there is a Node that builds the console (20.19 or newer), and says what is wrong if not.
set -euo pipefail

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  echo "there is no Node.js with npm here" >&2
  exit 1
fi
version="$(node --version)"
oldest="$(printf 'v20.19.0\n%s\n' "$version" | sort --version-sort | head -n 1)"
if [ "$oldest" != v20.19.0 ]; then
  echo "Node.js $version is too old for the console, which needs 20.19 or newer" >&2
  exit 1
fi
