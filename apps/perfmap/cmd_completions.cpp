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

/// bash completes file names itself with `-o default`.
constexpr const char* kBashFiles = "compopt -o default; COMPREPLY=()";

/// What completes one of these values; in a list, after the last comma.
std::string bash_reply(const OptionDescription& option) {
  const std::string values = "-W '" + joined_values(option) + "' -- ";
  if (!option.takes_list) return "COMPREPLY=($(compgen " + values + "\"$current\"))";
  return "COMPREPLY=($(compgen -P \"${current%\"${current##*,}\"}\" " + values +
         "\"${current##*,}\"))";
}

/// The words that may follow the name of a command, but for files.
std::string bash_case(const CommandDescription& command) {
  std::string options;
  std::string values;
  std::string positional = "COMPREPLY=()";
  for (const OptionDescription& option : command.options) {
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
  return "    " + command.name + ")\n      case $previous in\n" + values +
         "      esac\n      if [[ $current == -* ]]; then\n        COMPREPLY=($(compgen -W '" +
         options.substr(options.empty() ? 0 : 1) + "' -- \"$current\"))\n      else\n        " +
         positional + "\n      fi ;;\n";
}

std::string names_of_commands(const Commands& commands) {
  std::vector<std::string> names;
  for (const CommandDescription& command : commands) names.push_back(command.name);
  return joined(names, " ");
}

std::string bash_script(const CommandDescription& program, const Commands& commands) {
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
      replaced(names_of_commands(commands), " ", "|") +
      ") command=$word; break ;;\n"
      "    esac\n"
      "  done\n"
      "  if [[ $previous == --color ]]; then\n"
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

std::string zsh_action(const OptionDescription& option) {
  if (option.takes_list) return "_values -s , value " + joined_values(option);
  if (!option.values.empty()) return "(" + joined_values(option) + ")";
  return option.takes_file ? "_files" : " ";
}

std::string zsh_quoted(const std::string& text) {
  return replaced(replaced(replaced(text, "'", "'\\''"), "[", "\\["), "]", "\\]");
}

/// The value may also follow after '=' or, with zsh's "=", in the next word.
std::string zsh_option(const OptionDescription& option, const std::string& name) {
  std::string text = "'*" + name;
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

std::string zsh_script(const CommandDescription& program, const Commands& commands) {
  std::string script =
      "#compdef perfmap\n"
      "# zsh completion for perfmap; made by 'perfmap completions zsh'.\n"
      "_perfmap() {\n"
      "  local context state state_descr line\n"
      "  typeset -A opt_args\n"
      "  _arguments -C";
  for (const OptionDescription& option : program.options) {
    for (const std::string& name : option.names) {
      script += " \\\n    " + zsh_option(option, name);
    }
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
    script += "    " + command.name + ")\n      _arguments" + zsh_arguments(command) + " ;;\n";
  }
  return script + "    esac ;;\n  esac\n}\n_perfmap \"$@\"\n";
}

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_option(const OptionDescription& option, const std::string& condition) {
  std::string line = "complete -c perfmap -n " + fish_quoted(condition);
  for (const std::string& name : option.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (option.takes_file && !option.names.empty()) {
    line += " -r -F";
  } else if (option.takes_file) {
    line += " -F";
  } else if (option.takes_list) {
    line += " -x -a " +
            fish_quoted("(__fish_complete_list , 'printf %s\\\\n " + joined_values(option) + "')");
  } else if (!option.values.empty()) {
    line += (option.names.empty() ? " -a " : " -x -a ") + fish_quoted(joined_values(option));
  } else if (option.takes_value && !option.names.empty()) {
    line += " -x";
  }
  return line + " -d " + fish_quoted(option.help) + "\n";
}

std::string fish_script(const CommandDescription& program, const Commands& commands) {
  std::string script =
      "# fish completion for perfmap; made by 'perfmap completions fish'.\n"
      "complete -c perfmap -f\n";
  // __fish_use_subcommand takes the value of a global option for a command.
  script += "function __perfmap_no_command\n  not __fish_seen_subcommand_from";
  for (const CommandDescription& command : commands) script += " " + command.name;
  script += "\nend\n";
  const std::string none = "__perfmap_no_command";
  for (const OptionDescription& option : program.options) {
    script += fish_option(option, none);
  }
  for (const CommandDescription& command : commands) {
    script += "complete -c perfmap -n " + none + " -a " + command.name + " -d " +
              fish_quoted(command.summary) + "\n";
  }
  for (const CommandDescription& command : commands) {
    const std::string condition = "__fish_seen_subcommand_from " + command.name;
    for (const OptionDescription& option : command.options) {
      script += fish_option(option, condition);
    }
  }
  return script;
}

struct Options {
  std::string shell;
  const CLI::App* parser = nullptr;
};

ExitCode run(const Options& options, const Console& console) {
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
  Options& options = command.runs(run);
  options.parser = &command.parser();
  command.positional("shell", options.shell, "SHELL", "bash, zsh or fish")
      .required()
      .one_of({"bash", "zsh", "fish"});
}

}  // namespace perfmap::app
