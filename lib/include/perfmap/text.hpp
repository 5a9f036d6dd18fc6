// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "perfmap/jit_format.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Appends `bytes` for display on a terminal: control bytes, invalid UTF-8, and characters that are
/// invisible, change the direction of text or control a terminal become \xNN, byte by byte.
/// O(bytes).
PERFMAP_API void append_visible(std::string& out, std::string_view bytes);

/// Quotes a word so that sh(1) reads it back to the same bytes. The result has no control bytes, so
/// that it can be displayed. A word that ends in a newline works in bash, zsh and ksh only.
PERFMAP_API std::string shell_word(std::string_view word);

/// The nanoseconds of "12.345678901": seconds with any number of decimals; those after the ninth
/// are ignored. By default perf prints microseconds (six decimals, truncated). So a text with six
/// to eight decimals stands for the last nanosecond that is printed in this way: what was loaded
/// within the same microsecond counts. Nothing for other text, and for values that need more than
/// 64 bits.
PERFMAP_API std::optional<std::uint64_t> parse_seconds(std::string_view text) noexcept;

/// "12.345678901", which parse_seconds() converts back to the same number.
PERFMAP_API std::string seconds_text(std::uint64_t ns);

/// Lower-case hexadecimal without prefix or leading zeros.
PERFMAP_API std::string to_hex(std::uint64_t value);

/// "1 byte", "2 bytes"; without `many` the plural is `one` and an s.
PERFMAP_API std::string counted(std::uint64_t count, std::string_view one,
                                std::string_view many = {});

/// `part` / `whole` with that many decimals, truncated, as an integer: scaled_ratio(2, 3, 2) is 66.
/// 0 if `whole` is 0; the largest value if the result does not fit. At most 19 decimals.
PERFMAP_API std::uint64_t scaled_ratio(std::uint64_t part, std::uint64_t whole,
                                       unsigned decimals) noexcept;

/// "48.62%", rounded to so many decimals; "-" if `whole` is 0.
PERFMAP_API std::string percent_text(std::uint64_t part, std::uint64_t whole, unsigned decimals);

/// "A, B and 3 more": at most `max` of these texts.
PERFMAP_API std::string list_text(std::span<const std::string> texts, std::size_t max);

/// How many characters a text has if it is UTF-8.
PERFMAP_API std::size_t character_count(std::string_view text) noexcept;

/// Appends `name` as is_plain_map_name() documents.
PERFMAP_API void append_escaped_map_name(std::string& out, std::string_view name);
PERFMAP_API std::string escape_map_name(std::string_view name);

/// The same, truncated to kMaxPortableName bytes between two characters, with `…` added, if it was
/// longer: some readers refuse the whole map for a line of 4096 bytes.
PERFMAP_API void append_portable_map_name(std::string& out, std::string_view name);

}  // namespace perfmap
