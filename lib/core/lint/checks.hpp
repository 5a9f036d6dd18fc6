// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/mmap_vector.hpp"
#include "base/text.hpp"
#include "map/segments.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/text.hpp"

/// Shared by the checks. Where they are: PM (maps) in map_rules.cpp and name_rules.cpp, JD (dumps)
/// in dump_rules.cpp, XF (several files) in cross_file_rules.cpp; those that need a process or a
/// recording in lib/profile/doctor; PL (logs of PyPy) in lib/core/pypylog. The table of all rules
/// is perfmap/rules.def.
namespace perfmap::lint_rules {

// Maps.

/// Collected by the pass over the lines, for the rules that look at all lines.
struct LineFacts {
  /// Longer names are not counted by length: no producer cuts names that late.
  static constexpr std::size_t kMaxCounted = 4096;

  std::uint64_t lines = 0;
  bool all_sizes_decimal = true;
  Columns entries;                        ///< in file order
  MmapVector<std::uint64_t> name_hashes;  ///< one per entry
  std::vector<std::uint64_t> names_of_length = std::vector<std::uint64_t>(kMaxCounted + 2);
};

/// Reports findings about parts of one line.
struct LineReport {
  std::string_view text;
  const Location& at;
  Diagnostics& problems;

  void add(std::size_t position, const Rule& rule, std::string_view message) const {
    problems.add(rule, {at.offset + position, at.line, at.column + position}, message);
  }
};

/// PM008, PM010, PM020-PM035: the name of an entry, which is part of the line.
void check_name(const LineReport& line, std::string_view name);
/// Whether check_name() can be skipped: a fast filter without false positives.
bool is_unsuspicious(std::string_view name) noexcept;
/// PM022, PM033: all names together.
void check_names_together(const Map& map, const LineFacts& facts, Diagnostics& problems);
/// PM090, PM093, PM095: what all names together show about the runtime that wrote them and how it
/// was started. Heuristic: samples a few thousand names, and reads all only if those are
/// suspicious.
void check_producers(const Map& map, const LineFacts& facts, Diagnostics& problems);

/// Shortens a name for a message: names may be as long as a file. Cuts between two characters.
std::string_view shortened(std::string_view name) noexcept;

// Dumps.

/// Up to this many bytes after the content of a record count as alignment of the next.
inline constexpr std::uint64_t kMaxAlignment = 15;

/// Offsets of the fields in a dump's header and records.
namespace field {
inline constexpr std::uint64_t kVersion = 4, kHeaderSize = 8, kMachine = 12, kHeaderPid = 20,
                               kFlags = 32;
inline constexpr std::uint64_t kRecordSize = 4, kTime = 8;
inline constexpr std::uint64_t kPid = 16, kTid = 20;  // of LOAD and MOVE
inline constexpr std::uint64_t kLoadVma = 24, kLoadCodeSize = 40, kLoadIndex = 48;
inline constexpr std::uint64_t kMoveFrom = 32, kMoveCodeSize = 48, kMoveIndex = 56;
inline constexpr std::uint64_t kUnwindingSize = 16, kMappedSize = 32;
}  // namespace field

/// Printed in a message as 0x and hexadecimal digits.
struct Hex {
  std::uint64_t value;
};

/// Adds a finding at an offset of a dump. The message is built from its parts (texts, integers,
/// Hex) only if the finding is kept; if the only part is a function, it is called for the text.
template <class... Parts>
void report(Diagnostics& problems, const Rule& rule, std::uint64_t offset, const Parts&... parts) {
  if (!problems.count(rule)) return;
  std::string message;
  const auto append = [&message](const auto& part) {
    using Part = std::remove_cvref_t<decltype(part)>;
    if constexpr (std::is_invocable_v<Part>) {
      message += part();
    } else if constexpr (std::is_same_v<Part, Hex>) {
      message += "0x" + to_hex(part.value);
    } else if constexpr (std::is_integral_v<Part>) {
      message += std::to_string(part);
    } else {
      message += part;
    }
  };
  (append(parts), ...);
  problems.keep({&rule, {offset, 0, 0}, std::move(message)});
}

inline std::string hex_text(std::uint64_t value) { return "0x" + to_hex(value); }

/// Longer lines are damage (PM015).
inline constexpr std::size_t kLongLine = std::size_t{64} << 10;

/// The pid in "…/perf-PID.map", "…/jit-PID.dump"; nothing for other names.
std::optional<std::uint32_t> pid_of_map_name(std::string_view path) noexcept;
std::optional<std::uint32_t> pid_of_dump_name(std::string_view path) noexcept;

/// A LOAD with the code index of an earlier LOAD in the file.
struct ReusedIndex {
  std::uint64_t offset = 0;  ///< of its record
  std::uint64_t first = 0;   ///< of the first record with that index
  std::uint64_t index = 0;
};

/// The code indices of the LOAD and MOVE records of a dump.
struct CodeIndices {
  std::vector<ReusedIndex> reused;  ///< sorted by offset
  std::vector<std::uint64_t> used;  ///< all used indices, ascending and distinct
  std::uint64_t moves = 0;
};

/// Reads them. O(n log n).
CodeIndices read_indices(const Jitdump& dump);

}  // namespace perfmap::lint_rules
