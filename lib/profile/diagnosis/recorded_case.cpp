#include "diagnosis/recorded_case.hpp"

#include <algorithm>
#include <span>

#include "diagnosis/looked_for.hpp"
#include "perfmap/profile/stacks.hpp"
#include "process/jit_lineage.hpp"
#include "process/proc_text.hpp"

namespace perfmap {
namespace {

/// Splits what `sh -c` gets: for looking, not for running.
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

/// Where in the words the program is called; nothing where it is not.
std::optional<std::size_t> find_program(const std::vector<std::string>& words,
                                        const RecordedView& recorded, const std::string& comm) {
  // Links such as /usr/bin/java lead to the program; perf knows where they lead.
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = base_name(words[i]);
    if (name.empty()) continue;
    if (name == base_name(recorded.view.executable) || name == comm) return i;
    if (recorded.found.runtime == Runtime::unknown) continue;
    const RuntimeInfo& runtime = runtime_info(recorded.found.runtime);
    // A launcher hands its options on: erl starts beam.smp.
    if (name == runtime.signs.launcher || runtime_of_program(words[i]) == &runtime) return i;
  }
  return std::nullopt;
}

/// A program that starts itself again gives other arguments to the others.
bool is_first_of_program(pid_t pid, const RecordedSamples& samples) {
  const RecordedProcess& process = samples.processes.at(pid);
  if (process.executed == 0) return false;
  return std::none_of(samples.processes.begin(), samples.processes.end(), [&](const auto& one) {
    const RecordedProcess& other = one.second;
    return other.executed != 0 && other.executed < process.executed &&
           other.program == process.program;
  });
}

bool is_assignment(std::string_view word) noexcept {
  constexpr std::string_view kName =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  const std::size_t name = std::min(word.find_first_not_of(kName), word.size());
  return name != 0 && name < word.size() && word[name] == '=' &&
         !(word[0] >= '0' && word[0] <= '9');
}

/// NAME=VALUE before the program, as env(1) and shells take it. The last one counts.
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
  // What it was asked for may stand in a script, but that is no command line to be changed.
  std::vector<std::string> words = words_of(workload);
  const auto inner = find_program(words, into, comm);
  if (!inner) return;
  take_variables(std::span(words).first(*inner), into.view);
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(*inner));
  into.view.arguments = std::move(words);
}

constexpr std::size_t kMaxInherited = 64;  // files of parents that are listed of a process

bool is_the_recorded(const ProcSource& process, const ProcessView& view, const std::string& program,
                     const std::string& comm, const RecordingContext& context) {
  const bool is_older = start_time_ns(process, context.options.roots.proc) <= context.end_ns;
  const bool is_program = program.empty() ? view.status.comm == comm : view.executable == program;
  return is_older && is_program;
}

std::optional<RecordedView> view_living(pid_t pid, const std::string& comm,
                                        const RecordingContext& context) {
  ProcSource::Seen<ProcSource> process = ProcSource::open(pid, context.options.roots);
  if (!process || !*process) return std::nullopt;
  Result<ProcessView> view =
      view_process(**process, context.options.roots, context.options.is_snapshot);
  const std::string& program = context.samples.processes.at(pid).program;
  if (!view || !is_the_recorded(**process, *view, program, comm, context)) return std::nullopt;
  RecordedView living;
  living.found = find_runtime(**process, *view);
  living.view = *std::move(view);
  living.is_alive = !context.options.is_snapshot;
  living.knows_arguments = !living.view.arguments.empty();
  living.process = **std::move(process);
  return living;
}

/// Of a file that could be used, and was not.
void explain_unused(pid_t pid, const RecordingContext& context, LookedFor& file) {
  const std::string_view name = base_name(file.our_path);
  file.fate = FileFate::shadowed;
  file.why = "not used: nothing in the recording shows that it belongs to this process";
  const RecordedRefusals* const refused = context.options.refused;
  if (refused == nullptr) return;
  for (const ForeignFile& one : refused->foreign) {
    if (one.pid != pid || base_name(one.path) != name) continue;
    file.fate = FileFate::foreign_owner;
    file.why = "belongs to user " + std::to_string(one.owner) + " and was not used: " + one.why;
    return;
  }
  for (const Error& error : refused->others) {
    if (error.message.find(name) == std::string::npos) continue;
    const bool is_old = error.message.find("older") != std::string::npos;
    file.fate = is_old ? FileFate::stale : FileFate::unreadable;
    file.why =
        is_old ? "older than the process: left by an earlier one of the same pid" : error.message;
  }
}

/// The files of a process, where they are looked for when nothing of /proc can be asked.
class RecordedSearch {
 public:
  RecordedSearch(const RecordedView& recorded, const UsedFiles& used,
                 const RecordingContext& context)
      : recorded_(recorded), used_(used), context_(context) {}

  std::vector<FilePlace> maps() const {
    const RecordingDoctorOptions& options = context_.options;
    const std::string name = "/perf-" + std::to_string(recorded_.view.pid) + ".map";
    const std::string& directory = options.map_dir.empty() ? options.roots.tmp : options.map_dir;
    return {{name_if_host(name), directory + name, ""}};
  }

  std::vector<FilePlace> dumps() const {
    const RecordingDoctorOptions& options = context_.options;
    std::vector<FilePlace> places;
    for (const std::string& dump : used_.dumps_of(recorded_.view.pid)) {
      if (options.map_dir.empty()) {
        places.push_back({dump, options.symfs + dump, ""});
      } else {
        places.push_back({dump, options.map_dir + "/" + std::string(base_name(dump)), ""});
      }
    }
    if (!places.empty()) return places;
    const std::string name = "/jit-" + std::to_string(recorded_.view.pid) + ".dump";
    const std::string& directory = options.map_dir.empty() ? options.roots.tmp : options.map_dir;
    return {{"", directory + name, ""}};
  }

  LookedFor judge(const FilePlace& place, Input* input) const {
    return judge_file(
        place,
        {[](const FilePlace& at) { return look_at_path(at.our_path); },
         [](const FilePlace& at) { return Input::open(at.our_path, found_file_policy()); },
         [this](const Input& opened, LookedFor& file) { object(opened, file); }},
        input);
  }

 private:
  std::string name_if_host(const std::string& name) const {
    return context_.options.map_dir.empty() ? context_.options.roots.tmp + name : "";
  }

  /// What was used is good; of the rest it is told why not.
  void object(const Input& input, LookedFor& file) const {
    if (used_.has(recorded_.view.pid, input.facts()) || input.text().empty()) return;
    explain_unused(recorded_.view.pid, context_, file);
  }

  const RecordedView& recorded_;
  const UsedFiles& used_;
  const RecordingContext& context_;
};

std::vector<LookedFor> search_gone(const RecordedView& recorded, const UsedFiles& used,
                                   const RecordingContext& context, Coverage& coverage) {
  std::vector<LookedFor> files;
  const RecordedSearch search(recorded, used, context);
  const auto take = [&](const FilePlace& place, bool is_dump) {
    Input input = Input::from_text("", "");
    LookedFor file = search.judge(place, &input);
    file.is_dump = is_dump;
    const auto& mapped = used.dumps_of(recorded.view.pid);
    file.has_marker =
        is_dump && std::find(mapped.begin(), mapped.end(), place.path) != mapped.end();
    if (file.fate == FileFate::used) {
      is_dump ? take_dump(std::move(input), file, coverage, false)
              : take_map(std::move(input), file, coverage);
    }
    files.push_back(std::move(file));
  };
  for (const FilePlace& place : search.maps()) take(place, false);
  for (const FilePlace& place : search.dumps()) take(place, true);
  return files;
}

/// What the live search believes was used if find_jit took it, too.
void reconcile(pid_t pid, const UsedFiles& used, const RecordingContext& context,
               std::vector<LookedFor>& files) {
  for (LookedFor& file : files) {
    if (file.fate != FileFate::used) continue;
    const Result<FileFacts> facts = look_at_path(file.our_path);
    if (!facts || !used.has(pid, *facts)) explain_unused(pid, context, file);
  }
}

/// The process's own files, wherever it is.
std::vector<LookedFor> search_files(const RecordedView& recorded, const UsedFiles& used,
                                    const RecordingContext& context, Coverage& coverage) {
  if (!recorded.process) return search_gone(recorded, used, context, coverage);
  const DoctorOptions options{context.options.roots, context.options.reader,
                              context.options.is_snapshot};
  FileSearch files(*recorded.process, recorded.view, options, coverage);
  files.look_for_map();
  files.look_for_dumps();
  reconcile(recorded.view.pid, used, context, files.looked_for);
  return std::move(files.looked_for);
}

}  // namespace

StackOptions::FindJit UsedFiles::watch(StackOptions::FindJit find) {
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

StackOptions::FindParents UsedFiles::watch_parents(StackOptions::FindParents find) {
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

const std::optional<std::vector<pid_t>>* UsedFiles::parents_of(
    const RecordedProcess& process) const noexcept {
  const JitLineage* first = process.lineage.get();
  while (first != nullptr && first->parent != nullptr) first = first->parent.get();
  const auto found = first == nullptr ? parents_.end() : parents_.find(first->pid);
  return found == parents_.end() ? nullptr : &found->second;
}

bool UsedFiles::has(pid_t pid, const FileFacts& file) const noexcept {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return false;
  const auto& files = found->second.files;
  return std::find(files.begin(), files.end(), std::pair(file.device, file.inode)) != files.end();
}

const std::vector<std::string>& UsedFiles::dumps_of(pid_t pid) const noexcept {
  static const std::vector<std::string> kNone;
  const auto found = processes_.find(pid);
  return found == processes_.end() ? kNone : found->second.dumps;
}

/// Of a process that is not in the recording, and that one in it was forked from.
std::optional<RecordedView> view_parent(pid_t pid, const RecordingContext& context) {
  const RecordingDoctorOptions& options = context.options;
  ProcSource::Seen<ProcSource> process = ProcSource::open(pid, options.roots);
  if (!process || !*process) return std::nullopt;
  Result<ProcessView> view = view_process(**process, options.roots, options.is_snapshot);
  if (!view) return std::nullopt;
  RecordedView parent;
  parent.view = *std::move(view);
  parent.process = **std::move(process);
  return parent;
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

void search_recorded(const RecordedView& recorded, const UsedFiles& used,
                     const RecordingContext& context, Diagnosis& diagnosis) {
  Coverage coverage(recorded.view.memory);
  diagnosis.looked_for = search_files(recorded, used, context, coverage);
  const std::size_t own = diagnosis.looked_for.size();
  const auto search_parent = [&](pid_t pid, const RecordedView& parent) {
    for (LookedFor& file : search_files(parent, used, context, coverage)) {
      if (file.fate == FileFate::missing) continue;
      if (diagnosis.looked_for.size() - own >= kMaxInherited) return;
      file.inherited_from = pid;
      diagnosis.looked_for.push_back(std::move(file));
    }
  };
  const RecordedProcess& process = context.samples.processes.at(recorded.view.pid);
  for (const pid_t pid : inherits_from(process)) {
    if (!context.samples.processes.contains(pid)) continue;
    search_parent(pid, view_recorded(pid, recorded.view.status.comm, context));
  }
  const auto* const parents = used.parents_of(process);
  if (parents != nullptr && *parents) {
    for (const pid_t pid : **parents) {
      if (const auto parent = view_parent(pid, context)) search_parent(pid, *parent);
    }
  }
  diagnosis.memory = coverage.result([&](const Region& region) {
    return recorded.process ? shows_elf(*recorded.process, region)
                            : shows_elf(context.options.open_module, region);
  });
}

}  // namespace perfmap
