// SPDX-License-Identifier: MIT
#include "perfmap/profile/merged_stacks.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <ctime>
#include <limits>
#include <map>
#include <mutex>

#include "base/hex_bytes.hpp"
#include "base/parallel.hpp"
#include "perfmap/runtimes.hpp"
#include "perfmap/text.hpp"
#include "stacks/interning.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

constexpr std::string_view kBuild = "build";

std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) noexcept {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

/// A frame, as far as it matters.
struct MergedFrame {
  std::uint32_t place = 0;
  FrameSource source = FrameSource::initial;
  bool is_return = false;  // only if the place has an address
  friend bool operator==(const MergedFrame&, const MergedFrame&) = default;
};

struct MergedSample {
  std::uint32_t node = 0;  // of the tree of frames
  std::uint32_t event = 0;
  std::uint32_t comm = 0;  // of the strings
  std::uint32_t process_comm = 0;
  std::uint32_t program = 0;  // mapping
  std::uint32_t labels = 0;
  StackEnd end = StackEnd::no_info;
  friend bool operator==(const MergedSample&, const MergedSample&) = default;
};

struct HashOf {
  std::size_t operator()(const MergedFrame& frame) const noexcept {
    const auto source =
        static_cast<std::uint64_t>(frame.source) << 1 | std::uint64_t{frame.is_return};
    return Hash().add(frame.place).add(source).value();
  }
  std::size_t operator()(const MergedSample& sample) const noexcept {
    return Hash()
        .add(std::uint64_t{sample.node} << 32 | sample.event)
        .add(std::uint64_t{sample.comm} << 32 | sample.process_comm)
        .add(std::uint64_t{sample.program} << 32 | sample.labels)
        .add(static_cast<std::uint64_t>(sample.end))
        .value();
  }
};

struct Counts {
  std::uint64_t samples = 0;
  std::uint64_t period = 0;
};

/// Wall-clock times of samples, in nanoseconds since 1970.
struct Span {
  std::uint64_t first = UINT64_MAX;
  std::uint64_t last = 0;

  bool is_empty() const noexcept { return first > last; }
  void add(const Span& other) noexcept {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
};

/// A mapping without its place in memory, which is another one in each run. That of a file has its
/// place in the file instead, so that a symbolizer can name the addresses.
FrameMapping without_place(FrameMapping mapping) noexcept {
  const bool is_file = mapping.path.starts_with('/') && mapping.kind != FrameKind::jit &&
                       mapping.kind != FrameKind::kernel;
  mapping.range = is_file ? AddressRange{mapping.offset, mapping.range.size} : AddressRange{};
  if (!is_file) mapping.offset = 0;
  if (mapping.kind == FrameKind::jit) mapping.path = {};
  return mapping;
}

void keep_common(std::string& known, const std::string& other) {
  if (known != other) known.clear();
}

}  // namespace

struct MergedStacks::State {
  FrameTable table;
  StringPool strings;
  LabelSets label_sets;
  InternTable<MergedFrame, HashOf> frames;
  StackTree tree;  // of frames
  InternTable<MergedSample, HashOf> samples;
  std::vector<Counts> counts;  // by sample
  StackProfile about;          // of all recordings
  std::size_t recordings = 0;
  Span span;

  // Of the recording that begin() got.
  const FrameTable* source = nullptr;
  StackProfile profile;
  Labels labels;
  std::vector<std::uint32_t> places;    // by number in `source`; 0: not converted yet
  std::vector<std::uint32_t> programs;  // the same for mappings
  std::vector<std::uint32_t> events;    // by number in `profile`; UINT32_MAX: not yet
  std::vector<std::uint32_t> sets;      // labels by program; UINT32_MAX: not yet

  void begin(const FrameTable& from, StackProfile of_source) {
    source = &from;
    profile = std::move(of_source);
    places.clear();
    programs.clear();
    events.assign(profile.events.size() + 1, UINT32_MAX);
    sets.clear();
  }

  void add_facts(const StackProfile& other, std::size_t count) {
    if (recordings == 0) {
      const std::vector<StackProfile::Event> known = std::move(about.events);
      about = other;
      about.events = known;
    }
    keep_common(about.command, other.command);
    keep_common(about.hostname, other.hostname);
    keep_common(about.arch, other.arch);
    keep_common(about.os_release, other.os_release);
    recordings += count;
  }

  std::uint32_t mapping_of(std::uint32_t number) {
    if (number == 0) return 0;
    if (number >= programs.size()) programs.resize(source->mappings());
    std::uint32_t& known = programs[number];
    if (known == 0) known = table.add(without_place(source->mapping(number)));
    return known;
  }

  std::uint32_t place_of(std::uint32_t number) {
    if (number >= places.size()) places.resize(source->places());
    if (places[number] == 0) places[number] = convert(source->place(number));
    return places[number];
  }

  std::uint32_t convert(const FramePlace& from) {
    const FrameFunction& function = source->function(from.function);
    FramePlace place{.line = from.line,
                     .column = from.column,
                     .inlined_line = from.inlined_line,
                     .doubts = from.doubts};
    if (function.name.empty() && function.kind == FrameKind::native) {
      place.map_address = from.map_address;
      place.vaddr = from.vaddr;
    }
    // A file that could not be read: only the place in it is known, not the address.
    const bool is_file = source->mapping(from.mapping).path.starts_with('/');
    if (function.name.empty() && function.kind == FrameKind::unknown && is_file) {
      place.map_address = from.map_address;
    }
    if (from.function != 0) place.function = common_function(function);
    place.mapping = mapping_of(from.mapping);
    return table.add(place);
  }

  /// The path of a map or dump has a pid.
  std::uint32_t common_function(FrameFunction function) {
    if (function.kind != FrameKind::jit || function.name.empty()) return table.add(function);
    const std::string name = stable_name(function.name);
    const std::string system_name = stable_name(function.system_name);
    function.name = name;
    function.system_name = system_name;
    function.module = {};
    return table.add(function);
  }

  std::uint32_t event_number(const StackSample& sample) {
    const std::size_t position = std::min<std::size_t>(sample.event, profile.events.size());
    if (events[position] == UINT32_MAX) events[position] = add_event(event_of(profile, sample));
    return events[position];
  }

  std::uint32_t add_event(const StackProfile::Event& event) {
    const auto found = std::ranges::find_if(about.events, [&](const StackProfile::Event& known) {
      return known.name == event.name && known.is_time == event.is_time &&
             known.is_weighted == event.is_weighted && known.unit == event.unit;
    });
    if (found == about.events.end()) {
      about.events.push_back(event);
      about.events.back().has_times = false;
      return static_cast<std::uint32_t>(about.events.size() - 1);
    }
    const bool differs = found->period != event.period || found->is_frequency != event.is_frequency;
    if (differs) found->period = 0;
    return static_cast<std::uint32_t>(found - about.events.begin());
  }

  std::uint32_t labels_of(std::uint32_t program) {
    if (program >= sets.size()) sets.resize(source->mappings(), UINT32_MAX);
    if (sets[program] == UINT32_MAX) sets[program] = make_labels(program);
    return sets[program];
  }

  std::uint32_t make_labels(std::uint32_t program) {
    std::vector<std::pair<std::string, std::string>> all;
    const auto set = [&all](const std::string& key, const std::string& value) {
      const auto known = std::ranges::find_if(all, [&](auto& one) { return one.first == key; });
      if (known == all.end()) return all.emplace_back(key, value), void();
      known->second = value;
    };
    const std::string_view build = source->mapping(program).build_id;
    if (labels.build && !build.empty()) set(std::string(kBuild), hex_of_bytes(build));
    for (const auto& [key, value] : labels.fixed) set(key, value);
    std::vector<StackLabel> views;
    for (const auto& [key, value] : all) views.push_back({key, value});
    return label_sets.add(views);
  }

  void count(const MergedSample& sample, const Counts& more) {
    const std::uint32_t number = samples.add(sample);
    if (number == counts.size()) counts.emplace_back();
    Counts& known = counts[number];
    known.samples = saturated_sum(known.samples, more.samples);
    known.period = saturated_sum(known.period, more.period);
  }

  std::uint32_t frame_of(std::uint32_t place, FrameSource from, bool is_return) {
    const std::uint32_t number = place_of(place);
    const FramePlace& converted = table.place(number);
    const bool has_address = converted.map_address != 0 || converted.vaddr != 0;
    return frames.add({number, from, is_return && has_address});
  }

  void note_time(const StackSample& sample) {
    if (profile.wall_ns == 0 || !event_of(profile, sample).has_times) return;
    const std::uint64_t time = profile.wall_ns + sample.time - profile.clock_ns;
    span.add({time, time});
  }
};

MergedStacks::MergedStacks() : state_(std::make_unique<State>()) {}
MergedStacks::MergedStacks(MergedStacks&&) noexcept = default;
MergedStacks& MergedStacks::operator=(MergedStacks&&) noexcept = default;
MergedStacks::~MergedStacks() = default;

void MergedStacks::begin(const FrameTable& table, const StackProfile& profile,
                         const Labels& labels) {
  state_->begin(table, profile);
  state_->labels = labels;
  state_->add_facts(profile, 1);
}

void MergedStacks::add(const StackSample& sample, std::uint64_t count) {
  State& state = *state_;
  std::uint32_t node = 0;
  for (std::size_t i = sample.frames.size(); i-- > 0;) {
    const StackFrame& frame = sample.frames[i];
    node = state.tree.child(node, state.frame_of(frame.place, frame.source, frame.is_return));
  }
  state.note_time(sample);
  state.count({.node = node,
               .event = state.event_number(sample),
               .comm = state.strings.add(sample.comm),
               .process_comm = state.strings.add(sample.process_comm),
               .program = state.mapping_of(sample.program),
               .labels = state.labels_of(sample.program),
               .end = sample.end},
              {count, sample.period});
}

void MergedStacks::add(const MergedStacks& other) {
  State& state = *state_;
  const State& from = *other.state_;
  if (from.recordings == 0) return;
  state.begin(from.table, from.about);
  state.add_facts(from.about, from.recordings);
  state.span.add(from.span);
  // A parent comes before its children.
  std::vector<std::uint32_t> nodes(from.tree.size());
  for (std::uint32_t node = 1; node < nodes.size(); ++node) {
    const MergedFrame& frame = from.frames[from.tree[node].frame];
    nodes[node] = state.tree.child(nodes[from.tree[node].parent],
                                   state.frame_of(frame.place, frame.source, frame.is_return));
  }
  std::vector<std::uint32_t> sets(from.label_sets.size());
  for (std::uint32_t set = 0; set < sets.size(); ++set) {
    sets[set] = state.label_sets.add(from.label_sets[set]);
  }
  for (std::uint32_t number = 0; number < from.samples.size(); ++number) {
    MergedSample sample = from.samples[number];
    sample.node = nodes[sample.node];
    sample.event = state.event_number({.event = sample.event});
    sample.comm = state.strings.add(from.strings[sample.comm]);
    sample.process_comm = state.strings.add(from.strings[sample.process_comm]);
    sample.program = state.mapping_of(sample.program);
    sample.labels = sets[sample.labels];
    state.count(sample, from.counts[number]);
  }
}

std::size_t MergedStacks::recordings() const noexcept { return state_->recordings; }
std::size_t MergedStacks::stacks() const noexcept { return state_->samples.size(); }
const FrameTable& MergedStacks::table() const noexcept { return state_->table; }

StackProfile MergedStacks::profile() const {
  StackProfile profile = state_->about;
  if (state_->recordings > 1) profile.title = std::to_string(state_->recordings) + " recordings";
  profile.is_merged = true;
  profile.clock_ns = 0;
  profile.wall_ns = state_->span.is_empty() ? 0 : state_->span.first;
  profile.duration_ns = state_->span.is_empty() ? 0 : state_->span.last - state_->span.first;
  return profile;
}

void MergedStacks::visit(const std::function<void(const StackSample& sample)>& take) const {
  const State& state = *state_;
  std::vector<StackFrame> frames;
  for (std::uint32_t number = 0; number < state.samples.size(); ++number) {
    const MergedSample& merged = state.samples[number];
    frames.clear();
    for (std::uint32_t node = merged.node; node != 0; node = state.tree[node].parent) {
      const MergedFrame& frame = state.frames[state.tree[node].frame];
      frames.push_back({.ip = state.table.place(frame.place).vaddr,
                        .place = frame.place,
                        .source = frame.source,
                        .is_return = frame.is_return});
    }
    const std::vector<StackLabel> labels = state.label_sets[merged.labels];
    StackSample sample{.pid = -1, .tid = -1};
    sample.period = state.counts[number].period;
    sample.event = merged.event;
    sample.comm = state.strings[merged.comm];
    sample.process_comm = state.strings[merged.process_comm];
    sample.program = merged.program;
    sample.end = merged.end;
    sample.frames = frames;
    sample.count = state.counts[number].samples;
    sample.labels = labels;
    take(sample);
  }
}

namespace {

/// Results that wait for those of earlier recordings.
class Queue {
 public:
  Queue(std::size_t window, MergedStacks& merged, const std::function<void(std::size_t)>& done)
      : window_(window), merged_(merged), done_(done) {}

  /// Waits while too many results of later recordings are held. The recording that all wait for is
  /// being read, because recordings are begun in order.
  void put(std::size_t i, std::optional<MergedStacks> result) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return has_failed_ || i < next_ + window_; });
    if (has_failed_) return;
    waiting_.emplace(i, std::move(result));
    while (!waiting_.empty() && waiting_.begin()->first == next_) {
      if (const auto& first = waiting_.begin()->second) merged_.add(*first);
      waiting_.erase(waiting_.begin());
      done_(next_++);
    }
    moved_.notify_all();
  }

  void fail() {
    const std::lock_guard lock(mutex_);
    has_failed_ = true;
    moved_.notify_all();
  }

 private:
  const std::size_t window_;
  MergedStacks& merged_;
  const std::function<void(std::size_t)>& done_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::map<std::size_t, std::optional<MergedStacks>> waiting_;
  std::size_t next_ = 0;
  bool has_failed_ = false;
};

/// Wakes those who wait if an exception ends it.
struct Turn {
  Queue& queue;
  bool is_over = false;
  ~Turn() {
    if (!is_over) queue.fail();
  }
};

}  // namespace

void merge_in_order(std::size_t count, std::size_t threads,
                    const std::function<std::optional<MergedStacks>(std::size_t i)>& read,
                    const std::function<void(std::size_t i)>& done, MergedStacks& merged) {
  Queue queue(2 * std::max<std::size_t>(threads, 1), merged, done);
  parallel_for(count, threads, [&](std::size_t i) {
    Turn turn{queue};
    queue.put(i, read(i));
    turn.is_over = true;
  });
}

namespace {

Failure invalid(const std::string& why, std::uint64_t line = 0) {
  return Failure(Error::invalid(why).at({0, line, 0}));
}

Result<ListedRecording> parse_line(std::string_view line) {
  if (line.find('\0') != std::string_view::npos) {
    return invalid("a NUL byte (--null reads the list of find -print0)");
  }
  if (line.ends_with('\r')) return invalid("a carriage return at the end of the line");
  std::size_t end = line.find('\t');
  ListedRecording one{std::string(line.substr(0, end))};
  if (one.path.empty()) return invalid("no path before the labels");
  while (end != std::string_view::npos) {
    line.remove_prefix(end + 1);
    end = line.find('\t');
    Result<RecordingLabel> label = parse_label(line.substr(0, end));
    if (!label) {
      return invalid(label.error().message() +
                     " (after a tab, a list has labels; for paths with tabs: --null)");
    }
    one.labels.push_back(*std::move(label));
  }
  return one;
}

}  // namespace

Result<RecordingLabel> parse_label(std::string_view text) {
  const std::size_t end = text.find('=');
  const bool has_key = end != std::string_view::npos && end != 0;
  if (!has_key) {
    std::string shown;
    append_visible(shown, text);
    return invalid("'" + shown + "' is not KEY=VALUE");
  }
  return RecordingLabel{text.substr(0, end), text.substr(end + 1)};
}

Result<std::vector<ListedRecording>> parse_recording_list(std::string_view text,
                                                          bool ends_with_nul) {
  std::vector<ListedRecording> listed;
  const char end = ends_with_nul ? '\0' : '\n';
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find(end));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty()) continue;
    Result<ListedRecording> one =
        ends_with_nul ? ListedRecording{std::string(line)} : parse_line(line);
    if (!one) return invalid(one.error().message(), number);
    listed.push_back(*std::move(one));
  }
  return listed;
}

namespace {

std::string utc_text(std::uint64_t wall_ns) {
  const auto seconds = static_cast<std::time_t>(wall_ns / 1'000'000'000);
  std::tm parts{};
  std::array<char, 64> text{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return {};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

std::string wall_text(const StackProfile& profile) {
  return profile.wall_ns == 0 ? "" : utc_text(profile.wall_ns);
}

struct RecordedLabel {
  std::string_view key;
  std::string (*value)(const StackProfile& profile);
};
constexpr std::array kRecordedLabels = {
    RecordedLabel{"host", [](const StackProfile& profile) { return profile.hostname; }},
    RecordedLabel{"arch", [](const StackProfile& profile) { return profile.arch; }},
    RecordedLabel{"kernel", [](const StackProfile& profile) { return profile.os_release; }},
    RecordedLabel{"time", wall_text},
};
constexpr std::array<std::string_view, 5> kKeys = {"host", "build", "time", "arch", "kernel"};

}  // namespace

std::optional<std::string> recorded_label(std::string_view key, const StackProfile& profile) {
  const auto found = std::ranges::find(kRecordedLabels, key, &RecordedLabel::key);
  if (found == kRecordedLabels.end()) return std::nullopt;
  std::string value = found->value(profile);
  return value.empty() ? std::nullopt : std::optional(std::move(value));
}

std::span<const std::string_view> recorded_label_keys() noexcept { return kKeys; }

}  // namespace perfmap
