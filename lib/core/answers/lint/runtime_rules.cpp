#include "answers/lint/runtime_rules.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "perfmap/rules.hpp"
#include "perfmap/runtimes.hpp"

namespace perfmap::lint_rules {
namespace {

constexpr std::size_t kSample = 4096;
constexpr std::uint64_t kFew = 10;

/// Names, counted by who wrote them.
class Producers {
 public:
  void see(const Entry& entry) {
    const DecodedName name = decode_name(entry.name);
    const auto& own = runtime_info(name.runtime).names.own_code_rule.tiers;
    Count& count = counts_[static_cast<std::size_t>(name.runtime)];
    ++all_;
    const bool is_own = !name.tier.empty() && std::ranges::find(own, name.tier) != own.end();
    ++(is_own ? count.own : count.others);
    if (name.runtime == Runtime::unknown && !first_unmarked_) first_unmarked_ = entry;
  }

  bool breaks(const RuntimeInfo& runtime) const noexcept {
    const OwnCodeRule& rule = runtime.names.own_code_rule;
    const Count& count = of(runtime.runtime);
    return rule.rule != nullptr && count.own >= kFew &&
           (rule.is_whole_map ? count.own == all_ : count.others == 0);
  }
  /// Some runtimes mark every name, so that one without a mark is somebody else's.
  bool is_mixed() const noexcept {
    std::uint64_t marked = 0;
    for (const RuntimeInfo* const one : all_runtimes()) {
      if (!one->names.marks_all.empty()) marked += of(one->runtime).others;
    }
    return marked >= kFew && unmarked() >= kFew;
  }
  bool is_suspicious() const noexcept {
    return is_mixed() || std::ranges::any_of(all_runtimes(), [this](const RuntimeInfo* one) {
             return breaks(*one);
           });
  }
  /// Of a map that is mixed. One name stands for all.
  std::string_view marked_by() const noexcept {
    std::string_view last;
    for (const RuntimeInfo* const one : all_runtimes()) {
      const std::string_view name = one->names.marks_all;
      if (!name.empty() && of(one->runtime).others != 0) last = name;
    }
    return last;
  }
  std::uint64_t unmarked() const noexcept { return of(Runtime::unknown).others; }
  const Entry& first_unmarked() const { return *first_unmarked_; }

 private:
  struct Count {
    std::uint64_t own = 0;  // of the tiers that its rule is about
    std::uint64_t others = 0;
  };
  const Count& of(Runtime runtime) const noexcept {
    return counts_[static_cast<std::size_t>(runtime)];
  }

  std::array<Count, 32> counts_{};  // by Runtime
  std::uint64_t all_ = 0;
  std::optional<Entry> first_unmarked_;
};

/// Every `step`th entry.
Producers look_at(const Map& map, const LineFacts& facts, std::size_t step) {
  Producers seen;
  for (std::size_t i = 0; i < facts.entries.count(); i += step) {
    if (const auto entry = map.entry_at(facts.entries.line[i])) seen.see(*entry);
  }
  return seen;
}

}  // namespace

void check_producers(const Map& map, const LineFacts& facts, Diagnostics& problems) {
  constexpr Location kFile{0, 1, 1};
  const std::size_t step = facts.entries.count() / kSample + 1;
  Producers seen = look_at(map, facts, step);
  if (seen.is_suspicious() && step > 1) seen = look_at(map, facts, 1);
  for (const RuntimeInfo* const one : all_runtimes()) {
    const OwnCodeRule& own = one->names.own_code_rule;
    if (seen.breaks(*one)) problems.add(*own.rule, kFile, own.message);
  }
  if (!seen.is_mixed() || !problems.count(rule::kMixedProducers)) return;
  const std::uint64_t offset = seen.first_unmarked().offset;
  problems.keep({&rule::kMixedProducers,
                 {offset, map.line_number(offset), 1},
                 std::to_string(seen.unmarked()) +
                     " names do not tell who wrote them, among those of " +
                     std::string(seen.marked_by()),
                 0});
}

}  // namespace perfmap::lint_rules
