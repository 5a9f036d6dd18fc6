#include "modules/utf8_text.hpp"

#include <vector>

namespace perfmap {
namespace {

constexpr std::uint64_t kBase = 36;
constexpr std::uint64_t kLeast = 1;
constexpr std::uint64_t kMost = 26;
constexpr std::size_t kMostPoints = 512;
constexpr std::uint64_t kMostSum = UINT32_MAX;

std::uint64_t adapted_bias(std::uint64_t delta, std::uint64_t points, bool is_first) noexcept {
  delta = is_first ? delta / 700 : delta / 2;
  delta += delta / points;
  std::uint64_t k = 0;
  for (; delta > (kBase - kLeast) * kMost / 2; k += kBase) delta /= kBase - kLeast;
  return k + (kBase - kLeast + 1) * delta / (delta + 38);
}

std::uint64_t digit_of(char c) noexcept {
  if (c >= 'a' && c <= 'z') return static_cast<std::uint64_t>(c - 'a');
  if (c >= '0' && c <= '9') return static_cast<std::uint64_t>(c - '0') + 26;
  return kBase;
}

/// One number of those that say where characters go; takes its digits off the front.
std::optional<std::uint64_t> take_delta(std::string_view& rest, std::uint64_t bias) noexcept {
  std::uint64_t sum = 0;
  std::uint64_t weight = 1;
  for (std::uint64_t k = kBase; !rest.empty(); k += kBase) {
    const std::uint64_t digit = digit_of(rest.front());
    rest.remove_prefix(1);
    if (digit == kBase) return std::nullopt;
    sum += digit * weight;
    if (sum > kMostSum) return std::nullopt;
    const std::uint64_t threshold = k <= bias ? kLeast : k - bias < kMost ? k - bias : kMost;
    if (digit < threshold) return sum;
    weight *= kBase - threshold;
    if (weight > kMostSum) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

void append_utf8(std::string& out, std::uint32_t point) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80u | ((point >> shift) & 0x3fu));
  };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0u | point >> 6);
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0u | point >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0u | point >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

std::optional<std::string> decode_punycode(std::string_view text) {
  std::vector<std::uint32_t> points;
  if (const std::size_t last = text.rfind('_'); last != text.npos) {
    for (const char c : text.substr(0, last)) points.push_back(static_cast<unsigned char>(c));
    text.remove_prefix(last + 1);
  }
  std::uint64_t point = 0x80;
  std::uint64_t bias = 72;
  std::uint64_t at = 0;
  for (bool is_first = true; !text.empty(); is_first = false) {
    const std::optional<std::uint64_t> delta = take_delta(text, bias);
    const std::uint64_t count = points.size() + 1;
    if (!delta || count > kMostPoints) return std::nullopt;
    at += *delta;
    point += at / count;
    at %= count;
    if (point >= 0x110000 || (point >= 0xd800 && point < 0xe000)) return std::nullopt;
    points.insert(points.begin() + static_cast<std::ptrdiff_t>(at),
                  static_cast<std::uint32_t>(point));
    ++at;
    bias = adapted_bias(*delta, count, is_first);
  }
  std::string out;
  for (const std::uint32_t each : points) append_utf8(out, each);
  return out;
}

}  // namespace perfmap
