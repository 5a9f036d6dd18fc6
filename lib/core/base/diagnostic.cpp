#include "perfmap/diagnostic.hpp"

#include "perfmap/rules.hpp"

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

}  // namespace perfmap
