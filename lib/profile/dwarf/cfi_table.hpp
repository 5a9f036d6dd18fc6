// SPDX-License-Identifier: MIT
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

/// The FDEs of a section by the address of their code, like .eh_frame_hdr. Immutable. An FDE takes
/// at least 12 bytes in the section, and the same here. In a section of more than 4 GiB, FDEs
/// beyond that are not found.
class CfiIndex {
 public:
  CfiIndex() = default;
  /// Reads the section once, up to the first invalid length. With `areas`, FDEs of code outside of
  /// them are ignored: linkers leave those when they drop functions. O(n log n).
  CfiIndex(const CfiSection& section, const CodeAreas* areas);

  struct Place {
    std::uint64_t offset = 0;
    Address next = UINT64_MAX;  ///< where the code of the next FDE begins
  };
  /// The FDE with the last begin at or before this address. O(log n).
  std::optional<Place> find(Address vaddr) const noexcept;

  std::size_t size() const noexcept { return begins_.size(); }
  std::uint64_t bytes() const noexcept { return begins_.capacity() * 8 + offsets_.capacity() * 4; }

 private:
  std::vector<Address> begins_;
  std::vector<std::uint32_t> offsets_;
};

/// .eh_frame_hdr, used in place: a sorted table of the FDEs of .eh_frame. Its content is a hint:
/// the caller must check that there is an FDE at each place it names. Borrows the bytes. Source:
/// Linux Standard Base 5.0, "The .eh_frame_hdr section".
class EhFrameHeader {
 public:
  /// Nothing if it is damaged or unsorted, has no table, or an encoding other than the one that
  /// linkers write (4 bytes, relative to the header). O(n).
  static std::optional<EhFrameHeader> read(std::string_view bytes, Address address,
                                           const Target& target) noexcept;

  /// The address of .eh_frame.
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

/// Call frame information: how to get from any code address to the caller. Immutable and
/// thread-safe: const members may be used from several threads. Rarely used parts are built on
/// demand. All content of the file is checked.
///
/// For a module .eh_frame has priority, through .eh_frame_hdr if that is valid, else through an
/// index built here; then .debug_frame of the module, of its debug file, and of .gnu_debugdata.
class CfiTable {
 public:
  /// The module must outlive it, and so must the result of `packed`: the module of its
  /// .gnu_debugdata, or nullptr. `packed` is called at most once, if .eh_frame does not cover an
  /// address. Object files (ET_REL) are not read: their addresses are not final.
  CfiTable(const Module& module, std::function<const Module*()> packed);
  /// An .eh_frame that is, or was, in memory at `address`, such as a JIT's. The bytes must outlive
  /// the table and all rows. O(n log n).
  CfiTable(std::string_view eh_frame, Address address, const Target& target);

  /// Nothing if no FDE covers the address, or if the FDE is invalid. Runs the FDE's instructions as
  /// far as needed and caches nothing, so call it once for each address. Allocates only an index,
  /// once. O(log n) plus the instructions.
  std::optional<CfiRow> row_at(Address vaddr) const;

  /// Memory in use, besides the module's bytes.
  std::uint64_t bytes_held() const noexcept;

 private:
  struct Part {
    CfiSection section;
    CfiIndex index;
    std::unique_ptr<char[]> owned = nullptr;  ///< its bytes if they were compressed

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

/// The module's table, built on the first call. Module defines this.
const CfiTable& cfi_of(const Module& module);

}  // namespace perfmap
