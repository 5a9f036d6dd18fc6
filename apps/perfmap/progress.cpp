#include "progress.hpp"

#include <cerrno>
#include <sys/ioctl.h>
#include <unistd.h>

#include "console.hpp"

namespace perfmap::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 500ms;
constexpr auto kBetween = 100ms;

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // nobody is left to see it
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
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

}  // namespace

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
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_one();
}

void Progress::change(std::string what) {
  const std::lock_guard lock(mutex_);
  if (shown_ && !what_.empty()) what_ = std::move(what);
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
  if (drawn_) put("\r\x1b[K");
  drawn_ = false;
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
  const std::string line = "perfmap: " + what_ + ", " + seconds(Clock::now() - since_, 1);
  put("\r" + fitted(line, terminal_width()) + "\x1b[K");
  drawn_ = true;
}

Step::Step(const Console& console, std::string_view what)
    : console_(console), what_(what), since_(std::chrono::steady_clock::now()) {
  console_.progress().begin(printable(what));
}

Step::Step(const Console& console, std::string_view what, const OutputFile& out)
    : console_(console), what_(what), since_(std::chrono::steady_clock::now()) {
  if (!out.is_terminal()) console_.progress().begin(printable(what));
}

Step::~Step() {
  console_.progress().end();
  if (!console_.verbose()) return;
  console_.note(what_ + ": " + seconds(std::chrono::steady_clock::now() - since_, 3));
}

}  // namespace perfmap::app
