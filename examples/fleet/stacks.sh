#!/bin/bash
# SPDX-License-Identifier: MIT
# Converts listed recordings to JSON lines: stacks.sh OUT [OPTION]... <LIST
#
# LIST has a recording in each line, and after tabs its labels. OPTIONs go to perfmap stacks, such as
# --map-dir and --symfs. Exit status, which the messages explain:
#
#   0  OUT has the stacks of all recordings
#   1  nothing was written, and an older OUT is unchanged
#   2  OUT was written without the recordings that could not be read
set -u
out=${1:?OUT is missing}
shift
part=$out.part
trap 'rm -f "$part"' EXIT
"${PERFMAP:-perfmap}" -q stacks --recordings - --threads 1 --label host --label time "$@" --format jsonl |
  zstd -q >"$part"
statuses=("${PIPESTATUS[@]}")
[ "${statuses[1]}" = 0 ] || exit 1
case ${statuses[0]} in
  0) ;;
  2) [ -n "$(zstd -dcq "$part" | head -c 1)" ] || exit 1 ;;  # no line: no recording was read
  *) exit 1 ;;
esac
mv -fT "$part" "$out" || exit 1
exit "${statuses[0]}"
