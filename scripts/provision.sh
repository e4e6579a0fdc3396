#!/usr/bin/env bash
# provision.sh test|lint|bench: gets what that needs beyond Rust and Python, where it may.
#
# As root it installs Debian packages; tools of cargo go into our cache for anyone. What it cannot get is said with the
# reason and written to $DANLU_SKIPPED (if set) as `name<TAB>reason`. With CI=true a missing piece is an error.
set -euo pipefail
# shellcheck source=scripts/paths.sh
. "$(dirname "$0")/paths.sh"

CARGO_DENY_VERSION=0.20.2
missing=0

skip() {
  say "skipped: $1: $2"
  [ -z "${DANLU_SKIPPED:-}" ] || printf '%s\t%s\n' "$1" "$2" >>"$DANLU_SKIPPED"
  missing=1
}

# install_debian NAME PACKAGE...: what they are for, and what to install.
install_debian() {
  local name="$1"
  shift
  if [ "$(id -u)" != 0 ]; then
    skip "$name" "not root, so not installing $* (apt-get install $*)"
  elif ! command -v apt-get >/dev/null; then
    skip "$name" "no apt-get here; install $* by this system's own means"
  else
    say "installing $*"
    # A second try, after a new list: another apt may hold the lock, or the list names a package that has been replaced.
    apt_get install "$@" || { sleep 5; apt_get update; apt_get install "$@"; } || skip "$name" "apt-get install $* failed"
  fi
}

apt_get() {
  local verb="$1"
  shift
  DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 --no-install-recommends "$verb" "$@" >&2
}

postgresql() {
  [ -n "$("$ROOT/scripts/postgres-bin.sh")" ] || install_debian PostgreSQL postgresql
}

# Lets one test set the clock of a server without touching the machine's.
fake_time() {
  command -v faketime >/dev/null || install_debian faketime faketime
}

# Debian 13 has a Node that will do; older ones do not, and then it is for whoever runs this to get one.
node_js() {
  "$ROOT/scripts/node-version.sh" 2>/dev/null && return
  command -v node >/dev/null || install_debian Node.js nodejs npm
  "$ROOT/scripts/node-version.sh" 2>/dev/null || skip Node.js "no Node.js 20.19 or newer; see https://nodejs.org"
}

chromium_browser() {
  command -v chromium >/dev/null || install_debian Chromium chromium
  # Without a font for Chinese, pictures of the console show boxes.
  [ -n "$(fc-list :lang=zh 2>/dev/null)" ] || install_debian "a Chinese font" fonts-wqy-microhei
}

shellcheck_program() {
  command -v shellcheck >/dev/null || install_debian shellcheck shellcheck
}

# Unoptimised: it runs for 4 seconds and would be optimised for minutes.
cargo_deny() {
  local home="$TOOLS/cargo-deny-$CARGO_DENY_VERSION"
  ln -sfn "$home/bin" "$TOOLS/cargo-deny"
  [ -x "$home/bin/cargo-deny" ] && return
  say "building cargo-deny $CARGO_DENY_VERSION into $home (once, about 2 minutes)"
  CARGO_TARGET_DIR="$home/build" CARGO_PROFILE_DEV_DEBUG=0 \
    cargo install --quiet --debug --locked --no-default-features --root "$home" "cargo-deny@$CARGO_DENY_VERSION" >&2 ||
    skip cargo-deny "cargo install cargo-deny failed"
  rm -rf "$home/build"
}

slurm() {
  PATH="$PATH:/usr/sbin" command -v slurmctld >/dev/null || install_debian Slurm munge slurm-wlm
}

# For tests of limits that Slurm keeps for each user.
slurm_accounting() {
  # The tools of the database's two packages are needed, not a server of this machine's.
  local program
  for program in slurmdbd mariadbd my_print_defaults; do
    PATH="$PATH:/usr/sbin" command -v "$program" >/dev/null && continue
    install_debian "Slurm's accounting" slurmdbd mariadb-server-core mariadb-client-core
    return
  done
}

# A second system in our cache, as Debian has one release of Slurm at a time.
newer_slurm() {
  ! "$ROOT/scripts/newer-slurm.sh" there || return 0
  PATH="$PATH:/usr/sbin" command -v debootstrap >/dev/null || install_debian debootstrap debootstrap
  "$ROOT/scripts/newer-slurm.sh" make || skip "a newer Slurm" "scripts/newer-slurm.sh make failed"
}

# For tests of servers on Slurm that are not root.
sudo_program() {
  command -v sudo >/dev/null || install_debian sudo sudo
}

case "${1:-}" in
  test) postgresql; slurm; slurm_accounting; newer_slurm; sudo_program; fake_time; shellcheck_program; cargo_deny; node_js; chromium_browser ;;
  lint) shellcheck_program; cargo_deny ;;
  bench) slurm ;;
  *) say "usage: scripts/provision.sh test|lint|bench"; exit 2 ;;
esac

if [ "$missing" = 1 ] && [ "${CI:-}" = true ]; then
  say "error: with CI=true nothing may be missing"
  exit 1
fi
