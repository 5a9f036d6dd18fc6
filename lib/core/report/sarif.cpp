// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "perfmap/report.hpp"
#include "perfmap/text.hpp"

namespace perfmap {
namespace {

using Json = nlohmann::ordered_json;

std::string_view sarif_level(Severity severity) noexcept {
  return severity == Severity::info ? "note" : to_string(severity);
}

/// SARIF artifact locations are URIs.
std::string uri_of(std::string_view path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool plain = is_word(c) || c == '/' || c == '.' || c == '-' || c == '~';
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

/// In code points; an invalid byte counts as one.
std::uint64_t length_of(std::string_view text) {
  std::uint64_t length = 0;
  for (; !text.empty(); ++length) text.remove_prefix(std::max<std::size_t>(utf8_length(text), 1));
  return length;
}

std::uint64_t code_point_column(const Diagnostic& diagnostic, std::string_view input) {
  const std::uint64_t skipped = diagnostic.where.column == 0 ? 0 : diagnostic.where.column - 1;
  if (diagnostic.where.offset > input.size() || skipped > diagnostic.where.offset) {
    return skipped + 1;
  }
  return length_of(input.substr(diagnostic.where.offset - skipped, skipped)) + 1;
}

Json rules_json(std::string_view docs) {
  Json rules = Json::array();
  for (const Rule* rule : rule::all()) {
    std::string anchor(rule->id);
    std::transform(anchor.begin(), anchor.end(), anchor.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
    rules.push_back({{"id", rule->id},
                     {"name", rule->name},
                     {"shortDescription", {{"text", rule->summary}}},
                     {"fullDescription", {{"text", rule->explanation}}},
                     {"help", {{"text", rule->explanation}}},
                     {"helpUri", std::string(docs) + "/docs/diagnostics.md#" + anchor},
                     {"defaultConfiguration", {{"level", sarif_level(rule->severity)}}}});
  }
  return rules;
}

Json physical_location(const FileFindings& file, Json region) {
  return {{"physicalLocation",
           {{"artifactLocation", {{"uri", uri_of(file.file)}}}, {"region", std::move(region)}}}};
}

Json line_location(const FileFindings& file, std::uint64_t line, std::uint64_t column) {
  Json region = {{"startLine", std::max<std::uint64_t>(line, 1)}};
  if (column != 0) region["startColumn"] = column;
  return physical_location(file, std::move(region));
}

/// A location in a file without lines is an offset. GitHub shows no result without a startLine.
Json location_of(const Diagnostic& diagnostic, const FileFindings& file) {
  if (diagnostic.where.line == 0) {
    return physical_location(file, {{"startLine", 1}, {"byteOffset", diagnostic.where.offset}});
  }
  return line_location(file, diagnostic.where.line, code_point_column(diagnostic, file.input));
}

Json fix_json(const FileFindings& file, std::string_view what, Json replacements) {
  Json change = {{"artifactLocation", {{"uri", uri_of(file.file)}}},
                 {"replacements", std::move(replacements)}};
  Json fix = {{"description", {{"text", what}}}};
  fix["artifactChanges"] = Json::array({std::move(change)});
  return fix;
}

/// The whole line is replaced.
Json line_fix_json(const Diagnostic& finding, const LineChange& change, const FileFindings& file) {
  const std::string_view line = file.input.substr(change.offset, change.removed);
  const std::uint64_t number = finding.where.line;
  const bool has_end = line.ends_with('\n');
  const Json region = {{"startLine", number},
                       {"startColumn", 1},
                       {"endLine", has_end ? number + 1 : number},
                       {"endColumn", has_end ? 1 : length_of(line) + 1}};
  Json replacement = {{"deletedRegion", region}};
  if (!change.added.empty()) replacement["insertedContent"] = {{"text", change.added}};
  return fix_json(file,
                  change.added.empty() ? "Remove the line" : "Write the line as perfmap tidy does",
                  Json::array({std::move(replacement)}));
}

/// The changes of a dump by the findings that they fix.
class DumpFixes {
 public:
  explicit DumpFixes(const Jitdump& dump) {
    for_each_change(dump, [this](const DumpChange& change) { changes_.push_back(change); });
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      at_.emplace(changes_[i].offset, i);
      by_record_.emplace(changes_[i].record, i);
      if (changes_[i].rule->id == rule::kReusedIndex.id) by_index_.emplace(changes_[i].added, i);
    }
  }

  /// The changes that together fix a finding and leave the dump consistent, by offset: those of its
  /// record, and of MOVEs whose code gets another index by them.
  std::vector<const DumpChange*> of(const Diagnostic& finding) const {
    const auto [first, last] = at_.equal_range(finding.where.offset);
    const bool is_fixed = std::any_of(first, last, [&](const auto& one) {
      return changes_[one.second].rule->id == finding.rule->id;
    });
    std::vector<const DumpChange*> found;
    if (!is_fixed) return found;
    const auto [begin, end] = by_record_.equal_range(changes_[first->second].record);
    for (auto one = begin; one != end; ++one) {
      const DumpChange& change = changes_[one->second];
      if (change.rule->id != rule::kReusedIndex.id) {
        found.push_back(&change);
        continue;
      }
      const auto [same, other] = by_index_.equal_range(change.added);
      for (auto user = same; user != other; ++user) found.push_back(&changes_[user->second]);
    }
    std::sort(found.begin(), found.end(),
              [](const DumpChange* a, const DumpChange* b) { return a->offset < b->offset; });
    return found;
  }

 private:
  std::vector<DumpChange> changes_;
  std::multimap<std::uint64_t, std::size_t> at_;
  std::multimap<std::uint64_t, std::size_t> by_record_;
  std::multimap<std::string, std::size_t> by_index_;
};

Json dump_fix_json(const std::vector<const DumpChange*>& changes, const FileFindings& file) {
  Json replacements = Json::array();
  std::string what;
  for (const DumpChange* change : changes) {
    Json replacement = {
        {"deletedRegion", {{"byteOffset", change->offset}, {"byteLength", change->removed}}}};
    if (!change->added.empty()) {
      replacement["insertedContent"] = {{"binary", to_base64(change->added)}};
    }
    replacements.push_back(std::move(replacement));
    what += (what.empty() ? "" : "; ") + change->what;
  }
  return fix_json(file, what, std::move(replacements));
}

/// 64 bits FNV-1a.
std::uint64_t hash_of(std::string_view rule, std::string_view subject) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto take = [&hash](char c) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  };
  std::for_each(rule.begin(), rule.end(), take);
  take('\0');
  std::for_each(subject.begin(), subject.end(), take);
  return hash;
}

/// What a finding is about, so that the same problem is recognized in another run of the program:
/// the name of the entry, or what is wrong in a dump.
std::string subject_of(const Diagnostic& finding, std::string_view input) {
  const Location& where = finding.where;
  if (where.line == 0) return finding.message;
  if (where.offset > input.size() || where.column - 1 > where.offset) return {};
  std::string_view line = input.substr(where.offset - (where.column - 1));
  line = line.substr(0, line.find('\n'));
  // Of an entry this is the name: the first two fields differ in each run.
  for (int field = 0; field < 2; ++field) {
    const std::size_t blank = line.find_first_of(" \t,");
    if (blank == line.npos) break;
    line = line.substr(blank);
    line = line.substr(std::min(line.find_first_not_of(" \t,"), line.size()));
  }
  return std::string(line.substr(0, kMaxPortableName));
}

/// The results of one file.
class Results {
 public:
  explicit Results(const FileFindings& file) : file_(file) {
    const auto& items = file.findings->items();
    const bool is_fixable = std::any_of(items.begin(), items.end(), [](const Diagnostic& one) {
      return one.rule->fix == Fix::safe;
    });
    if (file.dump != nullptr && is_fixable) dump_fixes_.emplace(*file.dump);
  }

  Json result(const Diagnostic& diagnostic) {
    Json result = {{"ruleId", diagnostic.rule->id},
                   {"ruleIndex", diagnostic.rule->ordinal},
                   {"level", sarif_level(diagnostic.rule->severity)},
                   {"message", {{"text", diagnostic.message}}}};
    result["locations"] = Json::array({location_of(diagnostic, file_)});
    if (diagnostic.related_line != 0) {
      result["relatedLocations"] = Json::array({line_location(file_, diagnostic.related_line, 0)});
    }
    result["partialFingerprints"] = {{"perfmapFinding/v1", fingerprint(diagnostic)}};
    if (Json fix = fix_of(diagnostic); !fix.is_null()) {
      result["fixes"] = Json::array({std::move(fix)});
    }
    return result;
  }

 private:
  Json fix_of(const Diagnostic& diagnostic) const {
    if (dump_fixes_) {
      const auto changes = dump_fixes_->of(diagnostic);
      return changes.empty() ? Json() : dump_fix_json(changes, file_);
    }
    const std::optional<LineChange> change = line_fix(diagnostic, file_.input);
    return change ? line_fix_json(diagnostic, *change, file_) : Json();
  }

  /// Equal ones of a file are counted: "HASH:2".
  std::string fingerprint(const Diagnostic& diagnostic) {
    const std::uint64_t hash = hash_of(diagnostic.rule->id, subject_of(diagnostic, file_.input));
    return to_hex(hash) + ":" + std::to_string(++seen_[hash]);
  }

  const FileFindings& file_;
  std::optional<DumpFixes> dump_fixes_;
  std::map<std::uint64_t, std::uint64_t> seen_;
};

/// How many results each level may have.
class ResultBudget {
 public:
  explicit ResultBudget(const std::vector<FileFindings>& files) {
    std::array<std::size_t, 3> found{};
    for (const FileFindings& file : files) {
      for (const Diagnostic& one : file.findings->items()) ++found[level(one)];
    }
    std::size_t left = kMaxSarifResults;
    for (std::size_t i = found.size(); i-- > 0;) {
      left_[i] = std::min(found[i], left);
      left -= left_[i];
    }
  }

  bool take(const Diagnostic& one) {
    if (left_[level(one)] == 0) return false;
    --left_[level(one)];
    return true;
  }

 private:
  static std::size_t level(const Diagnostic& one) {
    return static_cast<std::size_t>(one.rule->severity);
  }

  std::array<std::size_t, 3> left_{};
};

/// Says how many findings are no results.
Json invocation_json(std::uint64_t left_out) {
  Json invocation = {{"executionSuccessful", true}};
  const Json notification = {
      {"level", "warning"},
      {"message", {{"text", std::to_string(left_out) + " findings are not in this report"}}}};
  if (left_out != 0) {
    invocation["toolExecutionNotifications"] = Json::array({notification});
  }
  return invocation;
}

}  // namespace

std::string to_sarif(const std::vector<FileFindings>& files, std::string_view version,
                     std::string_view docs) {
  Json results = Json::array();
  ResultBudget budget(files);
  std::uint64_t found = 0;
  for (const FileFindings& file : files) {
    Results of_file(file);
    for (const Diagnostic& one : file.findings->items()) {
      if (budget.take(one)) results.push_back(of_file.result(one));
    }
    found += file.findings->total();
  }
  const Json invocation = invocation_json(found - results.size());
  const Json driver = {{"name", "perfmap"},
                       {"version", version},
                       {"informationUri", std::string(docs) + "/README.md"},
                       {"rules", rules_json(docs)}};
  const Json run = {{"tool", {{"driver", driver}}},
                    {"invocations", Json::array({invocation})},
                    {"columnKind", "unicodeCodePoints"},
                    {"results", std::move(results)}};
  const Json sarif = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                      {"version", "2.1.0"},
                      {"runs", Json::array({run})}};
  // Invalid UTF-8 in files and names becomes U+FFFD.
  return sarif.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace perfmap
