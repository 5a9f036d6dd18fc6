#!/bin/sh
# SPDX-License-Identifier: MIT
# Inputs of extreme size: hostile_sizes.sh PERFMAP
# Each command has limits of address space and processor time, far above its needs.
set -eu
perfmap=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
free=$(df -Pk . | awk 'NR == 2 { print $4 }')
if [ "$free" -lt 600000 ]; then
  echo "skipped: less than 600 MB of room in $work"
  exit 77
fi

fail() {
  echo "$1"
  exit 1
}

room=850000 # KiB of address space

# bounded STATUS COMMAND...: checks the exit status; output is in the files out and err
bounded() {
  want=$1
  shift
  status=0
  # shellcheck disable=SC3045
  (ulimit -v $room && ulimit -t 60 && exec timeout 600 "$perfmap" "$@") >out 2>err || status=$?
  [ "$status" = "$want" ] || fail "$*: exit $status, not $want: $(head -c 300 err)"
}

says() {
  [ "$(cat out err | head -c 1000)" = "$1" ] || fail "says $(cat out err | head -c 1000), not $1"
}

# A million identical ranges.
line='7f0000001000 100 identical'
yes "$line" | head -n 1000000 >same.map
for overlap in last first inner perf; do
  bounded 0 resolve 0x7f0000001001 --map same.map --overlap $overlap
  says '7f0000001001 identical+0x1 (same.map)'
done
bounded 0 tidy same.map
says "$line"
bounded 0 merge same.map same.map
says "$line"
bounded 1 lint same.map --statistics
grep -q ' 999999  PM' out || fail "lint counts $(cat out)"
bounded 0 to-json same.map --to jsonl --effective
says '{"start":"0x7f0000001000","size":256,"name":"identical","line":1000000}'
rm same.map

# A million ranges, each inside the previous one.
awk 'BEGIN { for (i = 0; i < 1000000; i++) printf "%x %x nested\n", 268435456 + i, 2 * (1000000 - i) }' >nested.map
bounded 0 resolve 0x10000001 --map nested.map
says '10000001 nested+0x0 (nested.map)'
bounded 0 -q tidy nested.map -o tidy.map
[ "$(tail -n 1 tidy.map)" = "101e847f 1 nested" ] || fail "tidy ends in $(tail -n 1 tidy.map)"
bounded 1 -q lint nested.map
rm nested.map tidy.map

# Entries of 32 MiB without code: the map and the JSON are small, but the dump would be large.
yes '1000 2000000 large' | head -n 2000 >large.map
bounded 2 convert large.map --to jitdump -o large.dump
says 'perfmap: error: large.map cannot be converted: the jitdump would have more than 1 GiB, mostly zeros'
{
  printf '{"header":{"order":"little"},"source":{"kind":"jitdump"}}\n'
  yes '{"start":"0x1000","size":33554432,"name":"large"}' | head -n 2000
} >large.json
bounded 2 from-json large.json --to jitdump -o large.dump
says 'perfmap: error: large.json:33:1: the jitdump would have more than 1 GiB, with zeros for missing code'
[ ! -e large.dump ] || fail "a dump was left"

# A line of 1 GiB of NUL bytes, and one of 256 MiB with a long name.
room=2500000
truncate -s 1G line.map
bounded 0 resolve 0x1000 --map line.map
says "1000 [unknown] ([unknown])
perfmap: skipped 1 malformed line (run 'perfmap lint' for details)"
bounded 1 -q lint line.map
rm line.map
room=700000
{
  printf '1000 10 '
  head -c 268435456 /dev/zero | tr '\0' a
  printf '\n2000 10 behind\n'
} >name.map
bounded 0 resolve 0x2001 --map name.map
says '2001 behind+0x1 (name.map)'
bounded 0 -q tidy name.map
[ "$(wc -c <out)" -lt 5000 ] || fail "tidy prints $(wc -c <out) bytes"
bounded 0 -q info name.map

# Endless input that is not a log.
bounded 2 pypylog /dev/zero
says 'perfmap: error: /dev/zero is not a PyPy log: no line begins or ends a section'
mkfifo endless
yes 'no section' >endless 2>/dev/null &
bounded 2 pypylog endless
says 'perfmap: error: endless is not a PyPy log: no line begins or ends a section'
