#include "answers/lint/dump_rules.hpp"
#include "base/text.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

// Where the fields of a LOAD lie.
constexpr std::uint64_t kPidAt = 16;
constexpr std::uint64_t kTidAt = 20;
constexpr std::uint64_t kVmaAt = 24;
constexpr std::uint64_t kCodeSizeAt = 40;

constexpr std::uint64_t kMaxLoads = 50'000;

std::string bytes_text(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

/// JD203, JD305: what is behind the name, against the code size. (See report_odd_sizes(), too.)
void check_sizes(const JitRecord& record, const LoadRecord& load, Diagnostics& problems) {
  const std::uint64_t there = load.code.size() + load.padding.size();
  const std::uint64_t behind = record.bytes.size() - load.padding.size();
  if (load.code.size() < load.code_size) {
    if (!load.code.empty()) return;  // which the reader reports
    report(problems, rule::kLoadSizes, record.offset + kCodeSizeAt, [&] {
      return "a code size of " + std::to_string(load.code_size) +
             (there == 0 ? " and no code" : ", but room for " + bytes_text(there)) +
             ": perf takes other bytes for code";
    });
  } else if (load.padding.size() > kMaxAlignment) {
    report(problems, rule::kLoadSizes, record.offset + kCodeSizeAt, [&] {
      return bytes_text(load.padding.size()) + " behind the code: perf takes them for its end";
    });
  } else if (!load.padding.empty()) {
    report(problems, rule::kOddPadding, record.offset + behind, [&] {
      return bytes_text(load.padding.size()) + " behind the code: perf takes them for its end";
    });
  }
}

void check_load_name(const JitRecord& record, const LoadRecord& load, Diagnostics& problems) {
  if (!load.name.empty() && is_utf8(load.name)) return;
  report(problems, rule::kOddLoadName, record.offset + LoadRecord::kFixed, [&] {
    return std::string(load.name.empty() ? "a function without a name"
                                         : "a name that is not UTF-8");
  });
}

void check_numbers(const JitRecord& record, const LoadRecord& load, Diagnostics& problems) {
  if (load.code_size == 0 || load.code_size > INT32_MAX) {
    report(problems, rule::kOddCodeSize, record.offset + kCodeSizeAt, [&] {
      return load.code_size == 0
                 ? std::string("code size 0: perf finds no symbol there")
                 : "a code size of " + std::to_string(load.code_size) + ": perf counts in 31 bits";
    });
  }
  if (load.vma != load.range.begin) {
    report(problems, rule::kOddVma, record.offset + kVmaAt, [&] {
      return "vma " + hex_text(load.vma) + ", but code address " + hex_text(load.range.begin);
    });
  }
}

}  // namespace

void LoadRules::see(const JitRecord& record, const LoadRecord& load) {
  if (++loads_ == kMaxLoads + 1) one_too_many_ = record.offset;
  check_sizes(record, load, problems_);
  check_load_name(record, load, problems_);
  check_numbers(record, load, problems_);
}

void LoadRules::finish() {
  if (loads_ <= kMaxLoads) return;
  report(problems_, rule::kManyLoads, one_too_many_,
         [&] { return std::to_string(loads_) + " functions: perf inject writes a file for each"; });
}

void OwnerRules::see(const JitRecord& record, std::uint32_t pid, std::uint32_t tid) {
  if (tid == 0) no_thread_.add(record.offset + kTidAt);
  if (!pid_) {
    pid_ = pid;
    const auto& header = dump_.header();
    if (header && header->pid != pid) {
      report(problems_, rule::kForeignPid, record.offset + kPidAt, [&] {
        return "process " + std::to_string(pid) + ", but " + std::to_string(header->pid) +
               " in the header";
      });
    }
  } else if (pid != *pid_) {
    if (others_.count == 0) other_pid_ = pid;
    others_.add(record.offset + kPidAt);
  }
}

void OwnerRules::finish() {
  if (others_.count != 0) {
    report(problems_, rule::kOddThread, others_.first, [&] {
      return "process " + std::to_string(other_pid_) + ", but " + std::to_string(*pid_) +
             " in the records before; records of other processes: " + std::to_string(others_.count);
    });
  }
  if (no_thread_.count != 0) {
    report(problems_, rule::kOddThread, no_thread_.first,
           [&] { return "thread 0; records with it: " + std::to_string(no_thread_.count); });
  }
}

}  // namespace perfmap::lint_rules
