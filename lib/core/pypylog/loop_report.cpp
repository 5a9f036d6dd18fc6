// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "pypylog/pypy_lines.hpp"
#include "pypylog/reader.hpp"

namespace perfmap {
namespace {

constexpr std::uint32_t kNone = CompiledLoop::kNone;
constexpr std::array<std::string_view, 3> kTickBases = {"auto", "hex", "dec"};
constexpr std::array<std::string_view, 3> kKeys = {"loop", "function", "file"};

template <class Value>
std::optional<Value> value_called(std::string_view name,
                                  const std::array<std::string_view, 3>& names) noexcept {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Value>(found - names.begin());
}

std::optional<std::uint64_t> times_entered(const LoopProfile& profile, std::uint32_t loop) {
  if (profile.has_events()) return profile.times()[loop].entered;
  return profile.loops().all()[loop].entries;
}

/// An unknown value adds nothing; a sum of unknown values stays unknown.
void add_to(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& more) {
  if (more) sum = sum.value_or(0) + *more;
}

void add_to(LoopRow& row, const LoopRow& more) {
  if (row.loops == 0) row.loop = more.loop;
  row.loops += more.loops;
  row.samples += more.samples;
  add_to(row.ticks, more.ticks);
  add_to(row.entered, more.entered);
  add_to(row.iterations, more.iterations);
}

/// Groups by function, which is identified by file, name and first line.
std::vector<LoopRow> grouped(const std::vector<LoopRow>& rows, std::span<const CompiledLoop> loops,
                             LoopKey key) {
  std::map<std::tuple<std::string_view, std::string_view, std::uint32_t>, std::size_t> known;
  std::vector<LoopRow> groups;
  for (const LoopRow& row : rows) {
    const CompiledLoop& loop = loops[row.loop];
    const bool is_file = key == LoopKey::file;
    const std::string_view function = is_file ? std::string_view() : loop.function;
    const auto [place, is_new] =
        known.try_emplace({loop.file, function, is_file ? 0 : loop.first_line}, groups.size());
    if (is_new) groups.emplace_back();
    add_to(groups[place->second], row);
  }
  return groups;
}

}  // namespace

std::string_view to_string(TickBase base) noexcept {
  return kTickBases[static_cast<std::size_t>(base)];
}
std::optional<TickBase> parse_tick_base(std::string_view name) noexcept {
  return value_called<TickBase>(name, kTickBases);
}
std::string_view to_string(LoopKey key) noexcept { return kKeys[static_cast<std::size_t>(key)]; }
std::optional<LoopKey> parse_loop_key(std::string_view name) noexcept {
  return value_called<LoopKey>(name, kKeys);
}

LoopRow loop_row(const LoopProfile& profile, std::uint32_t number,
                 const std::optional<SampledLoops>& samples) {
  const CompiledLoop& loop = profile.loops().all()[number];
  LoopRow row{.loop = number, .loops = 1};
  row.entered = times_entered(profile, number);
  row.iterations = loop.iterations();
  const bool is_its_loops = loop.is_inner && !profile.counts_inner_bridges();
  const std::uint64_t ticks = profile.times()[number].ticks;
  if (profile.has_events() && !(is_its_loops && ticks == 0)) row.ticks = ticks;
  if (samples && number < samples->by_loop.size()) row.samples = samples->by_loop[number];
  return row;
}

std::vector<LoopRow> loop_rows(const LoopProfile& profile, LoopKey key,
                               const std::optional<SampledLoops>& samples) {
  std::vector<LoopRow> rows;
  for (std::uint32_t i = 0; i < profile.loops().all().size(); ++i) {
    rows.push_back(loop_row(profile, i, samples));
  }
  if (key != LoopKey::loop) rows = grouped(rows, profile.loops().all(), key);
  const auto weight = [](const LoopRow& row) {
    return std::tuple(row.ticks.value_or(0), row.samples, row.iterations.value_or(0),
                      row.entered.value_or(0));
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const LoopRow& a, const LoopRow& b) { return weight(a) > weight(b); });
  return rows;
}

LoopRow sum_of_rows(std::span<const LoopRow> rows) {
  LoopRow sum;
  for (const LoopRow& row : rows) add_to(sum, row);
  return sum;
}

std::vector<FailedGuard> failed_guards(const LoopProfile& profile, std::uint32_t loop) {
  const auto& guards = profile.loops().all()[loop].guards;
  std::vector<FailedGuard> failed;
  for (std::uint32_t i = 0; i < guards.size(); ++i) {
    if (guards[i].bridge == kNone) continue;
    failed.push_back({i, times_entered(profile, guards[i].bridge)});
  }
  std::stable_sort(failed.begin(), failed.end(), [](const FailedGuard& a, const FailedGuard& b) {
    return a.failures.value_or(0) > b.failures.value_or(0);
  });
  return failed;
}

std::optional<FailedGuard> worst_guard(const LoopProfile& profile, std::uint32_t loop) {
  const std::vector<FailedGuard> failed = failed_guards(profile, loop);
  if (failed.empty() || failed.front().failures.value_or(0) == 0) return std::nullopt;
  return failed.front();
}

std::string_view short_name(const CompiledLoop& loop) noexcept {
  const std::string_view name = loop.name;
  const std::size_t begin = name.find(" (");
  const bool is_told = !loop.function.empty() && name.ends_with(')');
  return is_told && begin != std::string_view::npos && begin != 0 ? name.substr(0, begin) : name;
}

std::vector<std::uint32_t> ranked_categories(const LoopProfile& profile) {
  const auto categories = profile.categories();
  std::vector<std::uint32_t> order(categories.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return categories[a].ticks > categories[b].ticks;
  });
  return order;
}

std::vector<ListedPlace> list_operations(const CompiledLoop& loop, std::string_view log) {
  std::unordered_map<std::uint64_t, std::uint32_t> guards;
  std::unordered_map<std::uint64_t, std::uint32_t> labels;
  for (std::uint32_t i = 0; i < loop.guards.size(); ++i) guards[loop.guards[i].address] = i;
  for (std::uint32_t i = 0; i < loop.labels.size(); ++i) labels[loop.labels[i].token] = i;
  const auto number_in = [](const auto& numbers, std::uint64_t key) {
    const auto found = numbers.find(key);
    return found == numbers.end() ? kNone : found->second;
  };
  std::vector<ListedPlace> places;
  const auto add_place = [&](const PypyPlace& place) {
    const auto line = [](const PypyPlace& of) { return std::tie(of.function, of.file, of.line); };
    places.push_back({place, places.empty() || line(places.back().place) != line(place)});
  };
  for_each_operation_line(loop, log, [&](std::string_view line) {
    if (line.empty() || line.ends_with("--end of the loop--") || parse_operations_title(line)) {
      return;
    }
    const OperationLine parsed = parse_operation_line(line).value_or(OperationLine());
    if (parsed.operation == "debug_merge_point") return add_place(parse_pypy_place(parsed.place));
    if (places.empty()) add_place({});
    ListedOperation operation{line};
    if (parsed.guard != 0) operation.guard = number_in(guards, parsed.guard);
    if (parsed.operation == "label") operation.label = number_in(labels, parsed.token);
    places.back().operations.push_back(operation);
  });
  return places;
}

std::optional<std::uint64_t> times_passed(const LoopProfile& profile, std::uint32_t number,
                                          const ListedOperation& operation) {
  const CompiledLoop& loop = profile.loops().all()[number];
  if (operation.label != kNone) return loop.labels[operation.label].count;
  const std::uint32_t bridge =
      operation.guard != kNone ? loop.guards[operation.guard].bridge : kNone;
  return bridge == kNone ? std::nullopt : times_entered(profile, bridge);
}

}  // namespace perfmap
