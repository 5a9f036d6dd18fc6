// SPDX-License-Identifier: MIT
#include "perfmap/report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/text.hpp"

namespace perfmap {

namespace {

/// An excerpt around the caret is enough; a line may have megabytes.
constexpr std::size_t kExcerpt = 160;

std::string_view compiler_word(Severity severity) noexcept {
  return severity == Severity::info ? "note" : to_string(severity);
}

/// "+0x28", for inputs without lines.
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

/// The rules PM060 to PM070 are about the file, and the others here about all lines: no single line
/// is at fault.
bool is_about_file(const Rule& rule) noexcept {
  return (rule.id >= "PM060" && rule.id <= "PM070") || rule.id == rule::kDecimalSizes.id ||
         rule.id == rule::kReuseRate.id;
}

/// Appends the faulty line and, on a line of its own, a caret below the column. Returns whether
/// there is such a line; the caret's line has no newline yet.
bool append_excerpt(std::string& out, const Diagnostic& diagnostic, std::string_view input) {
  const std::uint64_t column = diagnostic.where.column;
  if (is_about_file(*diagnostic.rule)) return false;
  if (column == 0 || diagnostic.where.offset > input.size()) return false;
  if (column - 1 > diagnostic.where.offset) return false;
  // Only the part that is shown is read: lines may be long, and findings many.
  const std::size_t before = std::min<std::size_t>(column - 1, kExcerpt / 2);
  std::string_view line = input.substr(diagnostic.where.offset - before, before + kExcerpt);
  line = line.substr(0, line.find('\n', before));
  std::string visible;
  append_visible(visible, line.substr(0, before));
  const std::size_t caret = character_count(visible);
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

using Json = nlohmann::ordered_json;

/// Converts invalid UTF-8 in files and names to U+FFFD.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json finding(const Diagnostic& diagnostic, const std::string& file) {
  return {{"rule", diagnostic.rule->id},
          {"severity", to_string(diagnostic.rule->severity)},
          {"file", file},
          {"line", diagnostic.where.line},
          {"column", diagnostic.where.column},
          {"offset", diagnostic.where.offset},
          {"message", diagnostic.message},
          {"fixable", diagnostic.rule->fix == Fix::safe}};
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
  if (fixable) text += excerpt ? " --fix fixes this" : "  --fix fixes this";
  if (excerpt || fixable) text += '\n';
  return text;
}

std::string to_github(const Diagnostic& diagnostic, std::string_view file) {
  const Severity severity = diagnostic.rule->severity;
  std::string text = severity == Severity::info ? "::notice" : "::";
  if (severity != Severity::info) text += to_string(severity);
  text += " file=";
  append_visible(text, escape_workflow(file, true));
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

std::string to_lint_json(const std::vector<FileFindings>& files) {
  Json findings = Json::array();
  std::uint64_t counts[3] = {};
  for (const FileFindings& file : files) {
    for (const Diagnostic& one : file.findings->items()) {
      findings.push_back(finding(one, file.file));
    }
    for (const Severity severity : {Severity::info, Severity::warning, Severity::error}) {
      counts[static_cast<std::size_t>(severity)] += file.findings->total(severity);
    }
  }
  const Json summary = {{"files", files.size()},
                        {"error", counts[2]},
                        {"warning", counts[1]},
                        {"info", counts[0]},
                        {"shown", findings.size()}};
  return dump({{"schema", "perfmap.lint/1"}, {"findings", findings}, {"summary", summary}});
}

std::string to_lint_jsonl(const std::vector<FileFindings>& files) {
  std::string out;
  for (const FileFindings& file : files) {
    for (const Diagnostic& one : file.findings->items()) out += dump(finding(one, file.file));
  }
  return out;
}

}  // namespace perfmap
