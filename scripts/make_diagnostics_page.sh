#!/bin/sh
# Prints docs/diagnostics.md from the program's own rules: make_diagnostics_page.sh PERFMAP
set -eu
cat <<'HEAD'
# Diagnostics

What `perfmap lint` finds in a perf map. Made by `scripts/make_diagnostics_page.sh` from the
program; `perfmap lint --explain ID` prints one of these.
HEAD
"$1" lint --rules | while read -r id _; do
  printf '\n## %s\n\n' "$id"
  "$1" lint --explain "$id"
done
