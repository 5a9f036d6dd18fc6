// SPDX-License-Identifier: MIT
#include <cerrno>
#include <csignal>
#include <exception>
#include <fcntl.h>
#include <iostream>
#include <perfmap/input.hpp>
#include <unistd.h>

#include "command_line.hpp"

namespace perfmap::app {
namespace {

/// A file that is opened while a standard descriptor is closed would take its number, and then our
/// answers and messages. Such a descriptor is filled with what fails as a closed one does.
void fill_closed_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
  }
}

/// A reader that closed the pipe is not an error: if SIGPIPE is ignored, nothing is printed and the
/// status is 0.
ExitCode finish(const Console& console, ExitCode code) {
  const Result<void> flushed = console.out().flush();
  if (flushed) return code;
  if (flushed.error().sys_errno == EPIPE) return ExitCode::ok;
  return console.fail(flushed.error());
}

ExitCode run(int count, char** arguments) {
  OutputFile out = OutputFile::to_descriptor(STDOUT_FILENO, "standard output");
  // Paths and names of hostile input may control a terminal.
  out.protect_terminal();
  const ParsedCommandLine parsed = parse_command_line(count, arguments);
  const CommonOptions& common = parsed.common;
  const Console console(out, common.color, common.quiet, common.verbose,
                        std::span(arguments, static_cast<std::size_t>(count)));
  if (!parsed.error.empty()) return console.fail(parsed.error);
  if (parsed.names_no_command) {
    std::cerr << parsed.text;
    return ExitCode::failed;
  }
  if (parsed.action) return finish(console, parsed.action(console));
  out.write(parsed.text);
  return finish(console, ExitCode::ok);
}

}  // namespace
}  // namespace perfmap::app

int main(int count, char** arguments) {
  // A parent may have left SIGPIPE ignored; then writes fail with EPIPE instead, see finish().
  perfmap::app::fill_closed_descriptors();
  // A file size limit is a failed write, which is told, and not the end of the program.
  std::signal(SIGXFSZ, SIG_IGN);
  const perfmap::TruncationGuard guard;
  try {
    return static_cast<int>(perfmap::app::run(count, arguments));
  } catch (const std::bad_alloc&) {
    static constexpr char kMessage[] = "perfmap: error: out of memory\n";
    if (::write(STDERR_FILENO, kMessage, sizeof kMessage - 1) < 0) return 2;
  } catch (const std::exception& bug) {
    std::cerr << "perfmap: error: internal: " << bug.what() << '\n';
  }
  return 2;
}
