#include "perfmap/expanded_input.hpp"

#include "compression/expansion.hpp"
#include "perfmap/source_kind.hpp"

namespace perfmap {
namespace {

using Expand = bool (*)(std::string_view bytes, Expansion& out);

Expand expander_of(SourceKind kind) noexcept {
  switch (kind) {
    case SourceKind::gzip: return expand_gzip;
    case SourceKind::xz: return expand_xz;
    case SourceKind::zstd: return expand_zstd;
    default: return nullptr;
  }
}

}  // namespace

bool is_expandable(std::string_view bytes) noexcept {
  return expander_of(detect_kind(bytes)) != nullptr;
}

Result<Input> expanded(Input input, std::uint64_t most) {
  const SourceKind kind = detect_kind(input.text());
  const Expand expand = expander_of(kind);
  if (expand == nullptr) return input;
  Expansion out(most);
  const bool done = expand(input.text(), out);
  const auto failure = [&](Errc code, const std::string& why) {
    return Failure(Error{code, "cannot expand " + input.name() + ": " + why, 0, {}});
  };
  if (input.was_truncated()) return failure(Errc::io, "it was truncated while it was read");
  if (out.exceeds()) {
    return failure(Errc::too_large,
                   "more than " + std::to_string(most >> 20) + " MiB: unpack it first");
  }
  if (!done) {
    return failure(Errc::bad_format,
                   "its " + std::string(to_string(kind)) + " is damaged or cut off");
  }
  return Input::from_text(std::move(out).take(), input.name());
}

}  // namespace perfmap
