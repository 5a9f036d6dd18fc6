#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs README's test command on a system with nothing installed: bare_root.sh [DIR]
#                                                               bare_root.sh --base [DIR]
#
# Makes two copies of a minimal Debian 12 (debootstrap's minbase) in DIR (default: /var/tmp/perfmap-bare-root; 3 GB). In
# the first one, root builds and tests the sources of HEAD, without .git and unpacked with umask 002, in a directory
# that only root may enter. In the second one, a user with sudo gets a copy of that tree, and runs the tests. In both,
# the tree has the same path as on this machine. Afterwards, the build becomes build/release of this tree, if this tree
# has none.
#
# Uses the mirror that apt is configured with. The next run uses DIR/base, the minimal Debian, and the downloaded
# packages again. With --base, only makes DIR/base, and prints its path. The exit status is 77 if the machine lacks
# something: root, debootstrap, a mirror, or permission to mount.
#
#   PERFMAP_BARE_AS=root  do not repeat the tests as a user
#   PERFMAP_JOBS          as for ./dev test
set -euo pipefail

tree=$(dirname "$(dirname "$(readlink -f "$0")")")

# In separate namespaces: mounts and processes end with it.
if [ "${1:-}" = --inside ]; then
  root=$2 user=$3
  mount --bind "$root" "$root" # unshare(1) needs a mount point as the root
  mount -t proc proc "$root/proc"
  mount -t sysfs sysfs "$root/sys"
  mount --rbind /dev "$root/dev"
  mkdir -p "$root/../archives" && mount --bind "$root/../archives" "$root/var/cache/apt/archives"
  environment=(-i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    PERFMAP_JOBS="${PERFMAP_JOBS:-$(nproc)}" PERFMAP_CCACHE=off)
  inside() { chroot "$root" env "${environment[@]}" "$@"; }
  if [ "$user" = root ]; then
    inside HOME=/root sh -c 'umask 002; cd "$0" && ./dev test' "$tree"
  else
    inside sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends sudo >/dev/null'
    inside useradd --create-home --shell /bin/bash user
    echo 'user ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/user"
    inside chown -R user: "$tree"
    # The user may enter the directories above the tree, as those of a home directory.
    above=$(dirname "$tree")
    while [ "$above" != / ]; do chmod a+x "$root$above" && above=$(dirname "$above"); done
    inside su --login user --whitelist-environment=PERFMAP_JOBS,PERFMAP_CCACHE \
      --command "umask 002; cd $(printf %q "$tree") && ./dev test"
  fi
  exit
fi

only_base=
if [ "${1:-}" = --base ]; then
  only_base=1
  shift
fi
place=${1:-/var/tmp/perfmap-bare-root}
cannot() {
  echo "skipped: bare root: $1" >&2
  exit 77
}
[ "$(id -u)" -eq 0 ] || cannot "only root can make one"
command -v debootstrap >/dev/null || cannot "needs debootstrap (apt-get install debootstrap)"
unshare --mount --propagation private --pid --kill-child mount -t tmpfs none /mnt 2>/dev/null || cannot "mounting is not allowed here"
mkdir -p "$place"
place=$(readlink -f "$place")
[ -e "$place/.perfmap-bare-root" ] || [ -z "$(ls -A "$place")" ] ||
  { echo "bare-root: $place is neither empty nor of an earlier run" >&2; exit 1; }
exec 9>>"$place/.perfmap-bare-root" # locked until this script and its children end
flock -n 9 || { echo "== waiting for another run in $place" >&2 && flock 9; }

make_base() {
  # The mirror that apt is configured with, so that no host name is in the tree.
  mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
    sed -n 's/^bookworm //p' | head -n 1)
  security=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
    sed -n 's/^bookworm-security //p' | head -n 1)
  [ -n "$mirror" ] || cannot "apt has no mirror of bookworm here"
  echo "== making a bare root of $mirror"
  debootstrap --variant=minbase bookworm "$place/base.partial" "$mirror" >"$place/debootstrap.log" ||
    { tail -n 5 "$place/debootstrap.log" >&2; cannot "debootstrap failed"; }
  [ -z "$security" ] || echo "deb $security bookworm-security main" >>"$place/base.partial/etc/apt/sources.list"
  [ ! -d /etc/apt/auth.conf.d ] || cp -a /etc/apt/auth.conf.d/. "$place/base.partial/etc/apt/auth.conf.d/"
  apt-config dump | grep -E '^Acquire::[a-z]+::Proxy ' >"$place/base.partial/etc/apt/apt.conf.d/99proxy" || true
  echo force-unsafe-io >"$place/base.partial/etc/dpkg/dpkg.cfg.d/unsafe-io" # losing it in a crash does no harm
  cp -L /etc/resolv.conf /etc/hosts "$place/base.partial/etc/"
  mv "$place/base.partial" "$place/base"
}

[ -d "$place/base" ] || { rm -rf "$place/base.partial" && make_base; }
if [ -n "$only_base" ]; then
  echo "$place/base"
  exit
fi

# The sources, as in a tarball of a release.
unpack_sources() {
  mkdir -p "$1"
  if [ -e "$tree/.git" ]; then
    git -c safe.directory="$tree" -C "$tree" archive HEAD
  else
    tar -C "$tree" --exclude=./build --exclude='./build-*' --exclude=./.cache -c .
  fi | (umask 002 && tar -C "$1" --no-same-permissions --no-same-owner -x)
}

# setpriv: when a signal ends this script, the kernel kills unshare, which kills the others.
run_as() {
  setpriv --pdeathsig KILL unshare --mount --propagation private --pid --kill-child \
    "$0" --inside "$place/$1" "$1" 2>&1 9>&- | tee "$place/$1.log"
}

rm -rf "$place/root" "$place/user"
failed=0
cp -a "$place/base" "$place/root"
unpack_sources "$place/root$tree"
chmod 700 "$place/root$tree"
echo "== ./dev test in a bare root, as root"
run_as root || failed=1
if [ "${PERFMAP_BARE_AS:-user}" = user ]; then
  echo "== the tests again, as a user with sudo"
  cp -a "$place/base" "$place/user"
  mkdir -p "$(dirname "$place/user$tree")"
  cp -a "$place/root$tree" "$place/user$tree"
  run_as user || failed=1
fi
if [ ! -e "$tree/build/release" ] && [ -e "$place/root$tree/build/release" ]; then
  mkdir -p "$tree/build"
  mv "$place/root$tree/build/release" "$tree/build/release"
else
  cp "$place/root$tree/build/release/"tests-first*.xml "$tree/build/release/" 2>/dev/null || true
fi
echo
for user in root user; do
  [ ! -e "$place/$user" ] || echo "in a bare root, as $user: $(tail -n 1 "$place/$user.log")   ($place/$user.log)"
done
exit $failed
