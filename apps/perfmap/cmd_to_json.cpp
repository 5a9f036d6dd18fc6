#include <CLI/CLI.hpp>

#include "command.hpp"
#include "convert.hpp"
#include "time_option.hpp"

namespace perfmap::app {

void declare_to_json(CLI::App& command, Action& action) {
  const auto options = std::make_shared<ConvertOptions>();
  declare_conversion(command, *options);
  add_format(command, options->to, {"json", "jsonl"});
  CLI::Option* const effective =
      command.add_flag("--effective", options->effective, "What answers, without overlaps, sorted");
  add_overlap(command, options->overlap, false)->needs(effective);
  add_time(command, options->time)->needs(effective);
  add_code(command, *options)->excludes(effective);
  command.callback([options, &action] {
    action = [options](const Console& console) { return convert(*options, console); };
  });
}

}  // namespace perfmap::app
