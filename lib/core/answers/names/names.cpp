#include "perfmap/names.hpp"

#include <array>
#include <charconv>

#include "answers/names/decoders.hpp"

namespace perfmap {
namespace names {

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<Place> split_place(std::string_view text) {
  const auto take_number = [&]() -> std::optional<std::uint64_t> {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto number = parse_decimal(text.substr(colon + 1));
    if (number) text = text.substr(0, colon);
    return number;
  };
  const auto last = take_number();
  if (!last) return std::nullopt;
  const auto before = take_number();
  if (!before) return Place{text, *last, 0};
  return Place{text, *before, *last};
}

}  // namespace names

std::string_view to_string(Runtime runtime) noexcept {
  constexpr std::array<std::string_view, 17> kNames = {
      "",       "v8",   "hotspot", "cpython", "dotnet", "erlang", "mono",         "php", "ruby",
      "luajit", "hhvm", "qemu",    "wasm",    "julia",  "jsc",    "spidermonkey", "pypy"};
  return kNames[static_cast<std::size_t>(runtime)];
}

DecodedName decode_name(std::string_view raw) {
  constexpr std::array kDecoders = {names::decode_v8, names::decode_cpython, names::decode_dotnet,
                                    names::decode_marked, names::decode_hotspot};
  for (const auto decode : kDecoders) {
    if (auto decoded = decode(raw)) return *std::move(decoded);
  }
  return {.function = raw};
}

std::string without_tier(std::string_view raw) {
  const DecodedName decoded = decode_name(raw);
  if (decoded.runtime == Runtime::unknown || decoded.function.empty()) return std::string(raw);
  std::string name(decoded.function);
  if (decoded.file.empty()) return name;
  name.append(" ").append(decoded.file);
  if (decoded.line != 0) name.append(":").append(std::to_string(decoded.line));
  if (decoded.column != 0) name.append(":").append(std::to_string(decoded.column));
  return name;
}

}  // namespace perfmap
