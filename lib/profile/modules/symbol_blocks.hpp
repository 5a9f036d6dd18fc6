#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "modules/symbol_table.hpp"
#include "perfmap/module.hpp"

namespace perfmap {

/// What SymbolTable answers, for those who ask for a few of very many symbols: these are put into
/// blocks of the address space, unsorted, and compared when somebody asks. No name is read that
/// nobody asks for. Immutable.
class SymbolBlocks {
 public:
  /// Symbols as they come from their tables: those of which the name is a mark() may be among them,
  /// and `underscores` does not count. None where code lies too far apart. O(n).
  static std::optional<SymbolBlocks> of(const std::vector<FoundSymbol>& found,
                                        std::vector<std::string_view> strings,
                                        const CodeAreas& areas);

  /// Adds to `steps` how many symbols and blocks were looked at: a few, but any number where
  /// symbols overlap or lie together. The id of the answer is below size().
  std::optional<Symbol> find(Address address, std::uint64_t& steps) const;
  std::size_t size() const noexcept { return entries_.size(); }
  std::uint64_t bytes() const noexcept;

 private:
  struct Entry {
    std::uint32_t at = 0;  // from base_
    std::uint32_t size = 0;
    std::uint32_t name = 0;
    std::uint32_t next = 0;  // of the block
    std::uint8_t strings = 0;
    std::uint8_t binding = 0;
    SymbolKind kind = SymbolKind::function;
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  void add(const FoundSymbol& symbol, std::uint64_t room);
  void link();
  template <class Fits>
  const Entry* best_of(std::size_t block, const Fits& fits, std::uint64_t& steps) const;
  bool is_better(const Entry& one, const Entry& other) const noexcept;
  bool is_named(const Entry& entry) const noexcept;
  const Entry* container(std::uint32_t at, std::uint64_t& steps) const;
  const Entry* last_begun(std::uint32_t at, std::uint64_t& steps) const;
  const Entry* label(std::uint32_t at, std::uint64_t& steps) const;
  std::uint32_t next_begin(std::uint32_t at, std::uint64_t& steps) const;
  std::string_view text_of(const Entry& entry, std::size_t most) const noexcept;

  Address base_ = 0;
  CodeAreas areas_;
  std::vector<std::string_view> strings_;
  std::vector<Entry> entries_;
  unsigned shift_ = 0;
  std::vector<std::uint32_t> heads_;  // of each block: an entry, or kNone
  std::vector<std::uint32_t> reach_;  // where what begins before the block ends
};

}  // namespace perfmap
