// SPDX-License-Identifier: MIT
#include "source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <perfmap/diagnostic.hpp>
#include <perfmap/json.hpp>
#include <perfmap/profile/snapshot.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "perfmap/text.hpp"
#include "unpacked.hpp"

namespace perfmap::app {
SourceOptions told_to(ConsoleObserver& observer, SourceOptions options) {
  options.roots = roots_from_environment();
  options.observer = &observer;
  options.progress = observer.progress();
  return options;
}

void add_source_options(CommandOptions& command, SourceOptions& options) {
  command.value("--kind", options.kind, "KIND", "Treat the sources as this kind; do not detect it")
      .one_of({"perf-map", "jitdump", "pypylog", "json"});
  command.flag("--any-owner", options.any_owner,
               "Also use maps and dumps that belong to another user");
  command.flag("--stop-at-close", options.stop_at_close,
               "Stop reading a jitdump at its CLOSE record, as perf does");
}

namespace {

std::string listed(const std::vector<pid_t>& pids) {
  constexpr std::size_t kMaxShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(pids.size(), kMaxShown); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(pids[i]);
  }
  return text + (pids.size() > kMaxShown ? ", …" : "");
}

using Recorded = SourceWords::Recorded;

/// The processes of a recording directory that have files with names.
Result<std::vector<pid_t>> named_processes(const Source& recording) {
  const Result<std::vector<RecordedFile>> files = recorded_files_in(recording.text);
  if (!files) return failure(files);
  std::vector<pid_t> pids;
  for (const RecordedFile& file : *files) {
    if (pids.empty() || pids.back() != file.pid) pids.push_back(file.pid);
  }
  return pids;
}

/// Whether the source is a recording directory. Unpacks an archive of one.
bool prepare_recording(Source& source, const Console& console) {
  const bool may_be = source.as == Source::As::any || source.as == Source::As::path;
  if (!may_be || is_stdin(source) || pid_of_source(source) != 0) return false;
  Result<std::string> directory = unpacked(source.text, console);
  if (!directory) source.failure = directory.error();
  if (!directory || Snapshot::is_at(*directory) || !recording_in(*directory)) return false;
  source.shown = std::exchange(source.text, *std::move(directory));
  return true;
}

/// Selects processes of a recording, and takes those that it has from `missing`.
Result<void> select_processes(Source& recording, const std::vector<pid_t>& pids,
                              std::vector<pid_t>& missing, const SourceWords& words) {
  const Result<std::vector<pid_t>> named = named_processes(recording);
  if (!named) return failure(named);
  recording.pids = pids;
  std::erase_if(missing, [&](pid_t pid) { return std::ranges::find(*named, pid) != named->end(); });
  const bool has_any = std::ranges::any_of(
      pids, [&](pid_t pid) { return std::ranges::find(*named, pid) != named->end(); });
  const auto failed = [&](const std::string& why) { return invalid(recording.shown + why); };
  if (words.recorded == Recorded::memory && pids.size() == 1) {
    missing.clear();
    return {};
  }
  if (!pids.empty() && !has_any) {
    return failed(" has no perf map or jitdump of process " + listed(pids) +
                  (named->empty() ? "" : ", but of " + listed(*named)));
  }
  if (!pids.empty() || words.recorded == Recorded::each_file || named->size() < 2) return {};
  return failed(" has names of several processes: " + listed(*named) +
                (words.with_pid ? " (-p PID selects one)" : " (pass a file of one of them)"));
}

/// Unpacks archives. With recordings among the sources, -p selects their processes. What fails is
/// kept for the command, which may use the other sources.
Result<void> use_recordings(std::vector<Source>& sources, const SourceWords& words,
                            const Console& console) {
  std::vector<Source*> recordings;
  std::vector<pid_t> pids;
  for (Source& source : sources) {
    if (prepare_recording(source, console)) recordings.push_back(&source);
    if (source.as == Source::As::pid) pids.push_back(pid_of_source(source));
  }
  if (recordings.empty()) return {};
  std::vector<pid_t> missing = pids;
  for (Source* const recording : recordings) {
    const Result<void> done = select_processes(*recording, pids, missing, words);
    if (!done) recording->failure = done.error();
  }
  if (!missing.empty() && missing.size() < pids.size()) {
    return invalid("no recording has a perf map or jitdump of process " + listed(missing));
  }
  std::erase_if(sources, [](const Source& source) { return source.as == Source::As::pid; });
  return {};
}

}  // namespace

Option add_sources(CommandOptions& command, std::vector<Source>& sources, SourceWords words) {
  if (words.recorded != Recorded::whole) {
    command.before([&sources, words](const Console& console) {
      return use_recordings(sources, words, console);
    });
  }
  // The parser takes options at once and positionals at the end, so each source of an option
  // remembers how many positionals came before it.
  const auto before = std::make_shared<std::vector<std::size_t>>();
  const auto read = std::make_shared<std::size_t>(0);
  const auto take_word = [&sources, before, read,
                          take_other = std::move(words.take_other)](const std::string& text) {
    const std::size_t index = (*read)++;
    if (take_other && take_other(text)) return;
    const auto place = std::ranges::upper_bound(*before, index);
    sources.insert(sources.begin() + (place - before->begin()), {text});
    before->insert(place, index);
  };
  Option positional = command.positional(words.name, take_word, words.type, words.help);
  if (words.is_single) positional = positional.single();
  const auto add = [&](const char* names, Source::As as, const char* type, const char* help) {
    const auto take = [&sources, before, positional, as](const std::string& text) {
      sources.push_back({text, as});
      before->push_back(positional.count_read());
    };
    return command.values(names, take, type, help).in_order();
  };
  if (words.with_pid) add("-p,--pid", Source::As::pid, "PID", words.pid_help).check(check_pid);
  add("-m,--map", Source::As::path, kFile, words.map_help);
  add("-j,--jitdump", Source::As::dump, kFile, words.dump_help);
  add("-s,--source", Source::As::any, kSource, words.source_help);
  add("-i,--input", Source::As::path, kFile, words.input_help);
  return positional;
}

void add_process(CommandOptions& command, std::vector<pid_t>& pids) {
  const Take take = [&pids](const std::string& text) {
    pids.push_back(pid_of_source({text, Source::As::pid}));
  };
  command.positional("pid", take, "PID", "The process").check(check_pid).single();
  command.values("-p,--pid", take, "PID", "The process, as an option").check(check_pid).single();
}

Result<void> check_process(const std::vector<pid_t>& pids) {
  if (pids.size() == 1) return {};
  return invalid("expected one PID" + (pids.empty() ? "" : "; got " + std::to_string(pids.size())));
}

Error with_rights_advice(Error error, const std::string& command) {
  const bool forbidden = error.sys_errno == EACCES || error.sys_errno == EPERM;
  if (forbidden && ::geteuid() != 0) error.append("; try 'sudo perfmap " + command + "'");
  return error;
}

Result<void> check_number(const std::vector<Source>& sources, std::size_t least, std::size_t most) {
  if (sources.size() >= least && sources.size() <= most) return {};
  const bool is_one = least == 1;
  std::string text = is_one && most == 1 ? "expected one SOURCE"
                     : is_one            ? "expected a SOURCE"
                                         : "expected " + std::to_string(least) + " SOURCES";
  text += is_one ? ": a path, '-' or a pid" : ": paths, '-' or pids";
  if (!sources.empty()) text += "; got " + std::to_string(sources.size());
  return invalid(text);
}

Roots roots_from_environment() {
  Roots roots;
  const char* const directory = std::getenv("PERFMAP_TMPDIR");
  if (directory != nullptr && *directory != '\0') roots.tmp = directory;
  return roots;
}

Result<void> check_directories(std::initializer_list<std::string> directories) {
  for (const std::string& path : directories) {
    std::error_code error;
    if (path.empty() || std::filesystem::is_directory(path, error)) continue;
    return Failure(system_error("cannot open", path, error ? error.value() : ENOTDIR));
  }
  return {};
}

bool reads_stdin(const std::vector<Source>& sources) {
  return std::any_of(sources.begin(), sources.end(), is_stdin);
}

void ConsoleObserver::skipped(const Diagnostics& problems) {
  note_skipped_records(console_, problems);
}

void ConsoleObserver::foreign_owner() {
  note("to also use files of other users: " + console_.command_with("--any-owner"));
}

Result<std::vector<OpenedInput>> open_inputs(const Source& source, const SourceOptions& options,
                                             const Console& console) {
  ConsoleObserver observer(console);
  return open_source(source, told_to(observer, options));
}

Result<std::vector<OpenedInput>> open_inputs(const std::vector<Source>& sources,
                                             const SourceOptions& options, const Console& console) {
  ConsoleObserver observer(console);
  return open_sources(sources, told_to(observer, options));
}

Result<Map> make_map(std::vector<OpenedInput> opened, const SourceOptions& options,
                     const Console& console, Opening* opening, std::uint64_t time) {
  ConsoleObserver observer(console);
  return map_of(std::move(opened), told_to(observer, options), opening, time);
}

Result<Map> make_distinct_map(std::vector<OpenedInput> opened, const SourceOptions& options,
                              const Console& console) {
  ConsoleObserver observer(console);
  return distinct_code_of(std::move(opened), told_to(observer, options));
}

Result<Map> open_map(const Source& source, const SourceOptions& options, const Console& console) {
  Result<std::vector<OpenedInput>> opened = open_inputs(source, options, console);
  if (!opened) return failure(opened);
  return make_map(*std::move(opened), options, console);
}

Result<std::vector<Map>> open_maps(const std::vector<Source>& sources, const SourceOptions& options,
                                   const Console& console) {
  const Result<void> checked = check_stdin(sources);
  if (!checked) return failure(checked);
  std::vector<Map> maps;
  for (const Source& source : sources) {
    Result<Map> map = open_map(source, options, console);
    if (!map) return failure(map);
    maps.push_back(*std::move(map));
  }
  return maps;
}

Index make_index(std::vector<Map> maps, Overlap overlap, Diagnostics& problems,
                 const Console& console) {
  const Step step(console, "indexing " + (maps.size() == 1 ? maps.front().input().name()
                                                           : counted(maps.size(), "map")));
  return {std::move(maps), overlap, problems};
}

Index make_index(Map map, Overlap overlap, Diagnostics& problems, const Console& console) {
  std::vector<Map> maps;
  maps.push_back(std::move(map));
  return make_index(std::move(maps), overlap, problems, console);
}

void note_skipped(const Console& console, const Diagnostics& problems) {
  const std::uint64_t lost = problems.total() - problems.count_of(rule::kAddressWrap);
  if (lost == 0) return;
  console.note("skipped " + counted(lost, "malformed line") + " (run 'perfmap lint' for details)");
}

void note_skipped(const Console& console, const Problems& problems) {
  note_skipped(console, problems.lines);
  note_skipped_records(console, problems.records);
}

void note_skipped_records(const Console& console, const Diagnostics& problems) {
  // What the reader gave up; of all others a part was taken.
  const std::uint64_t skipped =
      problems.count_of(rule::kDamagedRecord) + problems.count_of(rule::kUnendedName);
  const auto note = [&](const std::string& done, std::uint64_t count, const std::string& what,
                        const std::string& why) {
    if (count == 0) return;
    console.note(done + counted(count, what) + why + " (run 'perfmap lint' for details)");
  };
  note("skipped ", skipped, "malformed record", "");
  note("found ", problems.total() - skipped, "record", " with inconsistent sizes");
}

void note_unfinished(const Console& console, std::span<const Map> maps) {
  for (const Map& map : maps) {
    if (!map.ends_in_part()) continue;
    console.note("skipped the incomplete last line of " + map.input().name());
  }
}

bool is_whole(const Console& console, const Input& input) {
  if (!input.was_truncated()) return true;
  console.fail(input.name() + " was truncated while it was read");
  return false;
}

bool is_whole(const Console& console, std::span<const Map> maps) {
  return std::all_of(maps.begin(), maps.end(),
                     [&](const Map& map) { return is_whole(console, map.input()); });
}

bool is_whole(const Console& console, const Resolver& resolver) {
  const auto timelines = resolver.timelines();
  return is_whole(console, resolver.maps()) &&
         std::all_of(timelines.begin(), timelines.end(), [&](const Timeline& timeline) {
           return is_whole(console, timeline.dump().input());
         });
}

Result<SourceFiles> open_source_files(const std::vector<Source>& sources,
                                      const SourceOptions& options, const Console& console) {
  Result<std::vector<OpenedInput>> opened = open_inputs(sources, options, console);
  if (!opened) return failure(opened);
  return source_files(*std::move(opened), options);
}

void warn_unreadable(std::span<const Error> failures, const Console& console) {
  struct Kind {
    std::string_view fate;
    std::size_t files = 0;
    bool was_counted = false;
  };
  Kind unreadable{"cannot be read"}, stale{"are not used"};
  const auto kind_of = [&](const Error& error) {
    return error.reason == Reason::older_than_process ? &stale
           : error.doing == "cannot open"             ? &unreadable
                                                      : nullptr;
  };
  for (const Error& error : failures) {
    if (Kind* const kind = kind_of(error)) ++kind->files;
  }
  for (const Error& error : failures) {
    Kind* const kind = kind_of(error);
    if (kind == nullptr || kind->files <= 2 || console.verbose()) {
      console.warn(error.message());
    } else if (!std::exchange(kind->was_counted, true)) {
      console.warn(std::to_string(kind->files) + " files " + std::string(kind->fate) + ": " +
                   error.path + " (" + error.why() + "), and " + std::to_string(kind->files - 1) +
                   " more (--verbose names them)");
    }
  }
}

void note_without_lines(std::span<const std::string> modules, const Console& console) {
  if (modules.empty()) return;
  const bool is_one = modules.size() == 1;
  console.note(
      (is_one ? modules.front() + " has no debug information, so its"
              : std::to_string(modules.size()) + " ELF files have no debug information, so their") +
      " source lines and inlined functions are not printed" +
      (is_one || console.verbose() ? "" : " (--verbose lists them)"));
  if (is_one || !console.verbose()) return;
  for (const std::string& module : modules) console.note("no debug information: " + module);
}

}  // namespace perfmap::app
