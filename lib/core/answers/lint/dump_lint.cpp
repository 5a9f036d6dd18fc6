#include <algorithm>

#include "answers/lint/dump_rules.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {
namespace {

/// The one pass over the records.
class RecordRules {
 public:
  RecordRules(const Jitdump& dump, Diagnostics& problems)
      : problems_(problems),
        loads_(problems),
        owners_(dump, problems),
        order_(problems),
        lines_(dump, problems),
        unwinding_(dump, problems) {}

  void see(const JitRecord& record) {
    order_.see(record);
    switch (static_cast<JitRecordKind>(record.id)) {
      case JitRecordKind::load: return see_load(record);
      case JitRecordKind::move: return see_move(record);
      case JitRecordKind::debug_info: return lines_.see_lines(record);
      case JitRecordKind::unwinding_info: return unwinding_.see_unwinding(record);
      case JitRecordKind::close: return;
    }
  }
  void finish() {
    loads_.finish();
    owners_.finish();
    order_.finish();
    lines_.finish();
  }

 private:
  void see_load(const JitRecord& record) {
    const auto load = decode_load(record);
    if (!load) {
      problems_.add(rule::kUnendedName, {record.offset + LoadRecord::kFixed, 0, 0},
                    "the name does not end within the record");
      return;
    }
    loads_.see(record, *load);
    owners_.see(record, load->pid, load->tid);
    lines_.see_load(record, *load);
    unwinding_.see_load(record, *load);
  }
  void see_move(const JitRecord& record) {
    if (const auto move = decode_move(record)) owners_.see(record, move->pid, move->tid);
  }

  Diagnostics& problems_;
  lint_rules::LoadRules loads_;
  lint_rules::OwnerRules owners_;
  lint_rules::OrderRules order_;
  lint_rules::SourceLineRules lines_;
  lint_rules::UnwindingRules unwinding_;
};

}  // namespace

void lint(const Jitdump& dump, Diagnostics& problems, std::span<const pid_t> namespace_pids) {
  const std::size_t before = problems.items().size();
  lint_rules::check_header(dump, namespace_pids, problems);
  if (!dump.header()) return;
  RecordRules records(dump, problems);
  dump.for_each(problems, [&](const JitRecord& record) { records.see(record); });
  records.finish();
  lint_rules::check_code(dump, problems);
  auto& items = problems.items();
  std::stable_sort(
      items.begin() + static_cast<std::ptrdiff_t>(before), items.end(),
      [](const Diagnostic& a, const Diagnostic& b) { return a.where.offset < b.where.offset; });
}

}  // namespace perfmap
