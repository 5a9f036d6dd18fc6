#!/bin/sh
# What perfmap does, on a real Node.js map: demo.sh PERFMAP
set -eu
perfmap=$(readlink -f "$1")
cd "$(dirname "$0")/../tests/wild/node"
show() {
  printf '$ %s\n' "$*"
  shift
  "$perfmap" "$@" 2>&1 || true
  echo
}
show perfmap resolve 18c4010 32466b4bd7d1 10 --map perf-603.map
show perfmap info perf-603.map
show perfmap info --by tier perf-603.map
show perfmap lint --format gcc perf-603.map
