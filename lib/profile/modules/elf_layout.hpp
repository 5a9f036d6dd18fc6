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

/// Mangled names of tens of thousands of bytes exist.
inline constexpr std::size_t kMostName = std::size_t{1} << 16;

/// The text at `offset`, up to its NUL, the end, or the length where a name stops being one.
std::string_view name_at(std::string_view strings, std::uint64_t offset,
                         std::size_t most = kMostName) noexcept;

/// How much of a file is gone over. Headers may name the same bytes any number of times, so that a
/// small file could take for ever; the tables of a proper one do not overlap.
class ReadingRoom {
 public:
  explicit ReadingRoom(std::uint64_t bytes) noexcept : left_(bytes) {}
  /// As much of it as there is room for.
  std::string_view take(std::string_view bytes) noexcept {
    const std::string_view taken = bytes.substr(0, left_);
    left_ -= taken.size();
    return taken;
  }

 private:
  std::uint64_t left_;
};

}  // namespace perfmap
