#include "completions.hpp"

#include <CLI/CLI.hpp>
#include <perfmap/rules.hpp>

#include "options.hpp"

namespace perfmap::app {
namespace {

/// The values of a type name such as "WHEN:{auto,always,never}".
std::vector<std::string> values_of(const std::string& type) {
  std::vector<std::string> values;
  const std::size_t open = type.find('{');
  const std::size_t close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return values;
  const std::string list = type.substr(open + 1, close - open - 1);
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    values.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return values;
}

CompletedOption completed(const CLI::Option& option) {
  CompletedOption result;
  for (const std::string& name : option.get_snames()) result.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) result.names.push_back("--" + name);
  result.description = option.get_description();
  const std::string type = option.get_type_name();
  const std::string kind = type.substr(0, type.find(':'));
  result.takes_value = result.names.empty() || option.get_items_expected_max() > 0;
  result.takes_file = kind == kFile || kind == kSource || kind == "DIR";
  result.values = values_of(type);
  result.takes_list = kind == "IDS";
  if (kind == "ID" || kind == "IDS") {
    for (const Rule* rule : rule::all()) result.values.emplace_back(rule->id);
  }
  return result;
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

/// bash completes file names itself where it is told to.
constexpr const char* kBashFiles = "compopt -o default; COMPREPLY=()";

/// What completes one of these values; in a list, behind the last comma.
std::string bash_reply(const CompletedOption& option) {
  const std::string values = "-W '" + joined(option.values, " ") + "' -- ";
  if (!option.takes_list) return "COMPREPLY=($(compgen " + values + "\"$current\"))";
  return "COMPREPLY=($(compgen -P \"${current%\"${current##*,}\"}\" " + values +
         "\"${current##*,}\"))";
}

/// The words that may follow the name of a command, but for files.
std::string bash_case(const CLI::App& command) {
  std::string options;
  std::string values;
  std::string positional = "COMPREPLY=()";
  for (const CompletedOption& option : completed_options(command)) {
    const std::string reply = bash_reply(option);
    if (option.names.empty()) {
      if (!option.values.empty()) positional = reply;
      if (option.takes_file) positional = kBashFiles;
      continue;
    }
    options += " " + joined(option.names, " ");
    if (!option.takes_value) continue;
    const std::string action = !option.values.empty() ? reply
                               : option.takes_file    ? kBashFiles
                                                      : "COMPREPLY=()";
    values += "        " + joined(option.names, "|") + ") " + action + "; return ;;\n";
  }
  return "    " + command.get_name() + ")\n      case $previous in\n" + values +
         "      esac\n      if [[ $current == -* ]]; then\n        COMPREPLY=($(compgen -W '" +
         options.substr(options.empty() ? 0 : 1) + "' -- \"$current\"))\n      else\n        " +
         positional + "\n      fi ;;\n";
}

std::string names_of_commands(const CLI::App& parser) {
  std::vector<std::string> names;
  for (const CLI::App* command : parser.get_subcommands({})) names.push_back(command->get_name());
  return joined(names, " ");
}

std::string bash_script(const CLI::App& parser) {
  std::string script =
      "# bash completion for perfmap; made by 'perfmap completions bash'.\n"
      "_perfmap() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  # bash makes three words of --format=json.\n"
      "  if [[ $current == = ]]; then\n"
      "    current=\n"
      "  elif [[ $previous == = ]]; then\n"
      "    previous=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  fi\n"
      "  local command= word\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case $word in\n"
      "      " +
      replaced(names_of_commands(parser), " ", "|") +
      ") command=$word; break ;;\n"
      "    esac\n"
      "  done\n"
      "  if [[ $previous == --color ]]; then\n"
      "    COMPREPLY=($(compgen -W 'auto always never' -- \"$current\")); return\n"
      "  fi\n"
      "  case $command in\n";
  for (const CLI::App* command : parser.get_subcommands({})) script += bash_case(*command);
  std::vector<std::string> global;
  for (const CompletedOption& option : completed_options(parser)) {
    global.insert(global.end(), option.names.begin(), option.names.end());
  }
  return script + "    *) COMPREPLY=($(compgen -W '" + names_of_commands(parser) + " " +
         joined(global, " ") + "' -- \"$current\")) ;;\n  esac\n}\ncomplete -F _perfmap perfmap\n";
}

std::string zsh_action(const CompletedOption& option) {
  if (option.takes_list) return "_values -s , value " + joined(option.values, " ");
  if (!option.values.empty()) return "(" + joined(option.values, " ") + ")";
  return option.takes_file ? "_files" : " ";
}

std::string zsh_quoted(const std::string& text) {
  return replaced(replaced(replaced(text, "'", "'\\''"), "[", "\\["), "]", "\\]");
}

/// The value may follow behind '=' or, with zsh's "=", in the next word, too.
std::string zsh_option(const CompletedOption& option, const std::string& name) {
  std::string text = "'*" + name;
  if (option.takes_value && name.starts_with("--")) text += "=";
  text += "[" + zsh_quoted(option.description) + "]";
  if (option.takes_value) text += ":value:" + zsh_action(option);
  return text + "'";
}

std::string zsh_arguments(const CLI::App& command) {
  std::string text;
  for (const CompletedOption& option : completed_options(command)) {
    const std::string description = zsh_quoted(option.description);
    if (option.names.empty()) {
      text +=
          " \\\n        '*:" + replaced(description, ":", "\\:") + ":" + zsh_action(option) + "'";
      continue;
    }
    for (const std::string& name : option.names) {
      text += " \\\n        " + zsh_option(option, name);
    }
  }
  return text;
}

std::string zsh_script(const CLI::App& parser) {
  std::string script =
      "#compdef perfmap\n"
      "# zsh completion for perfmap; made by 'perfmap completions zsh'.\n"
      "_perfmap() {\n"
      "  local context state state_descr line\n"
      "  typeset -A opt_args\n"
      "  _arguments -C";
  for (const CompletedOption& option : completed_options(parser)) {
    for (const std::string& name : option.names) {
      script += " \\\n    " + zsh_option(option, name);
    }
  }
  script +=
      " \\\n    '1:command:->command' \\\n    '*::argument:->argument'\n"
      "  case $state in\n  command)\n    local -a commands=(\n";
  for (const CLI::App* command : parser.get_subcommands({})) {
    script += "      '" + command->get_name() + ":" +
              replaced(zsh_quoted(command->get_description()), ":", "\\:") + "'\n";
  }
  script += "    )\n    _describe command commands ;;\n  argument)\n    case $line[1] in\n";
  for (const CLI::App* command : parser.get_subcommands({})) {
    script +=
        "    " + command->get_name() + ")\n      _arguments" + zsh_arguments(*command) + " ;;\n";
  }
  return script + "    esac ;;\n  esac\n}\n_perfmap \"$@\"\n";
}

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_option(const CompletedOption& option, const std::string& condition) {
  std::string line = "complete -c perfmap -n " + fish_quoted(condition);
  for (const std::string& name : option.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (option.takes_file && !option.names.empty()) {
    line += " -r -F";
  } else if (option.takes_file) {
    line += " -F";
  } else if (option.takes_list) {
    line += " -x -a " + fish_quoted("(__fish_complete_list , 'printf %s\\\\n " +
                                    joined(option.values, " ") + "')");
  } else if (!option.values.empty()) {
    line += (option.names.empty() ? " -a " : " -x -a ") + fish_quoted(joined(option.values, " "));
  } else if (option.takes_value && !option.names.empty()) {
    line += " -x";
  }
  return line + " -d " + fish_quoted(option.description) + "\n";
}

std::string fish_script(const CLI::App& parser) {
  std::string script =
      "# fish completion for perfmap; made by 'perfmap completions fish'.\n"
      "complete -c perfmap -f\n";
  // __fish_use_subcommand takes the value of a global option for a command.
  script += "function __perfmap_no_command\n  not __fish_seen_subcommand_from";
  for (const CLI::App* command : parser.get_subcommands({})) script += " " + command->get_name();
  script += "\nend\n";
  const std::string none = "__perfmap_no_command";
  for (const CompletedOption& option : completed_options(parser)) {
    script += fish_option(option, none);
  }
  for (const CLI::App* command : parser.get_subcommands({})) {
    script += "complete -c perfmap -n " + none + " -a " + command->get_name() + " -d " +
              fish_quoted(command->get_description()) + "\n";
  }
  for (const CLI::App* command : parser.get_subcommands({})) {
    const std::string condition = "__fish_seen_subcommand_from " + command->get_name();
    for (const CompletedOption& option : completed_options(*command)) {
      script += fish_option(option, condition);
    }
  }
  return script;
}

}  // namespace

std::vector<CompletedOption> completed_options(const CLI::App& command) {
  std::vector<CompletedOption> options;
  std::vector<CompletedOption> positionals;
  for (const CLI::Option* option : command.get_options()) {
    CompletedOption one = completed(*option);
    (one.names.empty() ? positionals : options).push_back(std::move(one));
  }
  options.insert(options.end(), positionals.begin(), positionals.end());
  return options;
}

std::string completion_script(const CLI::App& parser, const std::string& shell) {
  if (shell == "bash") return bash_script(parser);
  return shell == "zsh" ? zsh_script(parser) : fish_script(parser);
}

}  // namespace perfmap::app
