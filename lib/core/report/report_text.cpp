#include <algorithm>

#include "base/text.hpp"
#include "perfmap/report.hpp"
#include "perfmap/rules.hpp"
#include "perfmap/visible.hpp"

namespace perfmap {
namespace {

/// A caret wants its surroundings, not a line of a megabyte.
constexpr std::size_t kExcerpt = 160;

std::string_view compiler_word(Severity severity) noexcept {
  return severity == Severity::info ? "note" : to_string(severity);
}

/// "+0x28" where the input has no lines.
std::string offset_text(const Location& where) { return "+0x" + to_hex(where.offset); }

std::string place(const Location& where, std::string_view file) {
  std::string text;
  append_visible(text, file);
  text += ':';
  if (where.line == 0) return text + offset_text(where);
  text += std::to_string(where.line);
  text += ':';
  text += std::to_string(where.column);
  return text;
}

/// How many columns of a terminal the visible form takes, wide characters counted as one.
std::size_t width_of(std::string_view visible) noexcept {
  return static_cast<std::size_t>(std::count_if(visible.begin(), visible.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

/// The rules PM060 to PM070 are about the file, and these about all lines: no line is to blame.
bool is_about_file(const Rule& rule) noexcept {
  return (rule.id >= "PM060" && rule.id <= "PM070") || rule.id == rule::kDecimalSizes.id ||
         rule.id == rule::kReuseRate.id;
}

/// The line at fault and a caret below the column, each on a line of its own. Answers whether there
/// is such a line; the caret's is left open.
bool append_excerpt(std::string& out, const Diagnostic& diagnostic, std::string_view input) {
  const std::uint64_t column = diagnostic.where.column;
  if (is_about_file(*diagnostic.rule)) return false;
  if (column == 0 || diagnostic.where.offset > input.size()) return false;
  if (column - 1 > diagnostic.where.offset) return false;
  // No more of the input is looked at than is shown: lines may be long, and findings many.
  const std::size_t before = std::min<std::size_t>(column - 1, kExcerpt / 2);
  std::string_view line = input.substr(diagnostic.where.offset - before, before + kExcerpt);
  line = line.substr(0, line.find('\n', before));
  std::string visible;
  append_visible(visible, line.substr(0, before));
  const std::size_t caret = width_of(visible);
  append_visible(visible, line.substr(before, kExcerpt - before));
  out += "  " + visible + "\n  " + std::string(caret, ' ') + "^";
  return true;
}

std::string escape_workflow(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    if (!special) {
      out += c;
      continue;
    }
    out += '%';
    out += "0123456789ABCDEF"[static_cast<unsigned char>(c) >> 4];
    out += "0123456789ABCDEF"[c & 15];
  }
  return out;
}

}  // namespace

std::string_view to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::info: return "info";
    case Severity::warning: return "warning";
    case Severity::error: break;
  }
  return "error";
}

std::string to_gcc(const Diagnostic& diagnostic, std::string_view file) {
  std::string text = place(diagnostic.where, file) + ": ";
  text += compiler_word(diagnostic.rule->severity);
  text += ": ";
  append_visible(text, diagnostic.message);
  text.append(" [").append(diagnostic.rule->id).append("]\n");
  return text;
}

std::string to_text(const DumpChange& change, std::string_view file) {
  std::string text = place(Location{change.offset, 0, 0}, file) + ": ";
  append_visible(text, change.what);
  return text.append(" [").append(change.rule->id).append("]\n");
}

std::string to_pretty(const Diagnostic& diagnostic, std::string_view file, std::string_view input,
                      bool color) {
  const Severity severity = diagnostic.rule->severity;
  const std::string paint = !color                          ? ""
                            : severity == Severity::error   ? "\x1b[1;31m"
                            : severity == Severity::warning ? "\x1b[1;33m"
                                                            : "\x1b[1;36m";
  const std::string plain = color ? "\x1b[0m" : "";
  std::string text = place(diagnostic.where, file) + ": " + paint;
  text += to_string(severity);
  text += plain + ": ";
  append_visible(text, diagnostic.message);
  text.append(" [").append(diagnostic.rule->id).append("]\n");
  const bool excerpt = append_excerpt(text, diagnostic, input);
  const bool fixable = diagnostic.rule->fix == Fix::safe;
  if (fixable) text += excerpt ? " --fix mends this" : "  --fix mends this";
  if (excerpt || fixable) text += '\n';
  return text;
}

std::string to_github(const Diagnostic& diagnostic, std::string_view file) {
  const Severity severity = diagnostic.rule->severity;
  std::string text = severity == Severity::info ? "::notice" : "::";
  if (severity != Severity::info) text += to_string(severity);
  text += " file=" + escape_workflow(file, true);
  const bool has_lines = diagnostic.where.line != 0;
  if (has_lines) {
    text += ",line=" + std::to_string(diagnostic.where.line);
    text += ",col=" + std::to_string(diagnostic.where.column);
  }
  text += ",title=" + std::string(diagnostic.rule->id);
  std::string message = has_lines ? "" : offset_text(diagnostic.where) + ": ";
  append_visible(message, diagnostic.message);
  text += "::" + escape_workflow(message, false) + "\n";
  return text;
}

}  // namespace perfmap
