#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs README's commands on a system with nothing installed: bare_root.sh [DIR [RUN...]]
#                                                             bare_root.sh --base [DIR]
#
# Makes a minimal Debian 12 (debootstrap's minbase) in DIR (about 15 GB, default
# /var/tmp/perfmap-bare-root) twice, and runs `./dev build` and `./dev test RUN...` in it: as root
# in /root, which only root may enter; and as a user with sudo, from a tarball, with umask 002.
# Neither tree has a .git. Uses the mirror that apt is configured with. Needs root and debootstrap.
# DIR/base, the bare root, and downloaded packages are kept for the next run. If they are missing,
# they are made again. With --base, only the bare root is made, and its path printed; the exit status is 77 if
# that cannot be.
#
#   PERFMAP_BARE_AS=root|user  run only as this user
#   PERFMAP_BARE_CCACHE=DIR    compile with ccache and this cache; the user only reads it
#   PERFMAP_LIVE, PERFMAP_JOBS as for ./dev test
set -euo pipefail

if [ "${1:-}" = --inside ]; then # in its own mount namespace, so that no mount remains afterwards
  root=$2 user=$3
  shift 3
  mount -t proc proc "$root/proc"
  mount -t sysfs sysfs "$root/sys"
  mount --rbind /dev "$root/dev"
  mkdir -p "$root/../archives" && mount --bind "$root/../archives" "$root/var/cache/apt/archives"
  environment=(-i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    PERFMAP_LIVE="${PERFMAP_LIVE:-on}" PERFMAP_JOBS="${PERFMAP_JOBS:-$(nproc)}" PERFMAP_CCACHE=off)
  packages=()
  if [ -n "${PERFMAP_BARE_CCACHE:-}" ]; then
    mkdir -p "$root/ccache" && mount --bind "$PERFMAP_BARE_CCACHE" "$root/ccache"
    packages+=(ccache)
    base=/root
    [ "$user" = root ] || base=/home/user
    environment+=(CCACHE_DIR=/ccache CCACHE_BASEDIR=$base CCACHE_NOHASHDIR=1 PERFMAP_CCACHE=on
      CCACHE_COMPILERCHECK=content # the same compiler has another installation time
      LANG="${LANG:-}") # because ccache hashes it
    [ "$user" = root ] || environment+=(CCACHE_READONLY=1 CCACHE_TEMPDIR=/tmp/ccache)
  fi
  [ "$user" = root ] || packages+=(sudo)
  inside() { chroot "$root" env "${environment[@]}" "$@"; }
  [ ${#packages[@]} -eq 0 ] ||
    inside sh -c "apt-get -qq update && apt-get -qq install -y --no-install-recommends ${packages[*]} >/dev/null"
  if [ "$user" = root ]; then
    home=/root umask=022
    chmod 700 "$root/root"
  else
    home=/home/user umask=002
    inside useradd --create-home --shell /bin/bash user
    inside chmod 700 /home/user
    echo 'user ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/user"
  fi
  cat >"$root/tmp/run.sh" <<END
set -e
cd $home
umask $umask
mkdir perfmap
tar -C perfmap -xf /tmp/perfmap.tar
cd perfmap
for command in build "test $*"; do
  echo "== as $user: ./dev \$command"
  ./dev \$command
done
END
  kept=$(printf '%s\n' "${environment[@]}" | sed -n 's/^\([A-Z_]*\)=.*/\1/p' | grep -v '^PATH$' | paste -sd,)
  if [ "$user" = root ]; then
    inside HOME=/root bash /tmp/run.sh
  else
    inside su --login user --whitelist-environment="$kept" \
      --command 'bash /tmp/run.sh'
  fi
  exit
fi

tree=$(dirname "$(dirname "$(readlink -f "$0")")")
only_base= cannot=1
if [ "${1:-}" = --base ]; then
  only_base=1 cannot=77
  shift
fi
place=${1:-/var/tmp/perfmap-bare-root}
shift $(($# > 0))
[ "$(id -u)" -eq 0 ] || { echo "bare-root: only root can make a root" >&2; exit $cannot; }
command -v debootstrap >/dev/null ||
  { echo "bare-root: needs debootstrap (apt-get install debootstrap)" >&2; exit $cannot; }
mkdir -p "$place"
place=$(readlink -f "$place")
[ -e "$place/.perfmap-bare-root" ] || [ -z "$(ls -A "$place")" ] ||
  { echo "bare-root: $place is neither empty nor of an earlier run" >&2; exit 1; }
touch "$place/.perfmap-bare-root"

make_base() {
  # The mirror that apt is configured with, so that no host name is in the tree.
  mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
    sed -n 's/^bookworm //p' | head -n 1)
  security=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
    sed -n 's/^bookworm-security //p' | head -n 1)
  [ -n "$mirror" ] || { echo "bare-root: apt has no mirror of bookworm here" >&2; exit $cannot; }
  echo "== making a bare root of $mirror"
  debootstrap --variant=minbase bookworm "$place/base.partial" "$mirror" >"$place/debootstrap.log" ||
    { tail -n 5 "$place/debootstrap.log" >&2; exit $cannot; }
  [ -z "$security" ] || echo "deb $security bookworm-security main" >>"$place/base.partial/etc/apt/sources.list"
  [ ! -d /etc/apt/auth.conf.d ] || cp -a /etc/apt/auth.conf.d/. "$place/base.partial/etc/apt/auth.conf.d/"
  apt-config dump | grep -E '^Acquire::[a-z]+::Proxy ' >"$place/base.partial/etc/apt/apt.conf.d/99proxy" || true
  echo force-unsafe-io >"$place/base.partial/etc/dpkg/dpkg.cfg.d/unsafe-io" # can be made again
  cp -L /etc/resolv.conf /etc/hosts "$place/base.partial/etc/"
  mv "$place/base.partial" "$place/base"
}

[ -d "$place/base" ] || { rm -rf "$place/base.partial" && make_base; }
if [ -n "$only_base" ]; then
  echo "$place/base"
  exit
fi
rm -rf "$place/root" "$place/user"
tar -C "$tree" --exclude=./.git --exclude='./build' --exclude='./build-*' --exclude=./.cache \
  -cf "$place/base/tmp/perfmap.tar" .

failed=0
for user in ${PERFMAP_BARE_AS:-root user}; do
  cp -a "$place/base" "$place/$user"
  unshare --mount --propagation private "$0" --inside "$place/$user" "$user" "$@" 2>&1 |
    tee "$place/$user.log" || failed=1
done
echo
for user in ${PERFMAP_BARE_AS:-root user}; do
  echo "as $user: $(tail -n 1 "$place/$user.log")   ($place/$user.log)"
done
exit $failed
