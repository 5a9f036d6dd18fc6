// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>

#include "perfmap/profile/module.hpp"

namespace {

using namespace perfmap;

constexpr std::size_t kMaxText = std::size_t{64} << 10;
/// Processor time for one name; the slowest known name takes a tenth of a second.
constexpr double kMaxSeconds = 5;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Requires that both fail, or that `other` is `one` followed by `appended`.
void require_same(const std::optional<std::string>& one, const std::optional<std::string>& other,
                  std::string_view appended) {
  require(one.has_value() == other.has_value());
  if (one) require(*one + std::string(appended) == *other);
}

}  // namespace

/// For any name, time and text are bounded. A name is demangled the same with a note or a version
/// after it, and not at all with a prefix.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string name(reinterpret_cast<const char*>(data), size);
  const std::clock_t begin = std::clock();
  const auto symbol = demangle(name);
  const auto code = demangle_code(name);
  require(static_cast<double>(std::clock() - begin) < kMaxSeconds * CLOCKS_PER_SEC);
  if (symbol) require(symbol->size() <= kMaxText + size);
  if (code) {
    require(code->size() <= kMaxText + size);
    require(*code != name);
  }
  if (name.find(' ') == name.npos) {
    require_same(symbol, code, "");
    require_same(code, demangle_code(name + " [tier1]"), " [tier1]");
  }
  if (name.find('@') == name.npos) require_same(symbol, demangle(name + "@plt"), "@plt");
  require(!demangle_code("JS:" + name));
  return 0;
}
