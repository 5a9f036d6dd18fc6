#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests which text 'perfmap help COMMAND' prints: help_page.sh PERFMAP SCRATCH. Exits with 77 if there
# is no man.
set -eu
perfmap=$1 scratch=$2
command -v man >/dev/null || { echo "skipped: no man here"; exit 77; }

rm -rf "$scratch"
mkdir -p "$scratch/bin" "$scratch/share/man/man1"
cp "$perfmap" "$scratch/bin/perfmap"
printf '.TH perfmap-lint 1\n.SH NAME\nthe page of this version\n' >"$scratch/share/man/man1/perfmap-lint.1"

# expect TEXT COMMAND...: the command prints TEXT.
expect() {
  text=$1
  shift
  "$@" >"$scratch/out"
  grep -qF -e "$text" "$scratch/out" || { echo "'$*' does not print '$text':"; cat "$scratch/out"; exit 1; }
}
man "$scratch/share/man/man1/perfmap-lint.1" 2>/dev/null | grep -q 'this version' ||
  { echo "skipped: man shows no page here"; exit 77; }
expect "the page of this version" "$scratch/bin/perfmap" help lint
expect "Usage: perfmap tidy" "$scratch/bin/perfmap" help tidy
expect "Usage: perfmap lint" env PATH=/nonexistent "$scratch/bin/perfmap" help lint
echo "help shows the installed page"
