#include "pypylog/pypy_lines.hpp"

#include <algorithm>
#include <charconv>

#include "perfmap/compiled_loops.hpp"

namespace perfmap {

namespace {

using Number = std::optional<std::uint64_t>;

/// The number that `text` begins with, which it loses; hexadecimal behind 0x.
Number take_number(std::string_view& text) noexcept {
  const bool hex = text.starts_with("0x");
  const char* const begin = text.data() + (hex ? 2 : 0);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// The same of a number that is always hexadecimal.
Number take_address(std::string_view& text) noexcept {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The number behind the first `mark` in the text, or 0.
std::uint64_t number_behind(std::string_view text, std::string_view mark) noexcept {
  const std::size_t found = text.find(mark);
  if (found == std::string_view::npos) return 0;
  text.remove_prefix(found + mark.size());
  return take_number(text).value_or(0);
}

/// What the parentheses behind "Loop N " hold; where they close is told by what follows.
std::string_view place_in(std::string_view rest) noexcept {
  rest = trimmed(rest);
  if (!rest.starts_with('(')) return {};
  const std::size_t close = rest.rfind(')');
  return close == std::string_view::npos ? rest.substr(1) : rest.substr(1, close - 1);
}

bool is_word(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '_';
  });
}

}  // namespace

LoopName parse_loop_name(std::string_view name) noexcept {
  std::string_view rest = name;
  if (take(rest, "Loop ")) {
    const Number id = take_number(rest);
    if (id && (rest.empty() || rest.front() == ' ')) return {false, id, place_in(rest)};
    return {};
  }
  LoopName bridge{.is_bridge = name.starts_with("bridge")};
  if (take(rest, "bridge out of Guard ") || take(rest, "bridge ")) {
    const Number id = take_number(rest);
    if (id && (rest.empty() || rest.front() == ' ')) bridge.id = id;
  }
  return bridge;
}

std::string_view event_name(std::string_view line) noexcept {
  line = trimmed(line);
  std::size_t from = 0;
  if (line.starts_with("Loop ")) {
    // A comment may hold parentheses, and so may the place: the first that blanks follow counts.
    const std::size_t open = line.find('(');
    const std::size_t close = open == std::string_view::npos ? open : line.find(") ", open);
    if (open != std::string_view::npos && close == std::string_view::npos) return line;
    if (close != std::string_view::npos) from = close;
  }
  for (std::size_t mark = line.find('#', from); mark != std::string_view::npos;
       mark = line.find('#', mark + 1)) {
    if (mark == 0 || line[mark - 1] == ' ' || line[mark - 1] == '\t')
      return trimmed(line.substr(0, mark));
  }
  return line;
}

std::optional<PlacedLine> parse_placed_line(std::string_view line) noexcept {
  constexpr std::string_view kHas = " has address ";
  const std::size_t has = line.rfind(kHas);
  if (has == std::string_view::npos || has == 0) return std::nullopt;
  std::string_view rest = line.substr(has + kHas.size());
  const Number begin = take_address(rest);
  if (!begin || !take(rest, " to ")) return std::nullopt;
  const Number end = take_address(rest);
  if (!end) return std::nullopt;
  const bool has_bootstrap = take(rest, " (bootstrap ");
  const Number bootstrap = has_bootstrap ? take_address(rest) : Number();
  return PlacedLine{line.substr(0, has), *begin, *end, bootstrap.value_or(0)};
}

std::optional<PartLine> parse_part_line(std::string_view line) noexcept {
  const std::size_t colon = line.rfind(": 0x");
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(colon + 2);
  const Number address = take_number(rest);
  if (!address || !rest.empty()) return std::nullopt;
  return PartLine{trimmed(line.substr(0, colon)), *address};
}

std::optional<OperationsTitle> parse_operations_title(std::string_view line) noexcept {
  if (!take(line, "# ")) return std::nullopt;
  const std::size_t with = line.rfind(" with ");
  if (with == std::string_view::npos || !line.ends_with(" ops")) return std::nullopt;
  line = line.substr(0, with);
  if (line.starts_with("bridge ")) return OperationsTitle{line, "bridge"};
  const std::size_t colon = line.rfind(" : ");
  if (colon == std::string_view::npos || !line.starts_with("Loop ")) return std::nullopt;
  return OperationsTitle{line.substr(0, colon), line.substr(colon + 3)};
}

std::optional<OperationLine> parse_operation_line(std::string_view line) noexcept {
  OperationLine parsed;
  if (take(line, "+")) {
    parsed.offset = take_number(line);
    if (!parsed.offset || !take(line, ": ")) return std::nullopt;
  }
  if (take(line, "debug_merge_point(")) {
    const std::size_t open = line.find('\'');
    const std::size_t close = line.rfind('\'');
    if (open >= close) return std::nullopt;
    parsed.operation = "debug_merge_point";
    parsed.place = line.substr(open + 1, close - open - 1);
    return parsed;
  }
  const std::size_t open = line.find('(');
  if (open == std::string_view::npos) return std::nullopt;
  parsed.operation = line.substr(0, open);
  const std::size_t result = parsed.operation.rfind(" = ");
  if (result != std::string_view::npos) parsed.operation.remove_prefix(result + 3);
  if (!is_word(parsed.operation)) return std::nullopt;
  if (parsed.operation.starts_with("guard_")) {
    parsed.guard = number_behind(line, "descr=<Guard");
  } else if (parsed.operation == "label" || parsed.operation == "jump") {
    parsed.token = number_behind(line, "descr=TargetToken(");
  }
  return parsed;
}

std::optional<CountLine> parse_count_line(std::string_view line) noexcept {
  CountLine parsed;
  if (take(line, "TargetToken(")) {
    parsed.of = CountLine::Of::label;
  } else if (take(line, "bridge ")) {
    parsed.of = CountLine::Of::bridge;
  } else if (!take(line, "entry ")) {
    return std::nullopt;
  }
  const Number id = take_number(line);
  if (parsed.of == CountLine::Of::label && !take(line, ")")) return std::nullopt;
  if (!id || !take(line, ":")) return std::nullopt;
  const Number count = take_number(line);
  if (!count || !line.empty()) return std::nullopt;
  parsed.id = *id;
  parsed.count = *count;
  return parsed;
}

std::optional<CodeDumpLine> parse_code_line(std::string_view line) noexcept {
  if (!take(line, "CODE_DUMP @")) return std::nullopt;
  CodeDumpLine parsed;
  const auto [end, error] =
      std::from_chars(line.data(), line.data() + line.size(), parsed.address, 16);
  if (error != std::errc()) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (!take(line, " +")) return std::nullopt;
  const Number offset = take_number(line);
  if (!offset || __builtin_add_overflow(parsed.address, *offset, &parsed.address)) {
    return std::nullopt;
  }
  parsed.hex = trimmed(line);
  if (parsed.hex.empty()) return std::nullopt;
  return parsed;
}

namespace {

/// The number that stands at the beginning of `text`, which it loses, or 0.
std::uint32_t take_line_number(std::string_view& text) noexcept {
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
  take_line_number(rest);
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
  place.first_line = place.line = take_line_number(number);
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
  place.first_line = place.line = take_line_number(lines);
  if (lines.starts_with('-')) {
    lines.remove_prefix(1);
    place.line = take_line_number(lines);
  }
  place.function = rest.substr(0, semicolon);
  place.file = rest.substr(semicolon + 1, colon - semicolon - 1);
  place.opcode = opcode;
  return place;
}

}  // namespace perfmap
