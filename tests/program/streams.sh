#!/bin/sh
# SPDX-License-Identifier: MIT
# Output that cannot be written, and closed standard descriptors: streams.sh PERFMAP
set -eu
perfmap=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
i=0
while [ $i -lt 9000 ]; do # more than a pipe holds
  printf '%x 10 a_function_of_some_length_%d\n' $((4096 + i * 16)) $i
  i=$((i + 1))
done >big.map
printf 'bad\n1000 10 foo\n' >perf.map

fail() {
  echo "$1"
  exit 1
}

# expect STATUS STDERR SHELL-COMMAND: the command may use $perfmap
expect() {
  status=0
  perfmap=$perfmap sh -c "$3" 2>stderr || status=$?
  [ "$status" = "$1" ] || fail "$3: exit $status, not $1"
  [ "$(cat stderr)" = "$2" ] || fail "$3: says $(cat stderr)"
}

full='perfmap: error: cannot write standard output: No space left on device'
closed='perfmap: error: cannot write standard output: Bad file descriptor'
for command in help --version 'completions zsh' '-q tidy big.map' '-q to-json big.map' \
  '-q info big.map'; do
  expect 2 "$full" "\$perfmap $command >/dev/full"
  expect 2 "$closed" "\$perfmap $command >&-"
done
expect 2 'perfmap: error: cannot read -: Bad file descriptor' '$perfmap info - <&-'

# An empty file name.
expect 2 "perfmap: error: cannot write '': No such file or directory" '$perfmap tidy perf.map -o ""'

# A line that is too long is reported, and later lines are still processed.
{
  echo 1000
  head -c 70000000 /dev/zero | tr '\0' 1
  printf '\nzz\n1004\n'
} >long.txt
expect 2 "-:2:1: a line of more than 64 MiB
-:3:1: 'zz' is not a hexadecimal address" '$perfmap resolve - --map big.map <long.txt >answers'
[ "$(wc -l <answers)" = 2 ] || fail "answers to two addresses: $(cat answers)"
expect 2 "-:1:5: expected address, size and name
-:2:1: a line of more than 64 MiB
-:3:1: expected a hexadecimal address
-:4:5: expected address, size and name" '$perfmap write -o written.map <long.txt'

# A closed pipe: the command dies from SIGPIPE, or ends silently if SIGPIPE is ignored.
ended() { # TRAP ARGUMENTS: prints exit status and messages of the command with a closed pipe
  mkfifo pipe
  (
    eval "$1"
    exec 3<>pipe 4>pipe 3<&- # a pipe without a reader
    rc=0
    "$perfmap" $2 >&4 2>stderr || rc=$?
    echo "$rc" >status
  )
  rm pipe
  echo "$(cat status) $(cat stderr)"
}
for command in 'tidy big.map' 'to-json big.map' 'to-json --to jsonl big.map' 'info big.map' \
  'lint perf.map' 'diff big.map perf.map' help; do
  got=$(ended : "$command")
  [ "$got" = '141 ' ] || fail "$command into a closed pipe ends with $got"
  got=$(ended 'trap "" PIPE' "$command")
  [ "$got" = '0 ' ] || fail "$command into a closed pipe, SIGPIPE ignored, ends with $got"
done

# A message must not be written to a file that got the number of a closed descriptor.
"$perfmap" tidy perf.map -o out.map 2>&- >&- || fail 'tidy with closed descriptors fails'
[ "$(cat out.map)" = '1000 10 foo' ] || fail "a message went into the map: $(cat out.map)"
"$perfmap" tidy --in-place perf.map 0<&- 2>&- >&- || fail 'tidy in place, all closed, fails'
[ "$(cat perf.map)" = '1000 10 foo' ] || fail "a message went into the map: $(cat perf.map)"
echo "streams are minded"
