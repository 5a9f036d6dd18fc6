#include "perfmap/names.hpp"

#include <algorithm>
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
  constexpr std::array kDecoders = {
      names::decode_v8,     names::decode_cpython,      names::decode_dotnet, names::decode_jsc,
      names::decode_marked, names::decode_spidermonkey, names::decode_hotspot};
  for (const auto decode : kDecoders) {
    if (auto decoded = decode(raw)) return *std::move(decoded);
  }
  return {.function = raw};
}

namespace {

/// Code of the runtime itself, of which there are no other tiers.
bool is_own_code(std::string_view tier) {
  constexpr std::array<std::string_view, 7> kOwn = {"builtin",    "bytecode", "regexp",     "stub",
                                                    "trampoline", "adapter",  "interpreter"};
  return std::find(kOwn.begin(), kOwn.end(), tier) != kOwn.end();
}

}  // namespace

std::string without_tier(std::string_view raw) {
  const DecodedName decoded = decode_name(raw);
  const bool script = decoded.runtime == Runtime::v8 || decoded.runtime == Runtime::jsc ||
                      decoded.runtime == Runtime::spidermonkey;
  if (is_own_code(decoded.tier)) return std::string(raw);
  if (decoded.runtime == Runtime::dotnet && !decoded.tier.empty()) {
    return std::string(raw.substr(0, raw.rfind('[')));
  }
  if (!script) return std::string(raw);
  std::string_view name =
      raw.substr(static_cast<std::size_t>(decoded.function.data() - raw.data()));
  // WebAssembly in V8: "add-12-liftoff".
  if (decoded.runtime == Runtime::v8 && decoded.line == 0 && name != decoded.function) {
    name = name.substr(0, name.rfind('-'));
  }
  return (decoded.function.empty() ? "(anonymous)" : "") + std::string(name);
}

}  // namespace perfmap
