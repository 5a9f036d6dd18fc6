#pragma once

#include <cstddef>
#include <string_view>

namespace perfmap {

/// How many bytes the valid UTF-8 sequence at the start of `text` has; 0 where there is none.
/// Overlong forms, surrogates and what lies beyond U+10FFFF are not valid. `text` is not empty.
std::size_t utf8_length(std::string_view text) noexcept;

/// The code point of the valid sequence of `length` bytes at the start of `text`.
char32_t utf8_decode(std::string_view text, std::size_t length) noexcept;

bool is_utf8(std::string_view text) noexcept;

/// Characters that cannot be seen, change the direction of the text around them, or drive a
/// terminal (U+0080 to U+009F do, as their 7-bit forms).
bool is_invisible(char32_t point) noexcept;

/// True where every byte is printable ASCII or a blank: nothing to escape, nothing to check.
bool is_plain_ascii(std::string_view text) noexcept;

}  // namespace perfmap
