#include "console.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace perfmap::app {
namespace {

bool wants_color(ColorWish wish, bool terminal) {
  if (wish != ColorWish::automatic) return wish == ColorWish::always;
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  return terminal && (no_color == nullptr || *no_color == '\0') &&
         (term == nullptr || std::strcmp(term, "dumb") != 0);
}

}  // namespace

Console::Console(OutputFile& out, ColorWish color, bool quiet, bool verbose)
    : out_(&out),
      quiet_(quiet),
      verbose_(verbose),
      out_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      err_is_terminal_(::isatty(STDERR_FILENO) == 1),
      color_out_(wants_color(color, out_is_terminal_)),
      color_err_(wants_color(color, err_is_terminal_)) {}

ExitCode Console::fail(const Error& error) const {
  return error.sys_errno == EPIPE ? ExitCode::ok : fail(error.message);
}

ExitCode Console::fail(std::string_view message) const {
  say("error: ", "\x1b[1;31m", message);
  return ExitCode::failed;
}

void Console::warn(std::string_view message) const {
  if (!quiet_) say("warning: ", "\x1b[1;33m", message);
}

void Console::note(std::string_view message) const {
  if (!quiet_) say("", "", message);
}

bool Console::flush_answers() const {
  const Result<void> flushed = out_->flush();
  return flushed || flushed.error().sys_errno != EPIPE;
}

void Console::line(std::string_view text) const {
  if (!flush_answers()) return;
  std::string whole = printable(text);
  whole += '\n';
  const char* rest = whole.data();
  std::size_t left = whole.size();
  while (left > 0) {
    const ssize_t count = ::write(STDERR_FILENO, rest, left);
    if (count < 0) return;  // nobody is left to tell
    rest += count;
    left -= static_cast<std::size_t>(count);
  }
}

void Console::say(std::string_view prefix, std::string_view color, std::string_view message) const {
  if (!flush_answers()) return;
  std::string text = "perfmap: ";
  const bool painted = color_err_ && !color.empty();
  if (!painted) {
    line(text.append(prefix).append(printable(message)));
    return;
  }
  text.append(color).append(prefix).append("\x1b[0m").append(printable(message)).append("\n");
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += "0123456789abcdef"[byte >> 4];
      out += "0123456789abcdef"[byte & 15];
    }
  }
  return out;
}

}  // namespace perfmap::app
