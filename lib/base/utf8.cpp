// SPDX-License-Identifier: MIT
// Bytes of names: UTF-8, and how names are written. Needs only libc, because the writers use it.

#include "base/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "perfmap/jit_format.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kShortest = 3;

bool continues(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

/// Whether the text begins with a \xHH.
bool begins_escape(std::string_view text) noexcept {
  return text.size() >= 4 && text[0] == '\\' && text[1] == 'x' && hex_digit(text[2]) >= 0 &&
         hex_digit(text[3]) >= 0;
}

bool has_escape(std::string_view text) noexcept {
  for (;;) {
    const std::size_t backslash = text.find('\\');
    if (backslash == text.npos) return false;
    text.remove_prefix(backslash);
    if (begins_escape(text)) return true;
    text.remove_prefix(1);
  }
}

bool is_control(char byte) noexcept {
  return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f;
}

}  // namespace

std::size_t utf8_length(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  // Cases that the lead byte alone does not exclude: overlong forms, surrogates, above U+10FFFF.
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second > 0x9f) return 0;
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second > 0x8f) return 0;
  return length;
}

char32_t utf8_decode(std::string_view text, std::size_t length) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (length == 1) return byte(0);
  char32_t point = byte(0) & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) point = point << 6 | (byte(i) & 0x3fu);
  return point;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_plain_ascii(std::string_view text) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kTops = 0x8080808080808080;
  std::uint64_t odd = 0;
  std::size_t i = 0;
  // Eight bytes at a time: a top bit appears for a byte >= 0x80, below 0x20 or equal to 0x7f.
  const auto odd_bytes = [](std::uint64_t v) {
    const std::uint64_t low = (v & ~kTops) + kOnes * 0x60;  // top bit set where byte >= 0x20
    const std::uint64_t del = (v & ~kTops) + kOnes;         // top bit set where byte == 0x7f
    return (v | ~low | del) & kTops;
  };
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t v;
    std::memcpy(&v, text.data() + i, 8);
    odd |= odd_bytes(v);
  }
  if (odd != 0) return false;
  for (; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c >= 0x7f) return false;
  }
  return true;
}

bool is_plain_map_name(std::string_view name) noexcept {
  if (name.size() < kShortest || name.front() == ' ' || name.back() == ' ') return false;
  if (is_plain_ascii(name)) return true;
  while (!name.empty()) {
    const std::size_t length = is_control(name[0]) ? 0 : utf8_length(name);
    if (length == 0) return false;
    name.remove_prefix(length);
  }
  return true;
}

std::size_t escaped_size(std::string_view name) noexcept {
  std::size_t size = kShortest;
  while (!name.empty()) {
    const std::size_t length = is_control(name[0]) ? 0 : utf8_length(name);
    size += length == 0 ? 4 : length;
    name.remove_prefix(length == 0 ? 1 : length);
  }
  return size;
}

char* escape_name(char* out, std::string_view name, NameOf source) noexcept {
  while (!name.empty()) {
    const bool is_odd = is_control(name[0]) || (source == NameOf::runtime && begins_escape(name));
    const std::size_t length = is_odd ? 0 : utf8_length(name);
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(name[0]);
      const char escaped[] = {'\\', 'x', "0123456789abcdef"[byte >> 4],
                              "0123456789abcdef"[byte & 15]};
      out = std::copy_n(escaped, sizeof escaped, out);
    } else {
      out = std::copy_n(name.data(), length, out);
    }
    name.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

char* write_name(char* out, std::string_view name, NameOf source) noexcept {
  while (name.starts_with(' ')) name.remove_prefix(1);
  while (name.ends_with(' ')) name.remove_suffix(1);
  char* end = escape_name(out, name, source);
  const auto size = static_cast<std::size_t>(end - out);
  if (size >= kShortest) return end;
  std::memmove(out + 1, out, size);
  *out = '[';
  if (size == 0) *++end = '?';
  *++end = ']';
  return end + 1;
}

bool writes_unchanged(std::string_view name, NameOf source) noexcept {
  return name.size() <= kMaxPortableName && is_plain_map_name(name) &&
         (source == NameOf::file || !has_escape(name));
}

std::string_view written_name(std::string_view name, NameOf source,
                              WrittenNameRoom& room) noexcept {
  if (writes_unchanged(name, source)) return name;
  while (name.starts_with(' ')) name.remove_prefix(1);
  while (name.ends_with(' ')) name.remove_suffix(1);
  // What is cut off need not be escaped before; an incomplete character at this end is cut off.
  char* const end = write_name(room, first_bytes(name, kMaxPortableName + 4), source);
  const char* const cut = cut_name(room, end, kMaxPortableName);
  return {room, static_cast<std::size_t>(cut - room)};
}

/// Cuts between two characters; a \xNN counts as one.
char* cut_name(char* begin, char* end, std::size_t max) noexcept {
  constexpr std::string_view kEllipsis = "…";
  if (static_cast<std::size_t>(end - begin) <= max) return end;
  end = begin + max;
  while (end > begin && continues(*end)) --end;
  for (std::ptrdiff_t back = 1; back < 4 && back <= end - begin; ++back) {
    if (end[-back] == '\\') {
      end -= back;
      break;
    }
  }
  return std::copy_n(kEllipsis.data(), kEllipsis.size(), end);
}

}  // namespace perfmap
