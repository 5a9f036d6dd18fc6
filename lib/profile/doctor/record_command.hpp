// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perfmap {

/// A parsed command line of perf record: options can be changed, and the result pasted into a
/// shell. Source for the options: Linux, tools/perf/builtin-record.c.
class RecordCommand {
 public:
  /// An option by its letter (0: none) and its long name, without dashes.
  struct Name {
    char letter = 0;
    std::string_view name;
  };
  static constexpr Name kCallGraph{0, "call-graph"};
  static constexpr Name kFramePointers{'g', {}};
  static constexpr Name kClock{'k', "clockid"};
  static constexpr Name kFrequency{'F', "freq"};
  static constexpr Name kOutput{'o', "output"};
  static constexpr Name kPages{'m', "mmap-pages"};
  static constexpr Name kPid{'p', "pid"};
  static constexpr Name kThread{'t', "tid"};
  static constexpr Name kAll{'a', "all-cpus"};
  static constexpr Name kCpu{'C', "cpu"};
  static constexpr Name kUser{'u', "uid"};

  RecordCommand() = default;
  /// Nothing for commands other than `perf record`.
  static std::optional<RecordCommand> parse(std::span<const std::string> words);

  bool has(Name name) const noexcept;
  /// Records more than the workload.
  bool records_others() const noexcept;
  /// Records the whole machine.
  bool records_all() const noexcept;
  /// The value of the last such option; nothing if there is none.
  std::optional<std::string_view> value_of(Name name) const noexcept;
  void remove(Name name);
  /// Replaces all such options. Without `value`, the option has none.
  void set(Name name, std::optional<std::string> value = std::nullopt);
  /// Inserts the value unquoted, for the shell to expand.
  void set_shell_text(Name name, std::string text);
  /// Copies of the stack in which those of most programs are complete.
  static constexpr const char* kCopies = "dwarf,32768";
  /// `kCopies`; or "", for -g.
  void set_call_graph(const std::string& mode);

  /// NAME=VALUE: an existing value is kept, and missing parts are appended.
  void add_variable(const std::string& variable);

  std::vector<std::string> environment = {};  ///< NAME=VALUE for perf and its workload
  std::string perf = "perf";
  bool with_sudo = false;
  bool by_perfmap = false;  ///< `perfmap record` ran it, and repeats it unless it cannot
  std::vector<std::string> workload = {};  ///< the program that perf starts, and its arguments

  /// One line for sh(1), without "..."; empty if it would be too long to paste.
  std::string text() const;

 private:
  struct Option {
    char letter = 0;
    std::string name;                       ///< the long name, if given as such
    std::optional<std::string> value = {};  ///< as given
    bool is_shell_text = false;             ///< the value is shell text
    bool is(Name other) const noexcept;
    std::string text() const;
  };
  std::optional<std::string> perfmap_options() const;
  void take_long(std::span<const std::string> words, std::size_t& at);
  void take_letters(std::span<const std::string> words, std::size_t& at);

  std::vector<Option> options_;
};

}  // namespace perfmap
