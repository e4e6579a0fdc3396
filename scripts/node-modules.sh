#!/usr/bin/env bash
# node-modules.sh: installs exactly what web/package-lock.json names, unless that is what is there.
set -euo pipefail
# shellcheck source=scripts/paths.sh
. "$(dirname "$0")/paths.sh"
cd "$ROOT/web"

mark=node_modules/.installed
if [ -f "$mark" ] && cmp -s package-lock.json "$mark"; then exit 0; fi
say "installing what the console is built with"
# Not `npm ci`: it refuses a lock file that lacks builds for other systems, which not every registry has.
npm install --no-save --silent
cp package-lock.json "$mark"
