#include "parser.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

namespace perfmap::app {
namespace {

constexpr std::array kCommands = {
    Command{"resolve", "Name the code at addresses", declare_resolve},
    Command{"lint", "Say what is wrong with a map, and mend it", declare_lint},
    Command{"merge", "Make one map without conflicts of several", declare_merge},
    Command{"tidy", "Make a map without conflicts of one", declare_tidy},
    Command{"info", "Say what a map holds", declare_info},
    Command{"diff", "Say which names appeared, vanished or moved", declare_diff},
    Command{"doctor", "Say why names of a process or recording are missing", declare_doctor},
    Command{"stacks", "Make stacks with names of a perf recording", declare_stacks},
    Command{"pypylog", "Say where the time of a PyPy program went, by loop", declare_pypylog},
    Command{"inject", "Write a perf recording again, so that perf names JIT code", declare_inject},
    Command{"write", "Append entries to a map or a jitdump", declare_write},
    Command{"copy", "Append a map to another", declare_copy},
    Command{"to-json", "Print a map as JSON", declare_to_json},
    Command{"from-json", "Make a map of JSON", declare_from_json},
    Command{"convert", "Change the format of a map", declare_convert},
    Command{"watch", "Follow what a process writes into its map", declare_watch},
    Command{"snapshot", "Keep what names a process's code, for later", declare_snapshot},
    Command{"gc", "Remove what dead processes left in /tmp", declare_gc},
    Command{"completions", "Print the completions of a shell", declare_completions},
    Command{"help", "Show the help of a command", declare_help},
};

/// What may stand before the name of a command.
constexpr std::array<std::string_view, 5> kGlobalOptions = {"--color", "--quiet", "--verbose",
                                                            "--help", "--version"};

/// Longer than the name of any command or option.
constexpr std::size_t kLongestName = 40;

void add_common_options(CLI::App& app, CommonOptions& common) {
  static const std::map<std::string, ColorWish> colors = {
      {"auto", ColorWish::automatic}, {"always", ColorWish::always}, {"never", ColorWish::never}};
  app.add_option_function<std::string>(
         "--color", [&common](const std::string& value) { common.color = colors.at(value); },
         "Colour: auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_flag_callback(
      "-q,--quiet", [&common] { common.quiet = true; }, "No notes or warnings");
  app.add_flag_callback(
      "-v,--verbose", [&common] { common.verbose = true; },
      "Explain doubts and other notes, and print how long each step took");
}

/// A flag is there or not: --quiet=false is no way to say either.
void refuse_values_of_flags(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) option->disable_flag_override();
  }
}

/// The fewest changes of one character, or of two neighbours' order, that make `b` of `a`. For
/// names of a few bytes.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> row(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) row[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) row[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = row[i - 1][j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
      row[i][j] = std::min({row[i - 1][j] + 1, row[i][j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[i][j] = std::min(row[i][j], row[i - 2][j - 2] + 1);
      }
    }
  }
  return row[a.size()][b.size()];
}

std::string nearest(std::string_view wanted, const std::vector<std::string>& names) {
  wanted = wanted.substr(0, kLongestName);
  // The beginning of one name, and of one only, means that one.
  const auto begins = [&](const std::string& name) {
    return wanted.size() >= 3 && name.starts_with(wanted);
  };
  auto best = std::find_if(names.begin(), names.end(), begins);
  if (best != names.end() && std::none_of(best + 1, names.end(), begins)) {
    return "; did you mean '" + *best + "'?";
  }
  best = std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
    return distance(wanted, a) < distance(wanted, b);
  });
  if (best == names.end() || distance(wanted, *best) > (wanted.size() + 1) / 3) return "";
  return "; did you mean '" + *best + "'?";
}

/// In front of a word that stood behind "--"; no word of a user begins with it.
constexpr char kLiteral = '\x01';

std::string without_mark(std::string word) {
  if (!word.empty() && word.front() == kLiteral) word.erase(0, 1);
  return word;
}

bool is_command(std::string_view word) {
  return std::any_of(kCommands.begin(), kCommands.end(),
                     [&](const auto& c) { return word == c.name; });
}

void unmark_literals(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_positional()) option->transform(without_mark, "");
  }
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

const CLI::App* chosen_command(const CLI::App& parser) {
  const auto chosen = parser.get_subcommands();
  return chosen.empty() ? nullptr : chosen.front();
}

/// The first option that the command does not have, if any: whatever else is wrong with a command
/// line often follows from that.
std::string unknown_option(const CLI::App& parser, bool short_ones, int count,
                           const char* const* arguments) {
  const CLI::App* const command = chosen_command(parser);
  const std::vector<std::string> names = option_names(command == nullptr ? parser : *command);
  for (int i = 1; i < count && std::string_view(arguments[i]) != "--"; ++i) {
    const std::string argument = arguments[i];
    const bool is_long = argument.starts_with("--");
    const std::string name = is_long ? argument.substr(0, argument.find('=')) : argument;
    const std::string known = is_long ? name : name.substr(0, 2);
    if (argument.size() < 2 || argument[0] != '-' || !(is_long || short_ones) ||
        std::count(names.begin(), names.end(), known) != 0) {
      continue;
    }
    return "unknown option '" + name + "'" +
           (is_long ? nearest(name, names) : "; '--' goes before what is none");
  }
  return "";
}

/// CLI11 may spread a message over lines.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

std::string unknown_command(const std::string& argument) {
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  return "unknown command '" + argument + "'" + nearest(argument, names);
}

std::string misspelt_command(int count, const char* const* arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (is_command(argument)) return "";
    if (!argument.starts_with('-')) return unknown_command(argument);
    const std::string name = argument.substr(0, argument.find('='));
    const bool is_long = argument.starts_with("--");
    if (is_long && std::count(kGlobalOptions.begin(), kGlobalOptions.end(), name) == 0) return "";
    if (argument == "--color") ++i;
  }
  return "";
}

std::vector<std::string> parser_arguments(int count, const char* const* arguments) {
  std::vector<std::string> words;
  bool command = false;
  bool literal = false;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    command = command || is_command(word);
    if (!literal && word == "--") {
      literal = command;
    } else {
      words.push_back((literal ? std::string(1, kLiteral) : "").append(word));
    }
  }
  std::reverse(words.begin(), words.end());
  return words;
}

std::string_view only_command(int count, const char* const* arguments) {
  if (count < 2) return {};
  const auto* const found = std::find_if(arguments + 1, arguments + count, is_command);
  if (found == arguments + count) return {};
  const std::string_view command = *found;
  return command == "help" || command == "completions" ? std::string_view() : command;
}

std::unique_ptr<CLI::App> make_parser(CommonOptions& common, Action& action,
                                      std::string_view only) {
  auto parser = std::make_unique<CLI::App>(
      "Parses, checks, merges, queries and writes the perf maps of JIT runtimes.", "perfmap");
  parser->set_version_flag("--version", "perfmap " PERFMAP_VERSION, "Print the version");
  parser->set_help_flag("-h,--help", "Print this help");
  parser->require_subcommand(0, 1);
  add_common_options(*parser, common);
  refuse_values_of_flags(*parser);
  for (const Command& command : kCommands) {
    if (!only.empty() && only != command.name) continue;
    CLI::App* const app = parser->add_subcommand(command.name, command.summary);
    app->set_help_flag("-h,--help", "Print this help");
    add_common_options(*app, common);
    command.declare(*app, action);
    refuse_values_of_flags(*app);
    unmark_literals(*app);
  }
  return parser;
}

std::string explain(const CLI::App& parser, const CLI::ParseError& error, int count,
                    const char* const* arguments) {
  // The value of an option may begin with '-'.
  const bool short_ones = dynamic_cast<const CLI::ValidationError*>(&error) == nullptr;
  std::string option = unknown_option(parser, short_ones, count, arguments);
  if (!option.empty()) return option;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return one_line(error.what());
  std::vector<std::string> extras = parser.remaining(true);
  for (int i = 1; i < count && extras.empty(); ++i) extras.emplace_back(arguments[i]);
  if (extras.empty()) return one_line(error.what());
  const std::string first = without_mark(extras.front());
  if (first.size() > 1 && first[0] == '-') return "unknown option '" + first + "'";
  if (chosen_command(parser) == nullptr) return unknown_command(first);
  return "unexpected argument '" + first + "'";
}

}  // namespace perfmap::app
