#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace perfmap {

/// RFC 4648 with padding.
std::string to_base64(std::string_view bytes);

/// Nothing where the text is not canonical base64 with padding.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace perfmap
