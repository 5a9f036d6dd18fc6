#include "perfmap/visible.hpp"

#include "base/utf8.hpp"

namespace perfmap {
namespace {

/// How many bytes at the start of `bytes` are a character that may be shown as it is.
std::size_t showable(std::string_view bytes) noexcept {
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (first < 0x20 || first == 0x7f) return 0;
  const std::size_t length = utf8_length(bytes);
  return length > 1 && is_invisible(utf8_decode(bytes, length)) ? 0 : length;
}

}  // namespace

void append_visible(std::string& out, std::string_view bytes) {
  if (is_plain_ascii(bytes)) {
    out += bytes;
    return;
  }
  while (!bytes.empty()) {
    const std::size_t length = showable(bytes);
    if (length == 0) {
      const auto first = static_cast<unsigned char>(bytes[0]);
      out += "\\x";
      out += "0123456789abcdef"[first >> 4];
      out += "0123456789abcdef"[first & 15];
    } else {
      out += bytes.substr(0, length);
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
}

}  // namespace perfmap
