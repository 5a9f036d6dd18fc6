#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "perfmap/loop_report.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

struct LoopPageOptions {
  std::string title = {};
  std::string exporter = {};  ///< "perfmap 1.2.3"
  std::optional<SampledLoops> samples = {};
};

/// A log's loops as one page without any other file: a table of them, the categories, and of each
/// loop its operations by the lines of the program, with counts and links from guards to their
/// bridges. `log` is the whole log; see list_operations().
///
/// The page has no script. Names are text in it, whatever they hold, as append_visible() shows
/// them.
PERFMAP_API void write_loop_page(const LoopProfile& profile, const LoopPageOptions& options,
                                 std::string_view log, OutputFile& out);

}  // namespace perfmap
