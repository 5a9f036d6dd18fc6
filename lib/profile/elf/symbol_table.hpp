// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <vector>

#include "elf/elf_layout.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// An allocator for randomly accessed data: large blocks request huge pages, to save page table
/// walks.
template <class T>
struct HugePages {
  using value_type = T;
  static constexpr std::size_t kPage = std::size_t{2} << 20;

  HugePages() = default;
  template <class U>
  HugePages(const HugePages<U>&) noexcept {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kPage) return static_cast<T*>(::operator new(bytes));
    void* const block = ::operator new(bytes, std::align_val_t{kPage});
    ::madvise(block, bytes, MADV_HUGEPAGE);  // a hint; failure does not matter
    return static_cast<T*>(block);
  }
  void deallocate(T* block, std::size_t count) noexcept {
    if (count * sizeof(T) < kPage) return ::operator delete(block);
    ::operator delete(block, std::align_val_t{kPage});
  }
  friend bool operator==(HugePages, HugePages) noexcept { return true; }
};

/// The executable parts of a module's memory.
class CodeAreas {
 public:
  CodeAreas() = default;
  explicit CodeAreas(std::vector<AddressRange> ranges);
  /// The number of bytes from an address to the end of its area; 0 outside. O(log n).
  std::uint64_t room_at(Address address) const noexcept;
  /// From the begin of the first to the end of the last.
  AddressRange whole() const noexcept {
    if (ranges_.empty()) return {};
    return {ranges_.front().begin, ranges_.back().end() - ranges_.front().begin};
  }

 private:
  std::vector<AddressRange> ranges_;  // ascending, disjoint
};

/// A symbol as found. It holds no text: the file may change at any time, and sort keys must not.
struct FoundSymbol {
  Address begin = 0;
  std::uint64_t size = 0;   ///< 0: unknown
  std::uint32_t name = 0;   ///< offset in its strings
  std::uint32_t order = 0;  ///< position in the file
  std::uint8_t strings = 0;
  std::uint8_t binding = 0;  ///< 0 is best: global, weak, local
  std::uint8_t underscores = 0;
  SymbolKind kind = SymbolKind::function;
};

/// How many bytes of a name the following functions need.
inline constexpr std::size_t kEnoughOfName = 16;
/// Symbols that assemblers add: mapping symbols of ARM and RISC-V that mark data, and local labels.
/// The name may contain bytes after its NUL.
inline bool is_mark(std::string_view name) noexcept {
  return name.empty() || name.front() == '\0' || name.front() == '$' || name.starts_with(".L");
}
/// The number of leading underscores, up to 255.
inline std::uint8_t underscores_of(std::string_view name) noexcept {
  return static_cast<std::uint8_t>(std::min(name.find_first_not_of('_'), std::size_t{255}));
}

/// Maps addresses to symbols: the address space is cut into pieces, once, and each piece has one
/// owner. The rules are those of Module::find_symbol(). Immutable.
class SymbolTable {
 public:
  SymbolTable() = default;
  /// `strings` hold the names, and must outlive it. O(n log n).
  SymbolTable(std::vector<FoundSymbol> found, std::vector<std::string_view> strings,
              const CodeAreas& areas);

  /// O(log n) at worst; O(1) if symbols are spread evenly. The id in the result is below
  /// piece_count().
  std::optional<Symbol> find(Address address) const noexcept;
  std::size_t size() const noexcept { return owners_; }
  std::uint64_t bytes() const noexcept;

  std::size_t piece_count() const noexcept { return pieces_.empty() ? 0 : pieces_.size() - 1; }
  Address piece_begin(std::size_t i) const noexcept { return base_ + pieces_[i].at; }

 private:
  /// Covers `size` bytes from `at`, or less if the next piece begins earlier; addresses are
  /// relative to base_. Everything that an answer needs is in one small record, because the cost of
  /// a look-up is its cache misses.
  struct OwnedRange {
    std::uint32_t at;
    std::uint32_t size;
    std::uint32_t name;
    std::uint16_t name_size;  // kUnknown: to be measured
    std::uint8_t strings;
    std::uint8_t kind;  // SymbolKind, and kResumed
  };
  /// A piece whose symbol begins before it, and the distance.
  struct Resumed {
    std::uint32_t piece;
    std::uint32_t before;
  };
  static constexpr std::uint8_t kResumed = 0x80;
  static constexpr std::uint16_t kUnknown = UINT16_MAX;
  /// No module has more code; addresses beyond have no owner.
  static constexpr std::uint64_t kMaxSpan = UINT32_MAX;
  class Cutter;

  void make_buckets();
  void measure_names();
  AddressRange range_of(std::size_t piece) const noexcept;

  std::vector<std::string_view> strings_;
  Address base_ = 0;
  std::vector<OwnedRange, HugePages<OwnedRange>>
      pieces_;                    // ascending; the last begins after all code
  std::vector<Resumed> resumed_;  // ascending
  /// The first piece of each equal part of the address space, and of the end.
  std::vector<std::uint32_t, HugePages<std::uint32_t>> buckets_;
  std::size_t owners_ = 0;
  unsigned shift_ = 0;
};

/// The same answers as SymbolTable, for few queries over very many symbols: the symbols are
/// distributed into blocks of the address space, unsorted, and compared at query time. Only the
/// names of results are read. Immutable.
class SymbolBlocks {
 public:
  /// Symbols as read from their tables: those with is_mark() names may be among them, and
  /// `underscores` is ignored. Nothing if the code is spread too far. O(n).
  static std::optional<SymbolBlocks> of(const std::vector<FoundSymbol>& found,
                                        std::vector<std::string_view> strings,
                                        const CodeAreas& areas);

  /// Adds to `steps` the number of symbols and blocks examined: a few, but any number if symbols
  /// overlap or cluster. The id in the result is below size().
  std::optional<Symbol> find(Address address, std::uint64_t& steps) const;
  std::size_t size() const noexcept { return entries_.size(); }
  std::uint64_t bytes() const noexcept;

 private:
  struct Entry {
    std::uint32_t at = 0;  // relative to base_
    std::uint32_t size = 0;
    std::uint32_t name = 0;
    std::uint32_t next = 0;  // next in the block
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
  std::string_view text_of(const Entry& entry, std::size_t max) const noexcept;

  Address base_ = 0;
  CodeAreas areas_;
  std::vector<std::string_view> strings_;
  std::vector<Entry> entries_;
  unsigned shift_ = 0;
  std::vector<std::uint32_t> heads_;  // per block: an entry, or kNone
  std::vector<std::uint32_t> reach_;  // per block: the end of the symbols that begin in earlier
                                      // blocks
};

/// Collects the symbols of several files, which must outlive the result of table().
class SymbolSources {
 public:
  /// Adds the symbols of .symtab and .dynsym that are code. Undefined functions are skipped.
  void add_symbols_of(const Module& module);
  /// Adds the PLT entries.
  void add_plt_of(const Module& module);

  std::size_t size() const noexcept { return found_.size(); }

  /// `names` holds generated names: the table borrows them, too.
  struct Made {
    SymbolTable table;
    std::unique_ptr<const std::string> names;
  };
  Made table(const CodeAreas& areas) &&;
  struct MadeBlocks {
    SymbolBlocks blocks;
    std::unique_ptr<const std::string> names;
  };
  /// Nothing if the code is spread too far.
  std::optional<MadeBlocks> blocks(const CodeAreas& areas) &&;

 private:
  void add_section(const Module& module, const ElfSectionFacts& section, ParseBudget& room);

  std::vector<FoundSymbol> found_;
  std::vector<std::string_view> strings_;
  std::unique_ptr<std::string> made_ = std::make_unique<std::string>();
};

}  // namespace perfmap
