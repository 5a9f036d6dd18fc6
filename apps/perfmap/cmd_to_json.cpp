#include "command_line.hpp"
#include "convert.hpp"

namespace perfmap::app {

void declare_to_json(CommandOptions& command) {
  ConvertOptions& options = command.runs(convert);
  add_conversion(command, options);
  add_format(command, options.to, {"json", "jsonl"});
  const Option effective =
      command.flag("--effective", options.effective, "What answers, without overlaps, sorted");
  add_overlap(command, options.overlap, false).needs(effective);
  add_time(command, options.time).needs(effective);
  add_code(command, options).excludes(effective);
}

}  // namespace perfmap::app
