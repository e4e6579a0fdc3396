#!/usr/bin/env bash
# node-modules.sh: installs exactly what web/package-lock.json names, unless that is what is there.
set -euo pipefail
# shellcheck source=scripts/paths.sh
. "$(dirname "$0")/paths.sh"
cd "$ROOT/web"

mark=node_modules/.installed
if [ -f "$mark" ] && cmp -s package-lock.json "$mark"; then exit 0; fi
say "installing what the console is built with"
# It refuses a lock file that lacks builds for other systems. Choose versions whose builds the registry has for all
# of them: npm leaves out what it does not find, and says nothing.
npm ci --silent
cp package-lock.json "$mark"
