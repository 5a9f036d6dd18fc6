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

/// For what is looked into at random: large blocks ask for large pages, of which a processor finds
/// more without a walk through its page tables.
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
    ::madvise(block, bytes, MADV_HUGEPAGE);  // whether it is heard is the kernel's affair
    return static_cast<T*>(block);
  }
  void deallocate(T* block, std::size_t count) noexcept {
    if (count * sizeof(T) < kPage) return ::operator delete(block);
    ::operator delete(block, std::align_val_t{kPage});
  }
  friend bool operator==(HugePages, HugePages) noexcept { return true; }
};

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
  struct OwnedRange {
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
  static constexpr std::uint64_t kMaxSpan = UINT32_MAX;
  class Cutter;

  void make_buckets();
  void measure_names();
  AddressRange range_of(std::size_t piece) const noexcept;

  std::vector<std::string_view> strings_;
  Address base_ = 0;
  std::vector<OwnedRange, HugePages<OwnedRange>>
      pieces_;                    // ascending; the last begins behind everything
  std::vector<Resumed> resumed_;  // ascending
  /// The first piece of each equal part of the address space, and of the end.
  std::vector<std::uint32_t, HugePages<std::uint32_t>> buckets_;
  std::size_t owners_ = 0;
  unsigned shift_ = 0;
};

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
  std::string_view text_of(const Entry& entry, std::size_t max) const noexcept;

  Address base_ = 0;
  CodeAreas areas_;
  std::vector<std::string_view> strings_;
  std::vector<Entry> entries_;
  unsigned shift_ = 0;
  std::vector<std::uint32_t> heads_;  // of each block: an entry, or kNone
  std::vector<std::uint32_t> reach_;  // where what begins before the block ends
};

/// Gathers the symbols of several files. Those must outlive what table() gives.
class SymbolSources {
 public:
  /// What the symbols of .symtab and .dynsym say is code. Those of undefined functions do not
  /// count.
  void add_symbols_of(const Module& module);
  /// Entries of linkage tables.
  void add_plt_of(const Module& module);

  std::size_t size() const noexcept { return found_.size(); }

  /// `names` are those that were made: the table borrows them, too.
  struct Made {
    SymbolTable table;
    std::unique_ptr<const std::string> names;
  };
  Made table(const CodeAreas& areas) &&;
  struct MadeBlocks {
    SymbolBlocks blocks;
    std::unique_ptr<const std::string> names;
  };
  /// None where code lies too far apart.
  std::optional<MadeBlocks> blocks(const CodeAreas& areas) &&;

 private:
  void add_section(const Module& module, const ElfSectionFacts& section, ParseBudget& room);

  std::vector<FoundSymbol> found_;
  std::vector<std::string_view> strings_;
  std::unique_ptr<std::string> made_ = std::make_unique<std::string>();
};

}  // namespace perfmap
