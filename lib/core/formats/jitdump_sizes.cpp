#include "formats/jitdump_sizes.hpp"

#include <algorithm>
#include <string>

#include "perfmap/cursor.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {
namespace {

// Where the sizes lie.
constexpr std::uint64_t kCodeSizeAt = 40;
constexpr std::uint64_t kUnwindingSizeAt = 16;

constexpr std::size_t kMostAlignment = 7;

/// A whole LOAD has a NUL right before its code: where it has, the name need not be looked at.
bool has_odd_code_size(const JitRecord& record) noexcept {
  Cursor cursor(record.bytes, record.order);
  cursor.skip(kCodeSizeAt);
  const std::uint64_t code_size = cursor.u64();
  const std::uint64_t size = record.bytes.size();
  if (!cursor.ok() || size <= LoadRecord::kFixed) return false;
  const std::uint64_t room = size - LoadRecord::kFixed - 1;
  if (code_size <= room && record.bytes[size - code_size - 1] == '\0') return false;
  const auto load = decode_load(record);
  return load && load->code.size() < code_size && !load->code.empty();
}

}  // namespace

bool is_left_out_code(std::string_view rest) noexcept {
  return rest.size() <= kMostAlignment &&
         std::all_of(rest.begin(), rest.end(), [](char byte) { return byte == '\0'; });
}

bool has_odd_sizes(const JitRecord& record) noexcept {
  if (record.is(JitRecordKind::load)) return has_odd_code_size(record);
  if (const auto info = decode_debug_info(record)) {
    return info->line_count > info->lines.size() / DebugInfoRecord::kSmallestLine;
  }
  return record.is(JitRecordKind::unwinding_info) && !decode_unwinding(record);
}

void report_odd_sizes(const JitRecord& record, Diagnostics& problems) {
  const auto report = [&](const Rule& rule, std::uint64_t at, const std::string& message) {
    problems.add(rule, {record.offset + at, 0, 0}, message);
  };
  if (const auto load = decode_load(record)) {
    report(rule::kLoadSizes, kCodeSizeAt,
           "a code size of " + std::to_string(load->code_size) + ", but room for " +
               std::to_string(load->code.size()) + (load->code.size() == 1 ? " byte" : " bytes") +
               ": perf takes other bytes for code");
  } else if (record.is(JitRecordKind::debug_info)) {
    report(rule::kBadLines, 0, "its source lines run over its end");
  } else {
    report(rule::kUnwindingSizes, kUnwindingSizeAt, "its sizes do not fit into the record");
  }
}

}  // namespace perfmap
