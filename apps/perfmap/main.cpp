#include <cerrno>
#include <exception>
#include <iostream>
#include <perfmap/input.hpp>
#include <signal.h>
#include <unistd.h>

#include "parser.hpp"

namespace perfmap::app {
namespace {

/// A reader that went away is no failure of ours: where SIGPIPE has not ended the program (it is
/// ignored), nothing is said and the status is 0.
ExitCode finish(const Console& console, ExitCode code) {
  const Result<void> flushed = console.out().flush();
  if (flushed) return code;
  if (flushed.error().sys_errno == EPIPE) return ExitCode::ok;
  return console.fail(flushed.error());
}

ExitCode print(const Console& console, const std::string& text) {
  console.out().write(text);
  return finish(console, ExitCode::ok);
}

ExitCode run(int count, char** arguments) {
  OutputFile out = OutputFile::to_descriptor(STDOUT_FILENO, "standard output");
  CommonOptions common;
  Action action;
  const auto parser = make_parser(common, action);
  const auto console = [&] { return Console(out, common.color, common.quiet, common.verbose); };
  try {
    parser->parse(count, arguments);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = parser->get_subcommands();
    return print(console(), chosen.empty() ? parser->help() : chosen.front()->help("perfmap"));
  } catch (const CLI::CallForVersion&) {
    return print(console(), parser->version() + "\n");
  } catch (const CLI::ParseError& error) {
    return console().fail(explain(*parser, error, count, arguments));
  }
  if (!action) return console().fail("expected a command; 'perfmap help' lists them");
  return finish(console(), action(console()));
}

}  // namespace
}  // namespace perfmap::app

int main(int count, char** arguments) {
  // A parent may have left SIGPIPE ignored; then writes fail with EPIPE instead, see finish().
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
