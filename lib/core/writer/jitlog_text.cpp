#include "writer/jitlog_text.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/text.hpp"
#include "perfmap/text.hpp"

namespace perfmap {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kBlanks = " \t";

std::string_view behind_digits(std::string_view text) noexcept {
  return text.substr(std::min(text.find_first_not_of(kDigits), text.size()));
}

std::string_view behind_hex(std::string_view text) noexcept {
  while (!text.empty() && hex_digit(text.front()) >= 0) text.remove_prefix(1);
  return text;
}

/// Where the parentheses of a name in PyPy's own form close for the first time, in which a `#` is
/// part of the name; else 0.
std::size_t end_of_loop_name(std::string_view name) noexcept {
  constexpr std::string_view kLoop = "Loop ";
  if (!name.starts_with(kLoop)) return 0;
  const std::string_view rest = behind_digits(name.substr(kLoop.size()));
  const bool numbered = rest.size() < name.size() - kLoop.size();
  return numbered && rest.starts_with(" (") && name.back() == ')' ? name.find(')') : 0;
}

/// Whether the `#` at `at` would begin a comment, or end the number of a thread.
bool is_misread_hash(std::string_view name, std::size_t at) noexcept {
  if (at < end_of_loop_name(name)) return false;
  const std::string_view before = name.substr(0, at);
  return before.empty() || kBlanks.find(before.back()) != kBlanks.npos ||
         behind_digits(before).empty();
}

/// Whether the name begins as a line with a tick does.
bool is_misread_bracket(std::string_view name) noexcept {
  if (!name.starts_with('[')) return false;
  const std::string_view rest = behind_hex(name.substr(1));
  return rest.size() < name.size() - 1 && rest.starts_with(']');
}

/// Of what has been escaped where it had to be, without brackets.
void append_unambiguous(std::string& out, std::string_view name) {
  if (is_misread_bracket(name)) {
    out += "\\x5b";
    name.remove_prefix(1);
  }
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (name[at] == '#' && is_misread_hash(name, at)) {
      out += "\\x23";
    } else {
      out += name[at];
    }
  }
}

/// Two letters that keep a short name from getting brackets, and are taken off again.
constexpr std::string_view kLonger = "xx";

/// The eight digits of `value`, the first one in the lowest byte in memory.
std::uint64_t eight_digits(std::uint32_t value) noexcept {
  std::uint64_t digits = __builtin_bswap32(value);
  digits = (digits | digits << 16) & 0x0000ffff0000ffff;
  digits = (digits | digits << 8) & 0x00ff00ff00ff00ff;
  digits = (digits >> 4 | digits << 8) & 0x0f0f0f0f0f0f0f0f;
  const std::uint64_t letters = (digits + 0x0606060606060606) >> 4 & 0x0101010101010101;
  const std::uint64_t text = digits + 0x3030303030303030 + letters * ('a' - '0' - 10);
  return std::endian::native == std::endian::little ? text : __builtin_bswap64(text);
}

/// A number as text, all in registers.
struct Digits {
  explicit Digits(std::uint64_t value) noexcept
      : count(value == 0 ? 1 : (67U - static_cast<unsigned>(__builtin_clzll(value))) / 4) {
    const std::uint64_t shifted = value << (64 - 4 * count);
    high = eight_digits(static_cast<std::uint32_t>(shifted >> 32));
    low = eight_digits(static_cast<std::uint32_t>(shifted));
  }
  char* write(char* out) const noexcept {
    std::memcpy(out, &high, sizeof high);
    std::memcpy(out + sizeof high, &low, sizeof low);
    return out + count;
  }
  std::uint64_t high;
  std::uint64_t low;
  unsigned count;
};

template <std::size_t Max>
char* write(char* out, const JitlogPiece<Max>& piece) noexcept {
  std::memcpy(out, piece.bytes.data(), Max);
  return out + piece.size;
}

}  // namespace

void append_jitlog_name(std::string& out, std::string_view name) {
  const std::size_t first = name.find_first_not_of(' ');
  if (first == std::string_view::npos) {
    out += '?';
    return;
  }
  std::string longer(kLonger);
  longer += name.substr(first, name.find_last_not_of(' ') - first + 1);
  std::string escaped;
  append_portable_map_name(escaped, longer);
  append_unambiguous(out, std::string_view(escaped).substr(kLonger.size()));
}

char* write_jitlog_section(char* out, const JitlogCategory& category, std::uint64_t tick,
                           std::string_view payload, const JitlogPrefix& prefix) noexcept {
  const Digits digits(tick);
  char* at = write(out, prefix);
  *at++ = '[';
  at = write(digits.write(at), category.opening);
  at = write(at, prefix);
  std::memcpy(at, payload.data(), payload.size());
  at += payload.size();
  *at++ = '\n';
  at = write(at, prefix);
  *at++ = '[';
  return write(digits.write(at), category.closing);
}

bool begins_as_jitlog(std::string_view text) noexcept {
  const std::string_view rest = behind_digits(text);
  if (rest.size() < text.size() && rest.starts_with("# ")) text = rest.substr(2);
  if (!text.starts_with('[')) return false;
  const std::string_view tick = behind_hex(text.substr(1));
  return tick.size() < text.size() - 1 && tick.starts_with("] {");
}

}  // namespace perfmap
