#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/lazy.hpp"
#include "dwarf/cfi_program.hpp"
#include "elf/section_bytes.hpp"
#include "elf/symbol_table.hpp"
#include "elf/target.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Where the FDEs of a section lie, by the code that they are for: what .eh_frame_hdr would say.
/// Immutable. An FDE takes at least 12 bytes of the section, and as many here; of a section of more
/// than 4 GiB what lies beyond is not found.
class CfiIndex {
 public:
  CfiIndex() = default;
  /// Goes over the section once, as far as its lengths make sense. With `areas`, FDEs of code that
  /// lies in none of them are left out: linkers leave such behind where they drop functions.
  /// O(n log n).
  CfiIndex(const CfiSection& section, const CodeAreas* areas);

  struct Place {
    std::uint64_t offset = 0;
    Address next = UINT64_MAX;  ///< where the code of another FDE begins
  };
  /// The FDE whose code begins last at or before this address. O(log n).
  std::optional<Place> find(Address vaddr) const noexcept;

  std::size_t size() const noexcept { return begins_.size(); }
  std::uint64_t bytes() const noexcept { return begins_.capacity() * 8 + offsets_.capacity() * 4; }

 private:
  std::vector<Address> begins_;
  std::vector<std::uint32_t> offsets_;
};

/// .eh_frame_hdr, used where it lies: a sorted table of the FDEs of .eh_frame. What it says is a
/// hint: whoever uses an FDE that it names must see whether that is one. Borrows the bytes.
/// Source: Linux Standard Base 5.0, "The .eh_frame_hdr section".
class EhFrameHeader {
 public:
  /// Nothing where it is damaged or unsorted, or has no table, or one of another encoding than the
  /// one that linkers write (4 bytes, relative to the header). O(n).
  static std::optional<EhFrameHeader> read(std::string_view bytes, Address address,
                                           const Target& target) noexcept;

  /// Where .eh_frame is.
  Address frames() const noexcept { return frames_; }

  struct Entry {
    Address code = 0;
    Address fde = 0;
    Address next = UINT64_MAX;  ///< where the code of the next entry begins
  };
  /// The last entry whose code begins at or before `vaddr`. O(log n).
  std::optional<Entry> find(Address vaddr) const noexcept;
  std::uint64_t size() const noexcept { return count_; }

 private:
  Address at(std::uint64_t offset) const noexcept;
  Address code(std::uint64_t i) const noexcept { return at(i * 8); }
  bool is_sorted() const noexcept;

  std::string_view table_;
  Address address_ = 0;
  Address last_ = UINT64_MAX;
  bool swapped_ = false;
  std::uint64_t count_ = 0;
  Address frames_ = 0;
};

/// Call frame information: how to get from any address of some code to the caller. Immutable, and
/// shared: const members may be used from several threads. Of its parts those are made late that
/// are rarely asked for. Nothing that a file says is believed.
///
/// Of a module .eh_frame answers first, by .eh_frame_hdr where that is in order, and otherwise by
/// an own index; then .debug_frame of the module, of its debug file, and of .gnu_debugdata.
class CfiTable {
 public:
  /// The module must outlive it, and so must the one that `packed` answers with: that of its
  /// .gnu_debugdata, or nullptr; asked at most once, if .eh_frame does not cover an address. Of
  /// object files (ET_REL) nothing is read: their addresses mean nothing yet.
  CfiTable(const Module& module, std::function<const Module*()> packed);
  /// An .eh_frame that is, or was, in memory at `address`, such as a JIT's; the bytes must outlive
  /// the table, and all rows. O(n log n).
  CfiTable(std::string_view eh_frame, Address address, const Target& target);

  /// Nothing where no FDE covers the address, or where what it says makes no sense. Runs an FDE's
  /// instructions as far as needed and keeps nothing: to be asked once for each address. Allocates
  /// nothing but, once, an index. O(log n) and the instructions.
  std::optional<CfiRow> row_at(Address vaddr) const;

  /// What it takes, beside the module's bytes.
  std::uint64_t bytes_held() const noexcept;

 private:
  struct Part {
    CfiSection section;
    CfiIndex index;
    std::unique_ptr<char[]> owned = nullptr;  ///< its bytes, where they were compressed

    std::optional<CfiRow> row_at(Address vaddr) const noexcept;
  };
  using Parts = std::vector<Part>;
  std::optional<CfiRow> row_by_header(Address vaddr) const;
  const Part& walked() const;
  Parts debug_frames() const;

  const Module* module_ = nullptr;
  std::function<const Module*()> packed_;
  CfiSection frames_;
  std::optional<EhFrameHeader> header_;
  CodeAreas code_;
  Lazy<Part> walked_;
  Lazy<Parts> debug_frames_;
};

/// The one that the module keeps, and makes when it is first asked for. Module defines this.
const CfiTable& cfi_of(const Module& module);

}  // namespace perfmap
