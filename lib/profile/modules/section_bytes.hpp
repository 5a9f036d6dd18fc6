#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "modules/dwarf_cursor.hpp"

namespace perfmap {

/// A section that is stored compressed: SHF_COMPRESSED with zlib (gABI), or GNU's older .zdebug_.
struct CompressedSection {
  std::string_view deflated;
  std::uint64_t size = 0;  ///< once inflated, as the file says
};

/// None where the bytes are neither, or cannot be that large: deflate never makes less than a
/// thousandth of anything.
std::optional<CompressedSection> read_compression(std::string_view section, bool is_gnu,
                                                  bool is_64_bit, std::endian order);

/// Inflates into a new buffer and says how much came: less than `size` where the data are damaged.
struct InflatedSection {
  std::unique_ptr<char[]> owned;
  std::string_view bytes;
};
/// Bytes that all sections of a file of that size may have together; more is an attack.
std::uint64_t most_inflated(std::uint64_t file_size) noexcept;

InflatedSection inflate_section(const CompressedSection& section);

}  // namespace perfmap
