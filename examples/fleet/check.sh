# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Checks the arguments LIST OUT [OPTION]... of parallel.sh and slurm.sh, which read this file.
fail() {
  echo "$(basename "$0"): $1" >&2
  exit 255
}
[[ $# -ge 2 ]] || fail "usage: $(basename "$0") LIST OUT [OPTION]..."
[[ -f $1 && -s $1 ]] || fail "the list $1 is empty, or not a file"
for file in "$2"/*.jsonl.zst; do
  # The questions would count them again.
  [[ ! -e $file ]] || fail "$2 has stacks of an earlier run: remove them, or use another directory"
done
