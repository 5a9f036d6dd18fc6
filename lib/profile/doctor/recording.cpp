// SPDX-License-Identifier: MIT
#include "doctor/recording.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <functional>
#include <set>
#include <span>

#include "perfmap/profile/debug_index.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/stacks.hpp"
#include "process/jit_lineage.hpp"
#include "process/proc_text.hpp"

namespace perfmap {
namespace {

// Its samples.

constexpr std::uint64_t kPage = 4096;
/// Samples on further pages are counted, but not by page.
constexpr std::size_t kMaxPages = std::size_t{1} << 20;

class SampleReader {
 public:
  using IsNamed = std::function<bool(pid_t, Address, std::uint64_t)>;

  explicit SampleReader(const IsNamed& is_named)
      : is_named_(is_named), tracker_(ProcessTracker::Options()) {}

  void take(const RecordView& record, std::span<const RecordedEvent> events) {
    switch (record.type) {
      case RecordType::namespaces:
        if (const auto event = decode_namespaces(record)) take_namespaces(*event);
        break;
      case RecordType::sample:
        if (record.event >= events.size()) break;
        if (const auto sample = decode_sample(record, events[record.event])) take_sample(*sample);
        break;
      default: pass_process_event(record, *this);
    }
  }

  void on_mmap(const MmapEvent& event) {
    if (event.pid < 0) return;
    tracker_.on_mmap(event);
    found.pids.insert(event.pid);
    // "//anon" is no file; a heap of executable memory may precede the program.
    if (event.access.execute && event.name.starts_with('/') && !event.name.starts_with("//")) {
      std::string& program = found.processes[event.pid].program;
      if (program.empty()) program = event.name;
    }
    if (is_dump_path(event.name)) {
      found.markers.push_back({event.pid, event.time, std::string(event.name)});
    }
  }

  void on_comm(const CommEvent& event) {
    found.pids.insert(event.pid);
    introduced_.insert(event.pid);
    if (event.exec) {
      RecordedProcess& process = found.processes[event.pid];
      process.program.clear();
      process.executed = ++executed_;
    }
    tracker_.on_comm(event);
  }

  void on_fork(const ForkEvent& event) {
    tracker_.on_fork(event);
    introduced_.insert(event.pid);
    if (event.pid == event.parent) return;
    const auto parent = found.processes.find(event.parent);
    RecordedProcess process;
    if (parent != found.processes.end() && !event.lived_before) {
      process.program = parent->second.program;
      process.executed = parent->second.executed;
    }
    found.processes[event.pid] = std::move(process);
  }

  void on_exit(const ExitEvent& event) { tracker_.on_exit(event); }

  RecordedSamples found;

 private:
  void take_namespaces(const NamespacesRecord& event) {
    constexpr std::size_t kPid = 3;  // enum in perf_event.h: net, uts, ipc, pid, ...
    if (event.namespaces.size() <= kPid) return;
    found.processes[event.pid].pid_namespace = event.namespaces[kPid].inode;
  }

  void take_sample(const RecordedSample& sample) {
    if (found.first == 0) found.first = sample.time;
    found.last = std::max(found.last, sample.time);
    found.pids.insert(sample.pid);
    RecordedProcess& process = found.processes[sample.pid];
    if (!introduced_.contains(sample.pid)) process.began_unseen = true;
    auto space = tracker_.at(sample.pid);
    if (space != nullptr) {
      process.memory = space;
      process.lineage = tracker_.lineage(sample.pid);
    }
    if (sample.mode != CpuMode::user) return;
    const Region* const region = space == nullptr ? nullptr : space->find(sample.ip);
    if (region == nullptr || jit_region_kind(*region) != JitRegionKind::likely) return;
    JitSamples& jit = found.jit[sample.pid];
    ++jit.count;
    if (is_named(*region, sample)) return;
    ++jit.unnamed;
    const Address page = sample.ip / kPage * kPage;
    if (pages_ < kMaxPages && jit.pages[page]++ == 0) ++pages_;
  }

  /// Whether the process or its ancestors have a name for it.
  bool is_named(const Region& region, const RecordedSample& sample) const {
    bool answer = false;
    tracker_.lineage(sample.pid)
        ->visit(&region, sample.ip, [&](const JitLineage& one, std::uint64_t, bool) {
          return answer = is_named_(one.pid, sample.ip, sample.time);
        });
    return answer;
  }

  const IsNamed& is_named_;
  ProcessTracker tracker_;
  std::unordered_set<pid_t> introduced_;
  std::size_t pages_ = 0;
  std::uint64_t executed_ = 0;
};

/// The processes from which it has memory that may hold runtime code: nearest first.
std::vector<pid_t> inherits_from(const RecordedProcess& process) {
  std::vector<pid_t> pids;
  if (process.memory == nullptr || process.lineage == nullptr) return pids;
  const JitLineage* const own = process.lineage.get();
  const JitLineage::Ask take = [&](const JitLineage& one, std::uint64_t, bool) {
    const bool is_known = std::find(pids.begin(), pids.end(), one.pid) != pids.end();
    if (&one != own && one.pid != own->pid && !is_known) pids.push_back(one.pid);
    return false;
  };
  // Most regions have the same origin as their neighbours.
  constexpr int kMaxWithoutNew = 256;
  int without_new = 0;
  for (const Region& region : process.memory->regions()) {
    if (jit_region_kind(region) != JitRegionKind::likely) continue;
    const std::size_t known = pids.size();
    own->visit(&region, region.range.begin, take);
    without_new = pids.size() == known ? without_new + 1 : 0;
    if (without_new == kMaxWithoutNew || pids.size() >= JitLineage::kMaxGenerations) break;
  }
  return pids;
}

// Its processes.

/// Records which files were used to name a process's code, from the results of find_jit.
class UsedFiles {
 public:
  /// Wraps `find` to record its results. Must outlive the returned function; null stays null.
  StackOptions::FindJit watch(StackOptions::FindJit find) {
    return [this, find = std::move(find)](const ProcessInfo& process,
                                          const std::vector<std::string>& dumps) {
      std::shared_ptr<JitSources> found = find ? find(process, dumps) : nullptr;
      Of& of = processes_[process.pid];
      of.dumps = dumps;
      if (found == nullptr) return found;
      const Resolver& resolver = found->resolver();
      const std::size_t count = resolver.maps().size() + resolver.timelines().size();
      for (std::size_t i = 0; i < count; ++i) {
        const FileFacts& facts = resolver.input(i).facts();
        of.files.emplace_back(facts.device, facts.inode);
      }
      return found;
    };
  }

  /// Wraps `find` to record its results.
  StackOptions::FindParents watch_parents(StackOptions::FindParents find) {
    return [this, find = std::move(find)](const ProcessInfo& process) {
      auto found = find(process);
      std::optional<std::vector<pid_t>>& parents = parents_[process.pid];
      if (found) parents.emplace();
      if (found) {
        for (const ProcessInfo& parent : *found) parents->push_back(parent.pid);
      }
      return found;
    };
  }

  /// The recorded result for a process, or for its first ancestor in the recording. Null: not
  /// asked.
  const std::optional<std::vector<pid_t>>* parents_of(
      const RecordedProcess& process) const noexcept {
    const JitLineage* first = process.lineage.get();
    while (first != nullptr && first->parent != nullptr) first = first->parent.get();
    const auto found = first == nullptr ? parents_.end() : parents_.find(first->pid);
    return found == parents_.end() ? nullptr : &found->second;
  }

  bool has(pid_t pid, const FileFacts& file) const noexcept {
    const auto found = processes_.find(pid);
    if (found == processes_.end()) return false;
    const auto& files = found->second.files;
    return std::find(files.begin(), files.end(), std::pair(file.device, file.inode)) != files.end();
  }

  /// Dumps that the process had mapped, in the order in which find_jit was asked for them.
  const std::vector<std::string>& dumps_of(pid_t pid) const noexcept {
    static const std::vector<std::string> kNone;
    const auto found = processes_.find(pid);
    return found == processes_.end() ? kNone : found->second.dumps;
  }

 private:
  struct Of {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> files;  ///< device and inode
    std::vector<std::string> dumps;
  };
  std::map<pid_t, Of> processes_;
  std::map<pid_t, std::optional<std::vector<pid_t>>> parents_;
};

/// Splits the argument of `sh -c` approximately: to inspect it, not to run it.
std::vector<std::string> words_of(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  for (const std::string& one : arguments) {
    std::string_view text = one;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find_first_of(" \t\n;\"'"), text.size());
      if (end != 0) words.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(text.size(), end + 1));
    }
  }
  return words;
}

/// The index of the program's name in the words; nothing if it is not there.
std::optional<std::size_t> find_program(const std::vector<std::string>& words,
                                        const RecordedView& recorded, const std::string& comm) {
  // Links such as /usr/bin/java lead to the program; perf records their target.
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = base_name(words[i]);
    if (name.empty()) continue;
    if (name == base_name(recorded.view.executable) || name == comm) return i;
    if (recorded.found.runtime == Runtime::unknown) continue;
    const RuntimeInfo& runtime = runtime_info(recorded.found.runtime);
    // A launcher passes its options on: erl starts beam.smp.
    if (name == runtime.signs.launcher || runtime_of_program(words[i]) == &runtime) return i;
  }
  return std::nullopt;
}

/// Whether the process is the first of its program: a program that restarts itself passes other
/// arguments to the others.
bool is_first_of_program(pid_t pid, const RecordedSamples& samples) {
  const RecordedProcess& process = samples.processes.at(pid);
  return process.executed != 0 && process.executed == samples.first_executed.at(process.program);
}

bool is_assignment(std::string_view word) noexcept {
  constexpr std::string_view kName =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  const std::size_t name = std::min(word.find_first_not_of(kName), word.size());
  return name != 0 && name < word.size() && word[name] == '=' &&
         !(word[0] >= '0' && word[0] <= '9');
}

/// NAME=VALUE before the program, as in env(1) and shells. The last one counts.
void take_variables(std::span<const std::string> before, ProcessView& view) {
  for (const std::string& word : before) {
    if (is_assignment(word)) view.environment.insert(view.environment.begin(), word);
  }
}

void take_workload(const std::string& comm, const RecordingContext& context, RecordedView& into) {
  if (!context.command || !is_first_of_program(into.view.pid, context.samples)) return;
  const std::vector<std::string>& workload = context.command->workload;
  const auto found = find_program(workload, into, comm);
  if (found) {
    into.workload_at = found;
    take_variables(std::span(workload).first(*found), into.view);
    into.knows_arguments = true;
    into.view.arguments.assign(workload.begin() + static_cast<std::ptrdiff_t>(*found),
                               workload.end());
    return;
  }
  // The program may be named in a script, but that is not a command line that can be changed.
  std::vector<std::string> words = words_of(workload);
  const auto inner = find_program(words, into, comm);
  if (!inner) return;
  take_variables(std::span(words).first(*inner), into.view);
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(*inner));
  into.view.arguments = std::move(words);
}

/// The process with that pid in /proc now; it may be a different one.
std::optional<RecordedView> view_present(pid_t pid, const RecordingContext& context) {
  const RecordingDoctorOptions& options = context.options;
  ProcSource::Seen<ProcSource> process = ProcSource::open(pid, options.roots);
  if (!process || !*process) return std::nullopt;
  Result<ProcessView> view = view_process(**process, options.roots, !options.snapshot.empty());
  if (!view) return std::nullopt;
  RecordedView present;
  present.view = *std::move(view);
  present.process = **std::move(process);
  return present;
}

/// A runtime may map a file of code below its program, as SBCL its core.
bool maps_code_of(const ProcessView& view, const std::string& path) {
  return std::ranges::any_of(view.memory.regions, [&path](const Region& region) {
    return region.access.execute && region.file->name == path;
  });
}

/// Nothing if it has ended, or runs another program by now.
std::optional<RecordedView> view_living(pid_t pid, const std::string& comm,
                                        const RecordingContext& context) {
  std::optional<RecordedView> living = view_present(pid, context);
  if (!living) return std::nullopt;
  const std::string& program = context.samples.processes.at(pid).program;
  const ProcessView& view = living->view;
  const bool is_named = view.status.comm == comm;
  const bool is_program =
      program.empty() ? is_named
                      : view.executable == program || (is_named && maps_code_of(view, program));
  const std::int64_t start = start_time_ns(*living->process, context.options.roots.proc);
  if (!is_program || start > context.end_ns) return std::nullopt;
  living->found = find_runtime(*living->process, view);
  living->is_alive = context.options.snapshot.empty();
  living->knows_arguments = !view.arguments.empty();
  return living;
}

RecordedView view_recorded(pid_t pid, const std::string& comm, const RecordingContext& context) {
  const RecordedProcess& process = context.samples.processes.at(pid);
  MemoryMap memory;
  if (process.memory != nullptr) {
    const auto regions = process.memory->regions();
    memory.regions.assign(regions.begin(), regions.end());
  }
  std::optional<RecordedView> living;
  if (context.options.map_dir.empty()) living = view_living(pid, comm, context);
  if (living) {
    living->view.memory = std::move(memory);
    return *std::move(living);
  }
  RecordedView gone;
  gone.view.pid = gone.view.inner = pid;
  gone.view.shares_tmp = true;
  gone.view.status.comm = comm;
  gone.view.executable = process.program;
  gone.view.memory = std::move(memory);
  gone.found = find_runtime(gone.view);
  take_workload(comm, context, gone);
  return gone;
}

// Their maps and dumps.

/// For a usable file that was not used.
void explain_unused(pid_t pid, const RecordingContext& context, LookedFor& file) {
  const std::string_view name = base_name(file.our_path);
  file.fate = FileFate::shadowed;
  file.why = "not used, because the recording does not show that this file belongs to this process";
  const RecordedRefusals* const refused = context.options.refused;
  if (refused == nullptr) return;
  for (const ForeignFile& one : refused->foreign) {
    if (one.pid != pid || base_name(one.path) != name) continue;
    file.fate = FileFate::foreign_owner;
    file.why = concat(kBelongsToUser, one.owner, " and was not used: ", one.why);
    return;
  }
  for (const Error& error : refused->others) {
    if (base_name(error.path) != name) continue;
    const bool is_old = error.reason == Reason::older_than_process;
    file.fate = is_old ? FileFate::stale : FileFate::unreadable;
    file.why = is_old ? stale_text() : error.message();
  }
}

/// The files of a process that is no longer in /proc.
std::vector<LookedFor> search_gone(const RecordedView& recorded, const UsedFiles& used,
                                   const RecordingContext& context, Coverage& coverage) {
  const RecordingDoctorOptions& options = context.options;
  const pid_t pid = recorded.view.pid;
  const std::vector<std::string>& mapped = used.dumps_of(pid);
  const bool is_here = options.map_dir.empty();
  const std::string directory = (is_here ? options.roots.tmp : options.map_dir) + "/";
  std::vector<LookedFor> files;
  // A file that was used is good; for the others the reason is recorded.
  const FileJudge judge{[&](const Input& input, LookedFor& file) {
    if (!used.has(pid, input.facts()) && !input.text().empty()) explain_unused(pid, context, file);
  }};
  const auto take = [&](const std::string& path, const std::string& our_path, bool is_dump) {
    Input input = Input::from_text("", "");
    LookedFor file = judge_file({path, our_path, ""}, judge, &input);
    file.is_dump = is_dump;
    file.has_marker = is_dump && std::ranges::find(mapped, path) != mapped.end();
    if (file.fate == FileFate::used) {
      is_dump ? take_dump(std::move(input), file, coverage, false)
              : take_map(std::move(input), file, coverage);
    }
    const std::string& shown = options.shown_map_dir;
    if (!is_here && !shown.empty() && file.our_path.starts_with(directory)) {
      file.our_path.replace(0, directory.size() - 1, shown);
    }
    files.push_back(std::move(file));
  };
  const std::string map = concat(directory, kMapName.of(pid));
  take(is_here ? map : "", map, false);
  for (const std::string& dump : mapped) {
    take(dump, is_here ? options.symfs + dump : concat(directory, base_name(dump)), true);
  }
  if (mapped.empty()) take("", concat(directory, kDumpName.of(pid)), true);
  return files;
}

/// The result of the live search counts only if find_jit used the file, too.
void reconcile(pid_t pid, const UsedFiles& used, const RecordingContext& context,
               std::vector<LookedFor>& files) {
  for (LookedFor& file : files) {
    if (file.fate != FileFate::used) continue;
    const Result<FileFacts> facts = look_at_path(file.our_path);
    if (!facts || !used.has(pid, *facts)) explain_unused(pid, context, file);
  }
}

/// The process's own files, alive or not.
std::vector<LookedFor> search_files(const RecordedView& recorded, const UsedFiles& used,
                                    const RecordingContext& context, Coverage& coverage) {
  if (!recorded.process) return search_gone(recorded, used, context, coverage);
  const DoctorOptions options{context.options.roots, context.options.reader,
                              !context.options.snapshot.empty()};
  std::vector<LookedFor> files =
      search_files(*recorded.process, recorded.view, options, coverage).looked_for;
  reconcile(recorded.view.pid, used, context, files);
  return files;
}

/// Searches for maps and dumps like find_recorded_jit(), and reports the fate of each. Ancestors in
/// `without_files` have none, and are not asked again.
void search_recorded(const RecordedView& recorded, const UsedFiles& used,
                     const RecordingContext& context, std::set<pid_t>& without_files,
                     Diagnosis& diagnosis) {
  Coverage coverage(recorded.view.memory);
  diagnosis.looked_for = search_files(recorded, used, context, coverage);
  constexpr std::size_t kMaxInherited = 64;  // files of ancestors listed per process
  const std::size_t own = diagnosis.looked_for.size();
  const auto search_parent = [&](pid_t pid, const RecordedView& parent) {
    std::vector<LookedFor> files = search_files(parent, used, context, coverage);
    std::erase_if(files, [](const LookedFor& file) { return file.fate == FileFate::missing; });
    if (files.empty()) without_files.insert(pid);
    for (LookedFor& file : files) {
      if (diagnosis.looked_for.size() - own >= kMaxInherited) return;
      file.inherited_from = pid;
      diagnosis.looked_for.push_back(std::move(file));
    }
  };
  const RecordedProcess& process = context.samples.processes.at(recorded.view.pid);
  for (const pid_t pid : inherits_from(process)) {
    if (!context.samples.processes.contains(pid) || without_files.contains(pid)) continue;
    search_parent(pid, view_recorded(pid, recorded.view.status.comm, context));
  }
  const auto* const parents = used.parents_of(process);
  if (parents != nullptr && *parents) {
    for (const pid_t pid : **parents) {
      if (const auto parent = view_present(pid, context)) search_parent(pid, *parent);
    }
  }
  diagnosis.memory = coverage.result([&](const Region& region) {
    return recorded.process ? shows_elf(*recorded.process, region)
                            : shows_elf(context.options.open_module, region);
  });
}

/// On the wall clock: the modification time of the recording, unless it was copied later.
std::int64_t end_of(const Recording& recording, const RecordedSamples& samples) {
  const RecordingFacts& facts = samples.facts;
  if (facts.wall_ns != 0 && samples.last >= facts.clock_ns) {
    return static_cast<std::int64_t>(facts.wall_ns + (samples.last - facts.clock_ns)) + kTimeSlack;
  }
  const FileFacts& file = recording.input().facts();
  return file.is_file ? file.mtime_ns + kTimeSlack : file_clock_ns();
}

/// The processes to examine: all, or if they have very much memory, those with the most samples. A
/// fork gives a process all memory of its parent, so that this grows with the square of the
/// recording.
std::set<pid_t> busiest_processes(const RecordedSamples& samples,
                                  const std::vector<StackCounts>& processes) {
  constexpr std::size_t kMaxRegions = std::size_t{1} << 18;
  std::vector<const StackCounts*> by_samples;
  for (const StackCounts& counts : processes) {
    if (counts.samples != 0 && samples.processes.contains(counts.pid))
      by_samples.push_back(&counts);
  }
  std::ranges::stable_sort(by_samples, std::ranges::greater(), &StackCounts::samples);
  std::set<pid_t> pids;
  std::size_t regions = 0;
  for (const StackCounts* const counts : by_samples) {
    const auto& memory = samples.processes.at(counts->pid).memory;
    regions += memory != nullptr ? memory->regions().size() : 0;
    if (regions > kMaxRegions && !pids.empty()) break;
    pids.insert(counts->pid);
  }
  return pids;
}

/// Collects what is known about each process, and how it is presented.
std::map<pid_t, RecordedView> describe_processes(const RecordingContext& context,
                                                 const StackStatistics& statistics,
                                                 StackCounter& counter, const UsedFiles& used,
                                                 RecordingDiagnosis& diagnosis) {
  std::map<pid_t, RecordedView> views;
  std::set<pid_t> without_files;
  const std::set<pid_t> examined = busiest_processes(context.samples, statistics.processes);
  std::size_t others = 0;
  for (const StackCounts& counts : statistics.processes) {
    if (counts.samples == 0) continue;
    RecordedProcessState process = std::move(counter.processes[counts.pid]);
    process.counts = counts;
    process.ended = counter.ended(counts.pid);
    if (examined.contains(counts.pid)) {
      RecordedView view = view_recorded(counts.pid, counts.comm, context);
      process.runtime = view.found.runtime;
      process.evidence = view.found.evidence;
      Diagnosis live;
      search_recorded(view, used, context, without_files, live);
      process.memory = std::move(live.memory);
      if (process.concerns_jit()) process.looked_for = std::move(live.looked_for);
      const auto* const parents = used.parents_of(context.samples.processes.at(counts.pid));
      process.knows_parents = parents == nullptr || *parents || process.unnamed_jit == 0;
      view.process.reset();  // it holds one or two descriptors for each process
      view.view.memory = {};
      views.emplace(counts.pid, std::move(view));
    } else if (context.samples.processes.contains(counts.pid)) {
      ++others;
    }
    diagnosis.processes.push_back(std::move(process));
  }
  if (others != 0) {
    diagnosis.failures.push_back(Error::too_large(
        concat("did not examine the ", others,
               " processes with the fewest samples: together they have too many mappings")));
  }
  return views;
}

// Its stacks.

/// For a function without a name: whether the recording has neither a file nor code there.
bool is_unrecorded(const FrameFunction& function) noexcept {
  const std::string_view module = function.module;
  return function.kind == FrameKind::unknown && function.name.empty() &&
         (module.empty() || module.starts_with("//") || module == "[heap]" || module == "[stack]");
}

bool has_symbol_table(const Module& module) {
  // Packed symbols contain all functions, like .symtab.
  return module.find_section(".symtab") != nullptr ||
         module.find_section(".gnu_debugdata") != nullptr;
}

bool is_stripped(const Module& module) {
  const Module* const debug = module.debug_file();
  return !has_symbol_table(module) && (debug == nullptr || !has_symbol_table(*debug));
}

std::vector<SampledModule> sampled_modules(const FrameTable& table) {
  std::vector<SampledModule> modules;
  for (std::uint32_t number = 1; number < table.mappings(); ++number) {
    const FrameMapping& mapping = table.mapping(number);
    if (mapping.kind == FrameKind::kernel) continue;
    modules.push_back({std::string(mapping.path), std::string(mapping.build_id)});
  }
  return modules;
}

/// The command to record again. It must not replace the recording in a recording directory, and
/// the directory of an archive does not exist.
std::optional<RecordCommand> command_of(const RecordingDiagnosis& diagnosis,
                                        const RecordingDoctorOptions& options) {
  std::optional<RecordCommand> command = RecordCommand::parse(diagnosis.command_line);
  const auto description = std::filesystem::path(diagnosis.path).replace_filename("recording.json");
  std::error_code error;
  const bool is_archive = options.shown_map_dir == diagnosis.path;
  if (command && (is_archive || std::filesystem::exists(description, error))) {
    command->remove(RecordCommand::kOutput);
    command->by_perfmap = true;
  }
  return command;
}

}  // namespace

bool begins_fiber(std::string_view function, std::string_view module) noexcept {
  return function == "make_fcontext" || function == "trampoline_fcontext" ||
         base_name(module).starts_with("libboost_context");
}

bool RecordedSamples::is_monotonic() const noexcept {
  return !events.empty() &&
         std::all_of(events.begin(), events.end(),
                     [](const RecordedEvent& event) { return event.clock == CLOCK_MONOTONIC; });
}

RecordedSamples read_samples(
    const Recording& recording,
    const std::function<bool(pid_t pid, Address address, std::uint64_t time)>& is_named) {
  SampleReader samples(is_named);
  Recording::Reader reader(recording);
  Diagnostics ignored(1);
  for (auto records = reader.next(ignored); !records.empty(); records = reader.next(ignored)) {
    samples.found.facts.arch = reader.facts().arch;
    for (const RecordView& record : records) samples.take(record, reader.events());
  }
  for (const auto& [pid, process] : samples.found.processes) {
    if (process.executed == 0) continue;
    const auto [first, is_new] =
        samples.found.first_executed.try_emplace(process.program, process.executed);
    if (!is_new) first->second = std::min(first->second, process.executed);
  }
  samples.found.facts = reader.facts();
  samples.found.events.assign(reader.events().begin(), reader.events().end());
  return std::move(samples.found);
}

/// Callers from frame pointers may not be code at all; the sampled pc always is.
void StackCounter::take(const StackSample& sample) {
  RecordedProcessState& process = processes[sample.pid];
  if (!sample.frames.empty() && is_unrecorded(table_.function_of(sample.frames.front().place))) {
    ++process.in_unrecorded_code;
  }
  for (const StackFrame& frame : sample.frames) {
    const FrameFunction& function = table_.function_of(frame.place);
    const std::string_view module = function.module;
    const bool is_unread = function.kind == FrameKind::unknown && !module.empty() &&
                           !module.starts_with('[') && !module.starts_with("//");
    if (function.name.empty() && (function.kind == FrameKind::native || is_unread)) {
      ++unnamed_[table_.place(frame.place).function];
    }
    if (function.kind != FrameKind::jit) continue;
    ++process.jit_frames;
    if (function.name.empty()) ++process.unnamed_jit;
  }
  if (!has_stack(sample)) return;
  if (goes_astray(sample)) ++astray;
  if (sample.end == StackEnd::truncated && !sample.is_full_copy) ++unreadable;
  if (ends_in_jit(sample)) ++process.ends_in_jit;
  take_end(sample);
}

bool StackCounter::has_stack(const StackSample& sample) const noexcept {
  return sample.event >= events_.size() ||
         (events_[sample.event].sample_type & (kCallchain | kUserStack)) != 0;
}

/// Without frame pointers, the kernel follows any value of that register.
bool StackCounter::goes_astray(const StackSample& sample) const noexcept {
  return sample.end == StackEnd::callchain &&
         std::ranges::any_of(sample.frames, [this](const StackFrame& frame) {
           return is_unrecorded(table_.function_of(frame.place));
         });
}

/// Threads begin in native code: a stack that ends in a runtime's code, or goes astray right after
/// it, has lost its callers.
bool StackCounter::ends_in_jit(const StackSample& sample) const noexcept {
  constexpr std::size_t kKernelsMost = 127;  // the kernel's default limit; longer chains are cut
  switch (sample.end) {
    case StackEnd::no_info:
    case StackEnd::bad_memory: break;
    case StackEnd::callchain:
      if (sample.frames.size() >= kKernelsMost) return false;
      break;
    default: return false;
  }
  const auto kind = [this](const StackFrame& frame) {
    return table_.function_of(frame.place).kind;
  };
  const auto last =
      std::find_if(sample.frames.rbegin(), sample.frames.rend(),
                   [&](const StackFrame& f) { return kind(f) != FrameKind::unknown; });
  return last != sample.frames.rend() && kind(*last) == FrameKind::jit;
}

void StackCounter::take_end(const StackSample& sample) {
  if (sample.frames.empty()) return;
  const std::uint32_t function = table_.place(sample.frames.back().place).function;
  const FrameFunction& last = table_.function(function);
  const auto ends = [&]() -> Ends& { return ends_[{sample.pid, function}]; };
  switch (sample.end) {
    case StackEnd::no_info: ++ends().no_info; break;
    case StackEnd::bad_memory: ++ends().bad_memory; break;
    case StackEnd::other_stack: ++ends().other_stack; return;
    case StackEnd::root:
      if (begins_fiber(last.name, last.module)) ++ends().fiber_roots;
      return;
    default: return;
  }
  const auto is_user = [this](const StackFrame& frame) {
    const FrameKind kind = table_.function_of(frame.place).kind;
    return kind != FrameKind::kernel && kind != FrameKind::inlined;
  };
  if (std::count_if(sample.frames.begin(), sample.frames.end(), is_user) == 1) ++ends().alone;
}

std::vector<EndedStacks> StackCounter::ended(pid_t pid) const {
  std::vector<EndedStacks> modules;
  std::vector<std::uint64_t> max;  // of the function that is reported
  std::map<std::pair<std::string_view, FrameKind>, std::size_t> places;
  for (auto one = ends_.lower_bound({pid, 0}); one != ends_.end() && one->first.first == pid;
       ++one) {
    const FrameFunction& function = table_.function(one->first.second);
    const auto [place, is_new] =
        places.try_emplace({function.module, function.kind}, modules.size());
    if (is_new) {
      modules.push_back({std::string(function.module), {}, function.kind});
      max.push_back(0);
    }
    EndedStacks* const at = &modules[place->second];
    const Ends& ends = one->second;
    at->no_info += ends.no_info;
    at->bad_memory += ends.bad_memory;
    at->alone += ends.alone;
    at->fiber_roots += ends.fiber_roots;
    at->other_stack += ends.other_stack;
    std::uint64_t& best = max[place->second];
    if (ends.all() <= best) continue;
    best = ends.all();
    at->function = function.name;
  }
  std::stable_sort(modules.begin(), modules.end(), [](const EndedStacks& a, const EndedStacks& b) {
    return a.count() + a.other_stack > b.count() + b.other_stack;
  });
  return modules;
}

std::map<std::string_view, std::uint64_t> StackCounter::unnamed_files(FrameKind kind) const {
  std::map<std::string_view, std::uint64_t> files;
  for (const auto& [number, count] : unnamed_) {
    const FrameFunction& function = table_.function(number);
    if (function.kind == kind) files[function.module] += count;
  }
  return files;
}

ProcessTracker::OpenModule OpenedModules::watch(ProcessTracker::OpenModule open) {
  open_ = std::move(open);
  return [this](const Region& region, const ProcSource* process) {
    auto module = open_(region, process);
    if (module) regions_.try_emplace(region.file->name, region);
    return module;
  };
}

std::vector<StrippedFile> OpenedModules::stripped(const StackCounter& counter) const {
  std::vector<StrippedFile> found;
  for (const auto& [path, count] : counter.unnamed_files(FrameKind::native)) {
    const auto region = regions_.find(path);
    if (region == regions_.end()) continue;
    const auto module = open_(region->second, nullptr);
    if (!module || !is_stripped(**module)) continue;
    found.push_back({std::string(path), count, !(*module)->build_id().empty()});
  }
  std::ranges::stable_sort(found, std::ranges::greater(), &StrippedFile::unnamed);
  return found;
}

std::vector<StrippedFile> OpenedModules::unread(const StackCounter& counter) const {
  std::vector<StrippedFile> found;
  for (const auto& [path, count] : counter.unnamed_files(FrameKind::unknown)) {
    if (!regions_.contains(path)) found.push_back({std::string(path), count, false});
  }
  std::ranges::stable_sort(found, std::ranges::greater(), &StrippedFile::unnamed);
  return found;
}

std::vector<std::pair<std::string, std::string>> OpenedModules::missing_parts() const {
  std::vector<std::pair<std::string, std::string>> parts;
  for (const auto& [path, region] : regions_) {
    const auto module = open_(region, nullptr);
    const DebugIndex* const index = module ? (*module)->debug_index() : nullptr;
    const std::string missing = index == nullptr ? "" : index->stats().alternate_missing;
    if (!missing.empty()) parts.emplace_back(missing, path);
  }
  return parts;
}

RecordingDiagnosis diagnose_recording(const Recording& recording,
                                      const RecordingDoctorOptions& options,
                                      Diagnostics& problems) {
  UsedFiles used;
  StackOptions stacks;
  OpenedModules modules;
  if (options.open_module) stacks.open_module = modules.watch(options.open_module);
  if (options.find_jit) stacks.find_jit = used.watch(options.find_jit);
  if (options.find_parents) stacks.find_parents = used.watch_parents(options.find_parents);
  stacks.find_kallsyms = options.find_kallsyms;
  stacks.threads = options.threads;
  stacks.demangle = false;
  const RecordedSamples samples =
      read_samples(recording, [](pid_t, Address, std::uint64_t) { return true; });
  StackReader reader(recording, std::move(stacks));
  StackCounter counter(reader.table(), samples.events);
  reader.read([&](const StackSample& sample) { counter.take(sample); }, problems);
  RecordingDiagnosis diagnosis;
  diagnosis.path = recording.input().name();
  diagnosis.command_line = samples.facts.command_line;
  diagnosis.total = reader.statistics().total;
  diagnosis.failures.assign(reader.failures().begin(), reader.failures().end());
  diagnosis.modules = sampled_modules(reader.table());
  const std::optional<RecordCommand> command = command_of(diagnosis, options);
  const FileFacts& file = recording.input().facts();
  const RecordingContext context{samples,
                                 options,
                                 command,
                                 diagnosis.path,
                                 file.is_file && file.uid == 0,
                                 end_of(recording, samples)};
  const auto views = describe_processes(context, reader.statistics(), counter, used, diagnosis);
  const RecordingCase facts{context, reader.statistics(), views, counter.astray,
                            counter.unreadable};
  RecordingAdvice advice(command_to_repeat(facts, diagnosis), diagnosis);
  add_recorder_findings(facts, advice);
  add_process_findings(facts, diagnosis, advice);
  add_symbol_findings(facts, modules.stripped(counter), advice);
  add_part_findings(modules, advice);
  add_end_findings(facts, diagnosis, advice);
  add_unread_findings(facts, modules.unread(counter), diagnosis, advice);
  advice.finish();
  return diagnosis;
}

}  // namespace perfmap
