// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace perfmap {

/// Characters that are invisible, change the direction of the text around them, or control a
/// terminal (U+0080 to U+009F do, like their 7-bit forms).
bool is_invisible(char32_t point) noexcept;

/// RFC 4648 with padding.
std::string to_base64(std::string_view bytes);

/// Nothing if the text is not canonical base64 with padding.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace perfmap
