#!/usr/bin/env bash
# node-modules.sh: installs exactly what web/package-lock.json names, unless that is what is there.
set -euo pipefail
# shellcheck source=scripts/paths.sh
. "$(dirname "$0")/paths.sh"
cd "$ROOT/web"

mark=node_modules/.installed
if [ -f "$mark" ] && cmp -s package-lock.json "$mark"; then exit 0; fi
say "installing what the console is built with"
# `npm ci` refuses a lock file that lacks builds for other systems, which not every registry has. What is installed then is
# what the lock file names all the same, checked against its hashes; that the file stays as it is, is looked at here.
if ! npm ci --silent 2>/dev/null; then
  say "npm ci does not take this lock file (it lacks builds for other systems); installing what it names"
  before="$(sha256sum package-lock.json)"
  npm install --no-save --silent
  [ "$before" = "$(sha256sum package-lock.json)" ] || { say "error: npm changed web/package-lock.json"; exit 1; }
fi
cp package-lock.json "$mark"
