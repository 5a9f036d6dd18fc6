#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "perfmap/export.hpp"

namespace perfmap {

/// Nanoseconds of "12.345678901": seconds with any number of decimals. Decimals beyond the ninth
/// are cut. perf prints microseconds unless told otherwise (six decimals, the rest cut), so that
/// six to eight decimals stand for the last nanosecond that is printed like that: what was loaded
/// within the same microsecond counts. Nothing for other text, and for what 64 bits cannot hold.
PERFMAP_API std::optional<std::uint64_t> parse_seconds(std::string_view text) noexcept;

/// "12.345678901", of which parse_seconds() makes the same number again.
PERFMAP_API std::string seconds_text(std::uint64_t ns);

}  // namespace perfmap
