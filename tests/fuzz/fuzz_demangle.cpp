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
/// Processor time for one name, of which the slowest known takes a tenth of a second.
constexpr double kMaxSeconds = 5;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Both give the same text, or none.
void require_same(const std::optional<std::string>& one, const std::optional<std::string>& other,
                  std::string_view behind) {
  require(one.has_value() == other.has_value());
  if (one) require(*one + std::string(behind) == *other);
}

}  // namespace

/// Whatever the name, it is read in bounded time, and the text has a bound. A name is read the same
/// with a note or a version behind it, and not at all with something before it.
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
