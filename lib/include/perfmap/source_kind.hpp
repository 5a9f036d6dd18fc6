#pragma once

#include <bit>
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

/// The byte order of what is a jitdump but for its magic number: the rest of its header makes
/// sense, and a record follows it. Nothing for anything else.
PERFMAP_API std::optional<std::endian> order_without_magic(std::string_view bytes) noexcept;

/// Whether this is a jitdump of whose magic number one byte is wrong, which detect_kind() takes for
/// a perf map.
PERFMAP_API bool is_damaged_jitdump(std::string_view bytes) noexcept;

/// Whether this is no text, of which detect_kind() says perf map, too: many of the first 4096 bytes
/// are control characters, and none of their lines is one of a map. Zeros at the beginning, as a
/// file has that was truncated under its writer, do not count.
PERFMAP_API bool is_binary(std::string_view bytes) noexcept;

/// "perf map", "jitdump", … for messages.
PERFMAP_API std::string_view to_string(SourceKind kind) noexcept;

/// "perf-map", "jitdump", "pypylog", "json": the kinds that a user may insist on.
PERFMAP_API std::optional<SourceKind> parse_kind(std::string_view name) noexcept;

}  // namespace perfmap
