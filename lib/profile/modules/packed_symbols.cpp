#include "modules/packed_symbols.hpp"

#include <cstdint>
#include <utility>

#include "compression/expansion.hpp"

namespace perfmap {

std::optional<std::string> unpack_symbols(std::string_view xz) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{128} << 20;
  Expansion out(kMostBytes);
  if (!expand_first_xz(xz, out)) return std::nullopt;
  return std::move(out).take();
}

}  // namespace perfmap
