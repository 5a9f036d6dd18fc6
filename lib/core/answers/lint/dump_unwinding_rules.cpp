#include "answers/lint/dump_rules.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

/// Where the sizes of an UNWINDING_INFO lie.
constexpr std::uint64_t kSizeAt = 16;
constexpr std::uint64_t kMappedSizeAt = 32;

/// perf's libdw path takes code to begin so.
constexpr std::uint64_t kAlignment = 16;

/// Machines of the JITs that write jitdumps and have 32-bit pointers: i386, arm.
bool has_short_pointers(const Jitdump& dump) noexcept {
  const auto& header = dump.header();
  return header && (header->elf_mach == 3 || header->elf_mach == 40);
}

}  // namespace

void UnwindingRules::see_unwinding(const JitRecord& record) {
  const auto info = decode_unwinding(record);
  waiting_.reset();
  if (!info) return;  // which the reader reports
  if (info->mapped_size != 0 && info->mapped_size < info->unwinding_size) {
    report(problems_, rule::kUnwindingSizes, record.offset + kMappedSizeAt, [&] {
      return "a mapped size of " + std::to_string(info->mapped_size) +
             ", neither 0 nor room for the " + std::to_string(info->unwinding_size) +
             " that there are";
    });
  }
  if (info->padding.size() > kMaxAlignment) {
    report(problems_, rule::kUnwindingSizes, record.offset + kSizeAt, [&] {
      return std::to_string(info->padding.size()) + " bytes behind the unwinding information";
    });
  }
  waiting_.emplace(record.offset, *info);
}

/// Frames may be missing: V8 writes headers that say so, as there are frame pointers.
void UnwindingRules::see_load(const JitRecord& record, const LoadRecord& load) {
  const auto waiting = std::exchange(waiting_, std::nullopt);
  if (!waiting || waiting->second.eh_frame.empty()) return;
  if (!problems_.ignores(rule::kBadUnwinding)) {
    const unsigned pointer = has_short_pointers(dump_) ? 4 : 8;
    if (const auto problem = problem_of_frame(waiting->second, load, record.order, pointer)) {
      report(problems_, rule::kBadUnwinding, waiting->first, [&] { return *problem; });
    }
  }
  if (load.range.begin % kAlignment != 0) {
    report(problems_, rule::kUnalignedCode, record.offset, [&] {
      return "code with unwinding information at " + hex_text(load.range.begin) +
             ", no multiple of 16";
    });
  }
}

}  // namespace perfmap::lint_rules
