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

/// What the command line asks for.
using Action = std::function<ExitCode(const Console&)>;

/// Why a value of an option is refused; empty if it is not.
using Check = std::function<std::string(const std::string&)>;

/// Takes one value of an option.
using Take = std::function<void(const std::string&)>;

/// One option or positional of a command, to say more of it. A copy is the same option.
class Option {
 public:
  Option required();
  Option one_of(const std::vector<std::string>& words);
  Option check(const Check& why_not);
  Option between(int least, int max);
  /// Changes each value before it is checked.
  Option transform(const std::function<std::string(std::string)>& change);
  /// How many values it has.
  Option count(int least, int max);
  /// A value may be several, with commas between them.
  Option with_commas();
  /// Each value is taken as soon as it is read: options that fill one list together keep their
  /// order on the command line.
  Option in_order();
  Option needs(Option other);
  /// How many values have been read until now.
  std::size_t count_read() const;
  Option excludes(Option other);

 private:
  friend class CommandOptions;
  explicit Option(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;
};

/// The options and positionals of one command, as they are declared: one call each. `names` are
/// those of the option, as in "-o,--output"; `type` stands for its value in help, and says what a
/// shell completes it with. The variables must live as long as what runs() returns.
class CommandOptions {
 public:
  CommandOptions(CLI::App& app, Action& action) : app_(app), action_(action) {}

  /// The values of the command's options, which `run` gets if the command is the one that is named.
  template <class Values>
  Values& runs(ExitCode (*run)(const Values&, const Console&)) {
    const auto values = std::make_shared<Values>();
    on_chosen([values, run](const Console& console) { return run(*values, console); });
    return *values;
  }
  /// The same; before that, `prepare` completes values that depend on others.
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

  /// T: std::string, std::vector<std::string> or pid_t.
  template <class T>
    requires(!std::is_convertible_v<T&, Take>)
  Option positional(const char* name, T& value, const char* type, const std::string& help);
  /// Takes the values when the whole command line has been read.
  Option positional(const char* name, const Take& take, const char* type, const std::string& help);
  /// Sets `value`; with names as "!--no-kernel", to false.
  Option flag(const char* names, bool& value, const std::string& help);
  /// Of several values the last counts. T: std::string or a number.
  template <class T>
    requires(!std::is_convertible_v<T&, Take>)
  Option value(const char* names, T& value, const char* type, const std::string& help);
  Option value(const char* names, const Take& take, const char* type, const std::string& help);
  /// May come several times.
  Option values(const char* names, std::vector<std::string>& values, const char* type,
                const std::string& help);
  Option values(const char* names, const Take& take, const char* type, const std::string& help);

  /// The parser of all commands, for help_text() and describe().
  const CLI::App& parser() const;

 private:
  void on_chosen(Action action);

  CLI::App& app_;
  Action& action_;
};

/// The type of a value that is a file, or a file or process. Completions and pages look at it.
inline constexpr const char* kFile = "FILE";
inline constexpr const char* kSource = "SOURCE";

/// Options that several commands share.
/// --overlap; `perf` is for those that only look up.
Option add_overlap(CommandOptions& command, Overlap& overlap, bool with_perf);
/// -o FILE; "-" is standard output, and the default.
Option add_output(CommandOptions& command, std::string& path,
                  const std::string& help = "Write there instead of standard output");
/// --format with one of these values, of which the first is the default.
Option add_format(CommandOptions& command, std::string& format,
                  const std::vector<std::string>& values);
/// The suffixes of -o FILE that stand for a format.
struct SuffixFormat {
  std::string_view suffix;
  std::string_view format;  ///< empty: several formats have this suffix
};
/// An option for the format of -o FILE, which stays empty if it is not given; see choose_format().
Option add_output_format(CommandOptions& command, const char* name, std::string& format,
                         const std::vector<std::string>& values,
                         std::span<const SuffixFormat> suffixes, const std::string& standard);
/// If no format was given: that of the suffix of `path`, or `standard`, with a note if the suffix
/// is unknown. Fails if the suffix contradicts the format.
Result<void> choose_format(std::string& format, const std::string& path,
                           std::span<const SuffixFormat> suffixes, const std::string& standard,
                           const Console& console);
/// --time; `time` keeps its value if the option is not given.
Option add_time(CommandOptions& command, std::uint64_t& time);
/// --no-demangle, which sets `demangle` to false.
Option add_no_demangle(CommandOptions& command, bool& demangle);

/// Decimal digits that may be a process id.
std::string check_pid(const std::string& text);
/// Decimal digits that fit every counter.
std::string check_count(const std::string& text);

/// The options that every command takes, before and after its name.
struct CommonOptions {
  ColorWish color = ColorWish::automatic;
  bool quiet = false;
  bool verbose = false;
};

/// What a command line comes to: an action, a text to print, or an error.
struct ParsedCommandLine {
  CommonOptions common;
  Action action;
  std::string text;
  bool names_no_command = false;  ///< `text` lists the commands
  std::string error;
  std::shared_ptr<const CLI::App> parser;  ///< which the action may refer to
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
  std::string text;  ///< what it means; may be empty
};

/// An option as help, shells and manual pages have it.
struct OptionDescription {
  std::vector<std::string> names;  ///< "-o", "--output"; empty for a positional
  std::string value_name;          ///< "FILE"
  std::string group;               ///< of option_groups()
  std::string help;
  bool takes_value = false;
  bool takes_file = false;
  bool takes_directory = false;
  bool takes_pid = false;
  bool takes_list = false;          ///< several values with commas between them
  bool repeats = false;             ///< each value counts, and not only the last
  std::vector<OptionValue> values;  ///< empty: anything
};
struct CommandDescription {
  std::string name;
  std::string summary;
  std::vector<OptionDescription> options;  ///< positionals last
};
struct CommandSummary {
  std::string_view name;
  std::string_view group;  ///< the heading above it; commands of one group stand together
  std::string_view summary;
};
/// All commands, in the order of the help text.
std::span<const CommandSummary> command_summaries();
/// The program itself, and then all commands.
std::vector<CommandDescription> describe(const CLI::App& parser);
std::vector<CommandDescription> describe_program();

}  // namespace perfmap::app
