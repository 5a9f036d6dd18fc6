#include "perfmap/loop_report.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "io/windows.hpp"
#include "perfmap/loop_listing.hpp"
#include "perfmap/loop_profile.hpp"
#include "pypylog/pypy_lines.hpp"

namespace perfmap {

void read_pypylog(const Input& input, LoopProfile& profile) {
  ChunkReader windows(input, input.text(), 0);
  for (Window window = windows.next(); !window.text.empty(); window = windows.next()) {
    profile.add(window.text);
  }
}

namespace {

class Lister {
 public:
  explicit Lister(const CompiledLoop& loop) {
    for (std::uint32_t i = 0; i < loop.guards.size(); ++i) guards_[loop.guards[i].address] = i;
    for (std::uint32_t i = 0; i < loop.labels.size(); ++i) labels_[loop.labels[i].token] = i;
  }

  void take(std::string_view line) {
    if (line.empty() || line.ends_with("--end of the loop--") || parse_operations_title(line))
      return;
    const auto parsed = parse_operation_line(line);
    if (parsed && parsed->operation == "debug_merge_point") {
      places_.push_back({parse_pypy_place(parsed->place)});
      return;
    }
    if (places_.empty()) places_.emplace_back();
    ListedOperation operation{line};
    if (parsed && parsed->guard != 0) operation.guard = number_in(guards_, parsed->guard);
    if (parsed && parsed->operation == "label") {
      operation.label = number_in(labels_, parsed->token);
    }
    places_.back().operations.push_back(operation);
  }

  std::vector<ListedPlace> finish() { return std::move(places_); }

 private:
  using Numbers = std::unordered_map<std::uint64_t, std::uint32_t>;

  static std::uint32_t number_in(const Numbers& numbers, std::uint64_t key) {
    const auto found = numbers.find(key);
    return found == numbers.end() ? CompiledLoop::kNone : found->second;
  }

  Numbers guards_;
  Numbers labels_;
  std::vector<ListedPlace> places_;
};

/// Lines of `thread` alone: where a log has threads, text may be of several.
void take_lines(std::string_view text, std::uint32_t thread, Lister& lister) {
  const bool has_threads = thread != PypylogEvent::kNoThread;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    if (!has_threads || pypylog_thread(line) == thread) {
      lister.take(plain_pypylog_line(line));
    }
    text.remove_prefix(end);
  }
}

}  // namespace

std::vector<ListedPlace> list_operations(const CompiledLoop& loop, std::string_view log) {
  const std::uint64_t begin = std::min<std::uint64_t>(loop.operations.offset, log.size());
  Lister lister(loop);
  PypylogReader reader(log.substr(begin, loop.operations.size));
  std::uint64_t depth = 0;  // of sections within that of the operations
  while (const auto event = reader.next(true)) {
    if (event->kind == PypylogEvent::Kind::text) {
      if (depth == 0) take_lines(event->text, loop.thread, lister);
    } else if (event->thread == loop.thread) {
      const bool opens = event->kind == PypylogEvent::Kind::open;
      depth = opens ? depth + 1 : depth - std::min<std::uint64_t>(depth, 1);
    }
  }
  return lister.finish();
}

namespace {

constexpr std::array<std::string_view, 3> kKeys = {"loop", "function", "file"};

using Sum = std::optional<std::uint64_t>;

/// What is not known adds nothing, but is no zero.
void add_to(Sum& sum, const Sum& more) {
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

std::vector<LoopRow> rows_of_loops(const LoopProfile& profile,
                                   const std::optional<SampledLoops>& samples) {
  const auto loops = profile.loops().all();
  std::vector<LoopRow> rows;
  rows.reserve(loops.size());
  for (std::uint32_t i = 0; i < loops.size(); ++i) {
    LoopRow row;
    row.loop = i;
    row.loops = 1;
    row.ticks = ticks_of_loop(profile, i);
    row.entered = times_entered(profile, i);
    row.iterations = loops[i].iterations();
    if (samples && i < samples->by_loop.size()) row.samples = samples->by_loop[i];
    rows.push_back(row);
  }
  return rows;
}

/// A function is what its file, its name and its first line say together.
std::tuple<std::string_view, std::string_view, std::uint32_t> group_of(const CompiledLoop& loop,
                                                                       LoopKey key) {
  if (key == LoopKey::file) return {loop.file, {}, 0};
  return {loop.file, loop.function, loop.first_line};
}

std::vector<LoopRow> grouped(const std::vector<LoopRow>& rows, std::span<const CompiledLoop> loops,
                             LoopKey key) {
  std::map<std::tuple<std::string_view, std::string_view, std::uint32_t>, std::size_t> known;
  std::vector<LoopRow> groups;
  for (const LoopRow& row : rows) {
    const auto [place, is_new] = known.try_emplace(group_of(loops[row.loop], key), groups.size());
    if (is_new) groups.emplace_back();
    add_to(groups[place->second], row);
  }
  return groups;
}

}  // namespace

std::string_view to_string(LoopKey key) noexcept { return kKeys[static_cast<std::size_t>(key)]; }

std::optional<LoopKey> parse_loop_key(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    if (kKeys[i] == name) return static_cast<LoopKey>(i);
  }
  return std::nullopt;
}

std::vector<LoopRow> loop_rows(const LoopProfile& profile, LoopKey key,
                               const std::optional<SampledLoops>& samples) {
  std::vector<LoopRow> rows = rows_of_loops(profile, samples);
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

std::optional<std::uint64_t> ticks_of_loop(const LoopProfile& profile, std::uint32_t loop) {
  if (!profile.has_events()) return std::nullopt;
  const std::uint64_t ticks = profile.times()[loop].ticks;
  const bool is_its_loops = profile.loops().all()[loop].is_inner && !profile.counts_inner_bridges();
  return is_its_loops && ticks == 0 ? std::nullopt : std::optional(ticks);
}

std::optional<std::uint64_t> times_entered(const LoopProfile& profile, std::uint32_t loop) {
  if (profile.has_events()) return profile.times()[loop].entered;
  return profile.loops().all()[loop].entries;
}

std::vector<FailedGuard> failed_guards(const LoopProfile& profile, std::uint32_t loop) {
  const auto& guards = profile.loops().all()[loop].guards;
  std::vector<FailedGuard> failed;
  for (std::uint32_t i = 0; i < guards.size(); ++i) {
    if (guards[i].bridge == CompiledLoop::kNone) continue;
    failed.push_back({i, times_entered(profile, guards[i].bridge)});
  }
  std::stable_sort(failed.begin(), failed.end(), [](const FailedGuard& a, const FailedGuard& b) {
    return a.failures.value_or(0) > b.failures.value_or(0);
  });
  return failed;
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

// By hand, as products of such numbers have more than 64 bits.
std::uint64_t scaled_ratio(std::uint64_t part, std::uint64_t whole, unsigned decimals) noexcept {
  if (whole == 0) return 0;
  std::uint64_t result = part / whole;
  std::uint64_t rest = part % whole;
  for (; decimals != 0; --decimals) {
    std::uint64_t digit = 0;
    std::uint64_t next = 0;  // 10 * rest modulo whole
    for (int i = 0; i < 10; ++i) {
      const bool carries = next >= whole - rest;
      next = carries ? next - (whole - rest) : next + rest;
      digit += carries ? 1 : 0;
    }
    rest = next;
    if (result > (UINT64_MAX - digit) / 10) return UINT64_MAX;
    result = result * 10 + digit;
  }
  return result;
}

}  // namespace perfmap
