// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "base/cursor.hpp"
#include "base/filler.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "jitdump/jitdump_records.hpp"
#include "map/map_scan.hpp"
#include "perfmap/input.hpp"

namespace perfmap {
namespace {

struct Magic {
  std::string_view bytes;
  SourceKind kind;
};

constexpr std::array kMagics = {
    Magic{"JiTD", SourceKind::jitdump},
    Magic{"DTiJ", SourceKind::jitdump},
    Magic{"ImageLoad;", SourceKind::image_list},
    Magic{"PERFILE2", SourceKind::perf_data},
    Magic{"2ELIFREP", SourceKind::perf_data},
    Magic{"\x1f\x8b", SourceKind::gzip},
    Magic{"\xfd"
          "7zXZ",
          SourceKind::xz},
    Magic{"\x28\xb5\x2f\xfd", SourceKind::zstd},
    Magic{"BZh", SourceKind::bzip2},
};

std::size_t digits_in(std::string_view text) noexcept {
  std::size_t digits = 0;
  while (digits < text.size() && hex_digit(text[digits]) >= 0) ++digits;
  return digits;
}

/// Removes the colour codes that PyPy writes to a terminal.
std::string_view after_colours(std::string_view text) noexcept {
  while (text.starts_with("\x1b[")) {
    const std::size_t end = text.find_first_not_of("0123456789;", 2);
    if (end == std::string_view::npos || text[end] != 'm') break;
    text.remove_prefix(end + 1);
  }
  return text;
}

/// Removes the "N# " of a log with several threads.
std::string_view after_thread(std::string_view text) noexcept {
  const std::size_t end = text.find_first_not_of("0123456789");
  const bool is_prefix = end != 0 && end != std::string_view::npos && end <= 10;
  return is_prefix && text.substr(end).starts_with("# ") ? text.substr(end + 2) : text;
}

/// "[1a2b3c] {category" or "[1a2b3c] category}", the form that PyPy writes.
bool is_section_line(std::string_view line) noexcept {
  line = after_colours(after_thread(after_colours(line)));
  if (!line.starts_with('[')) return false;
  const std::size_t digits = digits_in(line.substr(1));
  line.remove_prefix(1 + digits);
  if (digits == 0 || !line.starts_with("] ")) return false;
  line.remove_prefix(2);
  const bool opens = line.starts_with('{');
  if (opens) line.remove_prefix(1);
  const auto end =
      std::find_if_not(line.begin(), line.end(), [](char c) { return is_word(c) || c == '-'; });
  return end != line.begin() && (opens || (end != line.end() && *end == '}'));
}

/// A log may begin with the rest of a section. Lines of a section never look like perf map lines.
bool is_log(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (is_section_line(line)) return true;
    LineFault fault;
    if (read_map_line(line, 0, fault)) return false;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return false;
}

/// Whether the version exists or may exist in the future, and the header fits into the bytes.
bool has_plausible_header(std::string_view bytes, std::endian order) noexcept {
  constexpr std::uint32_t kMaxVersion = 2;
  constexpr std::uint32_t kMaxSize = 4096;
  if (bytes.size() < JitdumpHeader::kSize) return false;
  Cursor cursor(bytes.substr(4), order);
  const std::uint32_t version = cursor.u32();
  const std::uint32_t size = cursor.u32();
  return version >= 1 && version <= kMaxVersion && size >= JitdumpHeader::kSize &&
         size <= std::min<std::size_t>(kMaxSize, bytes.size());
}

/// Whether the magic number is correct except for one byte.
bool is_nearly(std::string_view magic, std::string_view bytes, std::endian order) noexcept {
  if (!has_plausible_header(bytes, order)) return false;
  return std::inner_product(magic.begin(), magic.end(), bytes.begin(), 0, std::plus<>(),
                            std::not_equal_to<>()) == 1;
}

}  // namespace

SourceKind detect_kind(std::string_view bytes) noexcept {
  bytes = bytes.substr(0, 4096);
  for (const Magic& magic : kMagics) {
    if (bytes.starts_with(magic.bytes)) return magic.kind;
  }
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  // JSON has no control bytes, but other bytes may begin like it by accident.
  if (first != std::string_view::npos && bytes[first] == '{' && !is_binary(bytes))
    return SourceKind::json;
  return is_log(bytes) ? SourceKind::pypylog : SourceKind::perf_map;
}

std::optional<std::endian> order_without_magic(std::string_view bytes) noexcept {
  for (const std::endian order : {std::endian::little, std::endian::big}) {
    if (!has_plausible_header(bytes, order)) continue;
    const std::uint64_t end = Cursor(bytes.substr(8), order).u32();
    const auto record = read_prefix(bytes, end, order);
    if (record && is_plausible(*record, {order, 0})) return order;
  }
  return std::nullopt;
}

bool is_damaged_jitdump(std::string_view bytes) noexcept {
  return is_nearly("DTiJ", bytes, std::endian::little) ||
         is_nearly("JiTD", bytes, std::endian::big);
}

bool is_binary(std::string_view bytes) noexcept {
  bytes.remove_prefix(std::min(bytes.find_first_not_of('\0'), bytes.size()));
  bytes = bytes.substr(0, 4096);
  const auto is_control = [](char byte) {
    return static_cast<unsigned char>(byte) < 0x20 && byte != '\t' && byte != '\r' &&
           byte != '\n' && byte != '\x1b';
  };
  const auto controls = std::count_if(bytes.begin(), bytes.end(), is_control);
  if (static_cast<std::size_t>(controls) * 16 <= bytes.size()) return false;
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    LineFault fault;
    if (read_map_line(line, 0, fault) || is_filler(line)) return false;
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
  }
  return true;
}

std::string_view to_string(SourceKind kind) noexcept {
  constexpr std::array<std::string_view, 10> kNames = {
      "perf map",  "JSON",    "jitdump",   "perf.data recording", "PyPy log", "list of .NET images",
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
