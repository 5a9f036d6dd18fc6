// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <perfmap/output_file.hpp>
#include <perfmap/resolver.hpp>
#include <perfmap/types.hpp>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace perfmap::app {

class Console;

/// The failure of a command line that cannot be carried out.
inline Failure invalid(std::string why) { return Failure(Error::invalid(std::move(why))); }

/// One line on a terminal that says what the program is doing: "perfmap: reading perf.data, 42 %,
/// 3.1 s, 5 s left". It appears after half a second of a step, at most ten times per second, and is
/// wiped before anything else is printed there, and if SIGINT or SIGTERM ends the program. A thread
/// of its own draws it, so that a step needs no calls.
class Progress {
 public:
  explicit Progress(bool shown) : shown_(shown) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin(std::string what);
  /// Other words for the same step.
  void change(std::string what);
  /// How much of the step is done, in any unit. O(1), without a lock; a part after the whole counts
  /// as the whole.
  void done(std::uint64_t part, std::uint64_t whole) noexcept;
  void end();
  /// Writes `text` to standard error, in the line's place if there is one.
  void print(std::string_view text);

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void draw();
  void wipe();
  std::string share() const;

  const bool shown_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;  // empty: no step
  Clock::time_point since_;
  std::atomic<unsigned> percent_ = 0;  // 0: unknown
  bool over_ = false;
  std::thread thread_;
};

/// A part of a command's work that may take long. It is shown as progress, and --verbose prints its
/// time.
class Step {
 public:
  /// Without `shown` no progress is shown, because the step prints answers on the terminal.
  Step(const Console& console, std::string_view what, bool shown = true);
  /// A step that writes answers to `out`, which the step's text names. No progress is shown if
  /// `out` is the terminal, where the answers appear.
  Step(const Console& console, std::string_view what, const OutputFile& out);
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  const Console& console_;
  std::string what_;
  std::chrono::steady_clock::time_point since_;
};

/// The program's exit statuses; see perfmap(1).
enum class ExitCode : int { ok = 0, findings = 1, failed = 2 };

enum class ColorWish { automatic, always, never };

/// The output of a command: answers go to out(), messages to standard error, each as one line with
/// the prefix "perfmap: ". main() makes it, and commands use no other stream.
class Console {
 public:
  /// `arguments` are those of main().
  Console(OutputFile& out, ColorWish color, bool quiet, bool verbose,
          std::span<char* const> arguments = {});

  /// A message that is not printed yet.
  struct Message {
    enum class Kind : std::uint8_t { error, warning, note };
    Kind kind;
    std::string text;
  };
  /// A console for a thread of its own, which adds messages to `kept` (borrowed) in place of
  /// printing them, and shows no progress.
  Console keeping(std::vector<Message>& kept) const;
  /// Prints such a message.
  void print(const Message& message) const;

  /// Standard output, buffered; main() flushes it at the end. On a terminal, append_visible() shows
  /// all bytes but newlines.
  OutputFile& out() const { return *out_; }
  bool out_is_terminal() const noexcept { return out_is_terminal_; }
  /// Calls `write` with standard output and whether to use colours. If so, a terminal gets the
  /// bytes as they are, so `write` must use append_visible() for all that it has from inputs.
  void with_colors(const std::function<void(OutputFile& out, bool color)>& write) const;
  bool color_out() const noexcept { return color_out_; }
  bool color_err() const noexcept { return color_err_; }
  bool quiet() const noexcept { return quiet_; }
  bool verbose() const noexcept { return verbose_; }
  Progress& progress() const noexcept { return *progress_; }
  /// The command line of this program with an option more, for a shell.
  std::string command_with(const std::string& option) const;

  /// Prints "perfmap: error: MESSAGE" and returns ExitCode::failed. If the reader of a pipe is
  /// gone, prints nothing and returns ExitCode::ok.
  ExitCode fail(const Error& error) const;
  ExitCode fail(std::string_view message) const;
  /// "perfmap: warning: MESSAGE". Not under --quiet.
  void warn(std::string_view message) const;
  /// "perfmap: MESSAGE": summaries. Not under --quiet.
  void note(std::string_view message) const;
  /// From now on messages show `name` instead of `path`, for a file that is opened by another path
  /// than the user typed.
  void show_as(std::string path, std::string name) const;
  /// Prints a line without the prefix, such as "-:3:1: error: …".
  void line(std::string_view text) const;

 private:
  /// On a terminal, answers are printed before messages about them. False if the output has no
  /// reader.
  bool flush_answers() const;
  void say(Message::Kind kind, std::string_view message) const;

  OutputFile* out_;
  std::span<char* const> arguments_;
  bool quiet_;
  bool verbose_;
  bool out_is_terminal_;
  bool err_is_terminal_;
  bool color_out_;
  bool color_err_;
  std::unique_ptr<Progress> progress_;
  mutable std::vector<std::pair<std::string, std::string>> shown_;  // paths and their names
  std::vector<Message>* kept_ = nullptr;                            // null: messages are printed
};

/// The columns of the terminal that the descriptor refers to; 80 if that is unknown.
std::size_t terminal_width(int fd);
/// Whether the terminal cannot move its cursor.
bool is_dumb_terminal();

/// `text` as it may be shown on a terminal; see append_visible().
std::string printable(std::string_view text);

/// The lines of a diff for a terminal: removed lines red, added ones green, positions cyan.
std::string colored_diff(std::string_view lines);
/// `text` as a part of a line: newlines are escaped; for a terminal it is printable().
std::string one_line(std::string_view text, bool terminal);

using TableRow = std::vector<std::string>;

/// Writes the rows of a table; the first row is the heading. Each column is as wide as its widest
/// cell; two blanks separate columns. Columns in `left` are aligned to the left, others to the
/// right.
void write_rows(const std::vector<TableRow>& rows, std::initializer_list<std::size_t> left,
                OutputFile& out);

/// Answers of which some are doubtful.
struct DoubtCounts {
  std::uint64_t all = 0;
  std::uint64_t doubtful = 0;
  std::array<std::uint64_t, kDoubtCount> kinds = {};  ///< by kind, as doubt_at() counts

  void add(Doubts doubts) noexcept {
    ++all;
    doubtful += doubts.any() ? 1 : 0;
    for (unsigned i = 0; i < kDoubtCount; ++i) kinds[i] += doubts.has(doubt_at(i)) ? 1 : 0;
  }
};

/// "3 of 40 frames are doubtful: 2 scanned-frame, 1 guessed-owner (--verbose explains)"; with
/// --verbose a line for each kind explains it. Prints nothing if no frame is doubtful. `what` is
/// their plural, "frames".
void note_doubts(const DoubtCounts& counts, std::string_view what, const Console& console);

/// The mark after a doubtful answer: " (?)", or with --verbose " (? clamped-range)". Empty if there
/// are no doubts.
std::string doubt_mark(Doubts doubts, bool verbose);

/// The name of a map or dump for people: demangled if it is a mangled symbol and `demangle` is set.
/// JSON has names as files do.
std::string readable_name(std::string_view name, bool demangle);

}  // namespace perfmap::app
