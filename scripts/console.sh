#!/usr/bin/env bash
# console.sh: builds web/dist, which the binary serves. Where Node is missing it says so and leaves the binary without a
# console, which works; with CI=true that is an error.
set -euo pipefail
# shellcheck source=scripts/paths.sh
. "$(dirname "$0")/paths.sh"
cd "$ROOT/web"

if ! "$ROOT/scripts/node-version.sh"; then
  say "notice: building without the console"
  [ "${CI:-}" != true ] || exit 1
  exit 0
fi
"$ROOT/scripts/node-modules.sh"
# Nothing to do where no file is newer than what was built.
if [ -f dist/index.html ] && [ -z "$(find src public scripts index.html vite.config.ts package-lock.json -newer dist/index.html -print -quit)" ]; then
  exit 0
fi
npm run --silent build
