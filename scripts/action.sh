#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The steps of action.yml: action.sh install|lint|compare. Their inputs are variables, and nothing of them is
# evaluated as shell text. What perfmap prints comes from files that may be hostile, so only its own annotations,
# which are escaped, reach the log, where the runner looks for commands.
set -euo pipefail

# annotate error|warning|notice MESSAGE
annotate() {
  local message=${2//%/%25}
  message=${message//$'\r'/%0D}
  echo "::$1 title=perfmap::${message//$'\n'/%0A}"
}

fail() {
  annotate error "$1"
  exit 2
}

# need TOOL...: a container may lack them.
need() {
  local tool
  for tool; do
    command -v "$tool" >/dev/null || fail "this machine has no $tool, which the action needs: install it in a step before"
  done
}

output() {
  case "$2" in *$'\n'*) fail "a path with a line break cannot be an output: $2" ;; esac
  printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
}

# Sets `found` to the files of the patterns, one a line, and `without` to the patterns without a file. Pathname
# expansion alone happens to them, so that names may have any characters. A path is a pattern, too. Of folders, only
# those that perfmap record or perfmap snapshot made are files here. Links that lead nowhere stay, to be reported;
# reading a FIFO or a device may never end.
expand() {
  local pattern file before IFS=
  found=() without=()
  shopt -s globstar nullglob dotglob
  while read -r pattern || [ -n "$pattern" ]; do
    [ -n "$pattern" ] || continue
    before=${#found[@]}
    for file in $pattern; do
      [ -f "$file" ] || [ -d "$file" ] || { [ -L "$file" ] && [ ! -e "$file" ]; } || continue
      [ ! -d "$file" ] || [ -e "$file/recording.json" ] || [ -e "$file/manifest.json" ] || continue
      case "$file" in -*) found+=("./$file") ;; *) found+=("$file") ;; esac
    done
    [ ${#found[@]} != "$before" ] || without+=("$pattern")
  done <<<"$1"
}

# A comment has room for 65536 characters; a summary has more. Indented text is code, which nothing in it can end.
as_markdown() {
  printf '### %s\n\n' "$1"
  head -c 50000 "$2" | head -n 500 | sed 's/^/    /'
  [ "$(wc -c <"$2")" -le 50000 ] && [ "$(wc -l <"$2")" -le 500 ] ||
    printf '\n\nThe rest of %s lines is left out.\n' "$(wc -l <"$2")"
  echo
}

download() {
  need curl awk sha256sum
  case "$VERSION" in
    v[0-9]*.* | [0-9]*.*) VERSION=${VERSION#v} ;;
    *) fail "which release? '$VERSION' is a branch or a commit, and not a version such as 0.1.0: set the input version" ;;
  esac
  case "$VERSION" in *[!0-9A-Za-z.~+-]*) fail "'$VERSION' is not a version" ;; esac
  local name
  name=perfmap-$VERSION-linux-$(uname -m)
  mkdir -p "$RUNNER_TEMP/perfmap"
  cd "$RUNNER_TEMP/perfmap"
  curl --fail --silent --show-error --location --retry 3 --output perfmap "$URL/v$VERSION/$name" ||
    fail "cannot download $name from $URL: is there such a release, for this machine?"
  if [ -z "$SHA256" ]; then
    curl --fail --silent --show-error --location --retry 3 --output sums "$URL/v$VERSION/SHA256SUMS" ||
      fail "cannot download SHA256SUMS from $URL"
    SHA256=$(awk -v name="$name" '$2 == name || $2 == "*" name { print $1 }' sums)
  fi
  [ -n "$SHA256" ] || fail "SHA256SUMS of release $VERSION has no $name"
  [ "$(sha256sum <perfmap | cut -d ' ' -f 1)" = "${SHA256,,}" ] || fail "the checksum of $name is not '$SHA256'"
  chmod +x perfmap
  PROGRAM=$PWD/perfmap
}

install() {
  [ -n "$PROGRAM" ] || download
  local program
  program=$(command -v -- "$PROGRAM") || fail "there is no program '$PROGRAM'"
  program=$(realpath -- "$program")
  "$program" --version
  output perfmap "$program"
  dirname -- "$program" >>"$GITHUB_PATH"
}

lint() {
  local pattern
  expand "$FILES"
  for pattern in "${without[@]}"; do
    case "$IF_NO_FILES_FOUND" in
      ignore) ;;
      warn) annotate warning "no file to check: there is no $pattern" ;;
      error) fail "no file to check: there is no $pattern" ;;
      *) fail "if-no-files-found: '$IF_NO_FILES_FOUND' is not one of error, warn, ignore" ;;
    esac
  done
  [ ${#found[@]} != 0 ] || return 0
  local text=$RUNNER_TEMP/perfmap-lint.txt status=0
  need sed
  if [ -n "$SARIF" ]; then
    need gzip
    mkdir -p -- "$(dirname -- "$SARIF")" || fail "cannot make the folder of $SARIF"
    # A file that cannot be read is a failure below; the others are in the report.
    local new=$RUNNER_TEMP/perfmap.sarif
    rm -f "$new"
    "$PERFMAP" lint --quiet --fail-level never -o "$new" -- "${found[@]}" 2>/dev/null || true
    if [ -f "$new" ]; then
      [ "$(gzip -c "$new" | wc -c)" -le 10000000 ] ||
        annotate warning "$SARIF has more than 10 MB when compressed, which GitHub refuses: check fewer files"
      mv -T -- "$new" "$SARIF" || fail "cannot write $SARIF"
      output sarif "$SARIF"
    fi
  fi
  "$PERFMAP" lint --quiet --fail-level never --format github -- "${found[@]}" 2>/dev/null || true
  "$PERFMAP" lint --fail-level "$FAIL_LEVEL" --format gcc -- "${found[@]}" >"$text" 2>&1 || status=$?
  as_markdown "Perf maps and jitdumps" "$text" >>"$GITHUB_STEP_SUMMARY"
  output status "$status"
}

compare() {
  local old=() options=() file option status=0 text=$RUNNER_TEMP/perfmap-report.txt report=$RUNNER_TEMP/perfmap-report.md
  expand "$BASELINE"
  if [ ${#found[@]} = 0 ]; then
    annotate notice "nothing is compared: there is no recording of the baseline yet"
    return
  fi
  for file in "${found[@]}"; do old+=(--baseline "$file"); done
  expand "$RECORDINGS"
  [ ${#found[@]} != 0 ] || fail "nothing to compare: there is no recording of the input recordings"
  while IFS= read -r option; do [ -z "$option" ] || options+=("$option"); done <<<"$REPORT_OPTIONS"
  need sed
  local command=("$PERFMAP" report "${old[@]}" --fail-above "$FAIL_ABOVE" "${options[@]}")
  "${command[@]}" -- "${found[@]}" >"$text" 2>&1 || status=$?
  as_markdown "Profile, compared with the baseline" "$text" >"$report"
  cat "$report" >>"$GITHUB_STEP_SUMMARY"
  "${command[@]}" --quiet --format github -- "${found[@]}" 2>/dev/null || true
  output report "$report"
  output status "$status"
}

"$1"
