#pragma once

#include <optional>
#include <string_view>

#include "perfmap/names.hpp"

namespace perfmap::names {

/// Each knows the names of one family of runtimes, and answers nothing where a name is none of
/// theirs. decode_name() asks them in order: those with a clear mark first.
std::optional<DecodedName> decode_v8(std::string_view raw);
std::optional<DecodedName> decode_hotspot(std::string_view raw);
std::optional<DecodedName> decode_cpython(std::string_view raw);
std::optional<DecodedName> decode_dotnet(std::string_view raw);
std::optional<DecodedName> decode_jsc(std::string_view raw);
std::optional<DecodedName> decode_spidermonkey(std::string_view raw);
std::optional<DecodedName> decode_marked(std::string_view raw);  // Erlang, PHP, HHVM, QEMU, …

/// Splits "PATH:LINE" or "PATH:LINE:COL" off the end of `text`: what precedes it stays in `path`.
struct Place {
  std::string_view path;
  std::uint64_t line = 0;
  std::uint64_t column = 0;
};
std::optional<Place> split_place(std::string_view text);

std::optional<std::uint64_t> parse_decimal(std::string_view text);

}  // namespace perfmap::names
