#!/bin/sh
# SPDX-License-Identifier: MIT
# Converts listed recordings to JSON lines: stacks.sh OUT [OPTION]... <LIST
#
# LIST has a recording in each line, and after tabs its labels. OPTIONs go to perfmap stacks, such as
# --map-dir and --symfs. A recording that cannot be read is reported and left out; the exit status is
# then 2.
set -u
out=$1
shift
perfmap=${PERFMAP:-perfmap}
status=$(mktemp)
{
  "$perfmap" -q stacks --recordings - --threads 1 --label host --label time "$@" --format jsonl
  echo $? >"$status"
} | zstd -q -f -o "$out.part" && mv "$out.part" "$out"
result=$(cat "$status")
rm "$status"
exit "$result"
