#!/usr/bin/env bash
# newer-slurm.sh make: puts a Debian with a newer Slurm (26.05) than this machine's into our cache, once; as root.
# newer-slurm.sh there: whether it is there.
# newer-slurm.sh run COMMAND...: runs a command of this machine inside it, such as a test.
# newer-slurm.sh test CARGO-TEST-ARGUMENT...: `cargo test` with all its executables run inside it.
#
# DANLU_DEBIAN_MIRROR=http://… says where Debian comes from, where apt's own place for it is none that `debootstrap` can read.
#
# `run` sees this machine's folders where they are, in mounts of its own: they end with its last process, however that ends.
set -euo pipefail
# shellcheck source=scripts/paths.sh
. "$(dirname "$0")/paths.sh"

SUITE=forky
VERSION=26.05
SYSTEM="$DANLU_CACHE/slurm-$VERSION"

# Where apt gets this machine's own Debian from.
known_to_apt() {
  # shellcheck disable=SC2016 # apt's own
  apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' 'Label: Debian' | sed -n 1p
}

# The same as an address that `debootstrap` can read: of a list of mirrors, the first by HTTP.
mirror() {
  local from list
  from="${DANLU_DEBIAN_MIRROR:-$(known_to_apt)}"
  # A machine that was just made has no lists yet, and knows nobody's origin.
  [ -n "$from" ] || { apt-get -q -o Acquire::Retries=5 update >&2; from="$(known_to_apt)"; }
  case "$from" in
    mirror+file:*)
      list="${from#mirror+file:}"
      from="$(sed -nE 's,^(https?://[^[:space:]]+).*,\1,p' "$list" | sed -n 1p)"
      ;;
  esac
  case "$from" in
    http://* | https://*) echo "$from" ;;
    "") say "error: apt knows no Debian that Slurm $VERSION could come from: set DANLU_DEBIAN_MIRROR=http://…"; return 1 ;;
    *) say "error: debootstrap cannot read \`$from\`: set DANLU_DEBIAN_MIRROR=http://…"; return 1 ;;
  esac
}

# With all that tests want of it: one that was made before nodes had to fetch programs is made again.
is_made() { [ -e "$SYSTEM/ready" ] && [ -e "$SYSTEM/usr/bin/curl" ]; }

make() {
  ! is_made || return 0
  [ "$(id -u)" = 0 ] || { say "error: only root can make a system of its own for Slurm $VERSION"; return 1; }
  mkdir -p "$DANLU_CACHE"
  # Two at once would take each other's draft away.
  exec 9>"$SYSTEM.lock"
  flock 9
  ! is_made || return 0
  # Of some hundred packages one may fail to come. By itself, so that its first failure ends it.
  "$0" draft || { say "notice: that failed; once more"; "$0" draft; }
}

draft() {
  local draft="$SYSTEM.draft" from release
  from="$(mirror)"
  say "making a Debian $SUITE with Slurm $VERSION in $SYSTEM (once, some minutes)"
  rm -rf "$draft"
  mkdir -p "$draft"
  # In mounts of its own, as packages' scripts want `/proc`.
  # shellcheck disable=SC2016 # the inner shell's own
  unshare --mount sh -euc '
    draft=$1 suite=$2 from=$3
    export DEBIAN_FRONTEND=noninteractive
    debootstrap --variant=minbase "$suite" "$draft" "$from" /usr/share/debootstrap/scripts/sid
    printf "#!/bin/sh\nexit 101\n" >"$draft/usr/sbin/policy-rc.d"
    chmod 755 "$draft/usr/sbin/policy-rc.d"
    mount -t proc none "$draft/proc"
    mount --rbind /dev "$draft/dev"
    chroot "$draft" apt-get -q -y -o Acquire::Retries=5 -o Acquire::Check-Valid-Until=false update
    chroot "$draft" apt-get -q -y -o Acquire::Retries=5 --no-install-recommends install munge slurm-wlm sudo curl
    chroot "$draft" apt-get clean
    touch "$draft/etc/hosts"
    rm -rf "$draft"/var/lib/apt/lists/*
  ' sh "$draft" "$SUITE" "$from" >&2
  # Debian goes on: what it has by now is what is tested, and is named.
  release="$(chroot "$draft" slurmctld -V | sed -nE 's/^slurm(-wlm)? ([0-9]+\.[0-9]+).*/\2/p')"
  [ -n "$release" ] || { say "error: $SUITE has no Slurm that says its release"; return 1; }
  [ "$release" = "$VERSION" ] || say "notice: Debian $SUITE has Slurm $release by now, and not $VERSION: tests run on that"
  echo "$release" >"$draft/ready"
  rm -rf "$SYSTEM"
  mv "$draft" "$SYSTEM"
}

release_there() {
  local release
  read -r release <"$SYSTEM/ready" || release="$VERSION"
  echo "$release"
}

# The rest of this machine is there, at its place, but for what belongs to an operating system.
run() {
  is_made || { say "error: there is no Slurm $VERSION here yet: scripts/newer-slurm.sh make"; return 1; }
  # shellcheck disable=SC2016 # the inner shell's own
  exec unshare --mount --propagation private sh -euc '
    system=$1 here=$2 sources=$3 target=$4 cache=$5
    shift 5
    root=$system/mnt
    # Ours that lie where the system is another one.
    ours() {
      for folder in "$sources" "$target" "$cache"; do
        case $folder in /usr/* | /etc/* | /var/*) if [ -d "$folder" ]; then "$@" "$folder"; fi ;; esac
      done
    }
    make_place() { mkdir -p "$system$1"; }
    put() { mount --bind "$1" "$root$1"; }
    ours make_place
    mount -t tmpfs -o mode=755 none "$root"
    for place in /*; do
      own=$system$place inside=$root$place
      case $place in
        /bin | /sbin | /lib* | /usr | /etc | /var) ;;
        /run) mkdir "$inside"; continue ;;
        *) own=$place ;;
      esac
      if [ -L "$own" ]; then cp -P "$own" "$inside"; fi
      if [ -L "$own" ] || [ ! -d "$own" ]; then continue; fi
      mkdir "$inside"
      mount --rbind "$own" "$inside"
      case $own in "$system"*) mount -o remount,bind,ro "$inside" ;; esac
    done
    for file in passwd group hosts; do mount --bind "/etc/$file" "$root/etc/$file"; done
    mount --bind /var/tmp "$root/var/tmp"
    ours put
    exec chroot "$root" env --chdir="$here" "$@"
  ' sh "$SYSTEM" "$PWD" "$ROOT" "${CARGO_TARGET_DIR:-}" "$DANLU_CACHE" env DANLU_TEST_SLURM="$(release_there)" "$@"
}

# Cargo starts each test executable by way of us.
test() {
  local host
  host="$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')"
  export "CARGO_TARGET_${host}_RUNNER=$ROOT/scripts/newer-slurm.sh run"
  exec cargo test "$@"
}

case "${1:-}" in
  make) make ;;
  draft) draft ;;
  there) is_made ;;
  run) run "${@:2}" ;;
  test) test "${@:2}" ;;
  *) say "usage: scripts/newer-slurm.sh make|there|run COMMAND...|test CARGO-TEST-ARGUMENT..."; exit 2 ;;
esac
