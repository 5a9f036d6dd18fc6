#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// Which symbol owns an address: the address space is cut into pieces, once, and each has one
/// owner. The rules are those of Module::find_symbol(). Immutable.
class SymbolTable {
 public:
  SymbolTable() = default;
  /// `strings` are what names lie in, and must outlive it. O(n log n).
  SymbolTable(std::vector<FoundSymbol> found, std::vector<std::string_view> strings,
              const CodeAreas& areas);

  /// O(log n) at worst; where symbols are spread evenly, O(1).
  std::optional<Symbol> find(Address address) const noexcept;
  std::size_t size() const noexcept { return owners_.size(); }
  std::uint64_t bytes() const noexcept;

  std::size_t piece_count() const noexcept { return begins_.size(); }
  Address piece_begin(std::size_t i) const noexcept { return begins_[i]; }

 private:
  struct Owner {
    Address begin;
    std::uint64_t size;
    std::uint32_t name;
    std::uint8_t strings;
    SymbolKind kind;
  };
  class Cutter;

  void make_buckets();
  std::size_t bucket_of(Address address) const noexcept {
    return static_cast<std::size_t>((address - begins_.front()) >> shift_);
  }

  std::vector<std::string_view> strings_;
  std::vector<Owner> owners_;
  std::vector<Address> begins_;  // of pieces, ascending
  std::vector<std::uint32_t>
      owner_of_;  // pieces; each ends with its owner, or where the next begins
  std::vector<std::uint32_t> buckets_;  // the first piece of each equal part of the address space
  unsigned shift_ = 0;
};

}  // namespace perfmap
