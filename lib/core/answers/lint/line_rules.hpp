#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/mmap_vector.hpp"
#include "map/segments.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/map.hpp"

namespace perfmap::lint_rules {

/// What the pass over the lines leaves for the rules that look at all of them.
struct LineFacts {
  /// Names longer than this are not counted by length: nobody cuts that late.
  static constexpr std::size_t kMaxCounted = 4096;

  std::uint64_t lines = 0;
  bool all_sizes_decimal = true;
  Columns entries;                        ///< in file order
  MmapVector<std::uint64_t> name_hashes;  ///< one an entry
  std::vector<std::uint64_t> names_of_length = std::vector<std::uint64_t>(kMaxCounted + 2);
};

/// PM001-PM015, PM020-PM035 but PM022 and PM033, PM106-PM109: everything that one line shows.
void check_lines(const Map& map, Diagnostics& problems, LineFacts& facts);

/// How one line is written: PM004-PM007, PM011-PM015, and where it is no entry PM001-PM003 and
/// PM010. Answers with the entry.
std::optional<Entry> check_syntax(std::string_view line, const Location& at, Diagnostics& problems);

/// PM008, PM010, PM020-PM035: the name of an entry, which is a part of `line`.
void check_name(std::string_view line, const Location& at, std::string_view name,
                Diagnostics& problems);

/// Whether a name has to go through check_name() at all: a quick and safe guess.
bool is_unsuspicious(std::string_view name) noexcept;

}  // namespace perfmap::lint_rules
