#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "modules/huge_pages.hpp"
#include "perfmap/address.hpp"
#include "perfmap/module.hpp"

namespace perfmap {

/// The executable parts of a module's memory, and nothing else.
class CodeAreas {
 public:
  CodeAreas() = default;
  explicit CodeAreas(std::vector<AddressRange> ranges);
  /// What is left of the area from an address on; 0 outside of all. O(log n).
  std::uint64_t room_at(Address address) const noexcept;
  /// From the first to the end of the last.
  AddressRange whole() const noexcept {
    if (ranges_.empty()) return {};
    return {ranges_.front().begin, ranges_.back().end() - ranges_.front().begin};
  }

 private:
  std::vector<AddressRange> ranges_;  // ascending, disjoint
};

/// A symbol as it was found. It holds no text: names may change under our eyes, and what they are
/// sorted by must not.
struct FoundSymbol {
  Address begin = 0;
  std::uint64_t size = 0;   ///< 0: not known
  std::uint32_t name = 0;   ///< offset in its strings
  std::uint32_t order = 0;  ///< as it was found
  std::uint8_t strings = 0;
  std::uint8_t binding = 0;  ///< 0 is best: global, weak, local
  std::uint8_t underscores = 0;
  SymbolKind kind = SymbolKind::function;
};

/// So much of a name tells the following.
inline constexpr std::size_t kEnoughOfName = 16;
/// What assemblers leave for themselves: ARM's and RISC-V's marks of where data begins, and local
/// labels. The name may go on behind its NUL.
inline bool is_mark(std::string_view name) noexcept {
  return name.empty() || name.front() == '\0' || name.front() == '$' || name.starts_with(".L");
}
/// How many it begins with, up to 255.
inline std::uint8_t underscores_of(std::string_view name) noexcept {
  return static_cast<std::uint8_t>(std::min(name.find_first_not_of('_'), std::size_t{255}));
}

/// Which symbol owns an address: the address space is cut into pieces, once, and each has one
/// owner. The rules are those of Module::find_symbol(). Immutable.
class SymbolTable {
 public:
  SymbolTable() = default;
  /// `strings` are what names lie in, and must outlive it. O(n log n).
  SymbolTable(std::vector<FoundSymbol> found, std::vector<std::string_view> strings,
              const CodeAreas& areas);

  /// O(log n) at worst; where symbols are spread evenly, O(1). The id of the answer is below
  /// piece_count().
  std::optional<Symbol> find(Address address) const noexcept;
  std::size_t size() const noexcept { return owners_; }
  std::uint64_t bytes() const noexcept;

  std::size_t piece_count() const noexcept { return pieces_.empty() ? 0 : pieces_.size() - 1; }
  Address piece_begin(std::size_t i) const noexcept { return base_ + pieces_[i].at; }

 private:
  /// From `at` on, for `size` bytes or to where the next piece begins; addresses are distances
  /// from base_. All that an answer needs is in one place, and small, as what a look-up costs is
  /// misses of the cache.
  struct Piece {
    std::uint32_t at;
    std::uint32_t size;
    std::uint32_t name;
    std::uint16_t name_size;  // kUnknown: to be looked for
    std::uint8_t strings;
    std::uint8_t kind;  // SymbolKind, and kResumed
  };
  /// A piece whose symbol begins before it, and by how much.
  struct Resumed {
    std::uint32_t piece;
    std::uint32_t before;
  };
  static constexpr std::uint8_t kResumed = 0x80;
  static constexpr std::uint16_t kUnknown = UINT16_MAX;
  /// No module has more code, and nobody owns what goes beyond.
  static constexpr std::uint64_t kMostSpan = UINT32_MAX;
  class Cutter;

  void make_buckets();
  void measure_names();
  AddressRange range_of(std::size_t piece) const noexcept;

  std::vector<std::string_view> strings_;
  Address base_ = 0;
  std::vector<Piece, HugePages<Piece>> pieces_;  // ascending; the last begins behind everything
  std::vector<Resumed> resumed_;                 // ascending
  /// The first piece of each equal part of the address space, and of the end.
  std::vector<std::uint32_t, HugePages<std::uint32_t>> buckets_;
  std::size_t owners_ = 0;
  unsigned shift_ = 0;
};

}  // namespace perfmap
