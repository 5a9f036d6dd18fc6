#pragma once

#include <cstdint>
#include <string_view>

#include "perfmap/export.hpp"
#include "perfmap/input.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// How large a compressed file may become: as large as what comes through a pipe.
inline constexpr std::uint64_t kMostExpandedBytes = std::uint64_t{1} << 30;

/// Whether gzip, xz or zstd made these bytes.
PERFMAP_API bool is_expandable(std::string_view bytes) noexcept;

/// What gzip, xz or zstd made the input of, by the same name; an input that none of them made as it
/// is. Told by content, of which all members or frames count. What is expanded has no file of its
/// own: it never grows, and its facts() are empty. Fails with too_large where it would exceed
/// `most` bytes, and with bad_format where it is damaged or cut off.
PERFMAP_API Result<Input> expanded(Input input, std::uint64_t most = kMostExpandedBytes);

}  // namespace perfmap
