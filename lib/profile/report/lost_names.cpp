// SPDX-License-Identifier: MIT
#include "report/lost_names.hpp"

#include <cmath>

#include "perfmap/text.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

/// Not names of files: those have no '/'.
constexpr std::string_view kJit = "/jit";
constexpr std::string_view kNowhere = "/";

constexpr double kMaxLost = 0.05;
/// A function with less than this part of its share is missing.
constexpr double kMissing = 0.1;

bool is_unnamed(const ReportRow& row) {
  if (row.name == shown_name({.module = row.module})) return true;
  // In several mappings, which have no common module.
  return row.kind == FrameKind::jit && row.system_name.empty() && row.name.starts_with('[');
}

/// Also "[vdso]". It is compared as a whole if it has no names.
bool is_kernel(const ReportRow& row) {
  return row.kind == FrameKind::kernel || row.module.starts_with('[');
}

std::string_view code_of(const ReportRow& row) {
  if (row.kind == FrameKind::jit || row.module == "//anon") return kJit;
  return row.module.empty() ? kNowhere : base_name(row.module);
}

}  // namespace

NamedShares::NamedShares(const ProfileReport& report, const ProfileReport::Event& event,
                         bool totals)
    : title_(report.profile().title) {
  const auto all = static_cast<double>(event.total.samples);
  for (const ReportRow& row : report.rows(event.number)) {
    if (is_kernel(row)) continue;
    const double share = static_cast<double>((totals ? row.total : row.self).samples) / all;
    Code& code = codes_[code_of(row)];
    if (is_unnamed(row)) {
      code.unnamed += share;
    } else {
      code.named[identity_of(row.kind, row.name, row.system_name, row.module)] += share;
    }
  }
}

/// The share of the functions in `other` that are missing here. More code without a name makes the
/// shares of all functions smaller, so they are compared without it.
double NamedShares::Code::missing_of(const Code& other) const {
  double missing = 0;
  for (const auto& [identity, share] : other.named) {
    const auto found = named.find(identity);
    const double here = found == named.end() ? 0 : found->second;
    if (here * (1 - other.unnamed) <= kMissing * share * (1 - unnamed)) missing += share;
  }
  return missing;
}

std::optional<std::string> NamedShares::lost_since(const NamedShares& other) const {
  for (const auto& [name, code] : codes_) {
    const auto found = other.codes_.find(name);
    const Code there = found == other.codes_.end() ? Code() : found->second;
    if (code.unnamed - there.unnamed <= kMaxLost) continue;
    // Functions may have moved out of all known files.
    if (name == kNowhere || code.missing_of(there) > kMaxLost) {
      return why(name, code.unnamed, other);
    }
  }
  return std::nullopt;
}

std::string NamedShares::why(std::string_view code, double unnamed,
                             const NamedShares& other) const {
  const std::string begin =
      std::string(title_) + " has no names for " +
      percent_text(static_cast<std::uint64_t>(std::llround(unnamed * 1e6)), 1'000'000, 2) +
      " of its samples, which are in ";
  const std::string end = ", unlike " + std::string(other.title_) + ": ";
  const std::string doctor = "('perfmap doctor' explains why)";
  if (code == kJit) return begin + "JIT code" + end + "the runtime wrote no names " + doctor;
  if (code == kNowhere) {
    return begin + "no known file" + end + "the recording does not say what was mapped " + doctor;
  }
  std::string file;
  append_visible(file, code);
  return begin + file + end +
         "the file was stripped (compare recordings of programs that have their symbols)";
}

}  // namespace perfmap
