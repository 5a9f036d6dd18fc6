#!/bin/sh
# How long perf and perfmap take to name the JIT samples of a recording, in one run:
# against_perf.sh PERFMAP PERF_DATA JITDUMP. The recording is one of `perf record -k mono`, whose
# marker names the dump by the path given here; beside it perf leaves one file for each function.
set -eu
perfmap=$(realpath "$1") data=$(realpath "$2") dump=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export HOME="$work" # where perf keeps build-ids

seconds() { # COMMAND...: how long it takes
  begin=$(date +%s%N)
  "$@" >out 2>err || { cat err && exit 1; }
  end=$(date +%s%N)
  echo "$begin $end" | awk '{ printf "%.3f", ($2 - $1) / 1e9 }'
}

perf script --ns -i "$data" -F time,ip 2>/dev/null >frames
# Of code inside a file, such as the builtins in Node.js, perf prints addresses in that file: those
# are asked for, too, and have no name in the dump.
# "4513.566110008:" begins a sample, its addresses follow, one a line.
awk '$1 ~ /:$/ { sub(":", "", $1); time = $1; next } NF == 1 { print $1, time }' frames >queries
inject=$(seconds perf inject --jit -i "$data" -o injected.data)
script=$(seconds perf script --ns -i injected.data -F ip,sym,dso)
named=$(grep -c 'jitted-' out || true)
own=$(seconds "$perfmap" resolve - --jitdump "$dump" <queries)
answered=$(grep -vc '\[unknown\]' out || true)
echo "perf inject $inject s, perf script $script s: $named frames named"
echo "perfmap resolve $own s: $answered of $(wc -l <queries) addresses named"
echo "$inject $script $own" | awk '{ printf "%.0f times as fast\n", ($1 + $2) / $3 }'
