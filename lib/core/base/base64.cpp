#include "base/base64.hpp"

#include <cstdint>

namespace perfmap {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    const std::size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    for (std::size_t j = 0; j < 3; ++j) {
      three = three << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += j <= count ? kAlphabet[three >> (18 - 6 * j) & 63] : '=';
    }
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const std::size_t padding = !last ? 0 : text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
    std::uint32_t three = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const std::size_t value = j < 4 - padding ? kAlphabet.find(text[i + j]) : 0;
      if (value == std::string_view::npos) return std::nullopt;
      three = three << 6 | static_cast<std::uint32_t>(value);
    }
    if ((three & ((1u << (8 * padding)) - 1)) != 0) return std::nullopt;  // bits nobody can see
    for (std::size_t j = 0; j < 3 - padding; ++j) {
      out += static_cast<char>(three >> (16 - 8 * j) & 0xff);
    }
  }
  return out;
}

}  // namespace perfmap
