#!/bin/sh
# SPDX-License-Identifier: MIT
# perf reads names, lines and unwinding information of a dump that our library wrote, after
# `perf inject` and after `perfmap inject`: jitdump_perf.sh JIT PERFMAP
# Exit status 77: perf is not installed, or may not record.
set -eu
jit=$(readlink -f "$1")
perfmap=$(readlink -f "$2")
command -v perf >/dev/null || { echo "skipped: no perf here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
perf record -q --no-bpf-event -e cpu-clock -k mono -o probe.data true >/dev/null 2>probe.log ||
  { echo "skipped: perf may not record here: $(head -n 1 probe.log)"; exit 77; }

status=0
perf record -q --no-bpf-event -e cpu-clock -k mono --call-graph dwarf,1024 -o perf.data "$jit" "$work" 300 ||
  status=$?
[ $status -ne 77 ] || { echo "skipped: the example knows no code for this machine"; exit 77; }
[ $status -eq 0 ]
perf inject --jit -i perf.data -o by-perf.data
"$perfmap" inject perf.data -o by-perfmap.data

check() {
  perf script --no-inline -i "$1.data" -F ip,sym,srcline >script.txt 2>/dev/null
  # The source of a frame is on the next line.
  awk '{ print before " " $0; before = $0 }' script.txt >frames.txt
  # The lines of each function's loop; a sample may hit an instruction after the slow one.
  for expected in 'jit::count_down .*countdown\.src:1[1-3]$' 'jit::count_again .*countdown\.src:2[1-3]$'; do
    found=$(grep -cE "$expected" frames.txt || :)
    echo "$1: $found samples match '$expected'"
    [ "$found" -ge 10 ] || { head -n 40 script.txt; echo "try again: $1: $found samples match '$expected'"; exit 1; }
  done

  perf version --build-options | grep -qE '(libdw-dwarf-unwind|libunwind): \[ on' ||
    { echo "this perf does not unwind"; return; }
  callers=$(grep -A 2 'jit::count' script.txt | grep -cE ' (run|main)$' || :)
  echo "$1: $callers samples were unwound into the caller"
  [ "$callers" -ge 10 ] || { head -n 40 script.txt; echo "try again: $1: $callers unwound samples"; exit 1; }
}

check by-perf
check by-perfmap
