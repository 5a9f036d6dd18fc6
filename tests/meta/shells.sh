#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests completion in the real shells: shells.sh SOURCE SHELL. Exits with 77 if the shell is not
# installed.
set -eu
source=$1 shell=$2
command -v "$shell" >/dev/null || { echo "skipped: no $shell here"; exit 77; }

# answer WORDS...: prints what the shell offers for the last word, one per line.
case $shell in
bash)
  answer() {
    bash -c '
      compopt() { [[ $2 == filenames ]] || compgen -f -- "${COMP_WORDS[COMP_CWORD]}"; }
      source "$0"/completions/perfmap.bash
      COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _perfmap
      printf "%s\n" "${COMPREPLY[@]}"' "$source" "$@"
  }
  ;;
zsh)
  # compinit reads all completion functions once, and then its dump of them.
  dump=$(mktemp -d)
  trap 'rm -r "$dump"' EXIT
  answer() {
    line="$*"
    SOURCE=$source LINE=$line DUMP=$dump/dump zsh -f -c '
      zmodload zsh/zpty
      zpty complete zsh -f -i
      zpty -w complete "PROMPT=; unsetopt zle_bracketed_paste 2>/dev/null; fpath=($SOURCE/completions \$fpath); autoload -Uz compinit; compinit -u -d $DUMP"
      zpty -w complete "zstyle \":completion:*\" list-prompt \"\"; LISTMAX=10000; stty -echo columns 200"
      # The list is complete when the widget prints the mark after it.
      zpty -w complete "list() { zle list-choices; zle -R; print -n LIS\"\"TED }; zle -N list; bindkey \"^X\" list; echo RE\"\"ADY"
      while zpty -r complete text; do [[ $text == *READY* ]] && break; done
      zpty -w -n complete "$LINE"$'"'"'\C-x'"'"'
      zpty -r -m complete text "*LISTED*" && print -r -- "$text"
      zpty -d complete' | tr ' ' '\n' | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g' | tr -d '\r'
  }
  ;;
fish)
  answer() { fish --no-config -c "source $source/completions/perfmap.fish; complete -C '$*'" | cut -f1; }
  ;;
esac

expect() { # WANTED WORDS...
  wanted=$1
  shift
  # zsh draws inserted text itself, so a part of a line is sufficient there.
  if ! answer "$@" | grep -qF $([ "$shell" = zsh ] || echo -x) -e "$wanted"; then
    echo "$shell: '$*' does not offer '$wanted'; it offers:"
    answer "$@"
    exit 1
  fi
}

refuse() { # UNWANTED WORDS...
  unwanted=$1
  shift
  if answer "$@" | grep -qF -e "$unwanted"; then
    echo "$shell: '$*' offers '$unwanted'"
    exit 1
  fi
}

cd "$source"
expect resolve perfmap res
expect tidy perfmap t
expect --overlap perfmap resolve --over
expect inner perfmap resolve --overlap in
expect sarif perfmap lint --format sa
expect PM101 perfmap lint --select PM10
expect fish perfmap completions f
expect README.md perfmap tidy READ
expect README.md perfmap resolve --map READ
expect $$ perfmap watch $$
expect $$ perfmap info $$
expect "tests$([ "$shell" = fish ] && echo /)" perfmap resolve --map-dir tes
refuse README.md perfmap resolve --map-dir READ
expect --overlap perfmap tidy --force --over
[ "$shell" = zsh ] || refuse --force perfmap tidy --force --for  # zsh draws what was typed
expect $$ perfmap watch --format text $$
[ "$shell" = zsh ] || refuse $$ perfmap watch 1 $$  # zsh draws what was typed
refuse merge perfmap help lint m
expect --overlap perfmap tidy --over
refuse --overlap perfmap tidy -- --over
expect --comm perfmap stacks --comm a --com
case $shell in
bash)
  expect sarif perfmap lint --format = sa
  expect json perfmap lint --format =
  expect PM001,PM101 perfmap lint --select PM001,PM10
  # The shell runs what it inserts.
  files=$(mktemp -d)
  trap 'rm -r "$files"' EXIT
  source=$(realpath "$source")
  touch "$files/2026-x\$(touch PWN)"
  cd "$files"
  expect '2026-x\$\(touch\ PWN\)' perfmap lint 2026-
  ;;
zsh)
  expect sarif perfmap lint --format=sa
  expect PM109 perfmap lint --select PM001,PM10
  ;;
fish)
  expect --format=sarif perfmap lint --format=sa
  expect lint perfmap --color never li
  expect PM001,PM101 perfmap lint --select PM001,PM10
  ;;
esac
echo "$shell completes"
