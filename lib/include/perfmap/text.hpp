#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "perfmap/types.hpp"

namespace perfmap {

/// Appends `bytes` as a person may see them on a terminal: control bytes, what is not valid UTF-8,
/// and characters that cannot be seen, that turn the text around or that drive a terminal become
/// \xNN, byte by byte. O(bytes).
PERFMAP_API void append_visible(std::string& out, std::string_view bytes);

/// A word as sh(1) reads it back to the same bytes; none of them is a control byte, so that it can
/// be shown. A word that ends in a newline is one for bash, zsh and ksh alone.
PERFMAP_API std::string shell_word(std::string_view word);

/// Nanoseconds of "12.345678901": seconds with any number of decimals. Decimals beyond the ninth
/// are cut. perf prints microseconds unless told otherwise (six decimals, the rest cut), so that
/// six to eight decimals stand for the last nanosecond that is printed like that: what was loaded
/// within the same microsecond counts. Nothing for other text, and for what 64 bits cannot hold.
PERFMAP_API std::optional<std::uint64_t> parse_seconds(std::string_view text) noexcept;

/// "12.345678901", of which parse_seconds() makes the same number again.
PERFMAP_API std::string seconds_text(std::uint64_t ns);

/// How names are written into perf maps, so that no reader of the format trips over them: each byte
/// below 0x20, 0x7f, and each byte that is not part of valid UTF-8 becomes \xNN; blanks at the ends
/// are cut; a name then shorter than three bytes (perf drops those) is put in brackets: `[a]`, and
/// `[?]` when nothing is left.

/// True where a name is written as it is. O(name), allocates nothing.
PERFMAP_API bool is_plain_map_name(std::string_view name) noexcept;

/// Appends `name` as it is written.
PERFMAP_API void append_escaped_map_name(std::string& out, std::string_view name);
PERFMAP_API std::string escape_map_name(std::string_view name);

/// The same, and cut to kMaxPortableName bytes between two characters with `…` added when it was
/// longer: some readers refuse the whole map for a line of 4096 bytes.
inline constexpr std::size_t kMaxPortableName = 4000;
PERFMAP_API void append_portable_map_name(std::string& out, std::string_view name);

}  // namespace perfmap
