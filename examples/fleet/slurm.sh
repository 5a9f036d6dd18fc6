#!/bin/bash
# SPDX-License-Identifier: MIT
# Converts all recordings of a list on a cluster whose nodes have the same files: slurm.sh LIST OUT [OPTION]...
#
# It submits itself as a job array, with a task for each 50 recordings. Task N writes OUT/N.jsonl.zst, and its
# exit status is that of stacks.sh. Environment variables are the options of sbatch, such as SBATCH_PARTITION.
# To run task 7 again:
#
#   STACKS=$PWD/stacks.sh sbatch --array=7 slurm.sh LIST OUT [OPTION]...
#
#SBATCH --job-name=stacks
#SBATCH --ntasks=1 --cpus-per-task=1
set -eu
each=${RECORDINGS_EACH:-50}
if [ -z "${SLURM_ARRAY_TASK_ID-}" ]; then
  . "$(dirname "$0")/check.sh"
  # Slurm runs a copy of this file, elsewhere.
  STACKS=$(realpath "$(dirname "$0")")/stacks.sh
  export STACKS
  exec sbatch --array="1-$((($(grep -c '' <"$1") + each - 1) / each))" "$0" "$@"
fi
list=$1
out=$2
shift 2
last=$((SLURM_ARRAY_TASK_ID * each))
mkdir -p -- "$out"
sed -n "$((last - each + 1)),${last}p" "$list" |
  "${STACKS:?is not the path of stacks.sh}" "$out/$SLURM_ARRAY_TASK_ID.jsonl.zst" "$@"
