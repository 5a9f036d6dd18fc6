#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "perfmap/diagnostic.hpp"
#include "perfmap/map.hpp"

namespace perfmap {

/// Why a line is no entry, or what is odd about one; `rule` is null where there is nothing to say.
struct LineFault {
  const Rule* rule = nullptr;
  std::string_view part;     ///< of the line: where it stops making sense
  std::string_view message;  ///< static storage
};

/// parse_map_line() without a report: allocates nothing, never throws.
std::optional<Entry> read_map_line(std::string_view line, std::uint64_t offset,
                                   LineFault& fault) noexcept;

}  // namespace perfmap
