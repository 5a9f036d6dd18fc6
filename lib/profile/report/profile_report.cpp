// SPDX-License-Identifier: MIT
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "base/typed_name.hpp"
#include "perfmap/profile/report.hpp"
#include "perfmap/runtimes.hpp"
#include "report/counted_stacks.hpp"
#include "report/function_identity.hpp"
#include "stacks/interning.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

namespace {

struct ByName {
  ReportBy by;
  std::string_view name;
};
constexpr ByName kByNames[] = {
    {ReportBy::function, "function"}, {ReportBy::module, "module"}, {ReportBy::thread, "thread"},
    {ReportBy::process, "process"},   {ReportBy::tier, "tier"},     {ReportBy::line, "line"},
    {ReportBy::runtime, "runtime"},   {ReportBy::label, "label"},
};

std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) noexcept {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

}  // namespace

std::string_view to_string(ReportBy by) noexcept {
  for (const ByName& one : kByNames) {
    if (one.by == by) return one.name;
  }
  return "";
}

std::optional<ReportBy> report_by(std::string_view name) noexcept {
  for (const ByName& one : kByNames) {
    if (one.name == name) return one.by;
  }
  return std::nullopt;
}

std::vector<std::string> report_by_names() {
  std::vector<std::string> names;
  for (const ByName& one : kByNames) names.emplace_back(one.name);
  return names;
}

void ReportCounts::add(const ReportCounts& other) noexcept {
  samples = saturated_sum(samples, other.samples);
  period = saturated_sum(period, other.period);
}

namespace {

/// What identifies a row; strings are numbers of a pool. Fields that do not matter for the kind of
/// report are 0.
struct RowKey {
  std::uint32_t name = 0;
  std::uint32_t module = 0;
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  pid_t pid = 0;
  pid_t tid = 0;
  FrameKind kind = FrameKind::unknown;

  friend bool operator==(const RowKey&, const RowKey&) = default;
};

/// A compiler tier of a row.
struct RowTier {
  std::uint32_t row = 0;
  std::uint32_t tier = 0;

  friend bool operator==(const RowTier&, const RowTier&) = default;
};

/// A source line of a row. The file is a number of a pool.
struct RowLine {
  std::uint32_t row = 0;
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  bool is_of_name = false;  ///< see NamedPlace

  friend bool operator==(const RowLine&, const RowLine&) = default;
};

struct HashOf {
  std::size_t operator()(const RowKey& key) const noexcept {
    return Hash()
        .add(std::uint64_t{key.name} << 32 | key.module)
        .add(std::uint64_t{key.file} << 32 | key.line)
        .add(std::uint64_t{static_cast<std::uint32_t>(key.pid)} << 32 |
             static_cast<std::uint32_t>(key.tid))
        .add(static_cast<std::uint64_t>(key.kind))
        .value();
  }
  std::size_t operator()(const RowTier& tier) const noexcept {
    return Hash().add(std::uint64_t{tier.row} << 32 | tier.tier).value();
  }
  std::size_t operator()(const RowLine& line) const noexcept {
    return Hash().add(line.row).add(std::uint64_t{line.file} << 32 | line.line).value();
  }
};

/// A kind of code that a tier and a runtime are not known for.
std::string_view name_of_kind(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::native: return "[native]";
    case FrameKind::jit: return "[jit]";
    case FrameKind::kernel: return "[kernel]";
    default: return "[unknown]";
  }
}

/// An inlined function is code of its module.
FrameKind kind_of_code(FrameKind kind) noexcept {
  return kind == FrameKind::inlined ? FrameKind::native : kind;
}

Runtime runtime_of(const FrameFunction& function) {
  if (function.kind != FrameKind::jit) return Runtime::unknown;
  return decode_name(function.system_name.empty() ? function.name : function.system_name).runtime;
}

struct NamedPlace {
  std::string_view file = {};
  std::uint32_t line = 0;  ///< 0: unknown
};

/// Where the function begins, or for PHP the trace, if the runtime's name says that.
NamedPlace place_in_name(const FrameFunction& function) {
  if (function.kind != FrameKind::jit) return {};
  const DecodedName name =
      decode_name(function.system_name.empty() ? function.name : function.system_name);
  if (name.line > std::numeric_limits<std::uint32_t>::max()) return {name.file};
  return {name.file, static_cast<std::uint32_t>(name.line)};
}

/// What a row is displayed with, but not identified by.
struct RowFacts {
  std::uint32_t system_name = 0;
  std::uint32_t module = 0;
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  bool is_line_of_samples = false;
  bool has_several_modules = false;
};

/// The rows of all events, and which of them the frames of a sample count for.
class ReportRows {
 public:
  ReportRows(const FrameTable& table, const ProfileReport::Options& options)
      : table_(table), options_(options), frames_(table, options.merge_tiers, true) {}

  struct Place {
    std::uint32_t row = UINT32_MAX;
    std::uint32_t tier = UINT32_MAX;  ///< position in tiers(); UINT32_MAX: none
    std::uint32_t line = UINT32_MAX;  ///< the same in lines()
  };

  Place of_place(std::uint32_t place) {
    if (place >= places_.size()) places_.resize(table_.places());
    Place& known = places_[place];
    if (known.row == UINT32_MAX) known = make_place(place);
    return known;
  }

  bool is_inlined(std::uint32_t place) const noexcept {
    return table_.function_of(place).kind == FrameKind::inlined;
  }

  std::uint32_t of_label(const StackSample& sample) {
    const auto label = std::ranges::find(sample.labels, options_.label, &StackLabel::key);
    const bool has_value = label != sample.labels.end() && !label->value.empty();
    return add({.name = strings_.add(has_value ? label->value : "[unknown]")}, RowFacts());
  }

  std::uint32_t of_thread(const StackSample& sample) {
    const bool is_thread = options_.by == ReportBy::thread;
    const std::uint32_t comm = strings_.add(is_thread ? sample.comm : sample.process_comm);
    // Of several recordings, only the name is known.
    const bool has_pid = sample.pid >= 0;
    const std::uint32_t row =
        add({.name = has_pid ? 0 : comm, .pid = sample.pid, .tid = is_thread ? sample.tid : 0},
            RowFacts());
    if (row >= comms_.size()) comms_.resize(row + 1);
    comms_[row] = comm;
    return row;
  }

  std::size_t size() const noexcept { return keys_.size(); }
  std::size_t tiers() const noexcept { return tiers_.size(); }
  const RowTier& tier(std::uint32_t number) const noexcept { return tiers_[number]; }
  std::string_view tier_name(std::uint32_t number) const noexcept {
    return strings_[tiers_[number].tier];
  }

  std::size_t lines() const noexcept { return lines_.size(); }
  const RowLine& line(std::uint32_t number) const noexcept { return lines_[number]; }
  std::string_view file(const RowLine& line) const noexcept { return strings_[line.file]; }

  std::string_view name(std::uint32_t row) const noexcept { return strings_[names_[row]]; }
  std::string_view module(std::uint32_t row) const noexcept {
    return facts_[row].has_several_modules ? std::string_view() : strings_[facts_[row].module];
  }
  ReportRow row(std::uint32_t number) const {
    const RowKey& key = keys_[number];
    return {.number = number,
            .name = name(number),
            .system_name = strings_[facts_[number].system_name],
            .module = module(number),
            .file = strings_[facts_[number].file],
            .line = key.line == 0 ? facts_[number].line : key.line,
            .is_line_of_samples = facts_[number].is_line_of_samples,
            .kind = key.kind,
            .pid = key.pid,
            .tid = key.tid};
  }

  /// Threads and processes are named as in the last of their samples.
  void name_threads() {
    for (std::uint32_t row = 0; row < comms_.size(); ++row) {
      const RowKey& key = keys_[row];
      const pid_t tid = options_.by == ReportBy::thread ? key.tid : key.pid;
      names_[row] = strings_.add(thread_label(strings_[comms_[row]], key.pid, tid));
    }
  }

 private:
  Place make_place(std::uint32_t number) {
    const FrameFunction& original = table_.function_of(number);
    const std::uint32_t frame = frames_.of_place(number);
    const std::uint32_t row = add_function(frame, original);
    Place place{row};
    const bool has_tier = original.kind == FrameKind::jit && !original.tier.empty();
    if (has_tier && options_.by != ReportBy::tier) {
      place.tier = tiers_.add({row, strings_.add(original.tier)});
    }
    if (options_.by != ReportBy::function) return place;
    if (const std::uint32_t line = table_.place(number).line; line != 0) {
      place.line = lines_.add({row, strings_.add(original.file), line});
    } else if (const NamedPlace named = place_in_name(original); named.line != 0) {
      place.line = lines_.add({row, strings_.add(named.file), named.line, true});
    }
    return place;
  }

  /// `original` still has its tier.
  std::uint32_t add_function(std::uint32_t frame, const FrameFunction& original) {
    const FrameFunction& function = frames_.function(frame);
    const FrameKind kind = kind_of_code(function.kind);
    const std::uint32_t module = strings_.add(function.module);
    RowKey key{.kind = kind};
    RowFacts facts{.module = module, .file = strings_.add(function.file)};
    switch (options_.by) {
      case ReportBy::module:
        key.name = strings_.add(function.module.empty() ? name_of_kind(kind) : function.module);
        facts.file = 0;
        break;
      case ReportBy::tier:
        key.name = strings_.add(original.tier.empty() ? name_of_kind(kind) : original.tier);
        key.module = strings_.add(to_string(runtime_of(original)));
        facts = {.module = key.module};
        break;
      case ReportBy::runtime: {
        const std::string_view runtime = to_string(runtime_of(original));
        key.name = strings_.add(runtime.empty() ? name_of_kind(kind) : runtime);
        facts = {};
        break;
      }
      case ReportBy::line:
        facts.file = strings_.add(frames_.file(frame));
        set_line(original, frames_.line(frame), key, facts);
        [[fallthrough]];
      default:
        facts.system_name = strings_.add(original.system_name);
        key.name = strings_.add(shown_name(function));
        key.module = kind == FrameKind::jit ? 0 : module;
        if (options_.by == ReportBy::function && facts.file == 0) {
          const NamedPlace named = place_in_name(original);
          facts.file = strings_.add(named.file);
          facts.line = named.line;
        }
    }
    return add(key, facts);
  }

  void set_line(const FrameFunction& original, std::uint32_t line, RowKey& key, RowFacts& facts) {
    facts.is_line_of_samples = line != 0;
    const NamedPlace named = place_in_name(original);
    const std::uint32_t named_file = strings_.add(named.file);
    if (line == 0 && (facts.file == 0 || facts.file == named_file)) {
      facts.file = named_file;
      line = named.line;
    }
    key.file = facts.file;
    key.line = line;
  }

  std::uint32_t add(const RowKey& key, const RowFacts& facts) {
    const std::uint32_t row = keys_.add(key);
    if (row == facts_.size()) {
      facts_.push_back(facts);
      names_.push_back(key.name);
      return row;
    }
    RowFacts& known = facts_[row];
    known.is_line_of_samples = known.is_line_of_samples || facts.is_line_of_samples;
    known.has_several_modules = known.has_several_modules || known.module != facts.module;
    if (known.file == 0) {
      known.file = facts.file;
      known.line = facts.line;
    }
    return row;
  }

  const FrameTable& table_;
  const ProfileReport::Options options_;
  ShownFrames frames_;
  StringPool strings_;
  InternTable<RowKey, HashOf> keys_;
  std::vector<RowFacts> facts_;
  std::vector<std::uint32_t> names_;  // by row
  std::vector<std::uint32_t> comms_;  // by row, of threads and processes
  InternTable<RowTier, HashOf> tiers_;
  InternTable<RowLine, HashOf> lines_;
  std::vector<Place> places_;  // by place of the table
};

/// The counts of one event.
struct EventCounts {
  ReportCounts total;
  std::set<pid_t> pids;
  std::map<std::string, std::uint64_t, std::less<>> programs;  // samples by name of the process
  std::uint64_t first_time = UINT64_MAX;
  std::uint64_t last_time = 0;
  std::vector<ReportCounts> selfs;   // by row
  std::vector<ReportCounts> totals;  // by row
  std::vector<ReportCounts> tiers;   // by row and tier
  std::vector<ReportCounts> lines;   // samples in the code of a line itself
  CountedStacks stacks;
};

/// Which elements a sample has counted already.
class SeenInSample {
 public:
  void begin(std::size_t size) {
    ++sample_;
    if (last_.size() < size) last_.resize(size);
  }
  /// True once in a sample.
  bool is_new(std::uint32_t element) {
    if (element >= last_.size()) last_.resize(element + 1);
    return std::exchange(last_[element], sample_) != sample_;
  }

 private:
  std::uint64_t sample_ = 0;
  std::vector<std::uint64_t> last_;
};

ReportCounts& at(std::vector<ReportCounts>& counts, std::uint32_t number) {
  if (number >= counts.size()) counts.resize(number + 1);
  return counts[number];
}

}  // namespace

struct ProfileReport::State {
  State(const FrameTable& table, StackProfile profile_, const Options& options_)
      : profile(std::move(profile_)), options(options_), rows(table, options_) {}

  bool is_of_threads() const noexcept {
    return options.by == ReportBy::thread || options.by == ReportBy::process;
  }
  /// Whether a sample counts for one row, whatever its frames are.
  bool is_of_samples() const noexcept { return is_of_threads() || options.by == ReportBy::label; }

  void add_sample(const StackSample& sample, const ReportCounts& counts, EventCounts& event) {
    const std::uint32_t row = is_of_threads() ? rows.of_thread(sample) : rows.of_label(sample);
    at(event.selfs, row).add(counts);
    at(event.totals, row).add(counts);
  }

  void add_frames(const StackSample& sample, const ReportCounts& counts, EventCounts& event) {
    seen_rows.begin(rows.size());
    seen_tiers.begin(rows.tiers());
    stack.clear();
    for (const StackFrame& frame : sample.frames) {
      if (!options.inlines && rows.is_inlined(frame.place)) continue;
      const ReportRows::Place place = rows.of_place(frame.place);
      if (stack.empty()) at(event.selfs, place.row).add(counts);
      if (stack.empty() && place.line != UINT32_MAX) at(event.lines, place.line).add(counts);
      stack.push_back(place.row);
      if (seen_rows.is_new(place.row)) at(event.totals, place.row).add(counts);
      const bool has_tier = place.tier != UINT32_MAX;
      if (has_tier && seen_tiers.is_new(place.tier)) at(event.tiers, place.tier).add(counts);
    }
    if (options.keeps_stacks) event.stacks.add(stack, counts);
  }

  StackProfile profile;
  Options options;
  ReportRows rows;
  std::vector<EventCounts> events;  // by number
  SeenInSample seen_rows;
  SeenInSample seen_tiers;
  std::vector<std::uint32_t> stack;  // rows, leaf first
};

ProfileReport::ProfileReport(const FrameTable& table, StackProfile profile, const Options& options)
    : state_(std::make_unique<State>(table, std::move(profile), options)) {}
ProfileReport::ProfileReport(ProfileReport&&) noexcept = default;
ProfileReport& ProfileReport::operator=(ProfileReport&&) noexcept = default;
ProfileReport::~ProfileReport() = default;

const ProfileReport::Options& ProfileReport::options() const noexcept { return state_->options; }
const StackProfile& ProfileReport::profile() const noexcept { return state_->profile; }

void ProfileReport::add(const StackSample& sample, std::uint64_t count) {
  // A recording has one event more than it lists at most; see event_of().
  const auto unlisted = static_cast<std::uint32_t>(state_->profile.events.size());
  const std::uint32_t number = std::min(sample.event, unlisted);
  if (number >= state_->events.size()) state_->events.resize(number + 1);
  EventCounts& event = state_->events[number];
  const bool is_weighted = event_of(state_->profile, sample).is_weighted;
  const ReportCounts counts{is_weighted ? sample.period : count, sample.period};
  event.total.add(counts);
  event.pids.insert(sample.pid);
  auto program = event.programs.find(sample.process_comm);
  if (program == event.programs.end()) {
    program = event.programs.emplace(sample.process_comm, 0).first;
  }
  program->second += counts.samples;
  event.first_time = std::min(event.first_time, sample.time);
  event.last_time = std::max(event.last_time, sample.time);
  if (state_->is_of_samples()) {
    state_->add_sample(sample, counts, event);
  } else {
    state_->add_frames(sample, counts, event);
  }
}

namespace {

/// Samples of several recordings have none.
bool has_pids(const EventCounts& event) { return event.pids != std::set<pid_t>{-1}; }

std::string_view main_program(const EventCounts& event) {
  const auto most = std::ranges::max_element(event.programs, {},
                                             [](const auto& program) { return program.second; });
  return most == event.programs.end() ? std::string_view() : most->first;
}

}  // namespace

std::vector<ProfileReport::Event> ProfileReport::events() const {
  std::vector<Event> events;
  for (std::uint32_t number = 0; number < state_->events.size(); ++number) {
    const EventCounts& counts = state_->events[number];
    if (counts.pids.empty()) continue;
    const bool is_listed = number < state_->profile.events.size();
    const StackProfile::Event& event =
        event_of(state_->profile, {.event = is_listed ? number : UINT32_MAX});
    events.push_back({.number = number,
                      .name = event.name.empty() ? std::string_view("unknown") : event.name,
                      .is_time = event.is_time,
                      .unit = event.is_weighted ? std::string_view(event.unit) : "",
                      .total = counts.total,
                      .processes = has_pids(counts) ? counts.pids.size() : counts.programs.size(),
                      .program = main_program(counts),
                      .duration_ns = counts.last_time - counts.first_time});
  }
  return events;
}

namespace {

/// Adds the tiers of each row, the one with most samples first. `positions` are those of rows by
/// number.
void add_tiers(const EventCounts& event, const ReportRows& all,
               const std::vector<std::size_t>& positions, std::vector<ReportRow>& rows) {
  std::vector<std::uint32_t> tiers;
  for (std::uint32_t tier = 0; tier < event.tiers.size(); ++tier) {
    if (event.tiers[tier] != ReportCounts()) tiers.push_back(tier);
  }
  std::stable_sort(tiers.begin(), tiers.end(), [&](std::uint32_t a, std::uint32_t b) {
    return event.tiers[a].samples > event.tiers[b].samples;
  });
  for (const std::uint32_t tier : tiers) {
    rows[positions[all.tier(tier).row]].tiers.push_back(all.tier_name(tier));
  }
}

/// Sets the line of each row that has most samples of its own.
void set_hottest_lines(const EventCounts& event, const ReportRows& all,
                       const std::vector<std::size_t>& positions, std::vector<ReportRow>& rows) {
  std::vector<std::uint64_t> most(rows.size());
  for (std::uint32_t number = 0; number < event.lines.size(); ++number) {
    const RowLine& line = all.line(number);
    const std::uint64_t samples = event.lines[number].samples;
    const std::size_t position = positions[line.row];
    if (samples == 0 || samples <= most[position]) continue;
    most[position] = samples;
    rows[position].file = all.file(line);
    rows[position].line = line.line;
    rows[position].is_line_of_samples = !line.is_of_name;
  }
}

}  // namespace

std::vector<ReportRow> ProfileReport::rows(std::uint32_t number, Order order) const {
  State& state = *state_;
  if (number >= state.events.size()) return {};
  if (state.is_of_threads()) state.rows.name_threads();
  EventCounts& event = state.events[number];
  event.selfs.resize(state.rows.size());
  event.totals.resize(state.rows.size());
  std::vector<ReportRow> rows;
  std::vector<std::size_t> positions(state.rows.size(), SIZE_MAX);
  for (std::uint32_t row = 0; row < state.rows.size(); ++row) {
    if (event.totals[row] == ReportCounts()) continue;
    positions[row] = rows.size();
    rows.push_back(state.rows.row(row));
    rows.back().self = event.selfs[row];
    rows.back().total = event.totals[row];
  }
  add_tiers(event, state.rows, positions, rows);
  set_hottest_lines(event, state.rows, positions, rows);
  const auto rank = [order](const ReportRow& row) {
    const ReportCounts& first = order == Order::self ? row.self : row.total;
    const ReportCounts& second = order == Order::self ? row.total : row.self;
    return std::make_tuple(~first.samples, ~second.samples, ~first.period, row.name, row.module,
                           row.file, row.line, row.pid, row.tid, row.number);
  };
  std::sort(rows.begin(), rows.end(),
            [&](const ReportRow& a, const ReportRow& b) { return rank(a) < rank(b); });
  return rows;
}

std::string_view ProfileReport::name(std::uint32_t row) const noexcept {
  return state_->rows.name(row);
}

std::vector<std::uint32_t> ProfileReport::find(std::string_view name) const {
  const TypedName typed{std::string(name)};
  const std::vector<TypedName> of_row = typed.of_row();
  std::vector<std::uint32_t> exact, without_place, partial, rows;
  for (std::uint32_t row = 0; row < state_->rows.size(); ++row) {
    const std::string_view other = state_->rows.name(row);
    if (typed.is(other)) exact.push_back(row);
    const ReportRow whole = state_->rows.row(row);
    const FunctionIdentity identity =
        identity_of(whole.kind, whole.name, whole.system_name, whole.module);
    if (typed.is(identity.name) || typed.is_plain(other)) without_place.push_back(row);
    if (typed.is_in(other)) partial.push_back(row);
    if (std::ranges::any_of(of_row, [&](const TypedName& one) { return one.is(other); }))
      rows.push_back(row);
  }
  if (!exact.empty()) return exact;
  if (!without_place.empty()) return without_place;
  return !partial.empty() ? partial : rows;
}

namespace {

/// `roots` are the rows of the root, which has no line if there are several, and no module if
/// theirs differ.
std::vector<ReportTreeNode> named(const std::vector<CountedNode>& tree,
                                  std::span<const std::uint32_t> roots, const ReportRows& rows) {
  std::vector<ReportTreeNode> nodes;
  nodes.reserve(tree.size());
  for (const CountedNode& node : tree) {
    const ReportRow row = rows.row(node.row);
    nodes.push_back({.parent = node.parent,
                     .depth = node.depth,
                     .name = row.name,
                     .module = row.module,
                     .file = row.file,
                     .line = row.line,
                     .kind = row.kind,
                     .total = node.total,
                     .self = node.self});
  }
  if (nodes.empty() || roots.size() < 2) return nodes;
  ReportTreeNode& root = nodes.front();
  root.line = 0;
  const auto is_of_module = [&](std::uint32_t row) { return rows.module(row) == root.module; };
  if (!std::ranges::all_of(roots, is_of_module)) root.module = {};
  return nodes;
}

}  // namespace

std::vector<ReportTreeNode> ProfileReport::callers(std::uint32_t event,
                                                   std::span<const std::uint32_t> rows) const {
  if (event >= state_->events.size()) return {};
  return named(state_->events[event].stacks.callers(rows, state_->rows.size()), rows, state_->rows);
}

std::vector<ReportTreeNode> ProfileReport::callees(std::uint32_t event,
                                                   std::span<const std::uint32_t> rows) const {
  if (event >= state_->events.size()) return {};
  return named(state_->events[event].stacks.callees(rows, state_->rows.size()), rows, state_->rows);
}

}  // namespace perfmap
