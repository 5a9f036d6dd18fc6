// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <perfmap/profile/archive.hpp>
#include <perfmap/profile/doctor.hpp>
#include <perfmap/profile/record.hpp>
#include <perfmap/text.hpp>
#include <set>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "browser.hpp"
#include "command_line.hpp"
#include "console.hpp"
#include "record_end.hpp"
#include "record_watch.hpp"
#include "recording.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

struct RecordOptions {
  std::vector<std::string> command;
  std::vector<pid_t> pids;
  bool all_children = false;
  std::string directory;
  std::string duration;
  std::uint64_t frequency = 499;
  std::string call_graph = "auto";
  std::string event;
  bool off_cpu = false;
  std::string runtime = "auto";
  std::string perf = "perf";
  bool propagate = false;
  bool archive = false;
  bool open = false;
};

/// What is written, as the user typed it.
struct Target {
  std::string directory;
  std::string archive;  ///< takes the place of the directory; empty: none

  const std::string& shown() const { return archive.empty() ? directory : archive; }
  /// Beside the archive.
  std::string page() const {
    return archive.substr(0, archive.size() - kArchiveSuffix.size()) + ".html";
  }
};

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) all.emplace_back(*one);
  return all;
}

std::int64_t file_time_now() noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * kSecond + now.tv_nsec;
}

/// The runtimes of --runtime; nothing for auto.
Result<std::optional<std::vector<Runtime>>> chosen_runtimes(const std::string& text) {
  if (text == "auto") return std::optional<std::vector<Runtime>>();
  std::vector<Runtime> chosen;
  std::string_view rest = text == "none" ? std::string_view() : std::string_view(text);
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const auto rows = all_runtimes();
    const auto found = std::ranges::find_if(rows, [word](const RuntimeInfo* row) {
      const bool is_name = row->id == word || row->process == word ||
                           row->started.program == word || row->signs.launcher == word ||
                           row == runtime_of_program(word);
      return row->started.exists() && is_name;
    });
    if (found == rows.end()) {
      std::string known;
      for (const RuntimeInfo* const row : rows) {
        if (row->started.exists()) known += " " + std::string(process_word(row->runtime));
      }
      return invalid("--runtime: '" + std::string(word) +
                     "' is not auto, none or a list of:" + known);
    }
    chosen.push_back((*found)->runtime);
  }
  return std::optional(std::move(chosen));
}

/// The name of the program, as in the default name of the directory.
std::string short_name(const RecordOptions& options) {
  if (!options.command.empty()) return std::string(base_name(options.command.front()));
  std::ifstream file("/proc/" + std::to_string(options.pids.front()) + "/comm");
  std::string comm;
  std::getline(file, comm);
  std::ranges::replace_if(
      comm, [](char c) { return c == '/' || c <= ' '; }, '_');
  return comm.empty() ? std::to_string(options.pids.front()) : comm;
}

/// `attempt`: from 1, for recordings that begin in one second.
std::string default_directory(const RecordOptions& options, int attempt) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> text = {};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &local);
  return "perfmap-" + short_name(options) + "-" + text.data() +
         (attempt == 1 ? "" : "-" + std::to_string(attempt));
}

/// -o NAME.tar.zst is an archive, of the directory NAME.
Result<Target> target_of(const RecordOptions& options, int attempt) {
  Target target;
  std::string name =
      options.directory.empty() ? default_directory(options, attempt) : options.directory;
  if (name.ends_with(kArchiveSuffix)) {
    target.archive = name;
    name.resize(name.size() - kArchiveSuffix.size());
  } else if (options.archive) {
    target.archive = name.substr(0, name.find_last_not_of('/') + 1) + std::string(kArchiveSuffix);
  }
  for (const std::string_view other : {".tar", ".tar.gz", ".tgz", ".tar.xz", ".zip"}) {
    if (!name.ends_with(other)) continue;
    return invalid("cannot create " + name + ": archives end in " + std::string(kArchiveSuffix));
  }
  target.directory = std::move(name);
  if (target.archive.empty()) return target;
  std::vector<std::string> files = {target.archive};
  if (options.open) files.push_back(target.page());
  for (const std::string& file : files) {
    const Result<OutputPlace> place = OutputPlace::find(file, OutputPlace::Last::kept);
    if (!place) return failure(place);
    if (place->existing() == nullptr) continue;
    return Failure(Error::cannot("create", file, Reason::exists));
  }
  return target;
}

/// Space for recording.json, which is written last, also if perf fills the file system.
class ReservedSpace {
 public:
  explicit ReservedSpace(const RecordingDirectory& directory) : directory_(directory) {
    constexpr std::size_t kSize = std::size_t{64} << 10;
    (void)directory.write(kName, std::string(kSize, '\0'));
  }
  ReservedSpace(const ReservedSpace&) = delete;
  ReservedSpace& operator=(const ReservedSpace&) = delete;
  ~ReservedSpace() { release(); }

  void release() { directory_.remove_file(kName); }

 private:
  static constexpr const char* kName = "reserved";
  RecordingDirectory directory_;
};

/// What is recorded, and how.
struct Session {
  RecordOptions options;
  std::vector<pid_t> pids;
  RecordingDirectory directory;
  RuntimeDirectory& runtime;
  ReservedSpace& reserved;
  NamingPlan plan;
  PerfRecordOptions perf;
  std::int64_t began_ns = 0;
  std::uint64_t out_of_memory = 0;  // as counted when it began
  std::size_t children = 0;         // of the living processes, not recorded
  std::string why_failed = {};      // perf
  ProcessEnd end = {};              // of the command; of perf, if that is not known
  ProcessEnd perf_end = {};
  std::chrono::steady_clock::duration lasted{};
  std::vector<pid_t> asked = {};  // see LeftFiles
  Watched watched = {};
};

std::string check_not_empty(const std::string& text) {
  return text.empty() ? "the name of the directory is empty" : "";
}

Result<void> check_name(const std::string& name) {
  if (!name.starts_with('-')) return {};
  return invalid("cannot create " + name + ": " +
                 (name == "-" ? "a recording is a directory, and is not written to standard output"
                              : "other commands take the name for an option (use ./" + name + ")"));
}

Result<void> check_options(const RecordOptions& options) {
  const Result<void> name = check_name(options.directory);
  if (!name) return name;
  if (options.command.empty() == options.pids.empty()) {
    return invalid(options.pids.empty()
                       ? "nothing to record: name a command (perfmap record -- COMMAND) or a "
                         "process (-p PID)"
                       : "-p PID and a command cannot be recorded together");
  }
  if (!options.command.empty() && !options.duration.empty()) {
    return invalid("--duration requires -p: a command is recorded until it ends");
  }
  if (!options.command.empty() && options.all_children) {
    return invalid("--all-children requires -p: all children of a command are recorded");
  }
  if (options.propagate && options.command.empty())
    return invalid("--propagate requires a command");
  const auto runtimes = chosen_runtimes(options.runtime);
  return runtimes ? Result<void>() : failure(runtimes);
}

/// perf ignores --off-cpu with a warning if it was built without BPF programs.
Result<void> check_off_cpu(const RecordOptions& options) {
  constexpr std::array<std::string_view, 6> kTry = {"record",    "--off-cpu", "-o",
                                                    "/dev/null", "--",        "true"};
  if (!options.off_cpu) return {};
  if (output_of(options.perf, kTry).find("ignored") == std::string::npos) return {};
  return Failure(Error::unsupported("cannot record with --off-cpu: " + options.perf +
                                    " was built without BPF programs, and would ignore it"));
}

Result<void> check_program(const std::string& program) {
  if (!program_path(program, own_environment()).empty()) return {};
  struct stat status {};
  const bool exists = ::stat(program.c_str(), &status) == 0;
  const std::string why = exists && S_ISDIR(status.st_mode) ? "it is a directory"
                          : !exists || program.find('/') == program.npos
                              ? "no such program"
                              : "it is not an executable file";
  return Failure(Error::not_found("cannot run " + program + ": " + why));
}

Result<void> check_targets(const RecordOptions& options, const std::vector<pid_t>& pids) {
  if (!options.command.empty()) {
    const Result<void> found = check_program(options.command.front());
    if (!found) return found;
  }
  if (const auto why = why_not_recorded(0)) return Failure(*why);
  for (const pid_t pid : pids) {
    if (const auto why = why_not_recorded(pid)) return Failure(*why);
  }
  return check_off_cpu(options);
}

Result<NamingPlan> plan_for(const RecordOptions& options, RuntimeDirectory& runtime) {
  if (options.command.empty()) return NamingPlan();
  NamingRequest request;
  request.command = options.command;
  request.environment = own_environment();
  request.runtimes = *chosen_runtimes(options.runtime);
  request.directory = runtime.path();
  request.can_write = can_create_files_in(".");
  const std::string tmp = roots_from_environment().tmp;
  request.can_map_tmp = can_map_code_in(tmp);
  request.can_write_tmp = can_create_files_in(tmp);
  request.run = output_of;
  NamingPlan plan = plan_naming(request);
  const Result<void> made = runtime.create(plan);
  if (!made) return failure(made);
  return plan;
}

/// Variables for runtimes that the command may start are many, and most of them are not used.
void say_variables(const RecordOptions& options, const NamingPlan& plan, const Console& console) {
  if (plan.runtime != Runtime::unknown || plan.variables.size() == 1 || console.verbose()) {
    for (const NamingVariable& variable : plan.variables) {
      console.note("set " + variable.name + "=" + shell_word(variable.value));
    }
    return;
  }
  std::string names;
  for (const NamingVariable& variable : plan.variables) {
    names += (names.empty() ? "" : ", ") + variable.name;
  }
  if (names.empty()) return;
  console.note("set for runtimes that " + short_name(options) + " may start: " + names +
               " (--verbose prints the values)");
}

void say_plan(const RecordOptions& options, const NamingPlan& plan, const Console& console) {
  say_variables(options, plan, console);
  if (!plan.arguments.empty()) {
    std::string words;
    for (const std::string& word : plan.arguments) words += " " + shell_word(word);
    console.note("added" + words);
  }
  for (const std::string& note : plan.notes) console.note(note);
}

PerfRecordOptions perf_options(const RecordOptions& options, const std::vector<pid_t>& pids,
                               const RecordingDirectory& directory, const NamingPlan& plan) {
  PerfRecordOptions perf;
  perf.perf = options.perf;
  perf.output = directory.recording();
  perf.frequency = options.frequency;
  if (options.call_graph == "dwarf" || options.call_graph == "auto") {
    if (options.call_graph == "auto" && !plan.call_graph.empty()) perf.call_graph = plan.call_graph;
  } else {
    perf.call_graph = options.call_graph;
  }
  perf.event = options.event;
  perf.off_cpu = options.off_cpu;
  perf.omits_bpf_events = perf_record_has(options.perf, "no-bpf-event");
  perf.pids = pids;
  // perf starts the command when it records: how long it needs before that does not count.
  perf.command = options.duration.empty() ? options.command
                                          : std::vector<std::string>{"sleep", options.duration};
  perf.command.insert(perf.command.end(), plan.arguments.begin(), plan.arguments.end());
  perf.environment = environment_with(own_environment(), plan);
  return perf;
}

/// The names of living processes, where they can be turned on, and the messages where not.
class LivingNames {
 public:
  LivingNames(const std::vector<pid_t>& pids, const Console& console) : console_(console) {
    for (const pid_t pid : pids) begin(pid);
  }
  /// A process that ends earlier leaves the map of the beginning.
  void end() {
    for (const pid_t pid : jvms_) {
      const Result<void> asked = ask_jvm_for_map(pid, roots_);
      if (!asked && process_lives(pid)) console_.warn(asked.error().message());
    }
    for (const pid_t pid : dotnets_) {
      const Result<void> ended = switch_dotnet_names(pid, false, roots_);
      if (!ended && process_lives(pid)) console_.warn(ended.error().message());
    }
  }
  /// See LeftFiles.
  const std::vector<pid_t>& asked() const noexcept { return asked_; }

 private:
  void begin(pid_t pid) {
    const Result<Diagnosis> diagnosis = diagnose(pid, {.roots = roots_, .reader = ::geteuid()});
    if (!diagnosis) return;
    const bool had_map = find_process_map(pid, roots_).has_value();
    Result<void> asked;
    const NamingPort port = runtime_info(diagnosis->runtime).port;
    if (port == NamingPort::jvm_attach) {
      asked = ask_jvm_for_map(pid, roots_);
      if (asked) jvms_.push_back(pid);
    } else if (had_map) {
      return;
    } else if (port == NamingPort::dotnet_diagnostics) {
      asked = switch_dotnet_names(pid, true, roots_);
      if (asked) dotnets_.push_back(pid);
    } else {
      return say_restart(*diagnosis);
    }
    if (asked && !had_map) asked_.push_back(pid);
    if (asked) return;
    const std::string start = naming_start(runtime_info(diagnosis->runtime));
    console_.warn(asked.error().message() + " (to name its code, start it again with " + start +
                  ")");
  }
  /// The finding that explains missing names has the process's own command line, changed.
  void say_restart(const Diagnosis& diagnosis) const {
    for (const DoctorFinding& finding : diagnosis.findings) {
      if (finding.id != "no-map" || diagnosis.runtime == Runtime::unknown) continue;
      const std::string who = "process " + std::to_string(diagnosis.pid) + ": ";
      console_.warn(who + finding.message +
                    (finding.fix.empty() ? "" : " (start it again: " + finding.fix + ")"));
    }
  }

  const Console& console_;
  Roots roots_ = roots_from_environment();
  std::vector<pid_t> jvms_, dotnets_, asked_;
};

/// What the recording holds, and the files that name its code.
struct Kept {
  RecordingDiagnosis diagnosis;
  std::vector<KeptFile> files;
  std::vector<RecordedModule> modules;
  std::vector<MissingFile> missing;
  std::size_t processes = 0;
  std::uint64_t span_ns = 0;
  bool is_cut = false;                     ///< perf did not finish the recording
  std::optional<std::uint64_t> free = {};  ///< bytes for the recording, when perf ended
  std::optional<std::uint64_t> free_in_tmp = {};
};

/// Why files were not copied. A full file system refuses most of them. `advice`: what to do then.
void warn_of_failures(const std::vector<Error>& failures, std::string_view what,
                      const std::string& advice, const Session& session, const Console& console) {
  std::size_t without_space = 0;
  for (const Error& error : failures) {
    const bool is_full = error.sys_errno == ENOSPC || error.sys_errno == EDQUOT;
    if (is_full)
      ++without_space;
    else
      console.warn(error.message());
  }
  if (without_space == 0) return;
  const std::string& directory = session.directory.path();
  console.warn(counted(without_space, "file") + " with " + std::string(what) +
               (without_space == 1 ? " does" : " do") + " not fit into the file system of " +
               one_line(directory, true) + ", of which " +
               counted(free_bytes_in(directory).value_or(0), "byte") +
               " are free, so the recording may lose names (record to another directory: -o" +
               advice + ")");
}

constexpr std::size_t kMaxPaths = 5;

/// Maps and dumps that were not copied are not removed, either.
void warn_of_missing(const NameKeeper& keeper, const Session& session, const Console& console) {
  std::vector<std::string> paths;
  for (const MissingFile& file : keeper.missing()) {
    const bool is_refused = std::ranges::find(keeper.refused(), file.source, &KeptFile::source) !=
                            keeper.refused().end();
    const bool stays = !is_refused && ::access(file.source.c_str(), F_OK) == 0;
    if (stays) paths.push_back(one_line(file.source, true));
  }
  const std::string advice =
      paths.empty() ? "" : ", or free space and copy what stays: " + list_text(paths, kMaxPaths);
  warn_of_failures(keeper.failures(), "names of JIT code", advice, session, console);
}

/// With -p, the recording also names the sleep of --duration, which is not recorded.
std::size_t count_recorded(const std::vector<ProcessInfo>& processes,
                           const std::vector<pid_t>& pids, const RecordingDiagnosis& diagnosis) {
  if (pids.empty()) return processes.size();
  std::set<pid_t> recorded(pids.begin(), pids.end());
  for (const RecordedProcessState& state : diagnosis.processes) recorded.insert(state.counts.pid);
  return static_cast<std::size_t>(std::ranges::count_if(
      processes, [&](const ProcessInfo& process) { return recorded.contains(process.pid); }));
}

std::uint64_t nanoseconds_of(std::chrono::steady_clock::duration duration) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
}

/// From the first start of a process to the last end; 0 if the recording has none.
std::uint64_t lifetime_of(const std::vector<ProcessInfo>& processes) {
  std::uint64_t first = ProcessTracker::kNow, last = 0;
  for (const ProcessInfo& process : processes) {
    if (process.since != 0) first = std::min(first, process.since);
    if (process.until != ProcessTracker::kNow) last = std::max(last, process.until);
  }
  return last > first ? last - first : 0;
}

/// Copies ELF files, and says which not.
std::vector<RecordedModule> keep_modules(ModuleKeeper& keeper, const Session& session,
                                         const Console& console) {
  keeper.write({}, [&session](uid_t user) { return session.watched.users.ran_as(user); });
  warn_of_failures(keeper.failures(), "native code", "", session, console);
  for (const RecordedModule& module : keeper.too_large()) {
    console.warn(one_line(module.source, true) + " has " + std::to_string(module.size >> 20) +
                 " MiB and is not copied: without this file the recording loses its names");
  }
  return keeper.modules();
}

/// Removes what the runtimes left in /tmp and in the working directories, now that it is kept.
void remove_left(const Session& session, const NameKeeper& keeper,
                 const std::vector<ProcessInfo>& processes, const Console& console) {
  LeftFiles left{.tmp = roots_from_environment().tmp,
                 .places = &session.watched.places,
                 .users = &session.watched.users,
                 .began_ns = session.began_ns,
                 .asked = session.asked};
  for (const NamingVariable& variable : session.plan.variables) {
    left.named.push_back(variable.runtime);
  }
  std::vector<KeptFile> files = keeper.files();
  files.insert(files.end(), keeper.refused().begin(), keeper.refused().end());
  const RemovedFiles removed = remove_left_files(left, files, processes);
  for (const std::string& path : removed.paths) {
    if (console.verbose()) console.note("removed " + path);
  }
  std::vector<std::string> in_use;
  for (const RemovedFiles::InUse& file : removed.in_use) {
    in_use.push_back(one_line(file.path, true) + " (process " + std::to_string(file.pid) + ")");
  }
  if (in_use.empty()) return;
  console.note(counted(in_use.size(), "file") + (in_use.size() == 1 ? " stays" : " stay") +
               ", because processes that go on use " + (in_use.size() == 1 ? "it: " : "them: ") +
               list_text(in_use, kMaxPaths));
}

/// How long was recorded. A recording that was cut does not say when it ended.
std::uint64_t span_of(const RecordingFacts& facts, const Kept& kept,
                      const std::vector<ProcessInfo>& processes, const Session& session) {
  if (kept.is_cut) return nanoseconds_of(session.lasted);
  if (kept.diagnosis.total.samples == 0) return lifetime_of(processes);
  return facts.last_sample - facts.first_sample;
}

std::string shown_recording(const RecordingDirectory& directory) {
  return directory.path() + "/" + std::string(kRecordingName);
}

Result<Recording> open_recording_of(const RecordingDirectory& directory) {
  Result<Input> input = open_recording_input(directory.recording());
  if (!input) return failure(input);
  input->rename(shown_recording(directory));
  return Recording::open(*std::move(input));
}

Result<Kept> keep(Session& session, const Console& console) {
  const Result<Recording> recording = open_recording_of(session.directory);
  if (!recording) return failure(recording);
  Result<RecordedJitOptions> jit = recorded_jit_options({}, console);
  if (!jit) return failure(jit);
  jit->ran_as = [&session](pid_t pid, uid_t user) {
    return session.watched.users.ran_as(pid, user);
  };
  NameKeeper keeper(session.directory, &session.watched.places);
  jit->on_found = [&keeper](pid_t pid, const Input& input, bool is_dump) {
    keeper.add(pid, input, is_dump);
  };
  ModuleKeeper modules(session.directory, session.began_ns);
  jit->on_module = [&modules](const MappedFile& file, const std::shared_ptr<const Module>& module) {
    modules.add(file, module);
  };
  RecordedRefusals refused;
  Kept kept;
  kept.is_cut = recording->facts().was_killed;
  kept.free = free_bytes_in(session.directory.path());
  kept.free_in_tmp = free_bytes_in(jit->roots.tmp);
  const Step step(console, "naming the code");
  const std::vector<ProcessInfo> processes = processes_of(*recording);
  // Processes without samples have files, too.
  const auto find = find_recorded_jit(*recording, *jit, refused);
  kept.diagnosis = examine_recording(*recording, *std::move(jit), refused);
  for (const ProcessInfo& process : processes) find(process, {});
  const std::size_t added =
      keeper.add_logs(session.runtime.written(), processes, session.watched.users) +
      session.watched.mounts.keep(keeper, processes, session.watched.places);
  if (added != 0 || !keeper.missing().empty()) {
    jit = recorded_jit_options({}, console);
    if (!jit) return failure(jit);
    jit->directory = session.directory.held_path();
    jit->shown_directory = session.directory.path();
    jit->missing = keeper.missing();
    kept.diagnosis = examine_recording(*recording, *std::move(jit), refused);
  }
  session.runtime.remove();
  warn_of_missing(keeper, session, console);
  report_refused(refused, console);
  kept.files = keeper.files();
  kept.missing = keeper.missing();
  for (const SampledModule& one : kept.diagnosis.modules) modules.mark(one.path, one.build_id);
  kept.modules = keep_modules(modules, session, console);
  kept.processes = count_recorded(processes, session.pids, kept.diagnosis);
  kept.span_ns = span_of(recording->facts(), kept, processes, session);
  remove_left(session, keeper, processes, console);
  return kept;
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "none" : percent_text(part, whole, 1);
}

/// "4.2 s"; under a tenth of a second "0.1 s".
std::string tenths_text(std::uint64_t ns) {
  constexpr std::uint64_t kTenth = 100'000'000;
  const std::uint64_t tenths = std::max((ns + kTenth / 2) / kTenth, std::uint64_t{1});
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

void print_process(const RecordedProcessState& process, const Console& console) {
  const StackCounts& counts = process.counts;
  const std::string title =
      process.runtime == Runtime::unknown
          ? std::string()
          : " (" + std::string(runtime_info(process.runtime).guide.title) + ")";
  const auto rooted = counts.ends[static_cast<std::size_t>(StackEnd::root)];
  // The kernel does not say whether a chain that it walked is complete.
  const auto walked = counts.ends[static_cast<std::size_t>(StackEnd::callchain)];
  const std::string stacks = walked > rooted
                                 ? ", stacks walked by the kernel: " + share(walked, counts.samples)
                                 : ", stacks to the root: " + share(rooted, counts.samples);
  std::string line = "  " + one_line(counts.comm, true) + " " + std::to_string(counts.pid) + title +
                     ": " + counted(counts.samples, "sample") + stacks + ", frames with a name: " +
                     share(counts.frames - counts.unnamed, counts.frames);
  if (process.jit_frames != 0) {
    line += ", JIT frames with a name: " +
            share(process.jit_frames - process.unnamed_jit, process.jit_frames);
  }
  console.line(line);
}

/// Those with samples are the ones that reports have.
std::string processes_text(const Kept& kept) {
  const std::size_t sampled = kept.diagnosis.processes.size();
  if (sampled == 0 || kept.processes <= sampled) {
    return counted(kept.processes, "process", "processes");
  }
  return counted(sampled, "process", "processes") + " (and " +
         std::to_string(kept.processes - sampled) + " without samples)";
}

/// perf that this program killed, or that ended by a signal of the user, has not failed.
bool is_failure(const Kept& kept) { return kept.is_cut && !was_interrupted(); }

RecordEnd end_of(const Session& session, const Kept& kept) {
  const bool lives = session.watched.command && session.watched.command->lives();
  return {.who = session.options.command.empty() ? "" : short_name(session.options),
          .lasted = tenths_text(nanoseconds_of(session.lasted)),
          .command = session.end,
          .perf = session.perf_end,
          .living = lives ? session.watched.command->pid() : 0,
          .ran_out_of_memory = count_out_of_memory() > session.out_of_memory,
          .directory = session.directory.path(),
          .free = kept.free};
}

/// Why there are no samples, and what to do.
std::string no_samples_text(const Kept& kept, const Session& session) {
  const RecordOptions& options = session.options;
  if (is_failure(kept)) return "there are no samples: perf ended before it had written any";
  const std::uint64_t waited =
      parse_seconds(options.duration).value_or(nanoseconds_of(session.lasted));
  const std::string time = tenths_text(kept.span_ns != 0 ? kept.span_ns : waited);
  if (!options.event.empty()) {
    return "there are no samples: the event " + one_line(options.event, true) +
           " did not occur, or too rarely, in " + time +
           " (record for longer, or another event: -e)";
  }
  const std::string idle =
      "there are no samples: what was recorded used almost no processor time in " + time;
  if (session.children != 0) {
    return idle + ", and " + counted(session.children, "child process", "child processes") +
           (session.children == 1 ? " was" : " were") +
           " not recorded (record them, too: --all-children, or with -p)";
  }
  return idle + " (record for longer, or where it waits: --off-cpu)";
}

void print_summary(const Kept& kept, const Session& session, const std::string& typed,
                   const Console& console) {
  if (console.quiet()) return;
  constexpr std::size_t kMaxShown = 8;
  const RecordingDiagnosis& diagnosis = kept.diagnosis;
  const bool has_samples = diagnosis.total.samples != 0;
  console.note("recorded " + counted(diagnosis.total.samples, "sample") +
               (has_samples ? " in " + tenths_text(kept.span_ns) : "") + " of " +
               processes_text(kept) + ": " + typed);
  std::vector<const RecordedProcessState*> processes;
  for (const RecordedProcessState& process : diagnosis.processes) processes.push_back(&process);
  std::ranges::stable_sort(processes, [](const auto* a, const auto* b) {
    return a->counts.samples > b->counts.samples;
  });
  for (std::size_t i = 0; i < std::min(processes.size(), kMaxShown); ++i) {
    print_process(*processes[i], console);
  }
  if (processes.size() > kMaxShown) {
    console.line("  and " + std::to_string(processes.size() - kMaxShown) +
                 " more processes with samples");
  }
  for (const RecordingFinding& finding : diagnosis.findings) {
    const bool is_told = (!has_samples && finding.finding.id == "no-samples") ||
                         finding.finding.id == "not-copied" ||
                         (is_failure(kept) && finding.finding.id == "killed");
    if (finding.finding.severity == Severity::info || is_told) continue;
    console.warn(finding.finding.message);
  }
  for (const auto& [runtime, text] : session.plan.left_out) {
    const bool matters = std::ranges::any_of(processes, [runtime](const auto* process) {
      return process->runtime == runtime && process->unnamed_jit != 0;
    });
    if (matters) console.note(text);
  }
  const std::string end = was_interrupted() ? "" : text_of_end(end_of(session, kept));
  if (!is_failure(kept) && !end.empty()) console.note(end);
  if (is_full(kept.free_in_tmp) && diagnosis.misses_names()) {
    const std::string tmp = roots_from_environment().tmp;
    console.warn(text_of_full(tmp, *kept.free_in_tmp) +
                 ", so runtimes could not write all names there (remove files, and record again)");
  }
  if (!has_samples) return console.warn(no_samples_text(kept, session));
  console.line("next:");
  console.line("  perfmap report " + shell_word(typed));
  console.line("  perfmap stacks " + shell_word(typed) + " -o flame.html");
  if (diagnosis.misses_names()) console.line("  perfmap doctor " + shell_word(typed));
}

ExitCode fail_without_recording(const Session& session, const Error& error,
                                const Console& console) {
  const auto free = free_bytes_in(session.directory.path());
  session.runtime.remove();
  session.reserved.release();
  session.directory.discard();
  const bool is_known = session.perf_end.status == 0 || session.perf_end.signal == SIGKILL;
  const std::string why = is_known            ? error.message()
                          : was_interrupted() ? ""
                          : is_full(free)     ? text_of_full(session.directory.path(), *free) +
                                                " (record to another directory: -o)"
                          : !session.why_failed.empty() ? session.why_failed
                                                        : why_perf_failed(session.perf);
  return console.fail("there is no recording: perf record ended with status " +
                      std::to_string(session.perf_end.status) + (why.empty() ? "" : ": " + why));
}

RecordingManifest manifest_of(const Session& session, const Kept& kept) {
  PerfRecordOptions perf = session.perf;
  perf.output = shown_recording(session.directory);
  return {.command = session.options.command,
          .pids = session.pids,
          .perf = perf_record_arguments(perf),
          .variables = session.plan.variables,
          .exit_status = session.end.status,
          .missing = kept.missing};
}

/// Runs `perfmap stacks`, whose notes the summary has already. The page is in the directory, or, as
/// NAME.html, beside the archive.
Result<std::string> write_page(const Session& session, const Target& target,
                               const Console& console) {
  const std::string& directory = session.directory.path();
  std::string page = target.archive.empty() ? directory + "/flame.html"
                                            : std::filesystem::absolute(target.page()).string();
  // Relative, so that the page of the directory is there wherever its path leads by now.
  const std::string file = target.archive.empty() ? "flame.html" : page;
  const std::array words = {"perfmap", "stacks", directory.c_str(), "-o", file.c_str()};
  const ParsedCommandLine stacks = parse_command_line(static_cast<int>(words.size()), words.data());
  const Console quiet(console.out(), ColorWish::never, true, false);
  const mode_t before = ::umask(0077);  // stacks may contain secrets
  const int here = ::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  bool done = here >= 0 && ::fchdir(session.directory.descriptor()) == 0;
  done = done && stacks.action && stacks.action(quiet) == ExitCode::ok;
  done = ::fchdir(here) == 0 && done;
  ::close(here);
  ::umask(before);
  if (done) return page;
  return Failure(Error::io("cannot write " + page));
}

/// The archive in the place of the directory.
Result<void> archive(const Session& session, const Target& target, const Console& console) {
  const Step step(console, "writing " + target.archive);
  const auto files = write_archive(session.directory.held_path() + "/.", target.archive);
  if (!files) {
    Error error = files.error();
    error.append("; the recording is in " + target.directory);
    return Failure(std::move(error));
  }
  const Result<void> removed = session.directory.remove(*files);
  if (!removed) {
    console.warn(removed.error().message() + "; what it has is not in " + target.archive);
  }
  return {};
}

void open_page(const std::string& page, const Console& console) {
  const Result<void> opened = open_in_browser(page);
  console.note("the flame graph is " + page +
               (opened ? "" : "; it was not opened: " + opened.error().message()));
}

/// Runs perf, again with smaller buffers if it may not lock the memory for them.
Result<void> record(Session& session, const Console& console) {
  for (const std::string_view buffer : kPerfBuffers) {
    session.perf.buffer = buffer;
    Result<PerfRun> perf = PerfRun::start(session.perf);
    if (!perf) return failure(perf);
    const auto began = std::chrono::steady_clock::now();
    session.watched.command.reset();
    session.perf_end = session.end = watch(*perf, session.pids, session.watched, console);
    session.lasted = std::chrono::steady_clock::now() - began;
    // perf that gets a signal ends by that one, in whatever way the command ends.
    const auto end = session.watched.command ? session.watched.command->end() : std::nullopt;
    const bool has_failed =
        session.perf_end.signal == SIGKILL || session.perf_end.status == kPerfFailed;
    if (end && (was_interrupted() || has_failed)) session.end = *end;
    std::error_code error;
    const bool has_begun = std::filesystem::file_size(session.perf.output, error) != 0 || error;
    if (session.perf_end.status != kPerfFailed || has_begun || was_interrupted()) break;
    session.why_failed = why_perf_failed(session.perf);
    if (!session.why_failed.empty() && !is_about_buffers(session.why_failed)) break;
  }
  return {};
}

ExitCode finish(Session& session, const Target& target, const Console& console) {
  const Result<Kept> kept = keep(session, console);
  if (!kept) return fail_without_recording(session, kept.error(), console);
  if (is_failure(*kept)) console.warn(text_of_cut(end_of(session, *kept)));
  session.reserved.release();
  Result<void> done =
      write_manifest(session.directory, manifest_of(session, *kept), kept->files, kept->modules);
  if (done) done = session.directory.check();
  if (!done) return console.fail(done.error());
  std::optional<Result<std::string>> page;
  if (session.options.open) page = write_page(session, target, console);
  if (!target.archive.empty()) done = archive(session, target, console);
  if (!done) return console.fail(done.error());
  print_summary(*kept, session, target.shown(), console);
  if (page && !*page) return console.fail(page->error());
  if (page) open_page(**page, console);
  return session.options.propagate ? static_cast<ExitCode>(session.end.status) : ExitCode::ok;
}

/// The processes of -p, with those of --all-children.
std::vector<pid_t> living_processes(const RecordOptions& options, const Console& console) {
  std::vector<pid_t> pids;
  for (const pid_t one : options.pids) {
    const pid_t found = process_of_thread(one);
    const pid_t pid = found > 0 ? found : one;
    if (pid != one) {
      console.note(std::to_string(one) + " is a thread of process " + std::to_string(pid) +
                   ", which is recorded");
    }
    if (std::ranges::find(pids, pid) == pids.end()) pids.push_back(pid);
  }
  if (!options.all_children) return pids;
  const std::vector<pid_t> children = descendants_of(pids);
  pids.insert(pids.end(), children.begin(), children.end());
  return pids;
}

/// A new directory, and its name as the user typed it, or the first free one.
Result<std::pair<Target, RecordingDirectory>> create_target(const RecordOptions& options) {
  constexpr int kMaxAttempts = 100;
  for (int attempt = 1;; ++attempt) {
    Result<Target> target = target_of(options, attempt);
    Result<RecordingDirectory> directory =
        target ? RecordingDirectory::create(target->directory) : failure(target);
    if (directory) return std::pair(*std::move(target), *std::move(directory));
    const bool is_taken =
        directory.error().code == Errc::refused || directory.error().sys_errno == EEXIST;
    if (!options.directory.empty() || !is_taken || attempt == kMaxAttempts) {
      return failure(directory);
    }
  }
}

ExitCode run(const RecordOptions& options, const Console& console) {
  const Result<void> checked = check_options(options);
  if (!checked) return console.fail(checked.error());
  const std::vector<pid_t> pids = living_processes(options, console);
  const Result<void> possible = check_targets(options, pids);
  if (!possible) return console.fail(possible.error());
  InterruptGuard guard;
  const auto created = create_target(options);
  if (!created) return console.fail(created.error());
  const auto& [target, directory] = *created;
  guard.name_directory(target.directory);
  RuntimeDirectory runtime(directory, roots_from_environment().tmp);
  Result<NamingPlan> plan = plan_for(options, runtime);
  if (!plan) {
    runtime.remove();
    directory.discard();
    return console.fail(plan.error());
  }
  say_plan(options, *plan, console);
  ReservedSpace reserved(directory);
  Session session{options,
                  pids,
                  directory,
                  runtime,
                  reserved,
                  *std::move(plan),
                  {},
                  file_time_now(),
                  count_out_of_memory()};
  if (!options.all_children) session.children = descendants_of(pids).size();
  session.perf = perf_options(options, pids, directory, session.plan);
  {
    LivingNames living(pids, console);
    const Result<void> recorded = record(session, console);
    if (!recorded) {
      runtime.remove();
      reserved.release();
      directory.discard();
      return console.fail(recorded.error());
    }
    living.end();
    session.asked = living.asked();
  }
  return finish(session, target, console);
}

std::string check_seconds(const std::string& text) {
  return !text.empty() && parse_seconds(text).value_or(0) != 0
             ? ""
             : "'" + text + "' is not a time in seconds";
}

std::string check_call_graph(const std::string& text) {
  constexpr std::string_view kDwarf = "dwarf,";
  if (text == "auto" || text == "dwarf" || text == "fp" || text == "lbr") return "";
  unsigned size = 0;
  constexpr unsigned kMaxSize = 65528;
  if (text.starts_with(kDwarf)) {
    const char* const begin = text.data() + kDwarf.size();
    const auto [stop, error] = std::from_chars(begin, text.data() + text.size(), size);
    if (error == std::errc() && *stop == '\0' && size >= 8 && size <= kMaxSize && size % 8 == 0) {
      return "";
    }
  }
  return "'" + text +
         "' is not auto, fp, lbr, dwarf or dwarf,SIZE with a multiple of 8 up to 65528";
}

void add_sampling(CommandOptions& command, RecordOptions& options) {
  command
      .value("-F,--frequency", options.frequency, "HZ",
             "Take HZ samples in each second that a thread runs (default: 499)")
      .between(1, 100000);
  command
      .value("--call-graph", options.call_graph, "MODE",
             "How stacks are recorded: dwarf[,SIZE] (copies of SIZE bytes, default 32768), fp, or "
             "lbr (not tested here); auto chooses for the runtime (default)")
      .check(check_call_graph);
  const auto take_event = [&options](const std::string& text) {
    options.event += (options.event.empty() ? "" : ",") + text;
  };
  command.values("-e,--event", take_event, "EVENT", "Sample this event of perf, or several");
  command.flag("--off-cpu", options.off_cpu,
               "Also record where threads wait, and for how long; perf must have been built with "
               "BPF");
  command.value("--perf", options.perf, kFile, "Run this perf (default: the one in PATH)");
}

}  // namespace

void declare_record(CommandOptions& command) {
  RecordOptions& options = command.runs(run);
  command
      .positional("command", options.command, "COMMAND",
                  "The program to start and record, and its arguments, also those that begin "
                  "with '-'")
      .rest();
  const auto take = [&options](const std::string& text) {
    pid_t pid = 0;
    std::from_chars(text.data(), text.data() + text.size(), pid);
    if (std::ranges::find(options.pids, pid) == options.pids.end()) options.pids.push_back(pid);
  };
  command.values("-p,--pid", take, "PID", "Record these running processes; commas separate several")
      .with_commas()
      .check(check_pid);
  command.flag("--all-children", options.all_children,
               "With -p: also record the children that the processes have now");
  command
      .value("--duration", options.duration, "SECONDS",
             "With -p: end the recording after this time")
      .check(check_seconds);
  command
      .value("-o,--output", options.directory, "DIR",
             "Write to this directory, which must be new or empty (default: perfmap-NAME-TIME); "
             "NAME.tar.zst is an archive of it")
      .check(check_not_empty);
  command.flag("--archive", options.archive,
               "Write one file, DIR.tar.zst, in place of the directory");
  command.flag("--open", options.open,
               "Make a flame graph of the recording, and open it in a browser");
  command.value("--runtime", options.runtime, "LIST",
                "Turn on the names of these runtimes, such as node,java; auto: of those that the "
                "command may start (default); none");
  add_sampling(command, options);
  command.flag("--propagate", options.propagate,
               "Exit with the status of the command, instead of 0");
}

}  // namespace perfmap::app
