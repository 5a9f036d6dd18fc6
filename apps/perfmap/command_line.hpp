// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <perfmap/index.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "console.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace perfmap::app {

/// The work of a command; runs after the command line was parsed.
using Action = std::function<ExitCode(const Console&)>;

/// Returns why a value of an option is refused; empty if it is accepted.
using Check = std::function<std::string(const std::string&)>;

/// Takes one value of an option.
using Take = std::function<void(const std::string&)>;

/// An option or positional of a command, for further declarations. A copy is the same option.
class Option {
 public:
  Option required();
  /// One of the words, or `prefix` and something after it, if there is a prefix.
  Option one_of(const std::vector<std::string>& words, const std::string& prefix = "");
  Option check(const Check& why_not);
  Option between(int least, int max);
  /// Changes each value before it is checked.
  Option transform(const std::function<std::string(std::string)>& change);
  /// The number of its values.
  Option count(int least, int max);
  /// A value may be a list, separated by commas.
  Option with_commas();
  /// Only one value makes sense; more are read, to be counted in an error. For completions.
  Option single();
  /// After its first word, all words belong to it, also options: a command with its arguments.
  Option rest();
  /// Each value is taken as soon as it is read: options that fill one list together keep their
  /// order on the command line.
  Option in_order();
  Option needs(Option other);
  /// The number of values that have been read.
  std::size_t count_read() const;
  Option excludes(Option other);

 private:
  friend class CommandOptions;
  explicit Option(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;
};

/// The options and positionals of one command, as they are declared: one call each. `names` are
/// those of the option, as in "-o,--output"; `type` names its value in help, and decides what
/// shells complete. The variables must live as long as what runs() returns.
class CommandOptions {
 public:
  CommandOptions(CLI::App& app, Action& action) : app_(app), action_(action) {}

  /// Makes the object with the values of the command's options. `run` gets it if the user names
  /// this command.
  template <class Values>
  Values& runs(ExitCode (*run)(const Values&, const Console&)) {
    const auto values = std::make_shared<Values>();
    on_chosen([values, run](const Console& console) { return run(*values, console); });
    return *values;
  }
  /// The same, but first `prepare` sets values that depend on others.
  template <class Values>
  Values& runs(ExitCode (*run)(const Values&, const Console&),
               Result<void> (*prepare)(Values&, const Console&)) {
    const auto values = std::make_shared<Values>();
    on_chosen([values, run, prepare](const Console& console) {
      const Result<void> prepared = prepare(*values, console);
      return prepared ? run(*values, console) : console.fail(prepared.error());
    });
    return *values;
  }

  /// Runs `first` before the command, if the user names it; an error is printed and ends it.
  void before(std::function<Result<void>(const Console&)> first);

  /// T: std::string, std::vector<std::string> or pid_t.
  template <class T>
    requires(!std::is_convertible_v<T&, Take>)
  Option positional(const char* name, T& value, const char* type, const std::string& help);
  /// Takes the values when the whole command line has been read.
  Option positional(const char* name, const Take& take, const char* type, const std::string& help);
  /// Sets `value` to true, or to false for names such as "!--no-kernel".
  Option flag(const char* names, bool& value, const std::string& help);
  /// The last of several values counts. T: std::string or a number.
  template <class T>
    requires(!std::is_convertible_v<T&, Take>)
  Option value(const char* names, T& value, const char* type, const std::string& help);
  Option value(const char* names, const Take& take, const char* type, const std::string& help);
  /// May be given several times.
  Option values(const char* names, std::vector<std::string>& values, const char* type,
                const std::string& help);
  Option values(const char* names, const Take& take, const char* type, const std::string& help);

  /// The parser of all commands, for help_text() and describe().
  const CLI::App& parser() const;

 private:
  void on_chosen(Action action);

  using Hooks = std::vector<std::function<Result<void>(const Console&)>>;

  CLI::App& app_;
  Action& action_;
  std::shared_ptr<Hooks> before_ = std::make_shared<Hooks>();
};

/// Types of values: a file; a file or a process. Completions and pages depend on them.
inline constexpr const char* kFile = "FILE";
inline constexpr const char* kSource = "SOURCE";

/// Options that several commands share.
/// --overlap; `perf` only for commands that look up addresses.
Option add_overlap(CommandOptions& command, Overlap& overlap, bool with_perf,
                   const std::string& condition = "");
/// -o FILE; the default "-" is standard output.
Option add_output(CommandOptions& command, std::string& path,
                  const std::string& help = "Write there instead of standard output");
/// --format with one of these values; the first is the default.
Option add_format(CommandOptions& command, std::string& format,
                  const std::vector<std::string>& values);
/// A suffix of -o FILE and its format.
struct SuffixFormat {
  std::string_view suffix;
  std::string_view format;  ///< empty: several formats have this suffix
};
/// An option for the format of -o FILE, which stays empty if it is not given; see choose_format().
Option add_output_format(CommandOptions& command, const char* name, std::string& format,
                         const std::vector<std::string>& values,
                         std::span<const SuffixFormat> suffixes, const std::string& standard);
/// If no format was given, sets the format of the suffix of `path`, or `standard` with a note if
/// the suffix is unknown. Fails if the suffix contradicts the format. `option` is the name of the
/// command's option for the format: "--format" or "--to".
Result<void> choose_format(const char* option, std::string& format, const std::string& path,
                           std::span<const SuffixFormat> suffixes, const std::string& standard,
                           const Console& console);
/// --time; `time` keeps its value if the option is not given.
Option add_time(CommandOptions& command, std::uint64_t& time);
/// --no-demangle, which sets `demangle` to false.
Option add_no_demangle(CommandOptions& command, bool& demangle);

/// Decimal digits that may be a process id.
std::string check_pid(const std::string& text);
/// Decimal digits that may be a thread id.
std::string check_tid(const std::string& text);
/// Decimal digits that fit into every counter.
std::string check_count(const std::string& text);

/// The options that every command takes, before and after its name.
struct CommonOptions {
  ColorWish color = ColorWish::automatic;
  bool quiet = false;
  bool verbose = false;
};

/// The result of parsing: an action, a text to print, or an error.
struct ParsedCommandLine {
  CommonOptions common;
  Action action;
  std::string text;
  bool names_no_command = false;  ///< `text` lists the commands
  std::string error;
  std::shared_ptr<const CLI::App> parser;  ///< the action may refer to it
};
ParsedCommandLine parse_command_line(int count, const char* const* arguments);

/// "unknown command 'x'" and the nearest real one.
std::string unknown_command(const std::string& argument);
/// Names of all commands, in the order of the help text.
std::vector<std::string> command_names();
/// The help of a command, or of the program if `command` is empty; nothing if there is no such
/// command.
std::optional<std::string> help_text(const CLI::App& parser, const std::string& command);

struct OptionValue {
  std::string value;
  std::string text;  ///< may be empty
};

/// An option for help, completions and manual pages.
struct OptionDescription {
  std::vector<std::string> names;  ///< "-o", "--output"; empty for a positional
  std::string value_name;          ///< "FILE"
  std::string group;               ///< of option_groups()
  std::string help;
  bool takes_value = false;
  bool takes_file = false;
  bool takes_directory = false;
  bool takes_pid = false;
  bool takes_list = false;          ///< values separated by commas
  bool repeats = false;             ///< each value counts, not only the last
  std::vector<OptionValue> values;  ///< empty: anything
};
struct CommandDescription {
  std::string name;
  std::string summary;
  std::vector<OptionDescription> options;  ///< positionals last
};
struct CommandSummary {
  std::string_view name;
  std::string_view group;  ///< the heading above the command
  std::string_view summary;
};
/// All commands, in the order of the help text.
std::span<const CommandSummary> command_summaries();
/// The program itself, and then all commands.
std::vector<CommandDescription> describe(const CLI::App& parser);
std::vector<CommandDescription> describe_program();

}  // namespace perfmap::app
