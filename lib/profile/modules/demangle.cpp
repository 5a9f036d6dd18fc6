#include "modules/demangle.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cxxabi.h>
#include <memory>

#include "modules/rust_symbol.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMostMangled = 4096;
constexpr std::size_t kMostDemangled = std::size_t{64} << 10;

struct Free {
  void operator()(char* text) const noexcept { std::free(text); }
};

std::optional<std::string> demangle_cxx(std::string_view name) {
  if (!is_reasonable_cxx_name(name)) return std::nullopt;
  int status = 0;
  const std::unique_ptr<char, Free> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status));
  if (status != 0 || text == nullptr) return std::nullopt;
  return std::string(text.get());
}

/// The length of S_, S0_, T_ or T12_ at the beginning; 0 where that is none.
std::size_t reference_size(std::string_view text) noexcept {
  if (text.front() != 'S' && text.front() != 'T') return 0;
  std::size_t i = 1;
  while (i < text.size() &&
         ((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'A' && text[i] <= 'Z'))) {
    ++i;
  }
  return i < text.size() && text[i] == '_' ? i + 1 : 0;
}

}  // namespace

bool is_reasonable_cxx_name(std::string_view name) noexcept {
  // The longest expansion of r references: each third of them doubles and once more, which makes
  // 3^(r/3), that is 2^(0.53 r). A pack ("Dp") repeats its pattern for each element, and those are
  // less than half the bytes of the name. 2^22 bytes take about 20 ms.
  const auto size = static_cast<unsigned>(std::bit_width(name.size()));
  std::size_t bits = 100 * size;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (reference_size(name.substr(i)) != 0) bits += 53;
    if (name.substr(i).starts_with("Dp")) bits += 100 * (size - 1);
  }
  return name.size() <= kMostMangled && bits <= 2200;
}

std::optional<std::string> demangle(std::string_view name) {
  const std::size_t tail = std::min(name.find('@'), name.size());
  const std::string_view mangled = name.substr(0, tail);
  if (mangled.size() > kMostMangled) return std::nullopt;
  std::optional<std::string> text;
  if (mangled.starts_with("_R")) {
    text = RustSymbol::demangle(mangled);
  } else if (mangled.starts_with("_Z")) {
    text = demangle_rust_legacy(mangled);
    if (!text) text = demangle_cxx(mangled);
  }
  if (!text || text->size() > kMostDemangled) return std::nullopt;
  return *std::move(text) + std::string(name.substr(tail));
}

}  // namespace perfmap
