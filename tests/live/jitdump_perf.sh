#!/bin/sh
# perf takes the dump that a program writes with us, its names, lines and unwinding information:
# jitdump_perf.sh JIT. 77: perf is not here, or may not record.
set -eu
jit=$(readlink -f "$1")
command -v perf >/dev/null || { echo "skipped: no perf here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
perf record -q -e cpu-clock -k mono -o probe.data true >/dev/null 2>probe.log ||
  { echo "skipped: perf may not record here: $(head -n 1 probe.log)"; exit 77; }

status=0
perf record -q -e cpu-clock -k mono --call-graph dwarf,1024 -o perf.data "$jit" "$work" 300 ||
  status=$?
[ $status -ne 77 ] || { echo "skipped: the example knows no code for this machine"; exit 77; }
[ $status -eq 0 ]
perf inject --jit -i perf.data -o jitted.data
perf script --no-inline -i jitted.data -F ip,sym,srcline >script.txt 2>/dev/null

# Each frame has its source on the line behind it.
awk '{ print before " " $0; before = $0 }' script.txt >frames.txt
# The lines of each function's loop; an instruction that waits takes the blame for those before.
for expected in 'jit::count_down .*countdown\.src:1[1-3]$' 'jit::count_again .*countdown\.src:2[1-3]$'; do
  found=$(grep -cE "$expected" frames.txt || :)
  echo "$found samples match '$expected'"
  [ "$found" -ge 10 ] || { head -n 40 script.txt; exit 1; }
done

perf version --build-options | grep -qE '(libdw-dwarf-unwind|libunwind): \[ on' ||
  { echo "this perf does not unwind"; exit 0; }
callers=$(grep -A 2 'jit::count' script.txt | grep -cE ' (run|main)$' || :)
echo "$callers samples were unwound into the caller"
[ "$callers" -ge 10 ] || { head -n 40 script.txt; exit 1; }
