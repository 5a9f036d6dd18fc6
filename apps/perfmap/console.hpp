#pragma once

#include <cstdint>
#include <memory>
#include <perfmap/output_file.hpp>
#include <perfmap/result.hpp>
#include <span>
#include <string>
#include <string_view>

#include "progress.hpp"

namespace perfmap::app {

/// What the program's exit status says; see perfmap(1).
enum class ExitCode : int { ok = 0, findings = 1, failed = 2 };

enum class ColorWish { automatic, always, never };

/// Where a command talks: answers go to out(), everything else to standard error as one line each,
/// prefixed with "perfmap: ". Made by main(), so that a command never touches a stream by itself.
class Console {
 public:
  /// `arguments` are those of main().
  Console(OutputFile& out, ColorWish color, bool quiet, bool verbose,
          std::span<char* const> arguments = {});

  /// Standard output, buffered; main() flushes it at the end.
  OutputFile& out() const { return *out_; }
  bool out_is_terminal() const noexcept { return out_is_terminal_; }
  bool color_out() const noexcept { return color_out_; }
  bool color_err() const noexcept { return color_err_; }
  bool verbose() const noexcept { return verbose_; }
  Progress& progress() const noexcept { return *progress_; }
  /// The command line of this program with an option more, for a shell.
  std::string command_with(const std::string& option) const;

  /// "perfmap: error: MESSAGE"; answers ExitCode::failed, so that a command can return it.
  /// Of a pipe whose reader went away nothing is said, and the status is 0.
  ExitCode fail(const Error& error) const;
  ExitCode fail(std::string_view message) const;
  /// "perfmap: warning: MESSAGE". Not under --quiet.
  void warn(std::string_view message) const;
  /// "perfmap: MESSAGE": summaries. Not under --quiet.
  void note(std::string_view message) const;
  /// A line for standard error as it is, such as "-:3:1: error: …".
  void line(std::string_view text) const;

 private:
  /// On a terminal the answers come before what is said about them; false where nobody reads them.
  bool flush_answers() const;
  void say(std::string_view prefix, std::string_view color, std::string_view message) const;

  OutputFile* out_;
  std::span<char* const> arguments_;
  bool quiet_;
  bool verbose_;
  bool out_is_terminal_;
  bool err_is_terminal_;
  bool color_out_;
  bool color_err_;
  std::unique_ptr<Progress> progress_;
};

/// Hexadecimal as we print it: lower case, no 0x.
std::string hex_text(std::uint64_t value);

/// `text` as it may be shown on a terminal; see visible.hpp.
std::string printable(std::string_view text);

/// `text` as a part of a line: as it is, but for newlines; for a terminal as printable() has it.
std::string one_line(std::string_view text, bool terminal);

}  // namespace perfmap::app
