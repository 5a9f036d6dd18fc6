#include "answers/lint/dump_rules.hpp"
#include "jitdump/jitdump_records.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

/// V8 adds the size of an ELF header to each address.
constexpr std::uint64_t kV8Offset = 0x40;

/// QEMU ends its lines with one that says where the code ends.
bool is_end_mark(const LineRecord& line, std::size_t i, std::size_t count) noexcept {
  return i + 1 == count && line.line == 0 && line.file.empty();
}

bool is_outside(std::uint64_t distance, std::uint64_t room, std::uint64_t slack) noexcept {
  return distance > room && distance - room > slack;
}

std::string line_text(std::size_t i, std::size_t count) {
  return "line entry " + std::to_string(i + 1) + " of " + std::to_string(count);
}

}  // namespace

void SourceLineRules::see_lines(const JitRecord& record) {
  if (waiting_) {
    report(problems_, rule::kOddDebugInfo, waiting_->offset,
           [] { return std::string("other source lines follow, and no LOAD that these are for"); });
    check(*waiting_, nullptr);
  }
  waiting_ = record;
}

void SourceLineRules::see_load(const JitRecord& record, const LoadRecord& load) {
  if (!waiting_) {
    without_lines_.push_back(record.offset);
    return;
  }
  ++with_lines_;
  const auto info = decode_debug_info(*waiting_);
  const bool fits = info && info->code_address == load.range.begin;
  if (info && !fits) {
    report(problems_, rule::kOddDebugInfo, waiting_->offset, [&] {
      return "source lines for " + hex_text(info->code_address) + ", but the next LOAD is at " +
             hex_text(load.range.begin) + ", to which perf gives them";
    });
  }
  check(*waiting_, fits ? &load : nullptr);
  waiting_.reset();
}

/// JD215 is for dumps in which nearly all functions have lines: runtimes have none for code of
/// their own.
void SourceLineRules::finish() {
  if (waiting_ && !dump_.options().growing) {
    report(problems_, rule::kOddDebugInfo, waiting_->offset,
           [] { return std::string("no LOAD follows that these source lines are for"); });
    check(*waiting_, nullptr);
  }
  constexpr std::uint64_t kShare = 9;
  const std::size_t without = without_lines_.size();
  if (with_lines_ < kShare || with_lines_ < kShare * without) return;
  for (std::size_t i = 0; i < without; ++i) {
    report(problems_, rule::kMissingLines, without_lines_[i],
           [] { return std::string("no source lines, while nearly all functions have them"); });
  }
}

/// JD211, once a record.
void SourceLineRules::check(const JitRecord& record, const LoadRecord* load) {
  if (problems_.ignores(rule::kBadLines) || has_odd_sizes(record)) return;  // as the reader says
  if (const auto problem = problem_of(record, load)) {
    report(problems_, rule::kBadLines, record.offset, [&] { return *problem; });
  }
}

std::optional<std::string> SourceLineRules::problem_of(const JitRecord& record,
                                                       const LoadRecord* load) const {
  std::string_view padding;
  const auto lines = decode_lines(record, &padding);
  if (!lines) return "its source lines run over its end";
  const std::uint64_t room = load == nullptr ? 0 : load->range.size;
  const std::uint64_t slack = dump_.is_v8() ? kV8Offset : 0;
  for (std::size_t i = 0; i < lines->size(); ++i) {
    const LineRecord& line = (*lines)[i];
    if (is_end_mark(line, i, lines->size())) break;
    if (line.line <= 0) {
      return line_text(i, lines->size()) + " is of line " + std::to_string(line.line);
    }
    if (load != nullptr && is_outside(line.address - load->range.begin, room, slack)) {
      return line_text(i, lines->size()) + " is at " + hex_text(line.address) +
             ", outside the function";
    }
    if (i > 0 && line.address < (*lines)[i - 1].address) {
      return line_text(i, lines->size()) + " is below the one before";
    }
  }
  if (padding.size() <= kMaxAlignment) return std::nullopt;
  return std::to_string(padding.size()) + " bytes behind the last of its source lines";
}

}  // namespace perfmap::lint_rules
