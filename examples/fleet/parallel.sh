#!/bin/sh
# SPDX-License-Identifier: MIT
# All recordings of a list on this machine: parallel.sh LIST OUT [OPTION]...
#
# GNU parallel gives each job 50 recordings, and runs as many jobs as there are processors. Its exit
# status is the number of jobs that could not read all of theirs; OUT/jobs says which.
set -eu
list=$1
out=$2
shift 2
mkdir -p "$out"
exec parallel --pipe -N "${RECORDINGS_EACH:-50}" --joblog "$out/jobs" \
  "$(dirname "$0")/stacks.sh" "$out/{#}.jsonl.zst" "$@" <"$list"
