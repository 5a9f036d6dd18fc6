// SPDX-License-Identifier: MIT
#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "base/parallel.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/stacks.hpp"
#include "process/failure_list.hpp"
#include "stacks/frame_symbolizer.hpp"
#include "stacks/kernel_symbols.hpp"
#include "stacks/recorded_processes.hpp"
#include "stacks/sample_unwinder.hpp"

namespace perfmap {

namespace {

template <class List, class Value>
bool is_listed(const List& list, const Value& value) noexcept {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

/// Whether the filter selects the sample. O(entries of the filter).
bool passes(const StackFilter& filter, const RawStack& stack, std::string_view event) noexcept {
  if (stack.time < filter.from || stack.time > filter.to) return false;
  const std::string_view plain = event.substr(0, event.find(':'));
  return is_listed(filter.pids, stack.pid) && is_listed(filter.tids, stack.tid) &&
         is_listed(filter.comms, stack.comm) &&
         (is_listed(filter.events, event) || is_listed(filter.events, plain));
}

/// Unwinds the samples of a batch of records on several threads.
class UnwindPool {
 public:
  UnwindPool(std::string_view arch, const StackOptions& options);

  /// `stack` is complete except for its frames. The record must stay valid until run().
  void add(const RecordView& record, const RecordedEvent& event, RawStack stack);
  /// In the order in which they were added.
  std::vector<RawStack> run();
  /// Number of rules computed by all threads.
  std::uint64_t rules() const noexcept;

 private:
  struct Job {
    RecordView record;
    const RecordedEvent* event;
  };
  void run_range(std::size_t maker, std::size_t from, std::size_t to);

  std::vector<SampleUnwinder> makers_;  // one per thread
  std::vector<Job> jobs_;
  std::vector<RawStack> stacks_;
};

UnwindPool::UnwindPool(std::string_view arch, const StackOptions& options) {
  const unsigned threads = std::clamp(options.threads, 1U, 64U);
  for (unsigned i = 0; i < threads; ++i) makers_.emplace_back(arch, options);
}

void UnwindPool::add(const RecordView& record, const RecordedEvent& event, RawStack stack) {
  jobs_.push_back({record, &event});
  stacks_.push_back(std::move(stack));
}

void UnwindPool::run_range(std::size_t maker, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) {
    const auto sample = decode_sample(jobs_[i].record, *jobs_[i].event);
    if (sample) makers_[maker].make(*sample, stacks_[i]);
  }
}

std::vector<RawStack> UnwindPool::run() {
  // Fewer samples are not worth a thread.
  constexpr std::size_t kLeast = 256;
  const std::size_t threads = std::clamp<std::size_t>(jobs_.size() / kLeast, 1, makers_.size());
  const std::size_t share = (jobs_.size() + threads - 1) / threads;
  parallel_for(threads, threads, [&](std::size_t i) {
    run_range(i, std::min(i * share, jobs_.size()), std::min((i + 1) * share, jobs_.size()));
  });
  jobs_.clear();
  return std::exchange(stacks_, {});
}

std::uint64_t UnwindPool::rules() const noexcept {
  std::uint64_t rules = 0;
  for (const SampleUnwinder& maker : makers_) rules += maker.unwinder().statistics().rules;
  return rules;
}

/// PERF_TYPE_SOFTWARE's cpu-clock and task-clock count nanoseconds. Source: Linux,
/// include/uapi/linux/perf_event.h.
bool counts_time(const RecordedEvent& event) noexcept {
  constexpr std::uint32_t kSoftware = 1;
  constexpr std::uint64_t kCpuClock = 0, kTaskClock = 1;
  return event.type == kSoftware && (event.config == kCpuClock || event.config == kTaskClock);
}

/// From reliable to guessed.
constexpr std::array<FrameSource, kFrameSources> kByTrust = {
    FrameSource::kernel,    FrameSource::initial,     FrameSource::signal,
    FrameSource::eh_cfi,    FrameSource::debug_frame, FrameSource::plt,
    FrameSource::leaf,      FrameSource::jit_cfi,     FrameSource::frame_pointer,
    FrameSource::callchain, FrameSource::repaired,    FrameSource::stitched,
    FrameSource::scan};

/// The dummy event that perf record adds to get mappings.
bool is_dummy(const RecordedEvent& event) noexcept {
  constexpr std::uint32_t kSoftware = 1;
  constexpr std::uint64_t kDummy = 9;
  return event.type == kSoftware && event.config == kDummy;
}

constexpr std::string_view kKernelName = "[kernel.kallsyms]";

void count(const RawStack& stack, const FrameCounts& frames, StackCounts& counts) {
  ++counts.samples;
  counts.frames += frames.frames;
  counts.full_copies += stack.is_full ? 1 : 0;
  counts.stitched += stack.was_stitched ? 1 : 0;
  counts.not_unwound += stack.is_of_unknown_machine ? 1 : 0;
  counts.unnamed += frames.unnamed;
  counts.unnamed_jit += frames.unnamed_jit;
  counts.doubtful += frames.doubtful;
  for (unsigned i = 0; i < kDoubtCount; ++i) counts.doubts[i] += frames.doubts[i];
  ++counts.ends[static_cast<std::size_t>(stack.end)];
  for (std::size_t i = 0; i < counts.sources.size(); ++i) counts.sources[i] += frames.sources[i];
}

}  // namespace

FrameSource StackCounts::worst_source() const noexcept {
  for (auto source = kByTrust.rbegin(); source != kByTrust.rend(); ++source) {
    if (sources[static_cast<std::size_t>(*source)] != 0) return *source;
  }
  return FrameSource::initial;
}

StackProfile profile_of(const Recording& recording) {
  const RecordingFacts& facts = recording.facts();
  StackProfile profile;
  for (const RecordedEvent& event : recording.events()) {
    profile.events.push_back({.name = event.name,
                              .is_time = counts_time(event),
                              .period = event.period,
                              .is_frequency = event.is_frequency,
                              .is_sampled = !is_dummy(event),
                              .has_times = event.has_times()});
  }
  profile.title = recording.input().name();
  for (const std::string& word : facts.command_line) {
    profile.command += (profile.command.empty() ? "" : " ") + word;
  }
  profile.hostname = facts.hostname;
  profile.arch = facts.arch;
  profile.os_release = facts.os_release;
  profile.wall_ns = facts.wall_ns;
  profile.clock_ns = facts.clock_ns;
  return profile;
}

struct StackReader::State {
  const Recording& recording;
  StackOptions options;
  Recording::Reader reader;
  FrameTable table;
  RecordedKernel recorded_kernel;
  KernelSymbols kernel;
  RecordedPrograms programs;
  SourceClock clock;
  RecordedProcesses processes;
  FrameSymbolizer places;
  UnwindPool jobs;
  std::size_t chained = 0;  // frames in the callchains of these
  bool is_stopped = false;  // by the visitor
  PendingStacks held;
  StackStatistics statistics;
  std::map<pid_t, StackCounts> counts;
  std::vector<StackFrame> frames;
  std::vector<Error> failures;

  State(const Recording& from, StackOptions how)
      : recording(from),
        options(std::move(how)),
        reader(from),
        kernel([this] { return kallsyms(); }),
        programs(from.facts(), table),
        clock(from.facts().time_conversion),
        processes(options, clock),
        places(processes, programs, options, kernel, table),
        jobs(from.facts().arch, options),
        held(options) {}

  std::string_view kallsyms();
  void take_kernel(const RecordView& record);
  void take(const RecordView& record);
  void take_sample(const RecordView& record);
  void unwind() {
    held.add(jobs.run());
    chained = 0;
  }
  void visit_held(bool is_end, const std::function<void(const StackSample&)>& visit);
  void visit_stacks(std::span<const RawStack> stacks,
                    const std::function<void(const StackSample&)>& visit);
  void finish();
};

std::string_view StackReader::State::kallsyms() {
  if (!options.find_kallsyms) return {};
  for (const RecordedBuildId& one : reader.facts().build_ids) {
    if (one.is_kernel && one.path == kKernelName) recorded_kernel.build_id = one.build_id;
  }
  return options.find_kallsyms(recorded_kernel);
}

/// perf names the kernel's mapping after one of its symbols, "[kernel.kallsyms]_text"; the offset
/// of that mapping is the symbol's address.
void StackReader::State::take_kernel(const RecordView& record) {
  if (!recorded_kernel.symbol.empty()) return;
  const auto mapping = decode_mmap(record);
  if (!mapping || mapping->pid != -1 || !mapping->name.starts_with(kKernelName)) return;
  recorded_kernel.symbol = mapping->name.substr(kKernelName.size());
  recorded_kernel.address = mapping->offset;
  recorded_kernel.build_id = mapping->build_id;
}

void StackReader::State::take(const RecordView& record) {
  switch (record.type) {
    case RecordType::sample: return take_sample(record);
    case RecordType::lost:
    case RecordType::lost_samples:
      if (const auto lost = decode_lost(record)) statistics.lost += lost->count;
      return;
    case RecordType::auxtrace: ++statistics.traces; return;
    case RecordType::ksymbol:
      // Names are looked up after a batch of records has been read; all its symbols count by then.
      if (const auto symbol = decode_ksymbol(record)) kernel.take(*symbol);
      return;
    case RecordType::callchain_deferred:
      if (const auto chain = decode_deferred(record)) {
        unwind();
        held.take(*chain);
      }
      return;
    case RecordType::mmap:
    case RecordType::mmap2: take_kernel(record); [[fallthrough]];
    default: processes.take(record); programs.take(record);
  }
}

void StackReader::State::take_sample(const RecordView& record) {
  const auto events = reader.events();
  if (record.event >= events.size()) return;
  const RecordedEvent& event = events[record.event];
  const auto sample = decode_sample(record, event);
  if (!sample) return;
  RawStack stack;
  stack.time = record.time;
  stack.period = sample->period;
  stack.pid = sample->pid;
  stack.tid = sample->tid;
  stack.cpu = sample->cpu;
  stack.event = record.event;
  stack.comm = processes.comm_of(sample->pid, sample->tid);
  stack.process_comm = processes.comm_of(sample->pid, sample->pid);
  stack.program = programs.of(sample->pid);
  if (!passes(options.filter, stack, event.name)) {
    ++statistics.filtered;
    return;
  }
  stack.moment = processes.moment(*sample, event);
  stack.source_time = record.time;
  if (const auto& names = stack.moment->names; names != nullptr) {
    stack.source_time = clock.at(record.time, event, names->sources);
  }
  chained += sample->callchain.size();
  jobs.add(record, event, std::move(stack));
}

void StackReader::State::visit_held(bool is_end,
                                    const std::function<void(const StackSample&)>& visit) {
  unwind();
  for (auto stacks = held.release(is_end); !stacks.empty() && !is_stopped;
       stacks = held.release(is_end)) {
    visit_stacks(stacks, visit);
  }
}

void StackReader::State::visit_stacks(std::span<const RawStack> stacks,
                                      const std::function<void(const StackSample&)>& visit) {
  places.prepare(stacks);
  for (const RawStack& stack : stacks) {
    frames.clear();
    const FrameCounts counted_frames = places.next(stack, frames);
    StackCounts& counted = counts[stack.pid];
    if (counted.samples == 0) counted.pid = stack.pid;
    counted.comm = stack.process_comm;
    count(stack, counted_frames, counted);
    count(stack, counted_frames, statistics.total);
    StackSample sample;
    sample.time = stack.time;
    sample.pid = stack.pid;
    sample.tid = stack.tid;
    sample.cpu = stack.cpu;
    sample.period = stack.period;
    sample.event = stack.event;
    sample.comm = stack.comm;
    sample.process_comm = stack.process_comm;
    sample.program = stack.program;
    sample.end = stack.end;
    sample.is_full_copy = stack.is_full;
    sample.was_stitched = stack.was_stitched;
    sample.frames = frames;
    visit(sample);
    if (is_stopped) return;
  }
}

void StackReader::State::finish() {
  statistics.processes.clear();
  for (const auto& [pid, counted] : counts) statistics.processes.push_back(counted);
  statistics.out_of_order = reader.out_of_order();
  statistics.lost_bytes = reader.lost_bytes();
  statistics.rules = jobs.rules();
  FailureList all;
  for (const Error& failure : processes.failures()) all.add(failure);
  for (const Error& failure : places.failures()) all.add(failure);
  failures.assign(all.errors().begin(), all.errors().end());
  if (clock.failure()) failures.push_back(*clock.failure());
  if (kernel.is_hidden()) {
    failures.push_back(Error::of(Reason::hidden_addresses, "/proc/kallsyms"));
  }
}

StackReader::StackReader(const Recording& recording, StackOptions options)
    : state_(std::make_unique<State>(recording, std::move(options))) {}
StackReader::~StackReader() = default;

const FrameTable& StackReader::table() const noexcept { return state_->table; }
const StackStatistics& StackReader::statistics() const noexcept { return state_->statistics; }
std::span<const Error> StackReader::failures() const noexcept { return state_->failures; }
std::span<const std::string> StackReader::without_lines() const noexcept {
  return state_->places.without_lines();
}

void StackReader::stop() noexcept { state_->is_stopped = true; }

void StackReader::read(const std::function<void(const StackSample&)>& visit, Diagnostics& problems,
                       const std::function<void(std::uint64_t)>& progress) {
  State& state = *state_;
  for (auto group = state.reader.next(problems); !group.empty() && !state.is_stopped;
       group = state.reader.next(problems)) {
    for (const RecordView& record : group) {
      state.take(record);
      if (state.chained >= kFramesInBlock) state.visit_held(false, visit);
    }
    state.visit_held(false, visit);
    if (progress) progress(state.reader.position());
  }
  state.visit_held(true, visit);
  state.finish();
}

}  // namespace perfmap
