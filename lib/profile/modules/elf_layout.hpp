#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/module.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// The headers of an ELF file, copied out of it: whoever may write to the file can do so at any
/// time, and what was checked once must stay as it was.
struct ElfLayout {
  bool is_64 = true;
  std::endian order = std::endian::little;
  std::uint16_t type = 0;
  std::uint16_t machine = 0;
  Address entry = 0;
  std::vector<ElfSectionFacts> sections;
  std::vector<LoadSegment> segments;
  std::string build_id;

  std::size_t word() const noexcept { return is_64 ? 8 : 4; }
  /// Empty where it has no bytes, or they are not all in the file.
  std::string_view bytes_of(std::string_view file, const ElfSectionFacts& section) const noexcept;
};

/// Fails with bad_format where that is no ELF file. Headers that lie outside of it are not there;
/// of absurdly many the first count.
Result<ElfLayout> read_elf_layout(std::string_view file, const std::string& name);

/// The text at `offset`, up to its NUL, the end, or the length where a name stops being one.
std::string_view name_at(std::string_view strings, std::uint64_t offset) noexcept;

}  // namespace perfmap
