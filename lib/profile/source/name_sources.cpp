// SPDX-License-Identifier: MIT
#include <algorithm>
#include <unordered_map>

#include "perfmap/json.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/snapshot.hpp"
#include "perfmap/profile/source.hpp"
#include "perfmap/profile/stacks.hpp"

namespace perfmap {
namespace {

/// A process: its memory, its ELF files, its perf map and its dumps.
class ProcessNames {
 public:
  /// Null if there is no such process but it left files, or if its memory is not readable, which is
  /// reported. Fails with not_found if there are neither process nor files.
  static Result<std::unique_ptr<ProcessNames>> open(pid_t pid, const NameSourceOptions& options,
                                                    FetchDebugFile fetch);
  /// A process in a snapshot.
  static Result<std::unique_ptr<ProcessNames>> open_snapshot(const std::string& directory,
                                                             const NameSourceOptions& options,
                                                             FetchDebugFile fetch);

  /// A process of a recording, with the memory that it had at its end. Null if the recording cannot
  /// be read, which is reported, or has no process. Fails if the source does not say which one.
  static Result<std::unique_ptr<ProcessNames>> open_recorded(const Source& source,
                                                             const NameSourceOptions& options,
                                                             FetchDebugFile fetch);

  pid_t pid() const noexcept { return pid_; }
  /// Looks up the current names; after the process has ended, the answer says that.
  void find_all(std::span<const Query> queries, std::span<AddressName> answers);
  /// The name to show for a source: in a snapshot, below the directory as it was typed. Lives as
  /// long as this object.
  std::string_view shown(const std::string& source);
  /// The first of its dumps whose times are processor ticks, or null.
  const Jitdump* with_ticks() const noexcept;
  const Symbolizer& symbolizer() const noexcept { return symbolizer_; }

 private:
  ProcessNames(pid_t pid, const NameSourceOptions& options,
               std::shared_ptr<const Snapshot> snapshot, FetchDebugFile fetch);
  ProcessNames(const Recording& recording, std::shared_ptr<const RecordedModules> copies,
               const NameSourceOptions& options, FetchDebugFile fetch);
  static Result<std::unique_ptr<ProcessNames>> import(std::unique_ptr<ProcessNames> names,
                                                      const NameSourceOptions& options);
  Result<pid_t> recorded_process(const Source& source) const;
  Result<void> take_jit(const NameSourceOptions& options);
  Result<void> take_jit_of_directory(const NameSourceOptions& options);
  bool has_files(const NameSourceOptions& options) const;
  void look_again();

  pid_t pid_;
  SourceObserver& observer_;
  bool may_change_;
  std::string absolute_;  // of the snapshot
  std::string typed_;
  std::unordered_map<std::string, std::string> shown_;
  ModuleCache cache_;
  ProcessTracker tracker_;
  Symbolizer symbolizer_;
  std::uint64_t seen_at_ = 0;  // in the tracker's time
  bool is_gone_ = false;
  bool was_asked_ = false;
};

ModuleCacheOptions cache_options(FetchDebugFile fetch) {
  ModuleCacheOptions cache;
  cache.debug_directories = {"/usr/lib/debug"};
  cache.fetch = std::move(fetch);
  return cache;
}

ProcessTracker::Options tracker_options(const NameSourceOptions& options,
                                        std::shared_ptr<const Snapshot> snapshot,
                                        ModuleCache& cache) {
  ProcessTracker::Options tracker;
  tracker.overlap = options.overlap;
  if (snapshot != nullptr) {
    tracker.roots = snapshot->roots();
    tracker.any_owner = true;
    tracker.open_module = open_of_snapshot(cache, std::move(snapshot), options.symfs);
    return tracker;
  }
  tracker.roots = options.opening.roots;
  tracker.any_owner = options.opening.any_owner;
  tracker.open_module =
      options.symfs.empty() ? open_through(cache) : open_below(cache, options.symfs);
  return tracker;
}

ProcessNames::ProcessNames(pid_t pid, const NameSourceOptions& options,
                           std::shared_ptr<const Snapshot> snapshot, FetchDebugFile fetch)
    : pid_(pid),
      observer_(options.opening.listener()),
      may_change_(snapshot == nullptr),
      cache_(cache_options(std::move(fetch))),
      tracker_(tracker_options(options, std::move(snapshot), cache_)),
      symbolizer_(tracker_, options.symbols) {}

ProcessTracker::Options tracker_options(const NameSourceOptions& options,
                                        const Recording& recording,
                                        std::shared_ptr<const RecordedModules> copies,
                                        ModuleCache& cache) {
  RecordedJitOptions files;
  files.symfs = options.symfs;
  files.modules = std::move(copies);
  ProcessTracker::Options tracker;
  tracker.open_module = open_recorded_modules(cache, recording, files);
  return tracker;
}

/// Passes the events of a recording to a tracker, except that a process ends, because its memory
/// is of interest.
class MemoryEvents {
 public:
  explicit MemoryEvents(ProcessTracker& tracker) : tracker_(tracker) {}

  void read(const Recording& recording) {
    Diagnostics ignored(0);
    Recording::Reader reader(recording);
    for (auto records = reader.next(ignored); !records.empty(); records = reader.next(ignored)) {
      for (const RecordView& record : records) pass_process_event(record, *this);
    }
  }
  void on_mmap(const MmapEvent& event) {
    const bool is_kernel = event.pid < 0;
    if (!is_kernel) tracker_.on_mmap(event);
  }
  void on_fork(const ForkEvent& event) { tracker_.on_fork(event); }
  void on_comm(const CommEvent& event) { tracker_.on_comm(event); }
  void on_exit(const ExitEvent& /*event*/) {}

 private:
  ProcessTracker& tracker_;
};

ProcessNames::ProcessNames(const Recording& recording,
                           std::shared_ptr<const RecordedModules> copies,
                           const NameSourceOptions& options, FetchDebugFile fetch)
    : pid_(0),
      observer_(options.opening.listener()),
      may_change_(false),
      cache_(cache_options(std::move(fetch))),
      tracker_(tracker_options(options, recording, std::move(copies), cache_)),
      symbolizer_(tracker_, options.symbols) {
  MemoryEvents(tracker_).read(recording);
}

bool is_recording_directory(const Source& source) {
  const bool may_be = source.as == Source::As::any || source.as == Source::As::path;
  return may_be && !source.failure && !is_stdin(source) && recording_in(source.text);
}

/// Whether it is a recording directory with perf maps or jitdumps of the wanted processes.
bool has_recorded_files(const Source& source) {
  if (!is_recording_directory(source)) return false;
  const Result<std::vector<RecordedFile>> files = recorded_files_in(source.text);
  return files && std::ranges::any_of(*files, [&](const RecordedFile& file) {
           return source.pids.empty() ||
                  std::ranges::find(source.pids, file.pid) != source.pids.end();
         });
}

/// perf record -p PID -- COMMAND lists the process that runs the command, with the name that it has
/// until it executes it, although only PID is recorded.
bool is_command_of_perf(const ProcessInfo& process) { return process.comm == "perf-exec"; }

/// That of -p, or the only one that has a perf map or jitdump, or the only one; 0: there is none.
Result<pid_t> ProcessNames::recorded_process(const Source& source) const {
  std::vector<pid_t> pids = source.pids;
  if (pids.empty()) {
    const Result<std::vector<RecordedFile>> files = recorded_files_in(source.text);
    if (!files) return failure(files);
    for (const RecordedFile& file : *files) pids.push_back(file.pid);
  }
  if (pids.empty()) {
    for (const ProcessInfo& process : tracker_.living()) {
      if (!is_command_of_perf(process)) pids.push_back(process.pid);
    }
  }
  std::ranges::sort(pids);
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  if (pids.size() < 2) return pids.empty() ? 0 : pids.front();
  constexpr std::size_t kMaxShown = 8;
  std::string text = (source.shown.empty() ? source.text : source.shown) + " has several processes";
  for (std::size_t i = 0; i < std::min(pids.size(), kMaxShown); ++i) {
    text += (i == 0 ? ": " : ", ") + std::to_string(pids[i]);
  }
  text += pids.size() > kMaxShown ? ", … (-p PID selects one)" : " (-p PID selects one)";
  return Failure(Error::invalid(text));
}

Result<std::unique_ptr<ProcessNames>> ProcessNames::open_recorded(const Source& source,
                                                                  const NameSourceOptions& options,
                                                                  FetchDebugFile fetch) {
  if (source.pids.size() > 1) return nullptr;  // their maps and jitdumps are used
  const std::string& shown = source.shown.empty() ? source.text : source.shown;
  const auto step = options.opening.listener().step("reading " + shown);
  const Result<Recording> recording = open_recording(source.text);
  if (!recording) {
    options.opening.listener().warn(recording.error().message() + "; ELF files are not used");
    return nullptr;
  }
  Result<std::shared_ptr<const RecordedModules>> copies = recorded_modules_in(source.text);
  if (!copies) return failure(copies);
  if (*copies != nullptr) {
    for (const Error& one : (*copies)->damaged()) options.opening.listener().warn(one.message());
  }
  std::unique_ptr<ProcessNames> names(
      new ProcessNames(*recording, *std::move(copies), options, std::move(fetch)));
  const Result<pid_t> pid = names->recorded_process(source);
  if (!pid) return failure(pid);
  if (names->tracker_.find(*pid) != nullptr) {
    names->pid_ = *pid;
    return names;
  }
  if (source.pids.empty() || has_recorded_files(source)) return nullptr;
  return Failure(Error::not_found(shown + " has no process " + std::to_string(*pid)));
}

Result<std::unique_ptr<ProcessNames>> ProcessNames::open(pid_t pid,
                                                         const NameSourceOptions& options,
                                                         FetchDebugFile fetch) {
  const auto step = options.opening.listener().step("reading process " + std::to_string(pid));
  return import(
      std::unique_ptr<ProcessNames>(new ProcessNames(pid, options, nullptr, std::move(fetch))),
      options);
}

Result<std::unique_ptr<ProcessNames>> ProcessNames::open_snapshot(const std::string& directory,
                                                                  const NameSourceOptions& options,
                                                                  FetchDebugFile fetch) {
  const auto step = options.opening.listener().step("reading " + directory);
  Result<Snapshot> opened = Snapshot::open(directory);
  if (!opened) return failure(opened);
  const auto snapshot = std::make_shared<const Snapshot>(*std::move(opened));
  std::unique_ptr<ProcessNames> names(
      new ProcessNames(snapshot->pid(), options, snapshot, std::move(fetch)));
  const std::string& proc = snapshot->roots().proc;
  names->absolute_ = proc.substr(0, proc.rfind('/'));
  names->typed_ = directory.substr(0, directory.find_last_not_of('/') + 1);
  return import(std::move(names), options);
}

Result<std::unique_ptr<ProcessNames>> ProcessNames::import(std::unique_ptr<ProcessNames> names,
                                                           const NameSourceOptions& options) {
  const Result<Imported> imported = names->tracker_.import(names->pid_, ++names->seen_at_);
  if (!imported) {
    names->observer_.warn(imported.error().message() + "; the ELF files of process " +
                          std::to_string(names->pid_) + " are not used");
    return nullptr;
  }
  if (*imported == Imported::vanished) {
    if (names->has_files(options)) return nullptr;
    return Failure(no_process(names->pid_));
  }
  // A kernel thread has this pid, or the files were written by a process in another namespace.
  if (names->tracker_.at(names->pid_)->regions().empty()) return nullptr;
  Result<void> taken = names->take_jit(options);
  if (!taken) return failure(taken);
  return names;
}

Result<void> ProcessNames::take_jit(const NameSourceOptions& options) {
  if (!options.opening.map_dir.empty()) return take_jit_of_directory(options);
  const auto jit = tracker_.refresh_jit(pid_);
  if (!jit) return failure(jit);
  if (*jit == nullptr) return {};
  for (const Error& refused : (*jit)->refused()) observer_.warn(refused.message());
  return {};
}

/// The process's own files in --map-dir, and those of its ancestors.
Result<void> ProcessNames::take_jit_of_directory(const NameSourceOptions& options) {
  const auto open = [&](pid_t pid) -> Result<std::shared_ptr<JitSources>> {
    Result<std::vector<OpenedInput>> opened = open_process_source(pid, options.opening);
    if (!opened) return failure(opened);
    Result<SourceFiles> sources = source_files(*std::move(opened), options.opening);
    if (!sources) return failure(sources);
    return std::make_shared<JitSources>(std::move(sources->maps), std::move(sources->dumps),
                                        options.overlap);
  };
  auto own = open(pid_);
  if (own) tracker_.attach_jit(pid_, *own);
  bool has_any = own.has_value();
  const Roots& roots = tracker_.options().roots;
  if (const auto process = ProcSource::open(pid_, roots); process && *process) {
    for (const ProcSource& parent : living_parents(**process, roots)) {
      auto sources = open(parent.pid());
      if (!sources) continue;
      attach_parent_jit(tracker_, pid_, parent.pid(), *std::move(sources));
      has_any = true;
    }
  }
  if (!own && (!has_any || own.error().code != Errc::not_found)) {
    observer_.warn(own.error().message());
  }
  return {};
}

/// Files left by a process may still name its code.
bool ProcessNames::has_files(const NameSourceOptions& options) const {
  if (!options.opening.map_dir.empty()) return true;
  const Roots& roots = tracker_.options().roots;
  const Result<Input> map = find_process_map(pid_, roots, options.opening.any_owner);
  if (map || map.error().code != Errc::not_found) return true;
  const ProcessDumps dumps = find_process_dumps(pid_, roots, options.opening.any_owner);
  return !dumps.dumps.empty() || !dumps.refused.empty();
}

/// Names of a program that has ended must not be used for its successor, nor for another process.
void ProcessNames::look_again() {
  if (is_gone_) return;
  const std::string process = "process " + std::to_string(pid_);
  const Result<Imported> imported = tracker_.import(pid_, ++seen_at_);
  is_gone_ = !imported || *imported == Imported::vanished;
  if (is_gone_) return observer_.note(process + " has ended");
  if (*imported == Imported::began) {
    is_gone_ = tracker_.find(pid_)->began != ProcessBegin::executed;
    if (is_gone_) return observer_.note(process + " has ended, and another process has its pid");
    observer_.note(process + " runs another program now");
  }
  static_cast<void>(tracker_.refresh_jit(pid_));  // on failure the old content stays
}

void ProcessNames::find_all(std::span<const Query> queries, std::span<AddressName> answers) {
  if (was_asked_ && may_change_) look_again();
  was_asked_ = true;
  if (!is_gone_) return symbolizer_.find_all(pid_, queries, answers);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    answers[i] = AddressName{};
    answers[i].address = queries[i].address;
  }
}

std::string_view ProcessNames::shown(const std::string& source) {
  if (absolute_.empty() || !source.starts_with(absolute_ + "/")) return source;
  return shown_.try_emplace(source, typed_ + source.substr(absolute_.size())).first->second;
}

const Jitdump* ProcessNames::with_ticks() const noexcept {
  const auto jit = tracker_.jit(pid_);
  if (jit == nullptr) return nullptr;
  const auto timelines = jit->resolver().timelines();
  const auto found = std::find_if(timelines.begin(), timelines.end(), [](const Timeline& timeline) {
    return timeline.dump().has_tsc_times();
  });
  return found == timelines.end() ? nullptr : &found->dump();
}

}  // namespace

struct NameSources::State {
  struct Process {
    std::size_t rank = 0;  ///< its position among the sources
    std::unique_ptr<ProcessNames> names;
  };

  /// Null: open the source as files.
  Result<std::unique_ptr<ProcessNames>> open_process(const Source& source) const;
  Result<void> open(std::span<const Source> sources);
  Result<void> check_times();
  std::size_t best_process(std::size_t i) const;
  bool files_win(const Resolution& by_files, const AddressName& by_process,
                 std::size_t process_rank) const;
  SourceAnswer by_files(std::size_t i);
  SourceAnswer by_process(std::size_t i, std::size_t process);

  NameSourceOptions options;
  SourceFiles opened;  ///< until moved into `files`
  bool has_files = false;
  bool misses_source = false;
  bool has_ticks = false;
  std::size_t files_rank = 0;  ///< of the last file
  std::optional<Resolver> files;
  std::vector<Process> processes;
  // Results of the last query.
  std::vector<Resolution> resolutions;
  std::vector<std::vector<AddressName>> names;  ///< one list per process
};

Result<std::unique_ptr<ProcessNames>> NameSources::State::open_process(const Source& source) const {
  const pid_t pid = pid_of_source(source);
  const bool is_snapshot =
      pid == 0 && source.as != Source::As::dump && Snapshot::is_at(source.text);
  const bool wants_files = !options.opening.kind.empty() || options.opening.stop_at_close;
  const bool is_recorded = pid == 0 && !is_snapshot && is_recording_directory(source);
  if ((pid == 0 && !is_snapshot && !is_recorded) || wants_files) return nullptr;
  Result<FetchDebugFile> fetch =
      options.open_servers ? options.open_servers() : Result<FetchDebugFile>();
  if (!fetch) return failure(fetch);
  if (is_recorded) return ProcessNames::open_recorded(source, options, *std::move(fetch));
  return is_snapshot ? ProcessNames::open_snapshot(source.text, options, *std::move(fetch))
                     : ProcessNames::open(pid, options, *std::move(fetch));
}

Result<void> NameSources::State::open(std::span<const Source> sources) {
  std::vector<Source> paths;
  std::vector<Error> failures;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Result<std::unique_ptr<ProcessNames>> process = open_process(sources[i]);
    if (!process) {
      failures.push_back(std::move(process.error()));
      continue;
    }
    if (*process != nullptr) {
      processes.push_back({i, *std::move(process)});
      if (!has_recorded_files(sources[i])) continue;
    }
    paths.push_back(sources[i]);
    files_rank = i;
  }
  Result<std::vector<OpenedInput>> inputs = open_sources(paths, options.opening, &failures);
  if (!inputs) return failure(inputs);
  const bool misses_all = failures.size() == sources.size() && !failures.empty();
  for (const Error& failure : std::span(failures).first(failures.size() - misses_all)) {
    options.opening.listener().missing(failure);
  }
  if (misses_all) return Failure(std::move(failures.back()));
  misses_source = !failures.empty();
  Result<SourceFiles> sorted = source_files(*std::move(inputs), options.opening);
  if (!sorted) return failure(sorted);
  opened = *std::move(sorted);
  has_files = !opened.maps.empty() || !opened.dumps.empty();
  return check_times();
}

Result<void> NameSources::State::check_times() {
  std::vector<const Jitdump*> dumps;
  for (const Jitdump& dump : opened.dumps) dumps.push_back(&dump);
  for (const Process& process : processes) {
    if (const Jitdump* const ticks = process.names->with_ticks()) dumps.push_back(ticks);
  }
  for (const Jitdump* const dump : dumps) {
    has_ticks = has_ticks || dump->has_tsc_times();
    const Result<void> comparable = check_time(*dump, options.time);
    if (!comparable) return comparable;
  }
  return {};
}

std::size_t NameSources::State::best_process(std::size_t i) const {
  for (std::size_t p = names.size(); p-- > 0;) {
    if (names[p][i].has_name()) return p;
  }
  return names.size() - 1;
}

bool NameSources::State::files_win(const Resolution& by_files, const AddressName& by_process,
                                   std::size_t process_rank) const {
  if (!by_files.found || by_process.module != nullptr) return false;
  if (!by_process.entry) return true;
  const bool file_is_dump = by_files.found->source >= files->maps().size();
  const bool process_has_dump =
      by_process.entry->source >= by_process.sources->resolver().maps().size();
  if (file_is_dump != process_has_dump) return file_is_dump;
  return files_rank > process_rank;
}

SourceAnswer NameSources::State::by_files(std::size_t i) {
  const Resolution& resolution = resolutions[i];
  SourceAnswer answer;
  answer.why = to_string(resolution.why);
  if (!resolution.found) return answer;
  answer.file = files->input(resolution.found->source).name();
  answer.entry = &*resolution.found;
  answer.resolver = &*files;
  answer.doubts = resolution.found->doubts;
  return answer;
}

SourceAnswer NameSources::State::by_process(std::size_t i, std::size_t process) {
  const AddressName& name = names[process][i];
  SourceAnswer answer;
  answer.why = to_string(name.why);
  answer.name = &name;
  if (name.entry) {
    answer.entry = &*name.entry;
    answer.resolver = &name.sources->resolver();
    const std::string& file = answer.resolver->input(name.entry->source).name();
    answer.file = processes[process].names->shown(file);
    answer.doubts = name.entry->doubts;
    answer.doubts.add(name.doubts);
    return answer;
  }
  if (name.mapped != nullptr) answer.file = name.mapped->name;
  if (!name.name.empty()) answer.doubts = name.doubts;
  return answer;
}

NameSources::NameSources(std::unique_ptr<State> state) : state_(std::move(state)) {}
NameSources::NameSources(NameSources&&) noexcept = default;
NameSources& NameSources::operator=(NameSources&&) noexcept = default;
NameSources::~NameSources() = default;

Result<NameSources> NameSources::open(std::span<const Source> sources,
                                      const NameSourceOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  const Result<void> opened = state->open(sources);
  if (!opened) return failure(opened);
  return NameSources(std::move(state));
}

const std::vector<Map>* NameSources::only_maps() const noexcept {
  const bool only = state_->processes.empty() && state_->opened.dumps.empty() && !state_->files;
  return only ? &state_->opened.maps : nullptr;
}

bool NameSources::misses_source() const noexcept { return state_->misses_source; }

bool NameSources::has_ticks() const noexcept { return state_->has_ticks; }

void NameSources::index(Diagnostics& problems, Diagnostics& record_problems) {
  if (!state_->has_files) return;
  const auto step = state_->options.opening.listener().step("indexing");
  state_->files.emplace(std::move(state_->opened.maps), std::move(state_->opened.dumps),
                        state_->options.overlap, problems, record_problems);
}

void NameSources::find_all(std::span<const Query> queries, std::span<SourceAnswer> answers) {
  State& state = *state_;
  if (state.files) {
    state.resolutions.resize(queries.size());
    state.files->find_all(queries, state.resolutions);
  }
  state.names.resize(state.processes.size());
  for (std::size_t p = 0; p < state.names.size(); ++p) {
    state.names[p].resize(queries.size());
    state.processes[p].names->find_all(queries, state.names[p]);
  }
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const std::size_t p = state.names.empty() ? 0 : state.best_process(i);
    const bool files = state.names.empty() ||
                       (state.files && state.files_win(state.resolutions[i], state.names[p][i],
                                                       state.processes[p].rank));
    answers[i] = files ? state.by_files(i) : state.by_process(i, p);
  }
}

const Resolver* NameSources::files() const noexcept {
  return state_->files ? &*state_->files : nullptr;
}

std::vector<const Symbolizer*> NameSources::symbolizers() const {
  std::vector<const Symbolizer*> all;
  for (const State::Process& one : state_->processes) all.push_back(&one.names->symbolizer());
  return all;
}

}  // namespace perfmap
