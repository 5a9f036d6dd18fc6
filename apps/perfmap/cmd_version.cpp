#include "command_line.hpp"

namespace perfmap::app {
namespace {

struct Options {};

ExitCode run(const Options& /*options*/, const Console& console) {
  console.out().write("perfmap " PERFMAP_VERSION "\n");
  return ExitCode::ok;
}

}  // namespace

void declare_version(CommandOptions& command) { command.runs(run); }

}  // namespace perfmap::app
