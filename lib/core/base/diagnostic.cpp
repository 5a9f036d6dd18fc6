// SPDX-License-Identifier: MIT
#include "perfmap/diagnostic.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "perfmap/types.hpp"

namespace perfmap {

bool Diagnostics::count(const Rule& rule) noexcept {
  if (ignores(rule)) return false;
  ++total_;
  std::uint64_t& seen = counts_[rule.ordinal];
  return ++seen <= limit_ || limit_ == 0;
}

void Diagnostics::add(const Rule& rule, const Location& where, std::string_view message,
                      std::uint64_t related_line) {
  if (count(rule)) keep({&rule, where, std::string(message), related_line});
}

Diagnostics Diagnostics::without_items() const {
  Diagnostics empty(limit_);
  empty.ignored_ = ignored_;
  return empty;
}

void Diagnostics::add_all(const Diagnostics& later, std::uint64_t first_line) {
  std::array<std::uint64_t, kRules> seen = counts_;
  for (const Diagnostic& item : later.items_) {
    if (++seen[item.rule->ordinal] > limit_ && limit_ != 0) continue;
    items_.push_back(item);
    items_.back().where.line += first_line;
  }
  for (std::size_t i = 0; i < kRules; ++i) counts_[i] += later.counts_[i];
  total_ += later.total_;
}

std::uint64_t Diagnostics::count_of(const Rule& rule) const noexcept {
  return counts_[rule.ordinal];
}

std::uint64_t Diagnostics::total(Severity severity) const noexcept {
  std::uint64_t sum = 0;
  for (const Rule* rule : rule::all()) {
    if (rule->severity == severity) sum += counts_[rule->ordinal];
  }
  return sum;
}

void Diagnostics::sort(std::size_t from) {
  std::stable_sort(
      items_.begin() + static_cast<std::ptrdiff_t>(from), items_.end(),
      [](const Diagnostic& a, const Diagnostic& b) { return a.where.offset < b.where.offset; });
}

namespace rule {

namespace {

constexpr const Rule* kAll[] = {
#define PERFMAP_RULE(name, ...) &name,
#include "perfmap/rules.def"
};

}  // namespace

std::span<const Rule* const> all() noexcept { return kAll; }

const Rule* find(std::string_view id) noexcept {
  for (const Rule* rule : kAll) {
    if (rule->id == id) return rule;
  }
  return nullptr;
}

}  // namespace rule

}  // namespace perfmap
