// SPDX-License-Identifier: MIT
#include <span>

#include "command_line.hpp"

namespace perfmap::app {
namespace {

using Commands = std::span<const CommandDescription>;

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

std::string joined_values(const OptionDescription& option) {
  std::vector<std::string> words;
  for (const OptionValue& one : option.values) words.push_back(one.value);
  return joined(words, " ");
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

/// bash completes file names itself with `-o default`. A list of pids shows names of commands; bash
/// inserts the common beginning of all, which is a part of the pid.
constexpr std::string_view kBashFunctions = R"(_perfmap_pids() {
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
)";
constexpr const char* kBashFiles = "compopt -o default; COMPREPLY=()";

/// The code that completes one of these values; in a list, the value after the last comma.
std::string bash_reply(const OptionDescription& option) {
  const std::string values = "-W '" + joined_values(option) + "' -- ";
  if (!option.takes_list) return "COMPREPLY=($(compgen " + values + "\"$current\"))";
  return "COMPREPLY=($(compgen -P \"${current%\"${current##*,}\"}\" " + values +
         "\"${current##*,}\"))";
}

std::string bash_action(const OptionDescription& option) {
  if (!option.values.empty()) return bash_reply(option);
  if (option.takes_directory) return "_perfmap_directories";
  if (option.takes_file && option.takes_pid) return "_perfmap_sources";
  if (option.takes_pid) return "COMPREPLY=(); _perfmap_pids";
  return option.takes_file ? kBashFiles : "COMPREPLY=()";
}

/// All names of options that have a value.
std::string names_with_value(const CommandDescription& command, const char* separator) {
  std::vector<std::string> names;
  for (const OptionDescription& option : command.options) {
    if (!option.takes_value || option.names.empty()) continue;
    names.push_back(joined(option.names, separator));
  }
  return joined(names, separator);
}

/// The options and positionals of a command.
std::string bash_case(const CommandDescription& command) {
  std::string once;
  std::string many;
  std::string values;
  std::string positional = "COMPREPLY=()";
  bool is_single = false;
  for (const OptionDescription& option : command.options) {
    const std::string action = bash_action(option);
    if (option.names.empty()) {
      positional = action;
      is_single = !option.repeats;
      continue;
    }
    if (option.repeats) {
      many += " " + joined(option.names, " ");
    } else {
      once += " " + joined(option.names, "|");
    }
    if (!option.takes_value) continue;
    values += "        " + joined(option.names, "|") + ") " + action + "; return ;;\n";
  }
  const std::string no_second = is_single ? "      elif _perfmap_has_argument '" +
                                                names_with_value(command, "|") +
                                                "'; then\n        COMPREPLY=()\n"
                                          : "";
  return "    " + command.name + ")\n      [[ $literal ]] || case $previous in\n" + values +
         "      esac\n      if [[ ! $literal && $current == -* ]]; then\n        _perfmap_options "
         "'" +
         once.substr(once.empty() ? 0 : 1) + "' '" + many.substr(many.empty() ? 0 : 1) + "'\n" +
         no_second + "      else\n        " + positional + "\n      fi ;;\n";
}

std::string names_of_commands(const Commands& commands) {
  std::vector<std::string> names;
  for (const CommandDescription& command : commands) names.push_back(command.name);
  return joined(names, " ");
}

std::string bash_script(const CommandDescription& program, const Commands& commands) {
  std::string script =
      "# bash completion for perfmap; made by 'perfmap completions bash'.\n" +
      std::string(kBashFunctions) +
      "_perfmap() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  # bash makes three words of --format=json.\n"
      "  if [[ $current == = ]]; then\n"
      "    current=\n"
      "  elif [[ $previous == = ]]; then\n"
      "    previous=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  fi\n"
      "  local command= literal= word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case $command$word in\n"
      "      " +
      replaced(names_of_commands(commands), " ", "|") +
      ") command=$word ;;\n"
      "      ?*--) [[ $word == -- ]] && literal=1 ;;\n"
      "    esac\n"
      "  done\n"
      "  if [[ $previous == --color && ! $literal ]]; then\n"
      "    COMPREPLY=($(compgen -W 'auto always never' -- \"$current\")); return\n"
      "  fi\n"
      "  case $command in\n";
  for (const CommandDescription& command : commands) script += bash_case(command);
  std::vector<std::string> global;
  for (const OptionDescription& option : program.options) {
    global.insert(global.end(), option.names.begin(), option.names.end());
  }
  return script + "    *) COMPREPLY=($(compgen -W '" + names_of_commands(commands) + " " +
         joined(global, " ") + "' -- \"$current\")) ;;\n  esac\n}\ncomplete -F _perfmap perfmap\n";
}

constexpr std::string_view kZshFunctions = R"(_perfmap_pids() {
  local -a pids
  local file name
  for file in /proc/[0-9]*/comm(N); do
    { read -r name <$file } 2>/dev/null || continue
    pids+=("${file:h:t}:${name//[^[:print:]]/?}")
  done
  _describe -t processes process pids
}
_perfmap_sources() {
  _files
  [[ $PREFIX != [0-9]* ]] || _perfmap_pids
}
)";

std::string zsh_quoted(const std::string& text) {
  return replaced(replaced(replaced(text, "'", "'\\''"), "[", "\\["), "]", "\\]");
}

std::string zsh_escaped(const std::string& text) {
  std::string escaped = zsh_quoted(text);
  for (const char* const special : {" ", "(", ")", ":"}) {
    escaped = replaced(escaped, special, std::string("\\") + special);
  }
  return escaped;
}

/// "((last\:The\ later\ line\ wins first\:...))", inside single quotes.
std::string zsh_values(const OptionDescription& option) {
  std::string words;
  for (const OptionValue& one : option.values) {
    if (!words.empty()) words += ' ';
    words += one.value;
    if (!one.text.empty()) words += "\\:" + zsh_escaped(one.text);
  }
  return "((" + words + "))";
}

std::string zsh_action(const OptionDescription& option) {
  if (option.takes_list) return "_values -s , value " + joined_values(option);
  if (!option.values.empty()) return zsh_values(option);
  if (option.takes_directory) return "_path_files -/";
  if (option.takes_pid) return option.takes_file ? "_perfmap_sources" : "_perfmap_pids";
  return option.takes_file ? "_files" : " ";
}

/// The value may also follow after '=' or, with zsh's "=", in the next word.
std::string zsh_option(const OptionDescription& option, const std::string& name) {
  std::string text = option.repeats ? "'*" : "'(" + joined(option.names, " ") + ")";
  text += name;
  if (option.takes_value && name.starts_with("--")) text += "=";
  text += "[" + zsh_quoted(option.help) + "]";
  if (option.takes_value) text += ":value:" + zsh_action(option);
  return text + "'";
}

std::string zsh_arguments(const CommandDescription& command) {
  std::string text;
  for (const OptionDescription& option : command.options) {
    const std::string description = zsh_quoted(option.help);
    if (option.names.empty()) {
      text += std::string(" \\\n        '") + (option.repeats ? "*:" : ":") +
              replaced(description, ":", "\\:") + ":" + zsh_action(option) + "'";
      continue;
    }
    for (const std::string& name : option.names) text += " \\\n        " + zsh_option(option, name);
  }
  return text;
}

std::string zsh_script(const CommandDescription& program, const Commands& commands) {
  std::string script =
      "#compdef perfmap\n"
      "# zsh completion for perfmap; made by 'perfmap completions zsh'.\n" +
      std::string(kZshFunctions) +
      "_perfmap() {\n"
      "  local context state state_descr line\n"
      "  typeset -A opt_args\n"
      "  _arguments -C";
  for (const OptionDescription& option : program.options) {
    for (const std::string& name : option.names) script += " \\\n    " + zsh_option(option, name);
  }
  script +=
      " \\\n    '1:command:->command' \\\n    '*::argument:->argument'\n"
      "  case $state in\n  command)\n    local -a commands=(\n";
  for (const CommandDescription& command : commands) {
    script +=
        "      '" + command.name + ":" + replaced(zsh_quoted(command.summary), ":", "\\:") + "'\n";
  }
  script += "    )\n    _describe command commands ;;\n  argument)\n    case $line[1] in\n";
  for (const CommandDescription& command : commands) {
    script += "    " + command.name + ")\n      _arguments -S" + zsh_arguments(command) + " ;;\n";
  }
  return script + "    esac ;;\n  esac\n}\n_perfmap \"$@\"\n";
}

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

/// Values with their descriptions, as words of fish.
std::string fish_values(const OptionDescription& option) {
  std::string words;
  for (const OptionValue& one : option.values) {
    if (!words.empty()) words += ' ';
    words += one.value;
    if (!one.text.empty()) words += "\\t" + fish_quoted(one.text);
  }
  return fish_quoted(words);
}

bool takes_rules(const OptionDescription& option) {
  return option.value_name == "ID" || option.value_name == "IDS";
}

/// The options of `complete` for the value.
std::string fish_action(const OptionDescription& option) {
  const bool is_positional = option.names.empty();
  const std::string only = is_positional ? "" : " -x";
  if (option.takes_list) return only + " -a '(__fish_complete_list , __perfmap_rules)'";
  if (takes_rules(option)) return only + " -a '(__perfmap_rules)'";
  if (!option.values.empty()) return only + " -a " + fish_values(option);
  if (option.takes_directory) return only + " -a '(__fish_complete_directories)'";
  if (option.takes_file) {
    const std::string files = is_positional ? " -F" : " -r -F";
    return option.takes_pid ? files + " -a '(__perfmap_pids)'" : files;
  }
  if (option.takes_pid) return only + " -a '(__fish_complete_pids)'";
  return option.takes_value ? only : "";
}

/// `values` are the names of the command's options that have a value.
std::string fish_option(const OptionDescription& option, std::string condition,
                        const std::string& values) {
  std::string names;
  std::string given;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    names += is_long ? " -l " + name.substr(2) : " -s " + name.substr(1);
    given += " " + name;
  }
  if (!option.names.empty() && !option.repeats) {
    condition += "; and not __perfmap_given ";
    condition += (option.takes_value ? "value" : "flag") + given;
  }
  if (option.names.empty() && !option.repeats) {
    condition += "; and not __perfmap_has_argument " + values;
  }
  return "complete -c perfmap -n " + fish_quoted(condition) + names + fish_action(option) + " -d " +
         fish_quoted(option.help) + "\n";
}

/// Each rule with its title.
std::string fish_rules(const Commands& commands) {
  for (const CommandDescription& command : commands) {
    for (const OptionDescription& option : command.options) {
      if (!takes_rules(option)) continue;
      std::string function = "function __perfmap_rules\n  printf '%s\\t%s\\n'";
      for (const OptionValue& rule : option.values) {
        function += " " + rule.value + " " + fish_quoted(rule.text);
      }
      return function + "\nend\n";
    }
  }
  return "";
}

/// Pids are offered only where a number is typed: a source is a file more often.
constexpr std::string_view kFishFunctions =
    "function __perfmap_pids\n"
    "  string match -qr '^[0-9]' -- (commandline -ct); and __fish_complete_pids\n"
    "end\n"
    "# Whether an option was given: KIND NAMES. Before its value, it is the last word.\n"
    "function __perfmap_given\n"
    "  set -l words (commandline -opc)\n"
    "  test $argv[1] = value; and set -e words[-1]\n"
    "  for name in $argv[2..]\n"
    "    string match -q -- $name $words; and return 0\n"
    "    string match -q -- \"$name=*\" $words; and return 0\n"
    "  end\n"
    "  return 1\n"
    "end\n"
    "# Whether the command has an argument: NAMES of options that have a value.\n"
    "function __perfmap_has_argument\n"
    "  set -l value false\n"
    "  set -l command false\n"
    "  for word in (commandline -opc)[2..]\n"
    "    if test $value = true\n"
    "      set value false\n"
    "    else if contains -- $word $argv\n"
    "      set value true\n"
    "    else if not string match -q -- '-?*' $word\n"
    "      test $command = true; and return 0\n"
    "      set command true\n"
    "    end\n"
    "  end\n"
    "  return 1\n"
    "end\n";

std::string fish_script(const CommandDescription& program, const Commands& commands) {
  std::string script =
      "# fish completion for perfmap; made by 'perfmap completions fish'.\n"
      "complete -c perfmap -f\n";
  // __fish_use_subcommand takes the value of a global option for a command.
  script += "function __perfmap_no_command\n  not __fish_seen_subcommand_from";
  for (const CommandDescription& command : commands) script += " " + command.name;
  script += "\nend\n" + fish_rules(commands);
  script += kFishFunctions;
  const std::string none = "__perfmap_no_command";
  for (const OptionDescription& option : program.options) script += fish_option(option, none, "");
  for (const CommandDescription& command : commands) {
    script += "complete -c perfmap -n " + none + " -a " + command.name + " -d " +
              fish_quoted(command.summary) + "\n";
  }
  for (const CommandDescription& command : commands) {
    const std::string condition = "__fish_seen_subcommand_from " + command.name;
    const std::string values = names_with_value(command, " ");
    for (const OptionDescription& option : command.options) {
      script += fish_option(option, condition, values);
    }
  }
  return script;
}

struct CompletionsOptions {
  std::string shell;
  const CLI::App* parser = nullptr;
};

ExitCode run_completions(const CompletionsOptions& options, const Console& console) {
  const std::vector<CommandDescription> all = describe(*options.parser);
  const CommandDescription& program = all.front();
  const Commands commands = Commands(all).subspan(1);
  console.out().write(options.shell == "bash"  ? bash_script(program, commands)
                      : options.shell == "zsh" ? zsh_script(program, commands)
                                               : fish_script(program, commands));
  return ExitCode::ok;
}

}  // namespace

void declare_completions(CommandOptions& command) {
  CompletionsOptions& options = command.runs(run_completions);
  options.parser = &command.parser();
  command.positional("shell", options.shell, "SHELL", "The shell")
      .required()
      .one_of({"bash", "zsh", "fish"});
}

}  // namespace perfmap::app
