#include <charconv>

#include "perfmap/compiled_loops.hpp"

namespace perfmap {
namespace {

/// The number that stands at the beginning of `text`, which it loses, or 0.
std::uint32_t take_number(std::string_view& text) noexcept {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// The last word of "…~#12 FOR_ITER", which the text loses with what is before it.
std::string_view take_opcode(std::string_view& text, std::string_view mark) noexcept {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + mark.size());
  text = text.substr(0, at);
  take_number(rest);
  return rest.empty() ? rest : rest.substr(1);
}

/// "<code object f. file '/tmp/t.py'. line 8> #12 FOR_ITER"
bool parse_code_object(std::string_view text, PypyPlace& place) noexcept {
  constexpr std::string_view kBegin = "<code object ";
  constexpr std::string_view kFile = ". file '";
  constexpr std::string_view kLine = "'. line ";
  if (!text.starts_with(kBegin)) return false;
  place.opcode = take_opcode(text, "> #");
  const std::size_t file = text.find(kFile);
  const std::size_t line = text.rfind(kLine);
  if (file == std::string_view::npos || line == std::string_view::npos || line < file) return false;
  place.function = text.substr(kBegin.size(), file - kBegin.size());
  place.file = text.substr(file + kFile.size(), line - file - kFile.size());
  std::string_view number = text.substr(line + kLine.size());
  place.first_line = place.line = take_number(number);
  return true;
}

}  // namespace

PypyPlace parse_pypy_place(std::string_view text) noexcept {
  PypyPlace place{.function = text};
  if (parse_code_object(text, place)) return place;
  place = {.function = text};
  std::string_view rest = text;
  const std::string_view opcode = take_opcode(rest, "~#");
  const std::size_t semicolon = rest.find(';');
  const std::size_t colon = rest.rfind(':');
  if (semicolon == 0 || semicolon == std::string_view::npos || colon == std::string_view::npos ||
      colon < semicolon) {
    return place;
  }
  std::string_view lines = rest.substr(colon + 1);
  place.first_line = place.line = take_number(lines);
  if (lines.starts_with('-')) {
    lines.remove_prefix(1);
    place.line = take_number(lines);
  }
  place.function = rest.substr(0, semicolon);
  place.file = rest.substr(semicolon + 1, colon - semicolon - 1);
  place.opcode = opcode;
  return place;
}

}  // namespace perfmap
