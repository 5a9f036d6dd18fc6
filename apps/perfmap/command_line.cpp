// SPDX-License-Identifier: MIT
#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <perfmap/diagnostic.hpp>
#include <perfmap/profile/snapshot.hpp>
#include <perfmap/profile/source.hpp>
#include <perfmap/text.hpp>
#include <unistd.h>

#include "command_texts.hpp"
#include "help_text.hpp"

/// Every command, in the order of the help text: name, the function of cmd_<name>.cpp that declares
/// its options, the heading of its group, summary.
// clang-format off
#define PERFMAP_COMMANDS(row) \
  row("record", declare_record, "Recordings", "Record a program, with the names of its JIT code") \
  row("report", declare_report, "Recordings", "Print which functions took the time of a recording") \
  row("stacks", declare_stacks, "Recordings", "Print the named stacks of a perf recording") \
  row("annotate", declare_annotate, "Recordings", "Print the samples of a function by instruction and source line") \
  row("inject", declare_inject, "Recordings", "Rewrite a perf recording so that perf names JIT code") \
  row("doctor", declare_doctor, "Recordings", "Find out why names of a process or recording are missing") \
  row("resolve", declare_resolve, "Names", "Name the code at addresses") \
  row("lint", declare_lint, "Maps and jitdumps", "Check maps and jitdumps, and fix them") \
  row("tidy", declare_tidy, "Maps and jitdumps", "Remove overlaps and duplicates from a map") \
  row("merge", declare_merge, "Maps and jitdumps", "Merge maps into one without overlaps") \
  row("diff", declare_diff, "Maps and jitdumps", "Print which names appeared, vanished or moved") \
  row("info", declare_info, "Maps and jitdumps", "Summarize a map") \
  row("convert", declare_convert, "Maps and jitdumps", "Convert a map to another format") \
  row("to-json", declare_to_json, "Maps and jitdumps", "Print a map as JSON") \
  row("from-json", declare_from_json, "Maps and jitdumps", "Make a map from JSON") \
  row("watch", declare_watch, "Processes", "Print the entries that a process writes to its map and jitdumps") \
  row("snapshot", declare_snapshot, "Processes", "Copy the map, jitdumps and build IDs of a process") \
  row("gc", declare_gc, "Processes", "Remove the files of dead processes from /tmp") \
  row("write", declare_write, "Runtimes", "Append entries to a map or a jitdump") \
  row("copy", declare_copy, "Runtimes", "Append a map to another") \
  row("pypylog", declare_pypylog, "PyPy", "Print where a PyPy program spent its time, by loop") \
  row("help", declare_help, "Help", "Open the manual page of a command") \
  row("version", declare_version, "Help", "Print the version") \
  row("completions", declare_completions, "Help", "Print the completion script for a shell")
// clang-format on

namespace perfmap::app {

#define PERFMAP_DECLARED(name, declare, group, summary) void declare(CommandOptions& command);
PERFMAP_COMMANDS(PERFMAP_DECLARED)
#undef PERFMAP_DECLARED

namespace {

struct Command {
  const char* name;
  void (*declare)(CommandOptions& command);
  const char* group;
  const char* summary;
};

#define PERFMAP_ROW(name, declare, group, summary) Command{name, declare, group, summary},
constexpr std::array kCommands = {PERFMAP_COMMANDS(PERFMAP_ROW)};
#undef PERFMAP_ROW

/// What may stand before the name of a command.
constexpr std::array<std::string_view, 5> kGlobalOptions = {"--color", "--quiet", "--verbose",
                                                            "--help", "--version"};

/// Longer than the name of any command or option.
constexpr std::size_t kLongestName = 40;

constexpr auto kLast = CLI::MultiOptionPolicy::TakeLast;
/// The group, of which only CLI11's own help makes use, of Option::single().
constexpr const char* kSingle = "single";
/// The same for Option::rest().
constexpr const char* kRest = "rest";

CLI::Validator validator(const Check& why_not) { return {why_not, ""}; }

bool is_decimal(const std::string& text, std::size_t max_digits) {
  return !text.empty() && text.size() <= max_digits &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// CLI::IsMember with a sentence as its message.
CLI::Validator one_of_words(const std::vector<std::string>& words, const std::string& prefix = "") {
  const auto check = [words, prefix](const std::string& value) -> std::string {
    if (std::find(words.begin(), words.end(), value) != words.end()) return {};
    const bool has_prefix = !prefix.empty() && value.starts_with(prefix);
    if (has_prefix && value.size() > prefix.size()) return {};
    std::string list;
    for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
    if (!prefix.empty()) list += ", " + prefix + "KEY";
    return "'" + value + "' is not one of " + list;
  };
  return {check, CLI::IsMember(words).get_description()};
}

void add_common_options(CLI::App& app, CommonOptions& common) {
  static const std::map<std::string, ColorWish> colors = {
      {"auto", ColorWish::automatic}, {"always", ColorWish::always}, {"never", ColorWish::never}};
  app.add_option_function<std::string>(
         "--color", [&common](const std::string& value) { common.color = colors.at(value); },
         "Print colours always, never, or only on a terminal (default: auto)")
      ->check(one_of_words({"auto", "always", "never"}))
      ->type_name("WHEN")
      ->multi_option_policy(kLast);
  app.add_flag_callback(
      "-q,--quiet", [&common] { common.quiet = true; }, "Do not print notes or warnings");
  app.add_flag_callback(
      "-v,--verbose", [&common] { common.verbose = true; },
      "Explain notes, and print how long each step took");
}

/// A flag is there or not: --quiet=false is no way to say either.
void refuse_values_of_flags(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) option->disable_flag_override();
  }
}

/// The number of edits between `a` and `b`: one character changed, added or removed, or two
/// neighbours swapped. O(a * b) time and memory: for short names.
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

/// Marks a word that came after "--"; no word of a user begins with it.
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

/// Options that users expect because another command has them, and what this one has.
struct OtherSpelling {
  std::string_view command;
  std::string_view option;
  std::string_view instead;
};
constexpr std::array kOtherSpellings = {
    OtherSpelling{"stacks", "--time", "use --from and --to-time"},
    OtherSpelling{"stacks", "--to", "use --format"},
    OtherSpelling{"pypylog", "--time", "use --from and --to-time"},
    OtherSpelling{"lint", "--to", "use --format"},
    OtherSpelling{"write", "--pid", "use --to-pid"},
    OtherSpelling{"write", "-p", "use --to-pid"},
    OtherSpelling{"copy", "--to", "use -o or --to-pid"},
    OtherSpelling{"to-json", "--format", "use --to"},
    OtherSpelling{"from-json", "--format", "use --to"},
    OtherSpelling{"convert", "--format", "use --to"},
    OtherSpelling{"merge", "--format", "use --to"},
    OtherSpelling{"diff", "-o", "redirect the output"},
    OtherSpelling{"info", "-o", "redirect the output"},
    OtherSpelling{"resolve", "-o", "redirect the output"},
    OtherSpelling{"watch", "-o", "redirect the output"},
    OtherSpelling{"doctor", "-o", "redirect the output"},
    OtherSpelling{"tidy", "--format", "the output is always a perf map (perfmap convert has --to)"},
};

/// What to use instead of an option that a command does not have; empty if nothing is near.
std::string advice(const CLI::App* command, const std::string& name,
                   const std::vector<std::string>& names) {
  const auto* const other =
      std::find_if(kOtherSpellings.begin(), kOtherSpellings.end(), [&](const OtherSpelling& one) {
        return command != nullptr && one.command == command->get_name() && one.option == name;
      });
  if (other != kOtherSpellings.end()) return "; " + std::string(other->instead);
  if (name.starts_with("--")) return nearest(name, names);
  const bool is_letter = name.size() == 2 && std::isalpha(static_cast<unsigned char>(name[1]));
  return is_letter ? "" : "; put '--' before an argument that is not an option";
}

/// An option of the command line as it was typed; null if the command does not have it.
struct TypedOption {
  std::string name;
  const CLI::Option* option;
};

bool takes_value(const CLI::Option* option) {
  return option != nullptr && option->get_items_expected_max() > 0;
}

/// The options of one word, such as "--color=never" or "-qv". Returns whether the next word is the
/// value of the last one.
bool add_typed(const CLI::App& app, const std::string& word, std::vector<TypedOption>& typed) {
  if (word.size() < 2 || word[0] != '-') return false;
  if (word.starts_with("--")) {
    const std::string name = word.substr(0, word.find('='));
    typed.push_back({name, app.get_option_no_throw(name)});
    return name.size() == word.size() && takes_value(typed.back().option);
  }
  for (std::size_t at = 1; at < word.size(); ++at) {
    const std::string name = std::string("-") + word[at];
    const CLI::Option* const option = app.get_option_no_throw(name);
    const bool is_whole = at == 1 || word[at] == '=';
    typed.push_back({option == nullptr && is_whole ? word : name, option});
    if (option == nullptr) return false;
    if (takes_value(option)) return at + 1 == word.size();
  }
  return false;
}

/// The position of the first word of Option::rest(); `count` if there is none before a "--".
int begin_of_rest(const CLI::App& parser, int count, const char* const* arguments) {
  const auto* const end = arguments + count;
  const auto* const name = std::find_if(arguments + std::min(count, 1), end, is_command);
  if (name == end) return count;
  const auto found =
      parser.get_subcommands([name](const CLI::App* one) { return one->get_name() == *name; });
  if (found.empty()) return count;
  const CLI::App* const app = found.front();
  const auto takes_rest = [](const CLI::Option* one) { return one->get_group() == kRest; };
  if (std::ranges::none_of(app->get_options(), takes_rest)) return count;
  std::vector<TypedOption> ignored;
  for (int i = static_cast<int>(name - arguments) + 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--") return count;
    if (word.size() < 2 || word[0] != '-') return i;
    if (add_typed(*app, word, ignored)) ++i;
  }
  return count;
}

std::vector<TypedOption> typed_options(const CLI::App& parser, int count,
                                       const char* const* arguments) {
  const int end = begin_of_rest(parser, count, arguments);
  const CLI::App* const command = chosen_command(parser);
  const CLI::App* app = &parser;
  std::vector<TypedOption> typed;
  for (int i = 1; i < end && std::string_view(arguments[i]) != "--"; ++i) {
    if (command != nullptr && command->get_name() == arguments[i]) app = command;
    if (add_typed(*app, arguments[i], typed)) ++i;
  }
  return typed;
}

/// The first option that the command does not have, if any. Other errors of a command line often
/// follow from it.
std::string unknown_option(const CLI::App& parser, const std::vector<TypedOption>& typed) {
  const auto found = std::ranges::find(typed, nullptr, &TypedOption::option);
  if (found == typed.end()) return "";
  const CLI::App* const command = chosen_command(parser);
  const std::vector<std::string> names = option_names(command == nullptr ? parser : *command);
  return "unknown option '" + found->name + "'" + advice(command, found->name, names);
}

/// CLI11 may spread a message over lines.
std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

/// unknown_command() if the first word after the options is not a command; empty otherwise. Checked
/// before parsing, because CLI11 reports a missing argument first.
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

/// The command line as the parser takes it, last word first. CLI11 looks at how many values an
/// option still wants before it believes a "--", so words after it are marked instead; the
/// parser's positionals take the mark off again.
std::vector<std::string> parser_arguments(const CLI::App& parser, int count,
                                          const char* const* arguments) {
  const int rest = begin_of_rest(parser, count, arguments);
  std::vector<std::string> words;
  bool command = false;
  bool literal = false;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    command = command || is_command(word);
    literal = literal || i >= rest;
    if (!literal && word == "--") {
      literal = command;
    } else {
      words.push_back((literal ? std::string(1, kLiteral) : "").append(word));
    }
  }
  std::reverse(words.begin(), words.end());
  return words;
}

/// The commands that a parser knows: all, one, or, as an empty name, all without their options.
using Declared = std::optional<std::string_view>;
constexpr Declared kAllCommands = std::nullopt;

/// What the parser of a command line needs: declaring all takes longer than most look-ups.
Declared needed_commands(int count, const char* const* arguments) {
  if (count < 2) return "";
  const auto* const found = std::find_if(arguments + 1, arguments + count, is_command);
  if (found == arguments + count) return "";
  const std::string_view command = *found;
  return command == "help" || command == "completions" ? kAllCommands : Declared(command);
}

std::shared_ptr<CLI::App> make_parser(CommonOptions& common, Action& action, Declared declared) {
  auto parser = std::make_shared<CLI::App>("", "perfmap");
  parser->set_version_flag("-V,--version", "perfmap " PERFMAP_VERSION, "Print the version");
  parser->set_help_flag("-h,--help", "Print this help");
  parser->require_subcommand(0, 1);
  add_common_options(*parser, common);
  refuse_values_of_flags(*parser);
  for (const Command& command : kCommands) {
    if (declared && !declared->empty() && *declared != command.name) continue;
    CLI::App* const app = parser->add_subcommand(command.name, command.summary);
    if (declared == "") continue;
    app->set_help_flag("-h,--help", "Print this help");
    add_common_options(*app, common);
    CommandOptions options(*app, action);
    command.declare(options);
    refuse_values_of_flags(*app);
    unmark_literals(*app);
  }
  return parser;
}

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

OptionDescription describe_option(const CLI::Option& option) {
  OptionDescription result;
  for (const std::string& name : option.get_snames()) result.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) result.names.push_back("--" + name);
  result.help = option.get_description();
  const std::string type = option.get_type_name();
  const std::string kind = type.substr(0, type.find(':'));
  const std::string long_name =
      option.get_lnames().empty() ? option.get_name() : option.get_lnames().front();
  result.value_name = kind;
  // A file has a name that says which: RECORDING, LOG.
  if (result.names.empty() && kind == kFile) {
    result.value_name = option.get_name();
    for (char& c : result.value_name) c = static_cast<char>(std::toupper(c));
  }
  result.takes_value = result.names.empty() || option.get_items_expected_max() > 0;
  result.group = group_of_option(long_name, result.takes_value);
  result.takes_file = kind == kFile || kind == kSource;
  result.takes_directory = kind == "DIR";
  result.takes_pid = kind == "PID" || kind == kSource;
  result.takes_list = kind == "IDS";
  result.repeats = result.takes_value && option.get_items_expected_max() > 1 &&
                   option.get_multi_option_policy() != kLast && option.get_group() != kSingle;
  for (const std::string& value : values_of(type)) {
    result.values.push_back({value, std::string(text_of_value(long_name, value))});
  }
  if (kind == "ID" || kind == "IDS") {
    for (const Rule* rule : rule::all()) {
      result.values.push_back({std::string(rule->id), std::string(rule->summary)});
    }
  }
  if (kind == "COMMAND" && option.get_group() != kRest) {
    for (const Command& command : kCommands)
      result.values.push_back({command.name, command.summary});
  }
  return result;
}

/// "pretty, gcc, json"; or what the value is, such as "FILE".
std::string expected_values(const OptionDescription& option) {
  constexpr std::size_t kMaxListed = 12;
  if (option.values.empty() || option.values.size() > kMaxListed) return option.value_name;
  std::string list;
  for (const OptionValue& one : option.values) list += (list.empty() ? "" : ", ") + one.value;
  return list;
}

/// "expected a RECORDING, such as perf.data" or "expected -o FILE".
std::string expected(const CLI::Option& missing) {
  const OptionDescription option = describe_option(missing);
  if (!option.names.empty()) return "expected " + option.names.front() + " " + option.value_name;
  const std::string& name = option.value_name;
  std::string text = "expected a " + name;
  if (!option.values.empty()) text += ": " + expected_values(option);
  if (name == "RECORDING") text += ", such as perf.data";
  if (name == "LOG") text += ", such as app.pypylog";
  return text;
}

/// An error of CLI11 in the words of the other messages. Its texts begin with the name of an option
/// or a positional.
class ErrorText {
 public:
  ErrorText(const CLI::App& app, const std::vector<TypedOption>& typed, const std::string& text)
      : app_(app), typed_(typed), text_(text) {}

  std::string of_required() const {
    const CLI::Option* const option = option_of(text_.substr(0, text_.find(' ')));
    return option == nullptr ? text_ : expected(*option);
  }
  /// The value of a positional needs no name.
  std::string of_value() const {
    const std::size_t end = text_.find(": ");
    const CLI::Option* const option = option_of(text_.substr(0, end));
    if (option == nullptr || end == std::string::npos) return text_;
    return (option->get_positional() ? "" : spelled(*option) + ": ") + text_.substr(end + 2);
  }
  std::string of_number() const {
    const CLI::Option* const option = option_of(text_.substr(0, text_.find_first_of(": ")));
    if (option == nullptr) return text_;
    if (option->get_positional()) return "too many arguments";
    if (!takes_value(option)) return spelled(*option) + " takes no value";
    return spelled(*option) + " needs a value: " + expected_values(describe_option(*option));
  }
  /// "A excludes B" as "A cannot be used with B".
  std::string of_pair(const std::string& between, const std::string& words) const {
    const std::size_t at = text_.find(between);
    if (at == std::string::npos) return text_;
    const CLI::Option* const first = option_of(text_.substr(0, at));
    const CLI::Option* const second = option_of(text_.substr(at + between.size()));
    if (first == nullptr || second == nullptr) return text_;
    return spelled(*first) + words + spelled(*second);
  }

 private:
  const CLI::Option* option_of(const std::string& name) const {
    const CLI::Option* const option = app_.get_option_no_throw(name);
    return option != nullptr ? option : app_.get_option_no_throw("--" + name);
  }
  /// As the user typed it, if it was typed.
  std::string spelled(const CLI::Option& option) const {
    const auto found = std::ranges::find(typed_, &option, &TypedOption::option);
    return found == typed_.end() ? option.get_name() : found->name;
  }

  const CLI::App& app_;
  const std::vector<TypedOption>& typed_;
  const std::string text_;
};

/// The first word that the command has no place for.
std::string unexpected(const CLI::App& parser, const CLI::ParseError& error, int count,
                       const char* const* arguments) {
  std::vector<std::string> extras = parser.remaining(true);
  for (int i = 1; i < count && extras.empty(); ++i) extras.emplace_back(arguments[i]);
  if (extras.empty()) return on_one_line(error.what());
  const std::string first = without_mark(extras.front());
  if (chosen_command(parser) == nullptr) return unknown_command(first);
  return "unexpected argument '" + first + "'";
}

template <class Kind>
bool is(const CLI::ParseError& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

/// What is wrong with a command line, in one line.
std::string explain(const CLI::App& parser, const CLI::ParseError& error, int count,
                    const char* const* arguments) {
  const std::vector<TypedOption> typed = typed_options(parser, count, arguments);
  if (std::string unknown = unknown_option(parser, typed); !unknown.empty()) return unknown;
  const CLI::App* const command = chosen_command(parser);
  const ErrorText text(command == nullptr ? parser : *command, typed, on_one_line(error.what()));
  if (is<CLI::ExtrasError>(error)) return unexpected(parser, error, count, arguments);
  if (is<CLI::RequiredError>(error)) return text.of_required();
  if (is<CLI::ValidationError>(error)) return text.of_value();
  if (is<CLI::ArgumentMismatch>(error)) return text.of_number();
  if (is<CLI::ExcludesError>(error)) return text.of_pair(" excludes ", " cannot be used with ");
  return text.of_pair(" requires ", " requires ");
}

CommandDescription describe_command(const CLI::App& command) {
  CommandDescription result{command.get_name(), command.get_description(), {}};
  std::vector<OptionDescription> positionals;
  for (const CLI::Option* option : command.get_options()) {
    OptionDescription one = describe_option(*option);
    (one.names.empty() ? positionals : result.options).push_back(std::move(one));
  }
  result.options.insert(result.options.end(), positionals.begin(), positionals.end());
  return result;
}

}  // namespace

Option Option::required() { return Option(option_->required()); }
Option Option::one_of(const std::vector<std::string>& words, const std::string& prefix) {
  return Option(option_->check(one_of_words(words, prefix)));
}
Option Option::check(const Check& why_not) { return Option(option_->check(validator(why_not))); }
Option Option::between(int least, int max) {
  const std::string range =
      " is not a number from " + std::to_string(least) + " to " + std::to_string(max);
  return check([least, max, range](const std::string& text) {
    const bool is_number = is_decimal(text, 9);
    const int number = is_number ? std::stoi(text) : 0;
    return is_number && number >= least && number <= max ? "" : "'" + text + "'" + range;
  });
}
Option Option::transform(const std::function<std::string(std::string)>& change) {
  return Option(option_->transform(change, ""));
}
Option Option::count(int least, int max) { return Option(option_->expected(least, max)); }
Option Option::with_commas() { return Option(option_->delimiter(',')); }
Option Option::single() { return Option(option_->group(kSingle)); }
Option Option::rest() { return Option(option_->group(kRest)); }
Option Option::in_order() { return Option(option_->trigger_on_parse()); }
Option Option::needs(Option other) { return Option(option_->needs(other.option_)); }
std::size_t Option::count_read() const { return option_->count(); }
Option Option::excludes(Option other) { return Option(option_->excludes(other.option_)); }

template <class T>
  requires(!std::is_convertible_v<T&, Take>)
Option CommandOptions::positional(const char* name, T& value, const char* type,
                                  const std::string& help) {
  return Option(app_.add_option(name, value, help)->type_name(type));
}
template Option CommandOptions::positional(const char*, std::string&, const char*,
                                           const std::string&);
template Option CommandOptions::positional(const char*, std::vector<std::string>&, const char*,
                                           const std::string&);
template Option CommandOptions::positional(const char*, pid_t&, const char*, const std::string&);

Option CommandOptions::positional(const char* name, const Take& take, const char* type,
                                  const std::string& help) {
  const auto take_one = [take](const std::vector<std::string>& values) {
    for (const std::string& value : values) take(without_mark(value));
  };
  return Option(
      app_.add_option_function<std::vector<std::string>>(name, take_one, help)->type_name(type));
}

Option CommandOptions::flag(const char* names, bool& value, const std::string& help) {
  return Option(app_.add_flag(names, value, help));
}

template <class T>
  requires(!std::is_convertible_v<T&, Take>)
Option CommandOptions::value(const char* names, T& value, const char* type,
                             const std::string& help) {
  return Option(app_.add_option(names, value, help)->type_name(type)->multi_option_policy(kLast));
}
template Option CommandOptions::value(const char*, std::string&, const char*, const std::string&);
template Option CommandOptions::value(const char*, pid_t&, const char*, const std::string&);
template Option CommandOptions::value(const char*, unsigned&, const char*, const std::string&);
template Option CommandOptions::value(const char*, std::uint64_t&, const char*, const std::string&);

Option CommandOptions::value(const char* names, const Take& take, const char* type,
                             const std::string& help) {
  return Option(app_.add_option_function<std::string>(names, take, help)
                    ->type_name(type)
                    ->multi_option_policy(kLast));
}

Option CommandOptions::values(const char* names, std::vector<std::string>& values, const char* type,
                              const std::string& help) {
  return Option(app_.add_option(names, values, help)->allow_extra_args(false)->type_name(type));
}

Option CommandOptions::values(const char* names, const Take& take, const char* type,
                              const std::string& help) {
  const auto take_all = [take](const std::vector<std::string>& values) {
    for (const std::string& value : values) take(value);
  };
  return Option(app_.add_option_function<std::vector<std::string>>(names, take_all, help)
                    ->allow_extra_args(false)
                    ->type_name(type));
}

const CLI::App& CommandOptions::parser() const { return *app_.get_parent(); }

void CommandOptions::on_chosen(Action action) {
  const Action whole = [action = std::move(action), before = before_](const Console& console) {
    for (const auto& first : *before) {
      const Result<void> done = first(console);
      if (!done) return console.fail(done.error());
    }
    return action(console);
  };
  app_.callback([whole, &chosen = action_] { chosen = whole; });
}

void CommandOptions::before(std::function<Result<void>(const Console&)> first) {
  before_->push_back(std::move(first));
}

Option add_overlap(CommandOptions& command, Overlap& overlap, bool with_perf,
                   const std::string& condition) {
  const std::string more = condition.empty() ? "" : "; " + condition;
  std::vector<std::string> names = {"last", "first", "inner"};
  if (with_perf) names.emplace_back("perf");
  const auto take = [&overlap](const std::string& name) { overlap = *parse_overlap(name); };
  return command
      .value("--overlap", take, "POLICY",
             "Which entry wins where entries overlap (default: last" + more + ")")
      .one_of(names);
}

Option add_output(CommandOptions& command, std::string& path, const std::string& help) {
  return command.value("-o,--output", path, kFile, help);
}

namespace {

/// "text" is the first of the values, whatever that is called.
Option with_text(Option option, const std::vector<std::string>& values) {
  return option.one_of(values).transform(
      [first = values.front()](const std::string& text) { return text == "text" ? first : text; });
}

const SuffixFormat* suffix_of(const std::string& path, std::span<const SuffixFormat> suffixes) {
  const auto found = std::ranges::find_if(suffixes, [&](const SuffixFormat& one) {
    return path.size() > one.suffix.size() && path.ends_with(one.suffix);
  });
  return found == suffixes.end() ? nullptr : &*found;
}

}  // namespace

Option add_format(CommandOptions& command, std::string& format,
                  const std::vector<std::string>& values) {
  format = values.front();
  return with_text(
      command.value("--format", format, "FORMAT", "Output format (default: " + format + ")"),
      values);
}

Option add_output_format(CommandOptions& command, const char* name, std::string& format,
                         const std::vector<std::string>& values,
                         std::span<const SuffixFormat> suffixes, const std::string& standard) {
  std::string help = "Output format (by default, the suffix of -o FILE selects it:";
  for (const SuffixFormat& one : suffixes) {
    if (one.format.empty()) continue;
    help += " " + std::string(one.suffix) + " for " + std::string(one.format) + ",";
  }
  help.back() = ';';
  const char* const type = std::string_view(name) == "--to" ? "KIND" : "FORMAT";
  return with_text(command.value(name, format, type, help + " otherwise " + standard + ")"),
                   values);
}

Result<void> choose_format(const char* option, std::string& format, const std::string& path,
                           std::span<const SuffixFormat> suffixes, const std::string& standard,
                           const Console& console) {
  const SuffixFormat* const suffix = suffix_of(path, suffixes);
  const bool is_clear = suffix != nullptr && !suffix->format.empty();
  if (!format.empty()) {
    if (!is_clear || suffix->format == format) return {};
    return invalid("the format is " + format + ", but " + path + " has the suffix of " +
                   std::string(suffix->format));
  }
  format = is_clear ? std::string(suffix->format) : standard;
  const std::size_t name = path.rfind('/') + 1;  // 0 without a '/'
  const std::size_t dot = path.rfind('.');
  const bool has_suffix = dot != std::string::npos && dot > name;
  if (!is_clear && has_suffix && !standard.empty()) {
    console.note("the suffix " + path.substr(dot) + " belongs to " +
                 (suffix == nullptr ? "no format" : "several formats") + ", so the output is " +
                 standard + " (" + option + " selects another format)");
  }
  return {};
}

Option add_time(CommandOptions& command, std::uint64_t& time) {
  const auto take = [&time](const std::string& text) { time = *parse_seconds(text); };
  const auto check = [](const std::string& text) {
    return parse_seconds(text) ? "" : "'" + text + "' is not a time in seconds";
  };
  return command
      .value("--time", take, "SECONDS",
             "Use the names and code that were valid at this time, in seconds (default: the end)")
      .check(check);
}

Option add_no_demangle(CommandOptions& command, bool& demangle) {
  return command.flag("!--no-demangle", demangle, "Do not demangle names");
}

std::string check_pid(const std::string& text) {
  // Linux has none beyond 4194304.
  if (is_decimal(text, 7) && std::stoul(text) > 0) return "";
  const char* const what = Snapshot::is_at(text)        ? "a snapshot, not a"
                           : refuse_recording(text, "") ? "a recording, not a"
                                                        : "not a";
  return "'" + text + "' is " + what + " process ID";
}

std::string check_tid(const std::string& text) {
  return is_decimal(text, 7) && std::stoul(text) > 0 ? "" : "'" + text + "' is not a thread ID";
}

std::string check_count(const std::string& text) {
  if (is_decimal(text, 18)) return "";
  return "'" + text +
         (is_decimal(text, text.size()) ? "' is too large" : "' is not a decimal number");
}

namespace {

/// Whether --version is the only argument. Then it is the command `version`, whose parser needs no
/// other command.
bool is_version_option(int count, const char* const* arguments) {
  return count == 2 &&
         (arguments[1] == std::string_view("--version") || arguments[1] == std::string_view("-V"));
}
constexpr std::array<const char*, 2> kVersionCommand = {"perfmap", "version"};

}  // namespace

ParsedCommandLine parse_command_line(int count, const char* const* arguments) {
  ParsedCommandLine result;
  if (is_version_option(count, arguments)) arguments = kVersionCommand.data();
  // Not on the stack: the parser refers to them for as long as it lives.
  const auto common = std::make_shared<CommonOptions>();
  const auto action = std::make_shared<Action>();
  const auto parser = make_parser(*common, *action, needed_commands(count, arguments));
  result.error = misspelt_command(count, arguments);
  if (!result.error.empty()) return result;
  try {
    parser->parse(parser_arguments(*parser, count, arguments));
    if (!*action) {
      result.text = program_help(describe_command(*parser), help_width(STDERR_FILENO));
      result.names_no_command = true;
    }
  } catch (const CLI::CallForHelp&) {
    const CLI::App* const chosen = chosen_command(*parser);
    result.text = *help_text(*parser, chosen == nullptr ? "" : chosen->get_name());
  } catch (const CLI::CallForVersion&) {
    result.text = parser->version() + "\n";
  } catch (const CLI::ParseError& error) {
    result.error = explain(*parser, error, count, arguments);
  }
  result.common = *common;
  result.action = std::move(*action);
  result.parser = parser;
  return result;
}

std::string unknown_command(const std::string& argument) {
  return "unknown command '" + argument + "'" + nearest(argument, command_names());
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  return names;
}

std::optional<std::string> help_text(const CLI::App& parser, const std::string& command) {
  const CLI::App* app = command.empty() ? &parser : nullptr;
  for (const CLI::App* one : parser.get_subcommands({})) {
    if (one->get_name() == command) app = one;
  }
  if (app == nullptr) return std::nullopt;
  const CommandDescription description = describe_command(*app);
  const std::size_t width = help_width(STDOUT_FILENO);
  return command.empty() ? program_help(description, width) : command_help(description, width);
}

std::span<const CommandSummary> command_summaries() {
  static const std::vector<CommandSummary> summaries = [] {
    std::vector<CommandSummary> all;
    for (const Command& command : kCommands) {
      all.push_back({command.name, command.group, command.summary});
    }
    return all;
  }();
  return summaries;
}

std::vector<CommandDescription> describe(const CLI::App& parser) {
  std::vector<CommandDescription> all = {describe_command(parser)};
  for (const CLI::App* command : parser.get_subcommands({})) {
    all.push_back(describe_command(*command));
  }
  return all;
}

std::vector<CommandDescription> describe_program() {
  CommonOptions common;
  Action action;
  return describe(*make_parser(common, action, kAllCommands));
}

}  // namespace perfmap::app
