#include "perfmap/lint.hpp"

#include <algorithm>
#include <vector>

#include "answers/lint/file_rules.hpp"
#include "answers/lint/line_rules.hpp"
#include "answers/lint/map_rules.hpp"
#include "answers/lint/runtime_rules.hpp"

namespace perfmap {

void lint(const Map& map, Diagnostics& problems) {
  const std::size_t before = problems.items().size();
  lint_rules::LineFacts facts;
  lint_rules::check_file(map, problems);
  lint_rules::check_lines(map, problems, facts);
  lint_rules::check_producers(map, facts, problems);
  lint_rules::check_ranges(map, facts, problems);
  lint_rules::check_names_together(map, facts, problems);
  lint_rules::check_amount(map, facts, problems);
  auto& items = problems.items();
  std::stable_sort(items.begin() + static_cast<std::ptrdiff_t>(before), items.end(),
                   [](const Diagnostic& a, const Diagnostic& b) {
                     return a.where.line != b.where.line ? a.where.line < b.where.line
                                                         : a.where.column < b.where.column;
                   });
}

}  // namespace perfmap
