#include "time_option.hpp"

#include <charconv>
#include <string>

namespace perfmap::app {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

bool is_digits(std::string_view text) noexcept {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

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
  if (!seconds || *seconds > UINT64_MAX / kSecond - 1) return std::nullopt;
  std::uint64_t ns = *seconds * kSecond;
  if (point == std::string_view::npos) return ns;
  const std::string_view decimals = text.substr(point + 1);
  if (!is_digits(decimals)) return std::nullopt;
  std::uint64_t unit = kSecond / 10;
  for (const char digit : decimals.substr(0, 9)) {
    ns += static_cast<std::uint64_t>(digit - '0') * unit;
    unit /= 10;
  }
  return ns;
}

CLI::Option* add_time(CLI::App& command, std::uint64_t& time) {
  const auto is_time = [](const std::string& text) {
    return parse_seconds(text) ? "" : "'" + text + "' is no time in seconds";
  };
  return command
      .add_option_function<std::string>(
          "--time", [&time](const std::string& text) { time = *parse_seconds(text); },
          "As of that time, in seconds (default: the end)")
      ->check(CLI::Validator(is_time, ""))
      ->type_name("SECONDS")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

}  // namespace perfmap::app
