#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/report.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {
namespace {

using Json = nlohmann::ordered_json;

/// Files and names are bytes; what is not UTF-8 becomes U+FFFD.
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

std::string_view sarif_level(Severity severity) noexcept {
  return severity == Severity::info ? "note" : to_string(severity);
}

/// SARIF artifact locations are URIs.
std::string uri_of(std::string_view path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '.' || c == '-' || c == '_' || c == '~';
    if (plain) {
      uri += c;
    } else {
      uri += '%';
      uri += "0123456789ABCDEF"[static_cast<unsigned char>(c) >> 4];
      uri += "0123456789ABCDEF"[c & 15];
    }
  }
  return uri;
}

/// Columns in code points, a byte that is not UTF-8 counted as one.
std::uint64_t code_point_column(const Diagnostic& diagnostic, std::string_view input) {
  const std::uint64_t skipped = diagnostic.where.column == 0 ? 0 : diagnostic.where.column - 1;
  if (diagnostic.where.offset > input.size() || skipped > diagnostic.where.offset) {
    return skipped + 1;
  }
  std::string_view before = input.substr(diagnostic.where.offset - skipped, skipped);
  std::uint64_t column = 1;
  while (!before.empty()) {
    before.remove_prefix(std::max<std::size_t>(utf8_length(before), 1));
    ++column;
  }
  return column;
}

Json sarif_rules() {
  Json rules = Json::array();
  for (const Rule* rule : rule::all()) {
    rules.push_back({{"id", rule->id},
                     {"shortDescription", {{"text", rule->summary}}},
                     {"fullDescription", {{"text", explanation(*rule)}}},
                     {"defaultConfiguration", {{"level", sarif_level(rule->severity)}}}});
  }
  return rules;
}

Json physical_location(const FileFindings& file, Json region) {
  return {{"physicalLocation",
           {{"artifactLocation", {{"uri", uri_of(file.file)}}}, {"region", std::move(region)}}}};
}

Json sarif_location(const FileFindings& file, std::uint64_t line, std::uint64_t column) {
  Json region = {{"startLine", std::max<std::uint64_t>(line, 1)}};
  if (column != 0) region["startColumn"] = column;
  return physical_location(file, std::move(region));
}

/// A place in a file without lines is its offset.
Json sarif_location(const Diagnostic& diagnostic, const FileFindings& file) {
  if (diagnostic.where.line == 0) {
    return physical_location(file, {{"byteOffset", diagnostic.where.offset}});
  }
  return sarif_location(file, diagnostic.where.line, code_point_column(diagnostic, file.input));
}

Json sarif_result(const Diagnostic& diagnostic, const FileFindings& file) {
  Json result = {{"ruleId", diagnostic.rule->id},
                 {"ruleIndex", diagnostic.rule->ordinal},
                 {"level", sarif_level(diagnostic.rule->severity)},
                 {"message", {{"text", diagnostic.message}}}};
  result["locations"] = Json::array({sarif_location(diagnostic, file)});
  if (diagnostic.related_line != 0) {
    result["relatedLocations"] = Json::array({sarif_location(file, diagnostic.related_line, 0)});
  }
  return result;
}

}  // namespace

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

std::string to_sarif(const std::vector<FileFindings>& files, std::string_view version) {
  Json results = Json::array();
  for (const FileFindings& file : files) {
    for (const Diagnostic& one : file.findings->items()) {
      results.push_back(sarif_result(one, file));
    }
  }
  const Json driver = {{"name", "perfmap"}, {"version", version}, {"rules", sarif_rules()}};
  const Json run = {
      {"tool", {{"driver", driver}}}, {"columnKind", "unicodeCodePoints"}, {"results", results}};
  return dump({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
               {"version", "2.1.0"},
               {"runs", Json::array({run})}});
}

}  // namespace perfmap
