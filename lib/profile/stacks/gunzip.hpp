#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "perfmap/result.hpp"

namespace perfmap {

bool is_gzip(std::string_view bytes) noexcept;

/// What gzip's members hold, one behind the other (RFC 1952). Fails with bad_format, or too_large
/// where that is more than `most` bytes, which are never exceeded.
Result<std::string> gunzip(std::string_view bytes, std::uint64_t most);

}  // namespace perfmap
