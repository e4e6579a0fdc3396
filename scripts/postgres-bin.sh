#!/usr/bin/env bash
# Prints the folder with the newest PostgreSQL server's programs, or nothing.
# Debian keeps them off PATH, and a `postgres` on PATH may be anything: only a folder with initdb beside it counts.
set -euo pipefail

{
  ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin 2>/dev/null || true
  pg_config --bindir 2>/dev/null || true
} | sort -V | while read -r folder; do
  if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ] && [ -x "$folder/pg_ctl" ]; then
    echo "$folder"
  fi
done | tail -n 1
