// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "dwarf/cfi_program.hpp"
#include "dwarf/cfi_table.hpp"
#include "perfmap/timeline.hpp"
#include "unwind/code_bytes.hpp"

namespace perfmap {

/// Call frame information of the code in jitdumps, built on demand. The dumps must not change.
class JitCfi {
 public:
  /// The rules at an address of that code; `machine` is an e_machine. O(records) for the first
  /// address of a dump.
  std::optional<CfiRow> find(const DumpedCode& code, std::uint16_t machine);
  /// Whether all rules of that code count from the stack pointer, which has that DWARF number: then
  /// a frame pointer there, if any, is that of a caller.
  bool has_no_frame_pointer(const DumpedCode& code, std::uint16_t machine, unsigned sp);

 private:
  static constexpr std::size_t kMaxTables = 4096;
  using Key = std::pair<const Jitdump*, std::uint64_t>;
  struct Code {
    std::unique_ptr<const CfiTable> table;  // null: none
    AddressRange range;                     // as loaded
    std::optional<bool> has_no_frame_pointer;
  };

  Code& code_of(const DumpedCode& code, std::uint16_t machine);
  Code make(const DumpedCode& code, std::uint16_t machine);

  std::map<const Jitdump*, JitDetails> details_;
  std::map<Key, Code> tables_;
};

}  // namespace perfmap
