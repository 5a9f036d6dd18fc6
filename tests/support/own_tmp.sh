#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs a test with a /tmp of its own: own_tmp.sh COMMAND...
#
# Otherwise perf maps and jitdumps that a test leaves in /tmp belong to later processes with the same
# process IDs, which the kernel assigns again after minutes if it has few. Only root may mount, and a
# build in /tmp would become invisible: then the command runs with the /tmp of the machine.
umask 022 # perfmap reports maps that a group may write
! command -v perf >/dev/null || PATH=$(dirname "$(realpath "$0")")/bin:$PATH
case $PWD in
  /tmp | /tmp/*) exec "$@" ;;
esac
unshare --mount true 2>/dev/null || exec "$@"
place=$(mktemp -d "$PWD/tmp-XXXXXX") || exit 1
chmod 1777 "$place"
unset TMPDIR # it may be below the /tmp of all
# The test becomes this process. A process that no signal to the test reaches, not even that of ctest
# to its children, waits for its end.
(setsid sh -c 'tail -f -s 0.1 --pid="$1" /dev/null; rm -rf "$0"' "$place" $$ </dev/null >/dev/null 2>&1 &)
exec unshare --mount --propagation private sh -c 'mount --bind "$0" /tmp && exec "$@"' "$place" "$@"
