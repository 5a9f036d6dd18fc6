#!/bin/sh
# SPDX-License-Identifier: MIT
# Commands on a running Node.js process: node.sh PERFMAP. Exit status 77: node is not installed.
set -eu
perfmap=$1
command -v node >/dev/null || { echo "skipped: no node here"; exit 77; }

# V8 also writes logs to its working directory.
work=$(mktemp -d)
perfmap=$(readlink -f "$perfmap")
cd "$work"
node --perf-basic-prof --perf-prof -e '
  function hotLoop(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }
  const end = Date.now() + 600000;
  const tick = () => { hotLoop(3e6); if (Date.now() < end) setTimeout(tick, 1); };
  tick();' &
pid=$!
trap 'kill $pid 2>/dev/null; rm -rf /tmp/perf-$pid.map "$work"' EXIT
map=/tmp/perf-$pid.map
tries=0
until grep -q ':\*hotLoop ' "$map" 2>/dev/null; do
  tries=$((tries + 1))
  [ $tries -lt 2000 ] || { echo "try again: node wrote no optimised hotLoop"; exit 1; }
  sleep 0.1
done

start=$(grep ':\*hotLoop ' "$map" | tail -n 1 | cut -d' ' -f1)
answer=$("$perfmap" resolve "$start" -m "$map")
echo "$answer"
echo "$answer" | grep -q 'hotLoop .*+0x0 (/tmp/perf-'

# It has also mapped a jitdump in its working directory, which is preferred to the map.
dump=$work/jit-$pid.dump
tries=0
until "$perfmap" resolve "$start" --pid $pid | grep -q "hotLoop .*+0x0 ($dump)"; do
  tries=$((tries + 1))
  [ $tries -lt 2000 ] || { echo "try again: no hotLoop in $dump"; exit 1; }
  sleep 0.1 # V8 writes through a buffer
done
"$perfmap" resolve "$start" --pid $pid --lines --format json | grep -q '"source_line":2'
"$perfmap" info "$dump" | grep -q 'lost bytes *0'
"$perfmap" to-json "$dump" --code | "$perfmap" from-json - --to jitdump -o copy.dump
cmp -n "$(stat -c %s copy.dump)" copy.dump "$dump"
"$perfmap" info $pid | grep -q 'runtime *v8'
"$perfmap" lint --fail-level error --format gcc "$map"
"$perfmap" lint --fail-level error --format gcc "$dump"
"$perfmap" lint --fail-level error --format gcc $pid >found # both files, and compared with each other
"$perfmap" tidy $pid | "$perfmap" resolve "$start" -s - | grep -q hotLoop
printf 'node %s/%s 9999999.000000: cycles: \n\t%s [unknown] ([unknown])\n' $pid $pid "$start" |
  "$perfmap" resolve --perf-script | grep -q hotLoop
echo "node's own map and jitdump answer by pid"
