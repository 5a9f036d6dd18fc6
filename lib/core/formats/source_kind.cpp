#include "perfmap/source_kind.hpp"

#include <algorithm>
#include <array>

#include "base/hex.hpp"

namespace perfmap {
namespace {

struct Magic {
  std::string_view bytes;
  SourceKind kind;
};

constexpr std::array kMagics = {
    Magic{"JiTD", SourceKind::jitdump},
    Magic{"DTiJ", SourceKind::jitdump},
    Magic{"PERFILE2", SourceKind::perf_data},
    Magic{"2ELIFREP", SourceKind::perf_data},
    Magic{"\x1f\x8b", SourceKind::gzip},
    Magic{"\xfd"
          "7zXZ",
          SourceKind::xz},
    Magic{"\x28\xb5\x2f\xfd", SourceKind::zstd},
    Magic{"BZh", SourceKind::bzip2},
};

/// "[1a2b3c] {category", after an ANSI colour if PyPy wrote to a terminal.
bool opens_section(std::string_view text) noexcept {
  if (text.starts_with("\x1b[")) text.remove_prefix(std::min(text.find('m') + 1, text.size()));
  if (!text.starts_with('[')) return false;
  text.remove_prefix(1);
  std::size_t digits = 0;
  while (digits < text.size() && hex_digit(text[digits]) >= 0) ++digits;
  return digits != 0 && text.substr(digits).starts_with("] {");
}

}  // namespace

SourceKind detect_kind(std::string_view bytes) noexcept {
  bytes = bytes.substr(0, 4096);
  for (const Magic& magic : kMagics) {
    if (bytes.starts_with(magic.bytes)) return magic.kind;
  }
  if (opens_section(bytes)) return SourceKind::pypylog;
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool brace = first != std::string_view::npos && bytes[first] == '{';
  return brace ? SourceKind::json : SourceKind::perf_map;
}

std::string_view to_string(SourceKind kind) noexcept {
  constexpr std::array<std::string_view, 9> kNames = {
      "perf map",  "JSON",    "jitdump",   "perf.data recording", "PYPYLOG",
      "gzip data", "xz data", "zstd data", "bzip2 data"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<SourceKind> parse_kind(std::string_view name) noexcept {
  if (name == "perf-map") return SourceKind::perf_map;
  if (name == "jitdump") return SourceKind::jitdump;
  if (name == "pypylog") return SourceKind::pypylog;
  if (name == "json") return SourceKind::json;
  return std::nullopt;
}

}  // namespace perfmap
