// SPDX-License-Identifier: MIT
#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "perfmap/text.hpp"

namespace perfmap {

std::string to_hex(std::uint64_t value) {
  char digits[16];
  return {digits, write_hex(digits, value)};
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  std::string text = std::to_string(count) + " ";
  if (count == 1) return text.append(one);
  return many.empty() ? text.append(one) + "s" : text.append(many);
}

std::string percent_text(std::uint64_t part, std::uint64_t whole, unsigned decimals) {
  if (whole == 0) return "-";
  std::string digits = std::to_string((scaled_ratio(part, whole, decimals + 3) + 5) / 10);
  if (digits.size() <= decimals) digits.insert(0, decimals + 1 - digits.size(), '0');
  return digits.insert(digits.size() - decimals, ".") + "%";
}

std::string list_text(std::span<const std::string> texts, std::size_t max) {
  std::string list;
  for (const std::string& text : texts.first(std::min(texts.size(), max))) {
    list += (list.empty() ? "" : ", ") + text;
  }
  return texts.size() <= max ? list : list + " and " + std::to_string(texts.size() - max) + " more";
}

std::size_t character_count(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (byte & '\xc0') != '\x80'; }));
}

std::uint64_t scaled_ratio(std::uint64_t part, std::uint64_t whole, unsigned decimals) noexcept {
  __extension__ using Wide = unsigned __int128;
  if (whole == 0) return 0;
  Wide scaled = part;
  for (; decimals != 0; --decimals) scaled *= 10;
  return scaled / whole > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(scaled / whole);
}

bool is_invisible(char32_t point) noexcept {
  return (point >= 0x80 && point <= 0x9f) || (point >= 0x200b && point <= 0x200f) ||
         (point >= 0x2028 && point <= 0x202e) || (point >= 0x2060 && point <= 0x206f) ||
         point == 0xfeff || point == 0xad || point == 0x61c;
}

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
    if ((three & ((1u << (8 * padding)) - 1)) != 0)
      return std::nullopt;  // unused bits must be
                            // zero
    for (std::size_t j = 0; j < 3 - padding; ++j) {
      out += static_cast<char>(three >> (16 - 8 * j) & 0xff);
    }
  }
  return out;
}

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::size_t kMicroseconds = 6;
constexpr std::size_t kNanoseconds = 9;

std::optional<std::uint64_t> parse_digits(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::uint64_t> parse_seconds(std::string_view text) noexcept {
  const std::size_t point = text.find('.');
  const auto seconds = parse_digits(text.substr(0, point));
  if (!seconds || *seconds > UINT64_MAX / kSecond) return std::nullopt;
  const std::uint64_t whole = *seconds * kSecond;
  if (point == std::string_view::npos) return whole;
  const std::string_view decimals = text.substr(point + 1);
  if (decimals.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  std::uint64_t unit = kSecond;
  std::uint64_t ns = 0;
  for (const char digit : decimals.substr(0, kNanoseconds)) {
    unit /= 10;
    ns += static_cast<std::uint64_t>(digit - '0') * unit;
  }
  if (decimals.size() >= kMicroseconds) ns += unit - 1;
  return ns > UINT64_MAX - whole ? std::nullopt : std::optional(whole + ns);
}

std::string seconds_text(std::uint64_t ns) {
  std::string decimals = std::to_string(ns % kSecond);
  decimals.insert(0, kNanoseconds - decimals.size(), '0');
  return std::to_string(ns / kSecond) + "." + decimals;
}

namespace {

/// The length of the character at the start of `bytes` if it can be shown as it is, else 0.
std::size_t showable(std::string_view bytes) noexcept {
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (first < 0x20 || first == 0x7f) return 0;
  const std::size_t length = utf8_length(bytes);
  return length > 1 && is_invisible(utf8_decode(bytes, length)) ? 0 : length;
}

}  // namespace

void append_visible(std::string& out, std::string_view text) {
  // What is checked is the copy: the text may be part of a file that another process changes.
  const std::size_t start = out.size();
  out += text;
  if (is_plain_ascii(std::string_view(out).substr(start))) return;
  const std::string copy = out.substr(start);
  out.resize(start);
  std::string_view bytes = copy;
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
