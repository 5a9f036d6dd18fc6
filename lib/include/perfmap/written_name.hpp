#pragma once

#include <string>
#include <string_view>

#include "perfmap/export.hpp"

namespace perfmap {

/// How names are written into perf maps, so that no reader of the format trips over them: each byte
/// below 0x20, 0x7f, and each byte that is not part of valid UTF-8 becomes \xNN; blanks at the ends
/// are cut; a name then shorter than three bytes (perf drops those) is put in brackets: `[a]`, and
/// `[?]` when nothing is left.

/// True where a name is written as it is. O(name), allocates nothing.
PERFMAP_API bool is_written_as_is(std::string_view name) noexcept;

/// Appends `name` as it is written.
PERFMAP_API void append_written_name(std::string& out, std::string_view name);
PERFMAP_API std::string written_name(std::string_view name);

/// The same, and cut to kMostPortableName bytes between two characters with `…` added when it was
/// longer: some readers refuse the whole map for a line of 4096 bytes.
inline constexpr std::size_t kMostPortableName = 4000;
PERFMAP_API void append_portable_name(std::string& out, std::string_view name);

}  // namespace perfmap
