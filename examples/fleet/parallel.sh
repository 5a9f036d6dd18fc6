#!/bin/bash
# SPDX-License-Identifier: MIT
# Converts all recordings of a list on this machine: parallel.sh LIST OUT [OPTION]...
#
# GNU parallel gives each job 50 recordings, and runs as many jobs as there are processors. Job N writes
# OUT/N.jsonl.zst. Exit status:
#
#   0    OUT has the stacks of all recordings
#   1…   the number of jobs that failed, at most 101; OUT/jobs has the exit status of each (see stacks.sh)
#   255  nothing was converted
set -eu
. "$(dirname "$0")/check.sh"
list=$1
out=$2
shift 2
mkdir -p -- "$out"
# Quoted for the shell that runs the job. %q also quotes braces, which GNU parallel would replace.
job=$(printf '%q %q/{#}.jsonl.zst' "$(dirname "$0")/stacks.sh" "$out")
for option; do job+=$(printf ' %q' "$option"); done
PARALLEL_SHELL=$BASH exec parallel --pipe -N "${RECORDINGS_EACH:-50}" --joblog "$out/jobs" "$job" <"$list"
