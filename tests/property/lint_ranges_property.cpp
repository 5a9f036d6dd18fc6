// SPDX-License-Identifier: MIT
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/lint_findings.hpp"

namespace perfmap::lint_ranges_property {
namespace {

struct Plain {
  std::uint64_t begin;
  std::uint64_t size;  ///< at least 1
  std::string name;
  std::uint64_t line;

  /// The last byte: the end may exceed 64 bits.
  std::uint64_t last() const { return begin + (size - 1); }
};

/// A crowded map: few addresses, few names, repeated lines.
std::vector<Plain> crowd(unsigned seed) {
  std::mt19937 random(seed);
  const std::uint64_t bases[] = {0x7f0000000000, 0, UINT64_MAX - 23, 0xfffffff0};
  const std::uint64_t base = bases[seed % 4];
  std::vector<Plain> entries;
  const std::uint64_t count = random() % 12;
  for (std::uint64_t line = 1; line <= count; ++line) {
    Plain entry{base + random() % 24, 1 + random() % 12, "name" + std::to_string(random() % 3),
                line};
    if (random() % 6 == 0 && !entries.empty()) entry = entries[random() % entries.size()];
    entry.line = line;
    if (entry.begin != 0) entry.size = std::min(entry.size, UINT64_MAX - entry.begin + 1);
    entries.push_back(entry);
  }
  return entries;
}

std::string text_of(const std::vector<Plain>& entries) {
  std::string text;
  for (const Plain& entry : entries) {
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, "%llx %llx ",
                  static_cast<unsigned long long>(entry.begin),
                  static_cast<unsigned long long>(entry.size));
    text += numbers + entry.name + "\n";
  }
  return text;
}

std::vector<Plain> by_address(std::vector<Plain> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Plain& a, const Plain& b) { return a.begin < b.begin; });
  return entries;
}

/// "PM103 5 3": the rule, the later line, the other line.
using Findings = std::multiset<std::string>;

std::string finding(const char* rule, const Plain& a, const Plain& b) {
  return rule + (" " + std::to_string(std::max(a.line, b.line))) + " " +
         std::to_string(std::min(a.line, b.line));
}

/// In address order each entry is compared with earlier ones: with its neighbour if both have the
/// same start, else with the first of those that reach furthest.
Findings naive_conflicts(const std::vector<Plain>& entries) {
  const std::vector<Plain> sorted = by_address(entries);
  Findings found;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const Plain& here = sorted[i];
    const Plain& before = sorted[i - 1];
    const Plain& reach =
        *std::max_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(i),
                          [](const Plain& a, const Plain& b) { return a.last() < b.last(); });
    if (here.begin == before.begin) {
      const bool repeated = here.name == before.name && here.size == before.size;
      found.insert(finding(here.name != before.name ? "PM101"
                           : repeated               ? "PM102"
                                                    : "PM104",
                           here, before));
    } else if (here.begin <= reach.last()) {
      found.insert(finding(here.last() <= reach.last() ? "PM104" : "PM103", here, reach));
    }
  }
  return found;
}

/// Lines that own no byte if each byte belongs to the last line that covers it; except those whose
/// neighbour in address order has the same range, which is already a conflict.
std::set<std::uint64_t> naive_shadowed(const std::vector<Plain>& entries) {
  const std::vector<Plain> sorted = by_address(entries);
  std::set<std::uint64_t> shadowed;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const Plain& entry = sorted[i];
    bool owns = false;
    for (std::uint64_t k = 0; k <= entry.last() - entry.begin; ++k) {
      const std::uint64_t address = entry.begin + k;
      owns = owns || std::none_of(entries.begin(), entries.end(), [&](const Plain& other) {
               return other.line > entry.line && address - other.begin < other.size;
             });
    }
    const bool taken = i + 1 < sorted.size() && sorted[i + 1].begin == entry.begin &&
                       sorted[i + 1].size == entry.size;
    if (!owns && !taken) shadowed.insert(entry.line);
  }
  return shadowed;
}

}  // namespace

TEST_CASE("conflicts equal those found by comparing each entry with all others",
          "[lint][property]") {
  const auto seed = GENERATE(range(0u, 2000u));
  const std::vector<Plain> entries = crowd(seed);
  const std::string text = text_of(entries);
  CAPTURE(seed, text);
  Findings found;
  const Diagnostics problems = test::lint_text(text);
  for (const Diagnostic& one : problems.items()) {
    const std::string id(one.rule->id);
    if (id < "PM101" || id > "PM104") continue;
    found.insert(id + " " + std::to_string(one.where.line) + " " +
                 std::to_string(one.related_line));
  }
  CHECK(found == naive_conflicts(entries));
}

TEST_CASE("shadowed entries are those that own no byte", "[lint][property]") {
  const auto seed = GENERATE(range(0u, 2000u));
  const std::vector<Plain> entries = crowd(seed);
  const std::string text = text_of(entries);
  CAPTURE(seed, text);
  std::set<std::uint64_t> found;
  const Diagnostics problems = test::lint_text(text);
  for (const Diagnostic& one : problems.items()) {
    if (one.rule->id != "PM105") continue;
    found.insert(one.where.line);
    CHECK(one.related_line > one.where.line);
  }
  CHECK(found == naive_shadowed(entries));
}

}  // namespace perfmap::lint_ranges_property
