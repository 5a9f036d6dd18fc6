// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "perfmap/types.hpp"

namespace perfmap {

/// Parsers for the lines inside PYPYLOG sections. Results are views into the line; each is O(line).

/// "Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER)", "bridge out of Guard 0x7f…", "bridge 139…", "loop1".
struct LoopName {
  bool is_bridge = false;
  std::optional<std::uint64_t> id = {};  ///< a loop's number, or the address of a bridge's guard
  std::string_view place = {};           ///< the text in a loop's parentheses
};
LoopName parse_loop_name(std::string_view name) noexcept;

/// The name of a loop in a jit-profile section, without surrounding blanks and without the comment
/// that may follow. A comment begins with a '#' after a blank and after the parentheses of "Loop N
/// (…)".
std::string_view event_name(std::string_view line) noexcept;

/// "NAME has address 0x… to 0x… (bootstrap 0x…)" in jit-backend-addr; PyPy before 2.3 has no 0x.
struct PlacedLine {
  std::string_view name;
  Address begin = 0;
  Address end = 0;
  Address bootstrap = 0;  ///< entry point, before the loop; 0: not given, as for bridges
};
std::optional<PlacedLine> parse_placed_line(std::string_view line) noexcept;

/// "      function: 0x7f…", the lines after it.
struct PartLine {
  std::string_view part;
  Address address = 0;
};
std::optional<PartLine> parse_part_line(std::string_view line) noexcept;

/// "# Loop 1 (f;…) : loop with 89 ops", "# bridge out of Guard 0x7f… with 48 ops".
struct OperationsTitle {
  std::string_view name;
  std::string_view type;  ///< "loop", "entry bridge", "bridge"
};
std::optional<OperationsTitle> parse_operations_title(std::string_view line) noexcept;

/// One operation, "+410: guard_isnull(p3, descr=<Guard0x7f…>) […]", or a debug_merge_point; or the
/// end, "+416: --end of the loop--".
struct OperationLine {
  std::optional<std::uint64_t> offset = {};  ///< of its machine code
  std::string_view operation = {};           ///< "guard_isnull"; empty at the end
  std::uint64_t guard = 0;                   ///< address of its guard descriptor; 0: none
  std::uint64_t token = 0;      ///< the number in TargetToken(…), on labels and jumps
  std::string_view place = {};  ///< of a debug_merge_point
};
std::optional<OperationLine> parse_operation_line(std::string_view line) noexcept;

/// "entry 1:1", "TargetToken(140…):3958", "bridge 140…:1207" in jit-backend-counts.
struct CountLine {
  enum class Of : std::uint8_t { entry, label, bridge };
  Of of = Of::entry;
  std::uint64_t id = 0;
  std::uint64_t count = 0;
};
std::optional<CountLine> parse_count_line(std::string_view line) noexcept;

/// "CODE_DUMP @7f… +0  4889…" in jit-backend-dump.
struct CodeDumpLine {
  Address address = 0;
  std::string_view hex;
};
std::optional<CodeDumpLine> parse_code_line(std::string_view line) noexcept;

}  // namespace perfmap
