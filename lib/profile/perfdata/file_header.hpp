#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "perfdata/description.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// Where the records are.
struct RecordBytes {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;       ///< not beyond the end of the file
  std::uint64_t promised = 0;  ///< the end as the header has it
};

/// Reads the header, and of a file that was written as such, events and features. What a torn file
/// has not is missing.
Result<RecordBytes> read_file_header(std::string_view file, Description& description);

/// The features that a file has: 256 bits, of a foreign machine as words of 64 bits, or, where
/// those make no sense, of 32: every recording has a HOSTNAME. `bytes` are 32.
std::array<std::uint64_t, 4> read_bitmap(std::string_view bytes, bool swapped) noexcept;

}  // namespace perfmap
