#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs a test with a /tmp of its own: own_tmp.sh COMMAND...
#
# Perf maps and jitdumps that a test leaves in /tmp would otherwise be those of later processes with
# the same pids, which come again after minutes if the kernel has few. Only root may mount, and a
# build in /tmp would not be seen: then the command runs with the /tmp of all.
umask 022 # perfmap reports maps that a group may write
! command -v perf >/dev/null || PATH=$(dirname "$(realpath "$0")")/bin:$PATH
case $PWD in
  /tmp | /tmp/*) exec "$@" ;;
esac
unshare --mount true 2>/dev/null || exec "$@"
place=$(mktemp -d "$PWD/tmp-XXXXXX") || exit 1
chmod 1777 "$place"
unshare --mount --propagation private sh -c 'mount --bind "$0" /tmp && exec "$@"' "$place" "$@"
status=$?
rm -rf "$place"
exit $status
