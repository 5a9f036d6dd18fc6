#include "stacks/gunzip.hpp"

#include <utility>

#include "compression/expansion.hpp"

namespace perfmap {

bool is_gzip(std::string_view bytes) noexcept { return bytes.starts_with("\x1f\x8b"); }

Result<std::string> gunzip(std::string_view bytes, std::uint64_t most) {
  Expansion text(most);
  const bool done = expand_gzip(bytes, text);
  if (text.exceeds()) {
    return Failure(Error{Errc::too_large,
                         "it is more than " + std::to_string(most) + " bytes when expanded",
                         0,
                         {}});
  }
  if (!done) {
    return Failure(Error{Errc::bad_format, "its compressed data is damaged or cut off", 0, {}});
  }
  return std::move(text).take();
}

}  // namespace perfmap
