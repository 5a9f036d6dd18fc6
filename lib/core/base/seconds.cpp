#include "perfmap/seconds.hpp"

#include <charconv>

namespace perfmap {
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

}  // namespace perfmap
