#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "perfmap/export.hpp"

namespace perfmap {

/// What kind of file names come from. Told by content, never by a file's name.
enum class SourceKind : std::uint8_t {
  perf_map,
  json,       ///< ours: the first byte that is not white space is `{`
  jitdump,    ///< magic in either byte order
  perf_data,  ///< PERFILE2
  pypylog,    ///< a line opens or closes a section, "[hex] {category"; none before is a map's
  gzip,
  xz,
  zstd,
  bzip2,
};

/// The kind of these bytes, of which the first 4096 are looked at. What is nothing else is a perf
/// map, and so is nothing at all.
PERFMAP_API SourceKind detect_kind(std::string_view bytes) noexcept;

/// "perf map", "jitdump", … for messages.
PERFMAP_API std::string_view to_string(SourceKind kind) noexcept;

/// "perf-map", "jitdump", "pypylog", "json": the kinds that a user may insist on.
PERFMAP_API std::optional<SourceKind> parse_kind(std::string_view name) noexcept;

}  // namespace perfmap
