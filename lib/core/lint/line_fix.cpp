// SPDX-License-Identifier: MIT
#include "lint/checks.hpp"
#include "perfmap/index.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/map.hpp"
#include "perfmap/merge.hpp"

namespace perfmap {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Whether tidying the finding's line alone fixes it. Other safe fixes move, cut or remove lines.
bool is_fixed_by_line(const Rule& rule) noexcept {
  return rule.fix == Fix::safe &&
         (rule.id < "PM060" || rule.id == rule::kSizeZero.id || rule.id == rule::kEncodedFile.id);
}

/// What tidy makes of a map of this line alone.
std::string tidied(std::string_view line) {
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(std::string(line), ""));
  Diagnostics ignored(1);
  Index index(std::move(maps), Overlap::last, ignored);
  index.compact();
  return portable_text(index);
}

}  // namespace

std::optional<LineChange> line_fix(const Diagnostic& finding, std::string_view text) {
  const Location& where = finding.where;
  if (!is_fixed_by_line(*finding.rule) || where.line == 0) return std::nullopt;
  if (where.offset > text.size() || where.column - 1 > where.offset) return std::nullopt;
  const std::uint64_t begin = where.offset - (where.column - 1);
  std::string_view line = text.substr(begin);
  line = line.substr(0, std::min(line.find('\n'), line.size() - 1) + 1);
  // Each finding would copy it.
  if (line.size() > lint_rules::kLongLine) return std::nullopt;
  // A map may begin with such a mark; a later line that does is no entry.
  if (begin != 0 && line.starts_with(kByteOrderMark)) return std::nullopt;
  std::string added = tidied(line);
  const bool is_removed = finding.rule->id == rule::kCommentOrBlank.id;
  if (added.empty() != is_removed) return std::nullopt;
  return LineChange{begin, line.size(), std::move(added)};
}

}  // namespace perfmap
