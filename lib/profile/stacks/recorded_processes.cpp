// SPDX-License-Identifier: MIT
#include "stacks/recorded_processes.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include "perfmap/profile/process.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

namespace {

/// Dumps converted from a map or a log have no times: their code counts at any time.
bool has_times(const Timeline& timeline) {
  Diagnostics ignored(1);
  const auto first = Jitdump::Reader(timeline.dump()).next(ignored);
  return first && first->time != 0;
}

ProcessTracker::Options tracker_options(const StackOptions& options) {
  ProcessTracker::Options tracker;
  tracker.open_module = options.open_module;
  return tracker;
}

/// The user-space address that called the kernel, if the sample has it.
std::optional<Address> first_user_address(const RecordedSample& sample) {
  constexpr auto kUserContext = static_cast<std::uint64_t>(-512);  // PERF_CONTEXT_USER
  const Words& chain = sample.callchain;
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    if (chain[i] == kUserContext) return chain[i + 1];
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t SourceClock::at(std::uint64_t time, const RecordedEvent& event,
                              std::span<const std::shared_ptr<JitSources>> sources) {
  const auto has_dump = std::find_if(sources.begin(), sources.end(), [](const auto& one) {
    return !one->resolver().timelines().empty();
  });
  if (has_dump == sources.end()) return time;
  const auto timelines = (*has_dump)->resolver().timelines();
  if (!timelines.front().dump().has_tsc_times()) {
    if (event.clock == CLOCK_MONOTONIC) return time;
    if (std::none_of(timelines.begin(), timelines.end(), has_times)) return time;
    return incomparable(
        "the clock of the recording is not CLOCK_MONOTONIC: record with 'perf record -k mono'");
  }
  // perf's conversion gives times of its own clock.
  if (conversion_ && !event.clock) return conversion_->to_ticks(time);
  return incomparable("the times of the jitdumps are ticks: record without -k");
}

std::uint64_t SourceClock::incomparable(const char* why) {
  if (!failure_) {
    failure_ = Error::unsupported(
        std::string("the recording and the jitdumps use different clocks, so the code "
                    "at the end of each jitdump is used; ") +
        why);
  }
  return Timeline::kEnd;
}

RecordedPrograms::RecordedPrograms(const RecordingFacts& facts, FrameTable& table) : table_(table) {
  for (const RecordedBuildId& one : facts.build_ids) {
    if (!one.is_kernel) build_ids_.try_emplace(one.path, one.build_id);
  }
}

void RecordedPrograms::take(const RecordView& record) { pass_process_event(record, *this); }

std::uint32_t RecordedPrograms::of(pid_t pid) const noexcept {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? 0 : found->second.mapping;
}

std::string_view RecordedPrograms::build_id_of(std::string_view path) const noexcept {
  const auto found = build_ids_.find(path);
  return found == build_ids_.end() ? std::string_view() : found->second;
}

void RecordedPrograms::on_mmap(const MmapEvent& event) {
  if (event.pid < 0 || !event.access.execute) return;
  Process& process = processes_[event.pid];
  if (process.is_certain) return;
  const MappedFile file = classify_mapping(event.name);
  if (!file.is_file()) return;
  const bool is_named = is_named_after(process.comm, file.name);
  process.is_certain = process.was_executed || is_named;
  if (process.mapping != 0 && !is_named) return;
  FrameMapping mapping;
  mapping.range = event.range;
  mapping.offset = event.offset;
  mapping.path = file.name;
  mapping.build_id = event.build_id.empty() ? build_id_of(file.name) : event.build_id;
  mapping.kind = FrameKind::native;
  process.mapping = table_.add(mapping);
}

void RecordedPrograms::on_comm(const CommEvent& event) {
  if (event.pid != event.tid) return;
  Process& process = processes_[event.pid];
  if (event.exec) process = Process{{}, 0, true, false};
  process.comm = event.comm;
}

void RecordedPrograms::on_fork(const ForkEvent& event) {
  if (event.pid == event.parent) return;
  const auto parent = processes_.find(event.parent);
  const bool is_copy = parent != processes_.end() && !event.lived_before;
  Process child = is_copy ? parent->second : Process();
  processes_[event.pid] = std::move(child);
}

RecordedProcesses::RecordedProcesses(const StackOptions& options, SourceClock& clock)
    : options_(options), clock_(clock), tracker_(tracker_options(options)) {}

void RecordedProcesses::take(const RecordView& record) { pass_process_event(record, *this); }

void RecordedProcesses::on_mmap(const MmapEvent& event) {
  if (event.pid < 0) return;  // the kernel's own
  tracker_.on_mmap(event);
  if (!is_dump_path(event.name)) return;
  JitFiles& files = files_[process_of(event.pid).lineage.get()];
  // One more than are opened, so that find_jit can say that some are left out.
  if (files.dumps.size() > kMaxProcessDumps) return;
  std::string path(event.name);
  if (std::find(files.dumps.begin(), files.dumps.end(), path) != files.dumps.end()) return;
  files.dumps.push_back(std::move(path));
  files.wants_lookup = true;
  ++lookups_;
}

void RecordedProcesses::on_fork(const ForkEvent& event) {
  tracker_.on_fork(event);
  if (event.pid != event.parent) execs_.erase(event.pid);
  auto parent = comms_.find(event.parent_tid);
  if (parent == comms_.end()) parent = comms_.find(event.parent);
  if (parent != comms_.end()) comms_[event.tid] = parent->second;
}

void RecordedProcesses::on_comm(const CommEvent& event) {
  tracker_.on_comm(event);
  if (event.exec) execs_.insert_or_assign(event.pid, Exec{event.time, {}});
  comms_[event.tid] = intern(event.comm);
}

void RecordedProcesses::on_exit(const ExitEvent& event) {
  tracker_.on_exit(event);
  if (tracker_.find(event.pid) == nullptr) execs_.erase(event.pid);
}

std::string unnamed_comm(pid_t tid) { return ":" + std::to_string(tid); }

std::string_view RecordedProcesses::intern(std::string_view comm) {
  return *names_.emplace(comm).first;
}

std::string_view RecordedProcesses::comm_of(pid_t pid, pid_t tid) {
  auto found = comms_.find(tid);
  if (found == comms_.end()) found = comms_.find(pid);
  if (found != comms_.end() && !found->second.empty()) return found->second;
  // No event names the idle task, which has pid 0 on each processor.
  return intern(tid == 0 ? "swapper" : unnamed_comm(tid));
}

/// Discards what is known once another program or process has the pid.
RecordedProcesses::Process& RecordedProcesses::process_of(pid_t pid) {
  Process& process = processes_[pid];
  std::shared_ptr<JitLineage> lineage = tracker_.lineage(pid);
  if (process.lineage != lineage) {
    process = Process();
    process.lineage = std::move(lineage);
  }
  return process;
}

/// Whether this sample requires a search for sources: it is in unrecorded code, because code was
/// moved there or events were lost.
bool RecordedProcesses::is_first_stray(Process& process, const RecordedSample& sample) {
  if (process.has_stray || sample.mode != CpuMode::user) return false;
  if (!may_be_unrecorded_code(process.last->place.space->find(sample.ip))) return false;
  process.has_stray = true;
  process.lookups = 0;
  return true;
}

/// Runtimes keep code in files, too, for example below /dev/shm, to map it twice.
bool RecordedProcesses::may_have_jit(const CodeNode* code) const {
  if (code == nullptr) return false;
  return code->has_jit_room || (code->has_unopened && tracker_.options().open_module);
}

/// The code of a process's memory. Opens the files that no memory had before.
std::shared_ptr<const CodeNode> RecordedProcesses::code_of(pid_t pid, const AddressSpace& space) {
  const RegionTree tree(space);
  if (!tree.root()) return nullptr;
  return code_.of(*tree.root().get(), [&](const Region& region) {
    auto module = tracker_.module_of(pid, region);
    if (module) return *std::move(module);
    failures_.add_unexpected(std::move(module.error()));
    return std::shared_ptr<const Module>();
  });
}

/// For a program whose code a process may have: its own, or an ancestor.
void RecordedProcesses::look_for_jit(JitLineage& lineage, JitFiles& files) {
  files.wants_lookup = false;
  const ProcessInfo* const info = tracker_.info_of(lineage);
  if (info == nullptr) return;
  auto found = options_.find_jit(*info, files.dumps);
  if (found == nullptr) return;
  lineage.jit = std::move(found);
  ++lookups_;
}

/// Whether the process existed before the recording: then no event names its parent.
bool RecordedProcesses::wants_parents(const JitLineage& first) {
  if (!options_.find_parents || first.parent != nullptr) return false;
  const ProcessInfo* const info = tracker_.info_of(first);
  // In a system-wide recording, ancestors end at the idle task, which has no parent.
  const bool is_unknown = info != nullptr && info->began == ProcessBegin::seen && info->pid != 0;
  return is_unknown && files_[&first].wants_parents;
}

void RecordedProcesses::look_for_parents(JitLineage& first) {
  files_[&first].wants_parents = false;
  const auto parents = options_.find_parents(*tracker_.info_of(first));
  if (!parents) return;
  JitLineage* child = &first;
  for (const ProcessInfo& parent : *parents) {
    child->parent = std::make_shared<JitLineage>();
    child = child->parent.get();
    child->pid = parent.pid;
    child->jit = options_.find_jit(parent, {});
    ++lookups_;
  }
}

/// Whether memory in which a runtime may keep code belonged to the parent when the program began.
/// Processes found alive by perf have parents, too, but rarely code from them. If that takes long
/// to find out, it may.
bool RecordedProcesses::may_have_code_of_parent(const JitLineage& program,
                                                const AddressSpace& space) {
  constexpr int kMaxCompared = 4096;
  if (program.began_with == nullptr) return true;
  int compared = 0;
  const auto before = program.began_with->regions();
  for (const Region& region : space.regions()) {
    if (++compared > kMaxCompared) return true;
    if (jit_region_kind(region) == JitRegionKind::none) continue;
    auto one = before.from(region.range.begin);
    for (; one != before.end() && one->range.begin <= region.range.last(); ++one) {
      if (one->file == region.file || ++compared > kMaxCompared) return true;
    }
  }
  return false;
}

/// Whether sources must be searched for this program: its own, or those of its parents.
bool RecordedProcesses::wants_any(const JitLineage& program, bool may_have) {
  const JitFiles& files = files_[&program];
  const bool wants_own = program.asks_own && files.wants_lookup;
  return (wants_own && (may_have || !files.dumps.empty())) || (may_have && wants_parents(program));
}

void RecordedProcesses::look_for_all_jit(Process& process, const CodeNode* code,
                                         const AddressSpace& space) {
  if (!options_.find_jit) return;
  const bool may_have = process.has_stray || may_have_jit(code);
  int wanting = 0;  // so many ancestors have to be visited
  JitLineage* one = process.lineage.get();
  for (int i = 0; one != nullptr && i < JitLineage::kMaxGenerations; ++i, one = one->parent.get()) {
    if (wants_any(*one, may_have)) wanting = i + 1;
  }
  one = process.lineage.get();
  for (int i = 0; i < wanting; ++i, one = one->parent.get()) {
    JitFiles& files = files_[one];
    const bool wants_own = one->asks_own && files.wants_lookup;
    if (wants_own && (may_have || !files.dumps.empty())) look_for_jit(*one, files);
    if (may_have && wants_parents(*one)) look_for_parents(*one);
    if (i + 1 < wanting && !process.has_stray && !may_have_code_of_parent(*one, space)) break;
  }
}

std::shared_ptr<const JitNames> RecordedProcesses::names_of(const Process& process) {
  auto names = std::make_shared<JitNames>();
  const JitLineage* one = process.lineage.get();
  for (int i = 0; one != nullptr && i < JitLineage::kMaxGenerations; ++i) {
    if (one->asks_own && one->jit != nullptr) names->sources.push_back(one->jit);
    one = one->parent.get();
  }
  if (names->sources.empty()) return nullptr;
  const auto& last = process.last;
  const bool is_same =
      last != nullptr && last->names != nullptr && last->names->sources == names->sources;
  return is_same ? last->names : names;
}

/// A parent's dump is asked for the moment of the fork.
void RecordedProcesses::set_fork_times(const Process& process, const JitNames& names,
                                       const RecordedEvent& event) {
  JitLineage* one = process.lineage.get();
  for (int i = 0; one != nullptr && i < JitLineage::kMaxGenerations; ++i) {
    if (one->parent != nullptr) one->source_since = clock_.at(one->since, event, names.sources);
    one = one->parent.get();
  }
}

std::shared_ptr<const AddressSpaceSnapshot> RecordedProcesses::moment_of(
    Process& process, pid_t pid, std::uint64_t when, const RecordedEvent& event) {
  static const auto kNothing = std::make_shared<const AddressSpace>();
  auto space = tracker_.at(pid, when);
  const bool is_known = space != nullptr;
  if (!is_known) space = kNothing;
  const bool is_same_space = process.last != nullptr && process.last->place.space == space;
  if (is_same_space && process.lookups == lookups_) return process.last;
  const std::shared_ptr<const CodeNode> code = code_of(pid, *space);
  look_for_all_jit(process, code.get(), *space);
  process.lookups = lookups_;
  auto names = names_of(process);
  if (is_same_space && process.last->names == names) return process.last;
  if (names != nullptr) set_fork_times(process, *names, event);
  auto made = std::make_shared<AddressSpaceSnapshot>();
  made->id = ++moments_;
  const ProcessInfo* const info = tracker_.find(pid, when);
  const std::uint32_t generation = info != nullptr ? info->generation : 0;
  made->program = std::uint64_t{static_cast<std::uint32_t>(pid)} << 32 | generation;
  const auto own = process.lineage != nullptr ? process.lineage->jit : nullptr;
  made->place = {pid, when, space, own, process.lineage};
  made->names = std::move(names);
  auto sources =
      is_known ? sources_of(tracker_, pid, when) : std::vector<std::shared_ptr<const JitSources>>();
  made->unwind = UnwindSpace::State::share(code, std::move(sources));
  process.last = made;
  return made;
}

std::shared_ptr<const AddressSpaceSnapshot> RecordedProcesses::moment(const RecordedSample& sample,
                                                                      const RecordedEvent& event) {
  const pid_t pid = sample.pid;
  Process& process = process_of(pid);
  auto now = moment_of(process, pid, ProcessTracker::kNow, event);
  if (is_first_stray(process, sample)) now = moment_of(process, pid, ProcessTracker::kNow, event);
  const auto found = execs_.find(pid);
  if (found == execs_.end()) return now;
  Exec& exec = found->second;
  if (sample.mode == CpuMode::user) {
    execs_.erase(found);
    return now;
  }
  const std::optional<Address> ip = first_user_address(sample);
  if (!ip || now->place.space->find(*ip) != nullptr) return now;
  if (exec.former.lineage == nullptr) exec.former.lineage = tracker_.lineage(pid, exec.time);
  return moment_of(exec.former, pid, exec.time, event);
}

}  // namespace perfmap
