// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/stacks.hpp"

namespace perfmap {

namespace {

/// Whether the ticks of the log can be converted to times of the recording, and some of them are
/// not after its end: the recording may come from another machine than the log.
bool can_tell_times(const RecordingFacts& facts, std::span<const RecordedEvent> events,
                    const CompiledLoops& loops, TickBase base) {
  const bool has_own_clock = std::any_of(events.begin(), events.end(),
                                         [](const RecordedEvent& event) { return event.clock; });
  if (!facts.time_conversion || has_own_clock) return false;
  return std::any_of(loops.all().begin(), loops.all().end(), [&](const CompiledLoop& loop) {
    return loop.code.size != 0 &&
           facts.time_conversion->to_ns(loop.compiled.in(base)) <= facts.last_sample;
  });
}

/// The user-space pc: for a sample in the kernel, from its callchain. 0: not recorded.
Address user_ip(const RecordedSample& sample) noexcept {
  constexpr auto kUserContext = static_cast<std::uint64_t>(-512);  // PERF_CONTEXT_USER
  if (sample.mode != CpuMode::kernel) return sample.ip;
  for (std::size_t i = 0; i + 1 < sample.callchain.size(); ++i) {
    if (sample.callchain[i] == kUserContext) return sample.callchain[i + 1];
  }
  return 0;
}

/// The samples of one process.
struct Counted {
  std::unordered_map<std::uint64_t, std::uint64_t> by_load;
  std::uint64_t in_loops = 0;
  std::uint64_t total = 0;
  std::uint64_t first_time = UINT64_MAX;  // of samples that have times
  std::uint64_t last_time = 0;
};

class LoopSampleCounter {
 public:
  LoopSampleCounter(Timeline timeline, bool by_time)
      : timeline_(std::move(timeline)), by_time_(by_time) {}

  void take(const RecordView& record, std::span<const RecordedEvent> events) {
    if (record.type == RecordType::sample) return take_sample(record, events);
    pass_process_event(record, *this);
  }

  void on_mmap(const MmapEvent& event) {
    if (event.pid >= 0) processes_.on_mmap(event);
  }
  void on_comm(const CommEvent& event) { processes_.on_comm(event); }
  void on_fork(const ForkEvent& event) {
    if (event.pid != event.parent) parents_[event.pid] = event.parent;
    processes_.on_fork(event);
  }
  void on_exit(const ExitEvent& event) { processes_.on_exit(event); }

  void fill(LoopSamples& samples, pid_t wanted) const {
    for (const auto& [pid, counted] : counted_) {
      samples.others += counted.total;
      if (counted.in_loops != 0) samples.processes.push_back({pid, counted.in_loops});
    }
    const auto chosen = counted_.find(wanted != 0 ? wanted : likeliest());
    if (chosen == counted_.end() || chosen->second.in_loops == 0) return;
    samples.pid = chosen->first;
    samples.total = chosen->second.total;
    samples.others -= samples.total;
    samples.in_loops = chosen->second.in_loops;
    if (chosen->second.last_time > chosen->second.first_time) {
      samples.duration_ns = chosen->second.last_time - chosen->second.first_time;
    }
    for (const auto& [offset, count] : chosen->second.by_load) {
      const auto record = timeline_.dump().record_at(offset);
      const auto load = record ? decode_load(*record) : std::nullopt;
      if (load) samples.by_loop[load->code_index - 1] += count;
    }
  }

 private:
  bool is_in_loops(pid_t pid) const {
    const auto found = counted_.find(pid);
    return found != counted_.end() && found->second.in_loops != 0;
  }

  /// Whether it was forked from a process whose samples are in loops, too, maybe over several
  /// generations.
  bool is_descendant(pid_t pid) const {
    for (std::size_t steps = 0; steps <= parents_.size(); ++steps) {
      const auto parent = parents_.find(pid);
      if (parent == parents_.end()) return false;
      pid = parent->second;
      if (is_in_loops(pid)) return true;
    }
    return false;
  }

  /// The process with most samples in loops; if equal, the lowest pid. Its descendants inherit its
  /// memory and later run other code there; they do not contribute to a log whose name has no %d.
  pid_t likeliest() const {
    pid_t best = 0;
    std::uint64_t max = 0;
    for (const auto& [pid, counted] : counted_) {
      if (counted.in_loops <= max || is_descendant(pid)) continue;
      best = pid;
      max = counted.in_loops;
    }
    return best;
  }

  void take_sample(const RecordView& record, std::span<const RecordedEvent> events) {
    if (record.event >= events.size()) return;
    const auto sample = decode_sample(record, events[record.event]);
    if (!sample) return;
    Counted& counted = counted_[sample->pid];
    ++counted.total;
    if (events[record.event].has_times()) {
      counted.first_time = std::min(counted.first_time, sample->time);
      counted.last_time = std::max(counted.last_time, sample->time);
    }
    const Address ip = user_ip(*sample);
    const auto found = timeline_.find(ip, by_time_ ? sample->time : Timeline::kEnd);
    if (!found || shows_file(sample->pid, ip)) return;
    ++counted.in_loops;
    ++counted.by_load[found->load];
  }

  bool shows_file(pid_t pid, Address ip) {
    const auto space = processes_.at(pid);
    const Region* const region = space ? space->find(ip) : nullptr;
    return region != nullptr && region->file != nullptr && region->file->is_file();
  }

  Timeline timeline_;
  bool by_time_;
  ProcessTracker processes_;
  std::map<pid_t, Counted> counted_;
  std::unordered_map<pid_t, pid_t> parents_;
};

std::uint32_t place_of(FrameTable& table, std::string_view name, FrameKind kind,
                       std::string_view file = {}, std::uint32_t line = 0) {
  FrameFunction function;
  function.name = name;
  function.file = file;
  function.kind = kind;
  FramePlace place;
  place.function = table.add(function);
  place.line = line;
  return table.add(place);
}

std::uint32_t place_of(FrameTable& table, const CompiledLoop& loop) {
  return place_of(table, loop.name, FrameKind::jit, loop.file, loop.line);
}

}  // namespace

Result<LoopSamples> count_loop_samples(const Recording& recording, const CompiledLoops& loops,
                                       TickBase base, Diagnostics& problems, pid_t pid) {
  LoopSamples samples;
  samples.by_loop.resize(loops.all().size());
  samples.conversion = recording.facts().time_conversion;
  samples.by_time = can_tell_times(recording.facts(), recording.events(), loops, base);
  LoopDumpOptions options{.base = base, .bare = true};
  if (samples.by_time) options.conversion = samples.conversion;
  Result<JitdumpBytes> bytes = dump_of_loops(loops, {}, options);
  if (!bytes) return failure(bytes);
  Diagnostics of_dump(1);
  Timeline timeline(Jitdump(Input::from_text(std::move(bytes->bytes), "")), of_dump);
  LoopSampleCounter counter(std::move(timeline), samples.by_time);
  Recording::Reader reader(recording);
  for (auto records = reader.next(problems); !records.empty(); records = reader.next(problems)) {
    for (const RecordView& record : records) counter.take(record, reader.events());
  }
  counter.fill(samples, pid);
  return samples;
}

LoopStacks::LoopStacks(const LoopProfile& profile, std::uint64_t max_bytes) : left_(max_bytes) {
  knows_loops_ = profile.has_events();
  outside_ =
      place_of(table_, knows_loops_ ? "[outside]" : "[not in any section]", FrameKind::native);
  for (const CompiledLoop& loop : profile.loops().all()) loops_.push_back(place_of(table_, loop));
  for (const LoopProfile::Category& category : profile.categories()) {
    categories_.push_back(place_of(table_, category.name, FrameKind::native));
  }
}

/// False if the frame exceeds the limit.
bool LoopStacks::add_frame(std::uint32_t place) {
  constexpr std::uint64_t kLeast = 8;
  const std::uint64_t bytes =
      std::max(kLeast, std::uint64_t{table_.function_of(place).name.size()});
  if (bytes > left_) return false;
  left_ -= bytes;
  frames_.push_back({.place = place});
  return true;
}

bool LoopStacks::add_frames(const LoopSpan& span) {
  for (std::size_t i = span.categories.size(); i-- > 0;) {
    if (span.categories[i] >= categories_.size()) continue;
    if (!add_frame(categories_[span.categories[i]])) return false;
  }
  if (!knows_loops_ && !frames_.empty()) return true;
  return add_frame(span.loop < loops_.size() ? loops_[span.loop] : outside_);
}

void LoopStacks::add(const LoopSpan& span, StackWriter& writer) {
  frames_.clear();
  ++stacks_;
  if (left_out_ != 0 || !add_frames(span)) {
    frames_.assign({{.place = place_of(table_, "[left out]", FrameKind::native)}});
    ++left_out_;
  }
  const bool is_only = span.thread == CompiledLoop::kNoThread;
  const std::string name = is_only ? "main" : "thread " + std::to_string(span.thread);
  StackSample sample;
  sample.time = span.begin;
  sample.pid = -1;
  sample.tid = is_only ? -1 : static_cast<pid_t>(span.thread & INT32_MAX);
  sample.period = span.ticks;
  sample.comm = sample.process_comm = name;
  sample.frames = frames_;
  writer.add(sample);
}

void add_sampled_loops(const LoopProfile& profile, const SampledLoops& samples,
                       std::string_view command, FrameTable& table, StackWriter& writer) {
  std::uint64_t outside = samples.total;
  const auto add = [&](std::uint32_t place, std::uint64_t count) {
    if (count == 0) return;
    const StackFrame frame{.place = place};
    StackSample sample;
    sample.pid = sample.tid = -1;
    sample.period = count;
    sample.comm = sample.process_comm = command;
    sample.frames = {&frame, 1};
    writer.add(sample);
  };
  for (const LoopRow& row : loop_rows(profile, LoopKey::loop, samples)) {
    outside -= std::min(outside, row.samples);
    add(place_of(table, profile.loops().all()[row.loop]), row.samples);
  }
  add(place_of(table, "[outside]", FrameKind::native), outside);
}

}  // namespace perfmap
