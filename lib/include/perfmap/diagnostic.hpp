// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/types.hpp"

namespace perfmap {

enum class Severity : std::uint8_t { info, warning, error };

/// Whether `lint --fix` fixes the findings of a rule. `safe` never changes a correct result.
enum class Fix : std::uint8_t { none, safe, unsafe };

/// The readers that get wrong or no names because of a finding; a bit set.
enum class Reader : std::uint8_t {
  none = 0,
  perf = 1,
  bcc = 2,
  blazesym = 4,
  samply = 8,
  all = 15,
};
constexpr Reader operator|(Reader a, Reader b) noexcept {
  return static_cast<Reader>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool intersects(Reader a, Reader b) noexcept {
  return (static_cast<unsigned>(a) & static_cast<unsigned>(b)) != 0;
}

/// A kind of problem in an input. All rules are in perfmap/rules.def. Compare rules by id: a
/// program that links the library may have its own copies.
struct Rule {
  std::string_view id;    ///< "PM003"
  std::string_view name;  ///< "BadSize"
  Severity severity;
  Fix fix;
  Reader hurts;              ///< readers that get wrong or no names because of it
  std::string_view summary;  ///< one line, lower case, no final period
  /// What the problem is, why it matters and how to fix it: one paragraph of plain text.
  std::string_view explanation;
  std::uint16_t ordinal;  ///< position in rule::all(), for counting
};

/// All rules, from the table perfmap/rules.def: rule::kTooFewFields and so on.
namespace rule {

// NOLINTBEGIN(readability-identifier-naming)
enum class Ordinal : std::uint16_t {
#define PERFMAP_RULE(name, ...) name,
#include "perfmap/rules.def"
  count
};
// NOLINTEND(readability-identifier-naming)

// clang-format off
#define PERFMAP_RULE(name, id, severity, fix, hurts, summary, explanation)                        \
  inline constexpr Rule name{id, std::string_view(#name).substr(1), Severity::severity, Fix::fix, \
                             hurts, summary, explanation,                                         \
                             static_cast<std::uint16_t>(Ordinal::name)};
#include "perfmap/rules.def"
// clang-format on

/// All rules, in the order of the table. Static storage.
PERFMAP_API std::span<const Rule* const> all() noexcept;

/// The rule with this id, or nullptr.
PERFMAP_API const Rule* find(std::string_view id) noexcept;

}  // namespace rule

/// A problem at a place in an input; reading continues after it.
struct Diagnostic {
  const Rule* rule = nullptr;  ///< never null after creation; static storage
  Location where;
  std::string message;             ///< one line, about this place
  std::uint64_t related_line = 0;  ///< another line that is involved, 0 for none
  std::uint32_t map = 0;           ///< which map of an index it was found in
};

/// Collects and counts diagnostics. Counts all of them and keeps at most `limit_per_rule` of each
/// rule (0: all), so that hostile input costs bounded memory. One thread at a time.
class PERFMAP_API Diagnostics {
 public:
  static constexpr auto kRules = static_cast<std::size_t>(rule::Ordinal::count);

  explicit Diagnostics(std::size_t limit_per_rule) noexcept : limit_(limit_per_rule) {}

  /// From now on `rule` is neither counted nor kept.
  void ignore(const Rule& rule) noexcept { ignored_[rule.ordinal] = true; }
  bool ignores(const Rule& rule) const noexcept { return ignored_[rule.ordinal]; }

  /// Counts a diagnostic of `rule` and returns whether to keep it: a caller that has to format a
  /// message checks this first, then calls keep().
  bool count(const Rule& rule) noexcept;
  void keep(Diagnostic diagnostic) { items_.push_back(std::move(diagnostic)); }

  /// count(), then keep() if that returned true.
  void add(const Rule& rule, const Location& where, std::string_view message,
           std::uint64_t related_line = 0);

  /// The same limit and ignored rules, and nothing counted.
  Diagnostics without_items() const;
  /// Adds those of a later part of the same text, whose lines were counted from 0; its first line
  /// is `first_line`.
  void add_all(const Diagnostics& later, std::uint64_t first_line);

  const std::vector<Diagnostic>& items() const noexcept { return items_; }
  std::vector<Diagnostic>& items() noexcept { return items_; }
  std::uint64_t count_of(const Rule& rule) const noexcept;
  /// All that were counted, kept or not.
  std::uint64_t total() const noexcept { return total_; }
  std::uint64_t total(Severity severity) const noexcept;

  /// Sorts the diagnostics from position `from` on by place. Stable.
  void sort(std::size_t from = 0);

 private:
  std::size_t limit_;
  std::uint64_t total_ = 0;
  std::array<std::uint64_t, kRules> counts_{};
  std::array<bool, kRules> ignored_{};
  std::vector<Diagnostic> items_;
};

}  // namespace perfmap
