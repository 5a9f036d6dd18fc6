#!/bin/sh
# SPDX-License-Identifier: MIT
# A step of packages.py in a copy of a minimal Debian, in a mount namespace of its own:
# use_packages.sh BASE PLACE install|use|remove
set -eu
base=$1 place=$2 step=$3
root=$place/root
if [ "$step" = install ]; then
  cp -a "$base" "$root"
  find "$root" -xdev -path "$root/tmp" -prune -o -print | sort >"$place/before"
fi
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir -p "$root/mnt" && mount --bind "$place/input" "$root/mnt"
mkdir -p "$base/../archives" && mount --bind "$base/../archives" "$root/var/cache/apt/archives"
inside() {
  chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"
}

case $step in
  install)
    inside apt-get -qq update
    inside sh -c 'apt-get -qq install -y --no-install-recommends man-db /mnt/packages/*.deb'
    ;;
  use)
    printf "7f0000001000 20 jit::answer\n" >"$place/input/perf.map"
    inside perfmap lint /mnt/perf.map
    inside perfmap info /mnt/jit-683-lines.dump | grep -q jitdump
    inside man -w perfmap perfmap-lint perfmap-map libperfmap
    inside man perfmap-lint | grep -q 'perfmap lint'
    test -s "$root/usr/share/bash-completion/completions/perfmap"
    inside ldconfig -p | grep -q 'libperfmap-profile\.so\.0'
    for program in "$place"/input/consumers/*; do
      inside "/mnt/consumers/$(basename "$program")"
      grep -q 'jit::answer' "$root"/tmp/perf-*.map
      rm "$root"/tmp/perf-*.map
    done
    ;;
  remove)
    inside apt-get -qq remove -y perfmap
    test ! -e "$root/usr/bin/perfmap"
    inside apt-get -qq purge -y libperfmap0 libperfmap-writer0 libperfmap-dev perfmap-dbg
    inside dpkg -l | grep perfmap && exit 1
    inside ldconfig -p | grep perfmap && exit 1
    find "$root" -xdev -path "$root/tmp" -prune -o -path "$root/mnt" -prune -o -path "$root/var/cache" -prune \
      -o -name '*perfmap*' -print | sort >"$place/left"
    if grep -vxF -f "$place/before" "$place/left"; then
      echo "the packages left these files" >&2
      exit 1
    fi
    ;;
esac
