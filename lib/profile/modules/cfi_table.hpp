#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "modules/cfi_index.hpp"
#include "modules/cfi_rule.hpp"
#include "modules/eh_frame_header.hpp"
#include "modules/late.hpp"
#include "modules/section_bytes.hpp"
#include "perfmap/module.hpp"

namespace perfmap {

/// Call frame information: how to get from any address of some code to the caller. Immutable, and
/// shared: const members may be used from several threads. Of its parts those are made late that
/// are rarely asked for. Nothing that a file says is believed.
///
/// Of a module .eh_frame answers first, by .eh_frame_hdr where that is in order, and otherwise by
/// an own index; then .debug_frame of the module, of its debug file, and of .gnu_debugdata.
class CfiTable {
 public:
  /// The module must outlive it. Of object files (ET_REL) nothing is read: their addresses mean
  /// nothing yet.
  explicit CfiTable(const Module& module);
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
  CfiSection frames_;
  std::optional<EhFrameHeader> header_;
  CodeAreas code_;
  Late<Part> walked_;
  Late<Parts> debug_frames_;
};

/// Made once, by the first who asks; lives as long as the module.
const CfiTable& cfi_of(const Module& module);

}  // namespace perfmap
