#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <perfmap/output_file.hpp>
#include <string>
#include <string_view>
#include <thread>

namespace perfmap::app {

class Console;

/// One line on a terminal that says what the program is at, for who waits: from half a second of a
/// step on, ten times a second at most, and wiped before anything else is printed there. It is
/// drawn by a thread of its own, so that work that knows nothing of it needs no calls.
class Progress {
 public:
  explicit Progress(bool shown) : shown_(shown) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin(std::string what);
  /// The same step, told in other words.
  void change(std::string what);
  void end();
  /// Writes `text` to standard error, in the line's place if there is one.
  void print(std::string_view text);

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void draw();
  void wipe();

  const bool shown_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;  // empty: no step
  Clock::time_point since_;
  bool drawn_ = false;
  bool over_ = false;
  std::thread thread_;
};

/// A part of a command's work that may take long: shown as progress, and named with its time under
/// --verbose.
class Step {
 public:
  Step(const Console& console, std::string_view what);
  /// A step that writes answers to `out`: where those are seen, they are the progress.
  Step(const Console& console, std::string_view what, const OutputFile& out);
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  const Console& console_;
  std::string what_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace perfmap::app
