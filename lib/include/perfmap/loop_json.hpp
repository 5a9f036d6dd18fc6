#pragma once

#include <cstdint>
#include <optional>

#include "perfmap/loop_report.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

struct LoopJsonOptions {
  LoopKey by = LoopKey::loop;      ///< with function or file there are sums under "by", too
  std::uint64_t max = UINT64_MAX;  ///< rows; "left_out" sums what is more
  std::optional<SampledLoops> samples = {};
};

/// A log's times as JSON: perfmap.pypylog/1, docs/schema/perfmap.pypylog-1.json. Ticks of loops are
/// null where no event tells them.
PERFMAP_API void write_loops_json(const LoopProfile& profile, const LoopJsonOptions& options,
                                  OutputFile& out);

}  // namespace perfmap
