// SPDX-License-Identifier: MIT
#include "command_line.hpp"
#include "convert.hpp"

namespace perfmap::app {

void declare_to_json(CommandOptions& command) {
  ConvertOptions& options = command.runs(convert, choose_target);
  options.standard = "json";
  add_conversion(command, options);
}

}  // namespace perfmap::app
