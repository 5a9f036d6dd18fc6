#include "process_names.hpp"

#include <algorithm>
#include <perfmap/living_parents.hpp>
#include <perfmap/process_modules.hpp>

#include "name_sources.hpp"

namespace perfmap::app {
namespace {

ModuleCacheOptions cache_options(const ProcessNameOptions& options) {
  ModuleCacheOptions cache;
  cache.debug_directories = {"/usr/lib/debug"};
  cache.fetch = options.fetch;
  return cache;
}

ProcessTracker::Options tracker_options(const ProcessNameOptions& options,
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
  tracker.roots = roots_from_environment();
  tracker.any_owner = options.source.any_owner;
  tracker.open_module =
      options.symfs.empty() ? open_through(cache) : open_below(cache, options.symfs);
  return tracker;
}

}  // namespace

ProcessNames::ProcessNames(pid_t pid, const ProcessNameOptions& options,
                           std::shared_ptr<const Snapshot> snapshot, const Console& console)
    : pid_(pid),
      console_(console),
      may_change_(snapshot == nullptr),
      cache_(cache_options(options)),
      tracker_(tracker_options(options, std::move(snapshot), cache_)),
      symbolizer_(tracker_, options.symbols) {}

Result<std::unique_ptr<ProcessNames>> ProcessNames::open(pid_t pid,
                                                         const ProcessNameOptions& options,
                                                         const Console& console) {
  const Step step(console, "reading process " + std::to_string(pid));
  return import(std::unique_ptr<ProcessNames>(new ProcessNames(pid, options, nullptr, console)),
                options);
}

Result<std::unique_ptr<ProcessNames>> ProcessNames::open_snapshot(const std::string& directory,
                                                                  const ProcessNameOptions& options,
                                                                  const Console& console) {
  const Step step(console, "reading " + directory);
  Result<Snapshot> opened = Snapshot::open(directory);
  if (!opened) return Failure(std::move(opened.error()));
  const auto snapshot = std::make_shared<const Snapshot>(*std::move(opened));
  std::unique_ptr<ProcessNames> names(
      new ProcessNames(snapshot->pid(), options, snapshot, console));
  const std::string& proc = snapshot->roots().proc;
  names->absolute_ = proc.substr(0, proc.rfind('/'));
  names->typed_ = directory.substr(0, directory.find_last_not_of('/') + 1);
  return import(std::move(names), options);
}

Result<std::unique_ptr<ProcessNames>> ProcessNames::import(std::unique_ptr<ProcessNames> names,
                                                           const ProcessNameOptions& options) {
  const Result<Imported> imported = names->tracker_.import(names->pid_, ++names->seen_at_);
  if (!imported) {
    names->console_.warn(imported.error().message + ": its ELF files are not asked");
    return nullptr;
  }
  if (*imported == Imported::vanished) {
    if (names->has_files(options)) return nullptr;
    return Failure(no_process(names->pid_));
  }
  // One of the kernel's, or of whoever wrote these files in another namespace.
  if (names->tracker_.at(names->pid_)->regions().empty()) return nullptr;
  Result<void> taken = names->take_jit(options);
  if (!taken) return Failure(std::move(taken.error()));
  return names;
}

Result<void> ProcessNames::take_jit(const ProcessNameOptions& options) {
  if (!options.source.map_dir.empty()) return take_jit_of_directory(options);
  const auto jit = tracker_.refresh_jit(pid_);
  if (!jit) return Failure(jit.error());
  if (*jit == nullptr) return {};
  for (const Error& refused : (*jit)->refused()) console_.warn(refused.message);
  return {};
}

/// The process's own files in --map-dir, and those of the processes that it was forked from.
Result<void> ProcessNames::take_jit_of_directory(const ProcessNameOptions& options) {
  const auto open = [&](pid_t pid) -> Result<std::shared_ptr<JitSources>> {
    Result<std::vector<OpenedInput>> opened =
        open_process_inputs(pid, roots_from_environment(), options.source, console_);
    if (!opened) return Failure(std::move(opened.error()));
    Result<NameSources> sources = name_sources_of(*std::move(opened), options.source);
    if (!sources) return Failure(std::move(sources.error()));
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
    console_.warn(own.error().message);
  }
  return {};
}

/// What is left of a process may still name its code.
bool ProcessNames::has_files(const ProcessNameOptions& options) const {
  if (!options.source.map_dir.empty()) return true;
  const Roots& roots = tracker_.options().roots;
  const Result<Input> map = find_process_map(pid_, roots, options.source.any_owner);
  if (map || map.error().code != Errc::not_found) return true;
  const ProcessDumps dumps = find_process_dumps(pid_, roots, options.source.any_owner);
  return !dumps.dumps.empty() || !dumps.refused.empty();
}

/// Nothing of a program that has ended is answered for the next one, nor for another process.
void ProcessNames::look_again() {
  if (is_gone_) return;
  const std::string process = "process " + std::to_string(pid_);
  const Result<Imported> imported = tracker_.import(pid_, ++seen_at_);
  is_gone_ = !imported || *imported == Imported::vanished;
  if (is_gone_) return console_.note(process + " has ended");
  if (*imported == Imported::began) {
    is_gone_ = tracker_.find(pid_)->began != ProcessBegin::executed;
    if (is_gone_) return console_.note(process + " has ended, and another one has its pid");
    console_.note(process + " runs another program now");
  }
  static_cast<void>(tracker_.refresh_jit(pid_));  // what there was, stays
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

bool ProcessNames::finish() const {
  for (const Error& failure : symbolizer_.failures()) console_.warn(failure.message);
  note_without_lines(symbolizer_.without_lines(), console_);
  return true;
}

}  // namespace perfmap::app
