#include "formats/perf_line.hpp"

#include "base/hex.hpp"

namespace perfmap {
namespace {

struct Number {
  std::uint64_t value = 0;
  std::size_t consumed = 0;  // 0 where there is no number, as endptr says
};

bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_hex_at(std::string_view text, std::size_t i) noexcept {
  return i < text.size() && hex_digit(text[i]) >= 0;
}

/// strtoull(text, &end, 16) in the C locale.
Number strtoull16(std::string_view text) noexcept {
  std::size_t i = 0;
  while (i < text.size() && is_space(text[i])) ++i;
  const bool negative = i < text.size() && text[i] == '-';
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  const bool prefix =
      is_hex_at(text, i) && text[i] == '0' && i + 1 < text.size() && (text[i + 1] | 0x20) == 'x';
  if (prefix && is_hex_at(text, i + 2)) i += 2;
  if (!is_hex_at(text, i)) return {};
  Number number;
  bool overflow = false;
  for (; is_hex_at(text, i); ++i) {
    overflow = overflow || number.value >> 60 != 0;
    number.value = number.value << 4 | static_cast<unsigned>(hex_digit(text[i]));
  }
  if (negative) number.value = 0 - number.value;
  if (overflow) number.value = UINT64_MAX;
  number.consumed = i;
  return number;
}

}  // namespace

std::optional<Entry> read_perf_line(std::string_view line, std::uint64_t offset) noexcept {
  if (line.empty()) return std::nullopt;
  line.remove_suffix(1);
  // What C sees ends at the first NUL; the tests of the length below do not.
  const std::string_view c_string = line.substr(0, line.find('\0'));
  const auto from = [&](std::size_t at) {
    return at < c_string.size() ? c_string.substr(at) : std::string_view();
  };
  const Number start = strtoull16(c_string);
  std::size_t at = start.consumed + 1;
  if (at + 2 >= line.size()) return std::nullopt;
  const Number size = strtoull16(from(at));
  at += size.consumed + 1;
  if (at + 2 >= line.size()) return std::nullopt;
  return Entry{{start.value, size.value}, from(at), offset};
}

}  // namespace perfmap
