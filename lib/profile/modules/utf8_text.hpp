#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace perfmap {

/// Appends a character, which is no surrogate and below 0x110000.
void append_utf8(std::string& out, std::uint32_t point);

/// Names that are not ASCII, as Rust writes them: Punycode with '_' before its last part. Nothing
/// where it is none, or has more than some hundred characters. O(n^2).
/// Source: RFC 3492, "Punycode", sections 5 and 6.2.
std::optional<std::string> decode_punycode(std::string_view text);

}  // namespace perfmap
