#include "formats/pypylog_tick.hpp"

#include <algorithm>
#include <array>

#include "base/hex.hpp"

namespace perfmap {
namespace {

/// What a byte is among digits.
enum : std::uint8_t { kNoDigit = 0x80, kLetter = 0x20, kValue = 0x0f };

constexpr std::array<std::uint8_t, 256> make_bytes() noexcept {
  std::array<std::uint8_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    const char byte = static_cast<char>(i);
    const int digit = hex_digit(byte);
    table[i] = static_cast<std::uint8_t>(digit < 0 ? kNoDigit : digit | (digit > 9 ? kLetter : 0));
  }
  return table;
}
constexpr std::array<std::uint8_t, 256> kBytes = make_bytes();

std::uint8_t class_of(char byte) noexcept { return kBytes[static_cast<unsigned char>(byte)]; }

}  // namespace

std::uint64_t decimal_of(std::string_view digits) noexcept {
  std::uint64_t value = 0;
  for (const char digit : digits) {
    const auto unit = static_cast<std::uint64_t>(digit - '0');
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, unit, &value)) {
      return UINT64_MAX;
    }
  }
  return value;
}

Number take_number(const char*& at, const char* end) noexcept {
  const char* const begin = at;
  std::uint64_t hex = 0;
  unsigned seen = 0;
  for (; at != end; ++at) {
    const unsigned digit = class_of(*at);
    if ((digit & kNoDigit) != 0) break;
    hex = hex << 4 | (digit & kValue);
    seen |= digit;
  }
  const std::string_view digits(begin, static_cast<std::size_t>(at - begin));
  const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  if (digits.size() - zeros > 16) hex = UINT64_MAX;
  Number number{{hex, 0}, (seen & kLetter) != 0, !digits.empty()};
  if (!number.has_letter) number.tick.dec = decimal_of(digits);
  return number;
}

std::string_view to_string(TickBase base) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"auto", "hex", "dec"};
  return kNames[static_cast<std::size_t>(base)];
}

std::optional<TickBase> parse_tick_base(std::string_view name) noexcept {
  for (const TickBase base : {TickBase::automatic, TickBase::hex, TickBase::dec}) {
    if (to_string(base) == name) return base;
  }
  return std::nullopt;
}

std::optional<PypylogTick> parse_tick(std::string_view digits, bool& has_letter) noexcept {
  const char* at = digits.data();
  const Number number = take_number(at, digits.data() + digits.size());
  has_letter = number.has_letter;
  if (!number.has_digits || at != digits.data() + digits.size()) return std::nullopt;
  return number.tick;
}

}  // namespace perfmap
