#include "answers/lint/runtime_rules.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "perfmap/names.hpp"
#include "perfmap/rules.hpp"

namespace perfmap::lint_rules {
namespace {

constexpr std::size_t kSample = 4096;
constexpr std::uint64_t kFew = 10;

/// Names, counted by who wrote them.
struct Producers {
  std::uint64_t v8_own = 0;
  std::uint64_t v8_scripts = 0;
  std::uint64_t net_stubs = 0;
  std::uint64_t net_methods = 0;
  std::uint64_t python = 0;
  std::uint64_t unmarked = 0;
  std::uint64_t all = 0;
  std::optional<Entry> first_unmarked = {};

  void see(const Entry& entry);
};

void Producers::see(const Entry& entry) {
  const DecodedName name = decode_name(entry.name);
  ++all;
  switch (name.runtime) {
    case Runtime::v8:
      ++(name.tier == "builtin" || name.tier == "bytecode" ? v8_own : v8_scripts);
      break;
    case Runtime::dotnet: ++(name.tier == "stub" ? net_stubs : net_methods); break;
    case Runtime::cpython: ++python; break;
    case Runtime::unknown:
      ++unmarked;
      if (!first_unmarked) first_unmarked = entry;
      break;
    default: break;
  }
}

/// Every `step`th entry.
Producers look_at(const Map& map, const LineFacts& facts, std::size_t step) {
  Producers seen;
  for (std::size_t i = 0; i < facts.entries.count(); i += step) {
    if (const auto entry = map.entry_at(facts.entries.line[i])) seen.see(*entry);
  }
  return seen;
}

bool lacks_scripts(const Producers& seen) noexcept {
  return seen.v8_own >= kFew && seen.v8_scripts == 0;
}

bool is_stubs_alone(const Producers& seen) noexcept {
  return seen.net_stubs >= kFew && seen.net_stubs == seen.all;
}

/// CPython and V8 mark every name, so that one without a mark is somebody else's.
bool is_mixed(const Producers& seen) noexcept {
  return seen.python + seen.v8_scripts >= kFew && seen.unmarked >= kFew;
}

}  // namespace

void check_producers(const Map& map, const LineFacts& facts, Diagnostics& problems) {
  constexpr Location kFile{0, 1, 1};
  const std::size_t step = facts.entries.count() / kSample + 1;
  Producers seen = look_at(map, facts, step);
  const bool is_suspicious = lacks_scripts(seen) || is_stubs_alone(seen) || is_mixed(seen);
  if (is_suspicious && step > 1) seen = look_at(map, facts, 1);
  if (lacks_scripts(seen)) {
    problems.add(rule::kNoScripts, kFile,
                 "builtins and bytecode handlers alone: scripts are interpreted, so their frames "
                 "have no names");
  }
  if (is_stubs_alone(seen)) {
    problems.add(rule::kOnlyStubs, kFile, "stubs alone: no method has a name");
  }
  if (!is_mixed(seen) || !problems.count(rule::kMixedProducers)) return;
  const std::uint64_t offset = seen.first_unmarked->offset;
  problems.keep({&rule::kMixedProducers,
                 {offset, map.line_number(offset), 1},
                 std::to_string(seen.unmarked) +
                     " names do not tell who wrote them, among those of " +
                     (seen.python != 0 ? "CPython" : "V8"),
                 0});
}

}  // namespace perfmap::lint_rules
