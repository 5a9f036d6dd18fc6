#include "console.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <perfmap/shell_word.hpp>
#include <perfmap/visible.hpp>
#include <unistd.h>

namespace perfmap::app {
namespace {

bool is_dumb() {
  const char* const term = std::getenv("TERM");
  return term != nullptr && std::strcmp(term, "dumb") == 0;
}

bool wants_color(ColorWish wish, bool terminal) {
  if (wish != ColorWish::automatic) return wish == ColorWish::always;
  const char* const no_color = std::getenv("NO_COLOR");
  return terminal && (no_color == nullptr || *no_color == '\0') && !is_dumb();
}

/// Whether sudo started this program, and not a shell that did.
bool was_started_by_sudo(std::string_view program) {
  const char* const started = std::getenv("SUDO_COMMAND");
  if (started == nullptr) return false;
  const auto base = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  const std::string_view command = started;
  return base(command.substr(0, command.find(' '))) == base(program);
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
      progress_(std::make_unique<Progress>(err_is_terminal_ && !quiet_ && !is_dumb())) {}

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
  progress_->print(printable(text) + "\n");
}

void Console::say(std::string_view prefix, std::string_view color, std::string_view message) const {
  if (!flush_answers()) return;
  std::string text = "perfmap: ";
  if (color_err_ && !color.empty()) {
    text.append(color).append(prefix).append("\x1b[0m");
  } else {
    text.append(prefix);
  }
  progress_->print(text + printable(message) + "\n");
}

std::string hex_text(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string printable(std::string_view text) {
  std::string out;
  append_visible(out, text);
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

}  // namespace perfmap::app
