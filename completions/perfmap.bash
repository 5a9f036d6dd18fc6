# bash completion for perfmap; made by 'perfmap completions bash'.
_perfmap_pids() {
  local file pid name
  for file in /proc/[0-9]*/comm; do
    pid=${file#/proc/} pid=${pid%/comm}
    [[ $pid == "$current"* ]] || continue
    { read -r name <"$file"; } 2>/dev/null || continue
    COMPREPLY+=("$pid -- ${name//[^[:print:]]/?}")
  done
  # 37 and 42 insert one match after the other.
  if [[ ${#COMPREPLY[@]} == 1 || ${COMP_TYPE-} == 37 || ${COMP_TYPE-} == 42 ]]; then
    COMPREPLY=("${COMPREPLY[@]%% -- *}")
  fi
}
_perfmap_sources() {
  COMPREPLY=()
  if [[ $current == [0-9]* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    local i
    # A name may contain $(COMMAND). "compopt -o filenames" would also quote the blanks around "--".
    for i in "${!COMPREPLY[@]}"; do printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]}"; done
    _perfmap_pids
  fi
  [[ ${#COMPREPLY[@]} != 0 ]] || compopt -o default
}
_perfmap_directories() {
  mapfile -t COMPREPLY < <(compgen -d -- "$current")
  compopt -o filenames
}
# Whether the command has an argument. Options with a value have '|' between them.
_perfmap_has_argument() {
  local word seen= value=
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ ! $seen ]]; then
      [[ $word != "$command" ]] || seen=1
    elif [[ $value ]]; then
      [[ $word == = ]] || value=
    elif [[ "|$1|" == *"|$word|"* ]]; then
      value=1
    elif [[ $word == - || $word != -* ]]; then
      return 0
    fi
  done
  return 1
}
# Options that count once, '|' between the names of one; and those that may repeat.
_perfmap_options() {
  local names word words=$2
  for names in $1; do
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
      [[ "|$names|" == *"|${word%%=*}|"* ]] && continue 2
    done
    words+=" ${names//|/ }"
  done
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
_perfmap() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  # bash makes three words of --format=json.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  local command= literal= word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $command$word in
      record|report|stacks|annotate|inject|doctor|resolve|lint|tidy|merge|diff|info|convert|to-json|from-json|watch|snapshot|gc|write|copy|pypylog|help|version|completions) command=$word ;;
      ?*--) [[ $word == -- ]] && literal=1 ;;
    esac
  done
  if [[ $previous == --color && ! $literal ]]; then
    COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return
  fi
  case $command in
    record)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        --duration) COMPREPLY=(); return ;;
        -o|--output) _perfmap_directories; return ;;
        --runtime) COMPREPLY=(); return ;;
        -F|--frequency) COMPREPLY=(); return ;;
        --call-graph) COMPREPLY=(); return ;;
        -e|--event) COMPREPLY=(); return ;;
        --perf) compopt -o default; COMPREPLY=(); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --all-children --duration -o|--output --archive --open --runtime -F|--frequency --call-graph --off-cpu --perf --propagate' '-p --pid -e --event'
      else
        COMPREPLY=()
      fi ;;
    report)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -s|--source) _perfmap_sources; return ;;
        -i|--input) compopt -o default; COMPREPLY=(); return ;;
        --recordings) compopt -o default; COMPREPLY=(); return ;;
        --format) COMPREPLY=($(compgen -W 'text json csv github' -- "$current")); return ;;
        -o|--output) compopt -o default; COMPREPLY=(); return ;;
        --by) COMPREPLY=($(compgen -W 'function module thread process tier line runtime' -- "$current")); return ;;
        --top) COMPREPLY=(); return ;;
        --callers) COMPREPLY=(); return ;;
        --callees) COMPREPLY=(); return ;;
        --baseline) compopt -o default; COMPREPLY=(); return ;;
        --threshold) COMPREPLY=(); return ;;
        --fail-above) COMPREPLY=(); return ;;
        --normalize) COMPREPLY=(); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        --tid) COMPREPLY=(); return ;;
        --comm) COMPREPLY=(); return ;;
        --event) COMPREPLY=(); return ;;
        --from) COMPREPLY=(); return ;;
        --to-time) COMPREPLY=(); return ;;
        --max-stack) COMPREPLY=(); return ;;
        --threads) COMPREPLY=(); return ;;
        --map-dir) _perfmap_directories; return ;;
        --symfs) _perfmap_directories; return ;;
        --kallsyms) compopt -o default; COMPREPLY=(); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --null --format -o|--output --by --top --self --total --callers --callees --threshold --fail-above --normalize --from --to-time --inlines --no-inlines --no-demangle --no-kernel --no-merge-tiers --max-stack --stitch --scan --jit-cfi --threads --map-dir --symfs --kallsyms --any-owner --debuginfod' '-m --map -j --jitdump -s --source -i --input --recordings --baseline -p --pid --tid --comm --event'
      else
        compopt -o default; COMPREPLY=()
      fi ;;
    stacks)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -s|--source) _perfmap_sources; return ;;
        -i|--input) compopt -o default; COMPREPLY=(); return ;;
        --recordings) compopt -o default; COMPREPLY=(); return ;;
        --label) COMPREPLY=(); return ;;
        --format) COMPREPLY=($(compgen -W 'folded perf-script speedscope firefox pprof html jsonl chrome otlp otlp-json' -- "$current")); return ;;
        -o|--output) compopt -o default; COMPREPLY=(); return ;;
        --baseline) compopt -o default; COMPREPLY=(); return ;;
        --normalize) COMPREPLY=(); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        --tid) COMPREPLY=(); return ;;
        --comm) COMPREPLY=(); return ;;
        --event) COMPREPLY=(); return ;;
        --from) COMPREPLY=(); return ;;
        --to-time) COMPREPLY=(); return ;;
        --max-stack) COMPREPLY=(); return ;;
        --threads) COMPREPLY=(); return ;;
        --map-dir) _perfmap_directories; return ;;
        --symfs) _perfmap_directories; return ;;
        --kallsyms) compopt -o default; COMPREPLY=(); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --null --format -o|--output --normalize --from --to-time --lines --inlines --no-inlines --addresses --no-demangle --no-kernel --merge-tiers --code --private-sources --with-pid --stats --max-stack --stitch --scan --jit-cfi --threads --map-dir --symfs --kallsyms --any-owner --debuginfod' '-m --map -j --jitdump -s --source -i --input --recordings --label --baseline -p --pid --tid --comm --event'
      else
        compopt -o default; COMPREPLY=()
      fi ;;
    annotate)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        --at) COMPREPLY=(); return ;;
        --format) COMPREPLY=($(compgen -W 'text json html' -- "$current")); return ;;
        -o|--output) compopt -o default; COMPREPLY=(); return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        --tid) COMPREPLY=(); return ;;
        --comm) COMPREPLY=(); return ;;
        --event) COMPREPLY=(); return ;;
        --from) COMPREPLY=(); return ;;
        --to-time) COMPREPLY=(); return ;;
        --map-dir) _perfmap_directories; return ;;
        --symfs) _perfmap_directories; return ;;
        --kallsyms) compopt -o default; COMPREPLY=(); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --asm --source --both --at --format --private-sources -o|--output --from --to-time --no-demangle --map-dir --symfs --kallsyms --any-owner --debuginfod' '-m --map -j --jitdump -p --pid --tid --comm --event'
      elif _perfmap_has_argument '--color|--at|--format|-o|--output|-m|--map|-j|--jitdump|-p|--pid|--tid|--comm|--event|--from|--to-time|--map-dir|--symfs|--kallsyms'; then
        COMPREPLY=()
      else
        COMPREPLY=()
      fi ;;
    inject)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -o|--output) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        --map-dir) _perfmap_directories; return ;;
        --symfs) _perfmap_directories; return ;;
        --elf-dir) _perfmap_directories; return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose -o|--output --map-dir --symfs --elf-dir --any-owner' '-j --jitdump'
      elif _perfmap_has_argument '--color|-o|--output|-j|--jitdump|--map-dir|--symfs|--elf-dir'; then
        COMPREPLY=()
      else
        compopt -o default; COMPREPLY=()
      fi ;;
    doctor)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -s|--source) _perfmap_sources; return ;;
        -i|--input) compopt -o default; COMPREPLY=(); return ;;
        --format) COMPREPLY=($(compgen -W 'text json' -- "$current")); return ;;
        --map-dir) _perfmap_directories; return ;;
        --symfs) _perfmap_directories; return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --format --map-dir --symfs --runtimes --any-owner' '-p --pid -m --map -j --jitdump -s --source -i --input'
      elif _perfmap_has_argument '--color|-p|--pid|-m|--map|-j|--jitdump|-s|--source|-i|--input|--format|--map-dir|--symfs'; then
        COMPREPLY=()
      else
        _perfmap_sources
      fi ;;
    resolve)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -s|--source) _perfmap_sources; return ;;
        -i|--input) compopt -o default; COMPREPLY=(); return ;;
        --kind) COMPREPLY=($(compgen -W 'perf-map jitdump pypylog json' -- "$current")); return ;;
        --overlap) COMPREPLY=($(compgen -W 'last first inner perf' -- "$current")); return ;;
        --time) COMPREPLY=(); return ;;
        --format) COMPREPLY=($(compgen -W 'text json jsonl' -- "$current")); return ;;
        --map-dir) _perfmap_directories; return ;;
        --symfs) _perfmap_directories; return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --kind --any-owner --stop-at-close --overlap --time --lines --inlines --no-demangle --format --perf-script --map-dir --symfs --debuginfod --strict' '-p --pid -m --map -j --jitdump -s --source -i --input'
      else
        COMPREPLY=()
      fi ;;
    lint)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -s|--source) _perfmap_sources; return ;;
        -i|--input) compopt -o default; COMPREPLY=(); return ;;
        --kind) COMPREPLY=($(compgen -W 'perf-map jitdump pypylog json' -- "$current")); return ;;
        --format) COMPREPLY=($(compgen -W 'pretty gcc json jsonl sarif github' -- "$current")); return ;;
        -o|--output) compopt -o default; COMPREPLY=(); return ;;
        --select) COMPREPLY=($(compgen -P "${current%"${current##*,}"}" -W 'PM001 PM002 PM003 PM004 PM005 PM006 PM007 PM008 PM009 PM010 PM011 PM012 PM013 PM014 PM015 PM020 PM021 PM022 PM023 PM024 PM025 PM030 PM031 PM032 PM033 PM034 PM035 PM060 PM061 PM062 PM063 PM064 PM065 PM066 PM067 PM068 PM069 PM070 PM090 PM091 PM092 PM093 PM094 PM095 PM101 PM102 PM103 PM104 PM105 PM106 PM107 PM108 PM109 PM110 PM111 PM112 PM113 PM114 JD101 JD102 JD103 JD104 JD105 JD106 JD107 JD108 JD109 JD110 JD201 JD202 JD203 JD204 JD205 JD206 JD207 JD208 JD209 JD210 JD211 JD212 JD213 JD214 JD215 JD216 JD217 JD301 JD302 JD303 JD304 JD305 JD306 JD307 XF001 XF002 XF003 XF004 XF005 PL101 PL102 PL103 PL104 PL105 PL106 PL107 PL108 DI101 DI102 DI103 DI104 DI105' -- "${current##*,}")); return ;;
        --ignore) COMPREPLY=($(compgen -P "${current%"${current##*,}"}" -W 'PM001 PM002 PM003 PM004 PM005 PM006 PM007 PM008 PM009 PM010 PM011 PM012 PM013 PM014 PM015 PM020 PM021 PM022 PM023 PM024 PM025 PM030 PM031 PM032 PM033 PM034 PM035 PM060 PM061 PM062 PM063 PM064 PM065 PM066 PM067 PM068 PM069 PM070 PM090 PM091 PM092 PM093 PM094 PM095 PM101 PM102 PM103 PM104 PM105 PM106 PM107 PM108 PM109 PM110 PM111 PM112 PM113 PM114 JD101 JD102 JD103 JD104 JD105 JD106 JD107 JD108 JD109 JD110 JD201 JD202 JD203 JD204 JD205 JD206 JD207 JD208 JD209 JD210 JD211 JD212 JD213 JD214 JD215 JD216 JD217 JD301 JD302 JD303 JD304 JD305 JD306 JD307 XF001 XF002 XF003 XF004 XF005 PL101 PL102 PL103 PL104 PL105 PL106 PL107 PL108 DI101 DI102 DI103 DI104 DI105' -- "${current##*,}")); return ;;
        --severity) COMPREPLY=($(compgen -W 'info warning error' -- "$current")); return ;;
        --fail-level) COMPREPLY=($(compgen -W 'info warning error never' -- "$current")); return ;;
        --reader) COMPREPLY=($(compgen -W 'perf bcc blazesym samply all' -- "$current")); return ;;
        --max-findings) COMPREPLY=(); return ;;
        --recording) compopt -o default; COMPREPLY=(); return ;;
        --explain) COMPREPLY=($(compgen -W 'PM001 PM002 PM003 PM004 PM005 PM006 PM007 PM008 PM009 PM010 PM011 PM012 PM013 PM014 PM015 PM020 PM021 PM022 PM023 PM024 PM025 PM030 PM031 PM032 PM033 PM034 PM035 PM060 PM061 PM062 PM063 PM064 PM065 PM066 PM067 PM068 PM069 PM070 PM090 PM091 PM092 PM093 PM094 PM095 PM101 PM102 PM103 PM104 PM105 PM106 PM107 PM108 PM109 PM110 PM111 PM112 PM113 PM114 JD101 JD102 JD103 JD104 JD105 JD106 JD107 JD108 JD109 JD110 JD201 JD202 JD203 JD204 JD205 JD206 JD207 JD208 JD209 JD210 JD211 JD212 JD213 JD214 JD215 JD216 JD217 JD301 JD302 JD303 JD304 JD305 JD306 JD307 XF001 XF002 XF003 XF004 XF005 PL101 PL102 PL103 PL104 PL105 PL106 PL107 PL108 DI101 DI102 DI103 DI104 DI105' -- "$current")); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --kind --any-owner --stop-at-close --format -o|--output --severity --fail-level --reader --max-findings --recording --statistics --fix --diff --force --rules --explain' '-p --pid -m --map -j --jitdump -s --source -i --input --select --ignore'
      else
        _perfmap_sources
      fi ;;
    tidy)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -s|--source) _perfmap_sources; return ;;
        -i|--input) compopt -o default; COMPREPLY=(); return ;;
        --kind) COMPREPLY=($(compgen -W 'perf-map jitdump pypylog json' -- "$current")); return ;;
        -o|--output) compopt -o default; COMPREPLY=(); return ;;
        --overlap) COMPREPLY=($(compgen -W 'last first inner' -- "$current")); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --kind --any-owner --stop-at-close -o|--output --in-place --force --overlap' '-p --pid -m --map -j --jitdump -s --source -i --input'
      elif _perfmap_has_argument '--color|-p|--pid|-m|--map|-j|--jitdump|-s|--source|-i|--input|--kind|-o|--output|--overlap'; then
        COMPREPLY=()
      else
        _perfmap_sources
      fi ;;
    merge)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -s|--source) _perfmap_sources; return ;;
        -i|--input) compopt -o default; COMPREPLY=(); return ;;
        --kind) COMPREPLY=($(compgen -W 'perf-map jitdump pypylog json' -- "$current")); return ;;
        -o|--output) compopt -o default; COMPREPLY=(); return ;;
        --overlap) COMPREPLY=($(compgen -W 'last first inner' -- "$current")); return ;;
        --to) COMPREPLY=($(compgen -W 'perf-map jitdump json' -- "$current")); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --kind --any-owner --stop-at-close -o|--output --overlap --keep --check --to' '-p --pid -m --map -j --jitdump -s --source -i --input'
      else
        _perfmap_sources
      fi ;;
    diff)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -s|--source) _perfmap_sources; return ;;
        -i|--input) compopt -o default; COMPREPLY=(); return ;;
        --kind) COMPREPLY=($(compgen -W 'perf-map jitdump pypylog json' -- "$current")); return ;;
        --format) COMPREPLY=($(compgen -W 'text json' -- "$current")); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --kind --any-owner --stop-at-close --no-demangle --format' '-p --pid -m --map -j --jitdump -s --source -i --input'
      else
        _perfmap_sources
      fi ;;
    info)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -s|--source) _perfmap_sources; return ;;
        -i|--input) compopt -o default; COMPREPLY=(); return ;;
        --kind) COMPREPLY=($(compgen -W 'perf-map jitdump pypylog json' -- "$current")); return ;;
        --by) COMPREPLY=($(compgen -W 'name prefix tier' -- "$current")); return ;;
        --format) COMPREPLY=($(compgen -W 'text json' -- "$current")); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --kind --any-owner --stop-at-close --by --no-demangle --format' '-p --pid -m --map -j --jitdump -s --source -i --input'
      elif _perfmap_has_argument '--color|-p|--pid|-m|--map|-j|--jitdump|-s|--source|-i|--input|--kind|--by|--format'; then
        COMPREPLY=()
      else
        _perfmap_sources
      fi ;;
    convert)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -s|--source) _perfmap_sources; return ;;
        -i|--input) compopt -o default; COMPREPLY=(); return ;;
        --kind) COMPREPLY=($(compgen -W 'perf-map jitdump pypylog json' -- "$current")); return ;;
        -o|--output) compopt -o default; COMPREPLY=(); return ;;
        --to) COMPREPLY=($(compgen -W 'perf-map jitdump json jsonl elf' -- "$current")); return ;;
        --overlap) COMPREPLY=($(compgen -W 'last first inner' -- "$current")); return ;;
        --time) COMPREPLY=(); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --kind --any-owner --stop-at-close -o|--output --to --effective --overlap --time --code' '-p --pid -m --map -j --jitdump -s --source -i --input'
      elif _perfmap_has_argument '--color|-p|--pid|-m|--map|-j|--jitdump|-s|--source|-i|--input|--kind|-o|--output|--to|--overlap|--time'; then
        COMPREPLY=()
      else
        _perfmap_sources
      fi ;;
    to-json)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -s|--source) _perfmap_sources; return ;;
        -i|--input) compopt -o default; COMPREPLY=(); return ;;
        --kind) COMPREPLY=($(compgen -W 'perf-map jitdump pypylog json' -- "$current")); return ;;
        -o|--output) compopt -o default; COMPREPLY=(); return ;;
        --to) COMPREPLY=($(compgen -W 'perf-map jitdump json jsonl elf' -- "$current")); return ;;
        --overlap) COMPREPLY=($(compgen -W 'last first inner' -- "$current")); return ;;
        --time) COMPREPLY=(); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --kind --any-owner --stop-at-close -o|--output --to --effective --overlap --time --code' '-p --pid -m --map -j --jitdump -s --source -i --input'
      elif _perfmap_has_argument '--color|-p|--pid|-m|--map|-j|--jitdump|-s|--source|-i|--input|--kind|-o|--output|--to|--overlap|--time'; then
        COMPREPLY=()
      else
        _perfmap_sources
      fi ;;
    from-json)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -s|--source) _perfmap_sources; return ;;
        -i|--input) compopt -o default; COMPREPLY=(); return ;;
        --kind) COMPREPLY=($(compgen -W 'perf-map jitdump pypylog json' -- "$current")); return ;;
        -o|--output) compopt -o default; COMPREPLY=(); return ;;
        --to) COMPREPLY=($(compgen -W 'perf-map jitdump json jsonl elf' -- "$current")); return ;;
        --overlap) COMPREPLY=($(compgen -W 'last first inner' -- "$current")); return ;;
        --time) COMPREPLY=(); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --kind --any-owner --stop-at-close -o|--output --to --effective --overlap --time --code' '-p --pid -m --map -j --jitdump -s --source -i --input'
      elif _perfmap_has_argument '--color|-p|--pid|-m|--map|-j|--jitdump|-s|--source|-i|--input|--kind|-o|--output|--to|--overlap|--time'; then
        COMPREPLY=()
      else
        _perfmap_sources
      fi ;;
    watch)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        --format) COMPREPLY=($(compgen -W 'text jsonl' -- "$current")); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose -p|--pid --new-only --any-owner --no-demangle --format' ''
      elif _perfmap_has_argument '--color|-p|--pid|--format'; then
        COMPREPLY=()
      else
        COMPREPLY=(); _perfmap_pids
      fi ;;
    snapshot)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        -o|--output) _perfmap_directories; return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose -p|--pid -o|--output --any-owner --with-command-line' ''
      elif _perfmap_has_argument '--color|-p|--pid|-o|--output'; then
        COMPREPLY=()
      else
        COMPREPLY=(); _perfmap_pids
      fi ;;
    gc)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        --format) COMPREPLY=($(compgen -W 'text json' -- "$current")); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose -n|--dry-run --any-owner --one-namespace --format' ''
      else
        COMPREPLY=()
      fi ;;
    write)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        --to-pid) COMPREPLY=(); _perfmap_pids; return ;;
        -o|--output) compopt -o default; COMPREPLY=(); return ;;
        --code) compopt -o default; COMPREPLY=(); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --to-pid -o|--output --strict --jitdump --code' ''
      else
        COMPREPLY=()
      fi ;;
    copy)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        -m|--map) compopt -o default; COMPREPLY=(); return ;;
        -j|--jitdump) compopt -o default; COMPREPLY=(); return ;;
        -s|--source) _perfmap_sources; return ;;
        -i|--input) compopt -o default; COMPREPLY=(); return ;;
        --kind) COMPREPLY=($(compgen -W 'perf-map jitdump pypylog json' -- "$current")); return ;;
        --to-pid) COMPREPLY=(); _perfmap_pids; return ;;
        -o|--output) compopt -o default; COMPREPLY=(); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --kind --any-owner --stop-at-close --to-pid -o|--output --strict' '-p --pid -m --map -j --jitdump -s --source -i --input'
      elif _perfmap_has_argument '--color|-p|--pid|-m|--map|-j|--jitdump|-s|--source|-i|--input|--kind|--to-pid|-o|--output'; then
        COMPREPLY=()
      else
        _perfmap_sources
      fi ;;
    pypylog)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
        --format) COMPREPLY=($(compgen -W 'text json speedscope folded html flame-graph' -- "$current")); return ;;
        -o|--output) compopt -o default; COMPREPLY=(); return ;;
        --by) COMPREPLY=($(compgen -W 'loop function file' -- "$current")); return ;;
        --top) COMPREPLY=(); return ;;
        --annotate) COMPREPLY=(); return ;;
        --ticks) COMPREPLY=($(compgen -W 'auto hex dec' -- "$current")); return ;;
        --inner-bridges) COMPREPLY=($(compgen -W 'ignore count' -- "$current")); return ;;
        --from) COMPREPLY=(); return ;;
        --to-time) COMPREPLY=(); return ;;
        --to) COMPREPLY=($(compgen -W 'perf-map jitdump' -- "$current")); return ;;
        --perf-data) compopt -o default; COMPREPLY=(); return ;;
        -p|--pid) COMPREPLY=(); _perfmap_pids; return ;;
        --time-conv) COMPREPLY=(); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose --format -o|--output --by --top --annotate --ticks --inner-bridges --from --to-time --to --perf-data -p|--pid --time-conv' ''
      elif _perfmap_has_argument '--color|--format|-o|--output|--by|--top|--annotate|--ticks|--inner-bridges|--from|--to-time|--to|--perf-data|-p|--pid|--time-conv'; then
        COMPREPLY=()
      else
        compopt -o default; COMPREPLY=()
      fi ;;
    help)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose' ''
      elif _perfmap_has_argument '--color'; then
        COMPREPLY=()
      else
        COMPREPLY=($(compgen -W 'record report stacks annotate inject doctor resolve lint tidy merge diff info convert to-json from-json watch snapshot gc write copy pypylog help version completions' -- "$current"))
      fi ;;
    version)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose' ''
      else
        COMPREPLY=()
      fi ;;
    completions)
      [[ $literal ]] || case $previous in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
      esac
      if [[ ! $literal && $current == -* ]]; then
        _perfmap_options '-h|--help --color -q|--quiet -v|--verbose' ''
      elif _perfmap_has_argument '--color'; then
        COMPREPLY=()
      else
        COMPREPLY=($(compgen -W 'bash zsh fish' -- "$current"))
      fi ;;
    *) COMPREPLY=($(compgen -W 'record report stacks annotate inject doctor resolve lint tidy merge diff info convert to-json from-json watch snapshot gc write copy pypylog help version completions -V --version -h --help --color -q --quiet -v --verbose' -- "$current")) ;;
  esac
}
complete -F _perfmap perfmap
