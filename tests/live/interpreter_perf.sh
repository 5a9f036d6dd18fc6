#!/bin/sh
# SPDX-License-Identifier: MIT
# perf names the functions of an interpreter that uses trampolines, in the order of their calls,
# with frame pointers and a map, and with unwinding and a dump:
# interpreter_perf.sh INTERPRETER PROGRAM
# Exit status 77: perf is not installed, or may not record.
set -eu
interpreter=$(readlink -f "$1") program=$(readlink -f "$2")
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # closures in reference cycles are never freed
export ASAN_OPTIONS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$program" demo.lisp

printf '2.4e+06\n17711\n300003\n144\n' >expected.txt
for backend in map jitdump both none; do
  "$interpreter" $backend demo.lisp "$work" >out.txt &
  pid=$!
  wait $pid
  rm -f "/tmp/perf-$pid.map"
  cmp expected.txt out.txt
done

command -v perf >/dev/null || { echo "skipped: no perf here"; exit 77; }
perf record -q --no-bpf-event -e cpu-clock -k mono -o probe.data true >/dev/null 2>probe.log ||
  { echo "skipped: perf may not record here: $(head -n 1 probe.log)"; exit 77; }

# The Lisp functions of each stack, innermost first, one stack per line.
stacks() {
  perf script --no-inline "$@" -F ip,sym 2>/dev/null |
    awk '/lisp::/ { line = line " " $2 }
         !NF { if (line != "") print line; line = "" }
         END { if (line != "") print line }'
}

check() {
  found=$(grep -c '^ lisp::leaf:demo.lisp lisp::middle:demo.lisp lisp::outer:demo.lisp$' \
    stacks.txt || :)
  echo "$1: $found stacks with leaf, middle and outer"
  ! grep 'lisp::outer:.* lisp::\(leaf\|middle\):' stacks.txt || exit 1
  [ "$found" -ge 10 ] || { sort stacks.txt | uniq -c | sort -rn | head; echo "try again: $1: $found stacks with leaf"; exit 1; }
  deep=$(grep -cE '( lisp::fib:demo.lisp){5}' stacks.txt || :)
  echo "$1: $deep stacks with five of fib and more"
  [ "$deep" -ge 5 ] || { echo "try again: $1: $deep stacks with five of fib"; exit 1; }
}

perf record -q --no-bpf-event -e cpu-clock -F 5000 -g -o perf.data "$interpreter" map demo.lisp >out.txt
cmp expected.txt out.txt
stacks -i perf.data >stacks.txt
perf script -i perf.data -F pid | sort -un | while read -r pid; do rm -f "/tmp/perf-$pid.map"; done
check "map"

perf version --build-options | grep -qE '(libdw-dwarf-unwind|libunwind): \[ on' ||
  { echo "this perf does not unwind"; exit 0; }
perf record -q --no-bpf-event -e cpu-clock -F 2000 -k mono --call-graph dwarf,16384 -o perf.data \
  "$interpreter" jitdump demo.lisp "$work" >out.txt
cmp expected.txt out.txt
perf inject --jit -i perf.data -o jitted.data
stacks -i jitted.data >stacks.txt
check "jitdump"
