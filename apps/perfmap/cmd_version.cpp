// SPDX-License-Identifier: MIT
#include "command_line.hpp"

namespace perfmap::app {
namespace {

struct VersionOptions {};

ExitCode run_version(const VersionOptions& /*options*/, const Console& console) {
  console.out().write("perfmap " PERFMAP_VERSION "\n");
  return ExitCode::ok;
}

}  // namespace

void declare_version(CommandOptions& command) { command.runs(run_version); }

}  // namespace perfmap::app
