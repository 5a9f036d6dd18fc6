// SPDX-License-Identifier: MIT
#include "pypylog/pypy_lines.hpp"

#include <algorithm>
#include <charconv>

#include "perfmap/pypylog.hpp"

namespace perfmap {
namespace {

constexpr auto kNowhere = std::string_view::npos;

/// Reads and removes the number at the start of `text`; false if there is none. Base 0: hexadecimal
/// after 0x, else decimal.
template <class Value>
bool take_number(std::string_view& text, Value& value, int base) noexcept {
  const bool has_prefix = base == 0 && text.starts_with("0x");
  const char* const begin = text.data() + (has_prefix ? 2 : 0);
  if (base == 0) base = has_prefix ? 16 : 10;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// A hexadecimal number, with or without 0x.
bool take_address(std::string_view& text, Address& address) noexcept {
  take(text, "0x");
  return take_number(text, address, 16);
}

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == kNowhere) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The number after the first `mark` in the text, or 0.
std::uint64_t number_behind(std::string_view text, std::string_view mark) noexcept {
  const std::size_t found = text.find(mark);
  std::uint64_t number = 0;
  if (found == kNowhere) return 0;
  text.remove_prefix(found + mark.size());
  return take_number(text, number, 0) ? number : 0;
}

/// The number if the rest of a name is only that, or has a blank after it.
std::optional<std::uint64_t> take_id(std::string_view& rest) noexcept {
  std::uint64_t id = 0;
  const bool is_id = take_number(rest, id, 0) && (rest.empty() || rest.front() == ' ');
  return is_id ? std::optional(id) : std::nullopt;
}

bool is_word(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_';
  });
}

/// Reads and removes the number at the start of `text`; 0 if there is none.
std::uint32_t take_line_number(std::string_view& text) noexcept {
  std::uint32_t number = 0;
  return take_number(text, number, 10) ? number : 0;
}

/// Removes the text from "~#12 FOR_ITER" on, and returns its last word.
std::string_view take_opcode(std::string_view& text, std::string_view mark) noexcept {
  const std::size_t at = text.rfind(mark);
  if (at == kNowhere) return {};
  std::string_view rest = text.substr(at + mark.size());
  text = text.substr(0, at);
  take_line_number(rest);
  return rest.empty() ? rest : rest.substr(1);
}

/// "<code object f. file '/tmp/t.py'. line 8> #12 FOR_ITER"
bool parse_code_object(std::string_view text, PypyPlace& place) noexcept {
  constexpr std::string_view kFile = ". file '";
  constexpr std::string_view kLine = "'. line ";
  if (!take(text, "<code object ")) return false;
  const std::string_view opcode = take_opcode(text, "> #");
  const std::size_t file = text.find(kFile);
  const std::size_t line = text.rfind(kLine);
  if (file == kNowhere || line == kNowhere || line < file) return false;
  std::string_view number = text.substr(line + kLine.size());
  place = {.function = text.substr(0, file),
           .file = text.substr(file + kFile.size(), line - file - kFile.size()),
           .opcode = opcode};
  place.first_line = place.line = take_line_number(number);
  return true;
}

}  // namespace

LoopName parse_loop_name(std::string_view name) noexcept {
  LoopName parsed{.is_bridge = name.starts_with("bridge")};
  if (take(name, "Loop ")) {
    parsed.id = take_id(name);
    name = trimmed(name);
    // What follows decides which parenthesis closes the place.
    if (parsed.id && take(name, "(")) parsed.place = name.substr(0, name.rfind(')'));
  } else if (take(name, "bridge out of Guard ") || take(name, "bridge ")) {
    parsed.id = take_id(name);
  }
  return parsed;
}

std::string_view event_name(std::string_view line) noexcept {
  line = trimmed(line);
  std::size_t from = 0;
  if (line.starts_with("Loop ")) {
    // Comments and places may contain parentheses: the first one followed by blanks counts.
    const std::size_t open = line.find('(');
    const std::size_t close = open == kNowhere ? 0 : line.find(") ", open);
    if (close == kNowhere) return line;
    from = close;
  }
  for (std::size_t mark = line.find('#', from); mark != kNowhere; mark = line.find('#', mark + 1)) {
    if (mark == 0 || line[mark - 1] == ' ' || line[mark - 1] == '\t') {
      return trimmed(line.substr(0, mark));
    }
  }
  return line;
}

std::optional<PlacedLine> parse_placed_line(std::string_view line) noexcept {
  constexpr std::string_view kHas = " has address ";
  const std::size_t has = line.rfind(kHas);
  if (has == kNowhere || has == 0) return std::nullopt;
  std::string_view rest = line.substr(has + kHas.size());
  PlacedLine placed{line.substr(0, has)};
  const bool is_placed =
      take_address(rest, placed.begin) && take(rest, " to ") && take_address(rest, placed.end);
  if (!is_placed) return std::nullopt;
  if (take(rest, " (bootstrap ")) take_address(rest, placed.bootstrap);
  return placed;
}

std::optional<PartLine> parse_part_line(std::string_view line) noexcept {
  const std::size_t colon = line.rfind(": 0x");
  if (colon == kNowhere) return std::nullopt;
  std::string_view rest = line.substr(colon + 4);
  PartLine parsed{trimmed(line.substr(0, colon))};
  if (!take_number(rest, parsed.address, 16) || !rest.empty()) return std::nullopt;
  return parsed;
}

std::optional<OperationsTitle> parse_operations_title(std::string_view line) noexcept {
  if (!take(line, "# ")) return std::nullopt;
  const std::size_t with = line.rfind(" with ");
  if (with == kNowhere || !line.ends_with(" ops")) return std::nullopt;
  line = line.substr(0, with);
  if (line.starts_with("bridge ")) return OperationsTitle{line, "bridge"};
  const std::size_t colon = line.rfind(" : ");
  if (colon == kNowhere || !line.starts_with("Loop ")) return std::nullopt;
  return OperationsTitle{line.substr(0, colon), line.substr(colon + 3)};
}

std::optional<OperationLine> parse_operation_line(std::string_view line) noexcept {
  OperationLine parsed;
  if (take(line, "+")) {
    std::uint64_t offset = 0;
    if (!take_number(line, offset, 0) || !take(line, ": ")) return std::nullopt;
    parsed.offset = offset;
  }
  if (line == "--end of the loop--") return parsed;
  if (take(line, "debug_merge_point(")) {
    const std::size_t open = line.find('\'');
    const std::size_t close = line.rfind('\'');
    if (open >= close) return std::nullopt;
    parsed.operation = "debug_merge_point";
    parsed.place = line.substr(open + 1, close - open - 1);
    return parsed;
  }
  const std::size_t open = line.find('(');
  if (open == kNowhere) return std::nullopt;
  parsed.operation = line.substr(0, open);
  const std::size_t result = parsed.operation.rfind(" = ");
  if (result != kNowhere) parsed.operation.remove_prefix(result + 3);
  if (!is_word(parsed.operation)) return std::nullopt;
  if (parsed.operation.starts_with("guard_")) {
    parsed.guard = number_behind(line, "descr=<Guard");
  } else if (parsed.operation == "label" || parsed.operation == "jump") {
    parsed.token = number_behind(line, "descr=TargetToken(");
  }
  return parsed;
}

std::optional<CountLine> parse_count_line(std::string_view line) noexcept {
  using Of = CountLine::Of;
  CountLine parsed;
  if (take(line, "TargetToken(")) {
    parsed.of = Of::label;
  } else if (take(line, "bridge ")) {
    parsed.of = Of::bridge;
  } else if (!take(line, "entry ")) {
    return std::nullopt;
  }
  const bool is_count = take_number(line, parsed.id, 0) &&
                        take(line, parsed.of == Of::label ? "):" : ":") &&
                        take_number(line, parsed.count, 0) && line.empty();
  return is_count ? std::optional(parsed) : std::nullopt;
}

std::optional<CodeDumpLine> parse_code_line(std::string_view line) noexcept {
  CodeDumpLine parsed;
  std::uint64_t offset = 0;
  const bool is_code = take(line, "CODE_DUMP @") && take_number(line, parsed.address, 16) &&
                       take(line, " +") && take_number(line, offset, 0) &&
                       !__builtin_add_overflow(parsed.address, offset, &parsed.address);
  parsed.hex = trimmed(line);
  return is_code && !parsed.hex.empty() ? std::optional(parsed) : std::nullopt;
}

PypyPlace parse_pypy_place(std::string_view text) noexcept {
  PypyPlace place{.function = text};
  if (parse_code_object(text, place)) return place;
  const std::string_view opcode = take_opcode(text, "~#");
  const std::size_t semicolon = text.find(';');
  const std::size_t colon = text.rfind(':');
  if (semicolon == 0 || semicolon == kNowhere || colon == kNowhere || colon < semicolon) {
    return place;
  }
  std::string_view lines = text.substr(colon + 1);
  place.first_line = place.line = take_line_number(lines);
  if (take(lines, "-")) place.line = take_line_number(lines);
  place.function = text.substr(0, semicolon);
  place.file = text.substr(semicolon + 1, colon - semicolon - 1);
  place.opcode = opcode;
  return place;
}

}  // namespace perfmap
