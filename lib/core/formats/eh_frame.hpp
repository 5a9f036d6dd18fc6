#pragma once

#include <cstdint>
#include <string_view>

namespace perfmap {

/// Whether `data` begins with an .eh_frame_hdr of `size` bytes: version 1, a pointer to .eh_frame
/// relative to itself, a count and a table as every producer of jitdumps writes them.
inline bool begins_with_eh_frame_hdr(std::string_view data, std::uint64_t size) noexcept {
  constexpr std::string_view kStart = "\x01\x1b\x03\x3b";
  return size >= 8 && size <= data.size() && data.starts_with(kStart);
}

}  // namespace perfmap
