// SPDX-License-Identifier: MIT
#include "console.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <perfmap/profile/module.hpp>
#include <perfmap/pypylog.hpp>
#include <perfmap/text.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include "perfmap/text.hpp"

namespace perfmap::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 500ms;
constexpr auto kBetween = 100ms;

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // no terminal shows it
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string seconds(std::chrono::steady_clock::duration time, int decimals) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f s", decimals, std::chrono::duration<double>(time).count());
  return text;
}

/// A line that wrapped could not be wiped: it is cut to the terminal's width. Bytes are no fewer
/// than columns.
std::string fitted(std::string line, std::size_t width) {
  if (line.size() < width) return line;
  line.resize(width - 1);
  // No part of a character at the end.
  while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0x80) != 0) line.pop_back();
  return line;
}

constexpr std::string_view kWipe = "\r\x1b[K";

/// Whether the line is on the terminal. Global, because a signal handler reads it.
std::atomic<bool> drawn = false;
static_assert(std::atomic<bool>::is_always_lock_free);

/// Wipes the line; then the signal ends the program, as it would have without this handler.
extern "C" void wipe_and_end(int signal) {
  const int error = errno;
  if (drawn.load()) put(kWipe);
  errno = error;
  ::raise(signal);  // SA_RESETHAND: the default action, after this function
}

/// Only for signals that would end the program.
void wipe_at(int signal) {
  struct sigaction now {};
  if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  struct sigaction wiping {};
  wiping.sa_handler = wipe_and_end;
  wiping.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(signal, &wiping, nullptr);
}

}  // namespace

std::size_t terminal_width(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

bool is_dumb_terminal() {
  const char* const term = std::getenv("TERM");
  return term != nullptr && std::strcmp(term, "dumb") == 0;
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    wipe();
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Progress::begin(std::string what) {
  if (!shown_) return;
  {
    const std::lock_guard lock(mutex_);
    what_ = std::move(what);
    since_ = Clock::now();
    percent_ = 0;
  }
  if (!thread_.joinable()) {
    wipe_at(SIGINT);
    wipe_at(SIGTERM);
    thread_ = std::thread([this] { run(); });
  }
  changed_.notify_one();
}

void Progress::change(std::string what) {
  const std::lock_guard lock(mutex_);
  if (shown_ && !what_.empty()) what_ = std::move(what);
}

void Progress::done(std::uint64_t part, std::uint64_t whole) noexcept {
  if (!shown_ || whole == 0) return;
  const double share = static_cast<double>(std::min(part, whole)) / static_cast<double>(whole);
  percent_.store(static_cast<unsigned>(share * 100), std::memory_order_relaxed);
}

void Progress::end() {
  const std::lock_guard lock(mutex_);
  what_.clear();
  wipe();
}

void Progress::print(std::string_view text) {
  const std::lock_guard lock(mutex_);
  wipe();
  put(text);
}

void Progress::wipe() {
  if (drawn.exchange(false)) put(kWipe);
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (what_.empty()) {
      changed_.wait(lock);
    } else if (const auto due = since_ + kPatience; Clock::now() < due) {
      changed_.wait_until(lock, due);
    } else {
      draw();
      changed_.wait_for(lock, kBetween);
    }
  }
}

void Progress::draw() {
  drawn = true;
  put("\r" + fitted("perfmap: " + what_ + share(), terminal_width(STDERR_FILENO)) + "\x1b[K");
}

/// ", 42 %, 3.1 s, 4 s left". Before 2 % are done, the time left is not known well enough.
std::string Progress::share() const {
  const Clock::duration passed = Clock::now() - since_;
  const unsigned percent = percent_.load(std::memory_order_relaxed);
  std::string text;
  if (percent != 0) text += ", " + std::to_string(percent) + " %";
  text += ", " + seconds(passed, 1);
  if (percent >= 2) text += ", " + seconds(passed * (100 - percent) / percent, 0) + " left";
  return text;
}

Step::Step(const Console& console, std::string_view what, bool shown)
    : console_(console), what_(what), since_(std::chrono::steady_clock::now()) {
  if (shown) console_.progress().begin(printable(what));
}

Step::Step(const Console& console, std::string_view what, const OutputFile& out)
    : Step(console, std::string(what) + " " + out.name(), !out.is_terminal()) {}

Step::~Step() {
  console_.progress().end();
  if (!console_.verbose()) return;
  console_.note(what_ + ": " + seconds(std::chrono::steady_clock::now() - since_, 3));
}

namespace {

/// The value of an environment variable; empty if it is not set.
std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

/// Sources: no-color.org and bixense.com/clicolors.
bool wants_color(ColorWish wish, bool terminal) {
  if (wish != ColorWish::automatic) return wish == ColorWish::always;
  if (!environment("NO_COLOR").empty()) return false;
  const std::string_view forced = environment("CLICOLOR_FORCE");
  if (!forced.empty() && forced != "0") return true;
  return terminal && environment("CLICOLOR") != "0" && !is_dumb_terminal();
}

/// Whether sudo started this program, and not a shell that did.
bool was_started_by_sudo(std::string_view program) {
  const char* const started = std::getenv("SUDO_COMMAND");
  if (started == nullptr) return false;
  const std::string_view command = started;
  return base_name(command.substr(0, command.find(' '))) == base_name(program);
}

}  // namespace

Console::Console(OutputFile& out, ColorWish color, bool quiet, bool verbose,
                 std::span<char* const> arguments)
    : out_(&out),
      arguments_(arguments),
      quiet_(quiet),
      verbose_(verbose),
      out_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      err_is_terminal_(::isatty(STDERR_FILENO) == 1),
      color_out_(wants_color(color, out_is_terminal_)),
      color_err_(wants_color(color, err_is_terminal_)),
      progress_(std::make_unique<Progress>(err_is_terminal_ && !quiet_ && !is_dumb_terminal())) {}

std::string Console::command_with(const std::string& option) const {
  if (arguments_.empty()) return option;
  std::string command = was_started_by_sudo(arguments_.front()) ? "sudo" : "";
  bool is_in = false;
  for (const std::string_view word : arguments_) {
    // No options follow "--".
    if (word == "--" && !is_in) {
      command += " " + option;
      is_in = true;
    }
    command += (command.empty() ? "" : " ") + shell_word(word);
  }
  return is_in ? command : command + " " + option;
}

ExitCode Console::fail(const Error& error) const {
  return error.sys_errno == EPIPE ? ExitCode::ok : fail(error.message());
}

ExitCode Console::fail(std::string_view message) const {
  say(Message::Kind::error, message);
  return ExitCode::failed;
}

void Console::warn(std::string_view message) const {
  if (!quiet_) say(Message::Kind::warning, message);
}

void Console::note(std::string_view message) const {
  if (!quiet_) say(Message::Kind::note, message);
}

bool Console::flush_answers() const {
  const Result<void> flushed = out_->flush();
  return flushed || flushed.error().sys_errno != EPIPE;
}

void Console::with_colors(const std::function<void(OutputFile& out, bool color)>& write) const {
  if (!color_out_) return write(*out_, false);
  if (!flush_answers()) return;
  OutputFile plain = OutputFile::to_descriptor(STDOUT_FILENO, "standard output");
  write(plain, true);
  if (const Result<void> written = plain.flush(); !written) fail(written.error());
}

void Console::line(std::string_view text) const {
  if (!flush_answers()) return;
  progress_->print(printable(text) + "\n");
}

void Console::say(Message::Kind kind, std::string_view message) const {
  std::string shown(message);
  for (const auto& [path, name] : shown_) {
    const std::size_t at = shown.find(path);
    if (at != shown.npos) shown.replace(at, path.size(), name);
  }
  if (kept_ != nullptr) return kept_->push_back({kind, std::move(shown)});
  print({kind, std::move(shown)});
}

void Console::print(const Message& message) const {
  struct Prefix {
    std::string_view text;
    std::string_view color;
  };
  constexpr std::array<Prefix, 3> kPrefixes = {
      {{"error: ", "\x1b[1;31m"}, {"warning: ", "\x1b[1;33m"}, {"", ""}}};  // by kind
  if (!flush_answers()) return;
  const Prefix& prefix = kPrefixes[static_cast<std::size_t>(message.kind)];
  std::string text = "perfmap: ";
  if (color_err_ && !prefix.color.empty()) {
    text.append(prefix.color).append(prefix.text).append("\x1b[0m");
  } else {
    text.append(prefix.text);
  }
  progress_->print(text + printable(message.text) + "\n");
}

Console Console::keeping(std::vector<Message>& kept) const {
  Console other(*out_, ColorWish::never, quiet_, verbose_, arguments_);
  other.progress_ = std::make_unique<Progress>(false);
  other.kept_ = &kept;
  return other;
}

void Console::show_as(std::string path, std::string name) const {
  if (path == name) return;
  shown_.emplace_back(std::move(path), std::move(name));
}

std::string printable(std::string_view text) {
  std::string out;
  append_visible(out, text);
  return out;
}

std::string colored_diff(std::string_view lines) {
  const auto color_of = [](std::string_view line) -> std::string_view {
    if (line.starts_with("--- ") || line.starts_with("+++ ")) return "\x1b[1m";
    switch (line.empty() ? ' ' : line.front()) {
      case '-': return "\x1b[1;31m";
      case '+': return "\x1b[1;32m";
      case '>':
      case '@': return "\x1b[1;36m";
      default: return {};
    }
  };
  std::string out;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    const std::string_view color = color_of(line);
    out.append(color);
    append_visible(out, line);
    if (!color.empty()) out += "\x1b[0m";
    if (line.size() < lines.size()) out += '\n';
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  }
  return out;
}

std::string one_line(std::string_view text, bool terminal) {
  if (terminal) return printable(text);
  std::string line(text);
  for (std::size_t at = line.find('\n'); at != std::string::npos; at = line.find('\n', at)) {
    line.replace(at, 1, "\\x0a");
  }
  return line;
}

namespace {

/// The number of characters, if the text is UTF-8.
std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::size_t own = character_count(text);
  const std::string blanks(own < width ? width - own : 0, ' ');
  return left ? text + blanks : blanks + text;
}

}  // namespace

void write_rows(const std::vector<TableRow>& rows, std::initializer_list<std::size_t> left,
                OutputFile& out) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], character_count(row[i]));
  }
  for (const TableRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_left = std::find(left.begin(), left.end(), i) != left.end();
      line += (i == 0 ? "" : "  ") + padded(row[i], widths[i], is_left);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out.write(line + "\n");
  }
}

void note_doubts(const DoubtCounts& counts, std::string_view what, const Console& console) {
  if (counts.doubtful == 0) return;
  std::string kinds;
  for (unsigned i = 0; i < kDoubtCount; ++i) {
    if (counts.kinds[i] == 0) continue;
    kinds += (kinds.empty() ? "" : ", ") + std::to_string(counts.kinds[i]) + " ";
    kinds += to_string(doubt_at(i));
  }
  // "1 of 1 answer", "1 of 2 answers": `what` is a plural in -s.
  if (counts.all == 1) what.remove_suffix(1);
  console.note(std::to_string(counts.doubtful) + " of " + std::to_string(counts.all) + " " +
               std::string(what) + (counts.doubtful == 1 ? " is" : " are") + " doubtful: " + kinds +
               (console.verbose() ? "" : " (--verbose explains)"));
  if (!console.verbose()) return;
  for (unsigned i = 0; i < kDoubtCount; ++i) {
    if (counts.kinds[i] == 0) continue;
    console.note(std::string(to_string(doubt_at(i))) + ": " + std::string(explain(doubt_at(i))));
  }
}

std::string doubt_mark(Doubts doubts, bool verbose) {
  if (!doubts.any()) return {};
  return verbose ? " (? " + to_string(doubts) + ")" : " (?)";
}

std::string readable_name(std::string_view name, bool demangle) {
  if (!demangle) return std::string(name);
  return demangle_code(name).value_or(std::string(name));
}

}  // namespace perfmap::app
