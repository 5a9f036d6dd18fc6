#include "opened_input.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <perfmap/expanded_input.hpp>
#include <perfmap/open_writers.hpp>
#include <perfmap/snapshot.hpp>
#include <unistd.h>

namespace perfmap::app {
namespace {

Result<Input> open_path(const std::string& path) {
  return path == "-" ? Input::from_descriptor(STDIN_FILENO, "-") : Input::open(path);
}

/// A file that grew while it was opened is still being written: its end may be half there.
bool still_grows(const Input& input) {
  Input again = input;
  const bool is_dump = detect_kind(input.text()) == SourceKind::jitdump;
  const bool ended = input.text().empty() || (!is_dump && input.text().back() == '\n');
  if (ended || !input.facts().is_regular) return false;
  const Result<Growth> growth = again.refresh();
  return growth && *growth == Growth::appended;
}

bool may_be_snapshot(const Source& source) {
  return !is_stdin(source) && (source.as == Source::As::any || source.as == Source::As::path);
}

/// Whoever unpacked the bundle owns its files. They are called as the user calls the bundle.
Result<std::vector<OpenedInput>> open_snapshot_inputs(const std::string& directory,
                                                      SourceOptions options,
                                                      const Console& console) {
  const Result<Snapshot> snapshot = Snapshot::open(directory);
  if (!snapshot) return Failure(snapshot.error());
  options.any_owner = true;
  options.map_dir.clear();
  Result<std::vector<OpenedInput>> opened =
      open_process_inputs(snapshot->pid(), snapshot->roots(), options, console);
  if (!opened) {
    return Failure({opened.error().code,
                    "the snapshot " + directory + " has no perf map or jitdump to read",
                    0,
                    {}});
  }
  const std::string base = snapshot->roots().proc.substr(0, snapshot->roots().proc.rfind('/'));
  for (OpenedInput& one : *opened) {
    const std::string& name = one.input.name();
    if (!name.starts_with(base + "/")) continue;
    one.input.rename(directory.substr(0, directory.find_last_not_of('/') + 1) +
                     name.substr(base.size()));
  }
  return opened;
}

}  // namespace

std::string with_article(SourceKind kind) {
  const bool counted = kind < SourceKind::gzip && kind != SourceKind::json;
  return (counted ? "a " : "") + std::string(to_string(kind));
}

std::string_view kind_id(SourceKind kind) noexcept {
  return kind == SourceKind::json      ? "json"
         : kind == SourceKind::jitdump ? "jitdump"
         : kind == SourceKind::pypylog ? "pypylog"
                                       : "perf-map";
}

void add_source_options(CommandOptions& command, SourceOptions& options) {
  command.value("--kind", options.kind, "KIND", "Take sources for this kind, whatever they hold")
      .one_of({"perf-map", "jitdump", "pypylog", "json"});
  command.flag("--any-owner", options.any_owner,
               "Believe the files of a process whoever owns them");
  command.flag("--stop-at-close", options.stop_at_close,
               "Read nothing behind a jitdump's CLOSE record, as perf does");
}

Roots roots_from_environment() {
  Roots roots;
  const char* const directory = std::getenv("PERFMAP_TMPDIR");
  if (directory != nullptr && *directory != '\0') roots.tmp = directory;
  return roots;
}

Error no_process(pid_t pid) {
  return {Errc::not_found, "no process " + std::to_string(pid), 0, {}};
}

std::optional<Error> refuse_snapshot(const std::string& path, const std::string& why) {
  if (path == "-" || !Snapshot::is_at(path)) return std::nullopt;
  return Error{Errc::unsupported, path + " is a snapshot, " + why, 0, {}};
}

pid_t pid_of_source(const Source& source) {
  pid_t pid = 0;
  const char* const end = source.text.data() + source.text.size();
  const auto [stop, error] = std::from_chars(source.text.data(), end, pid);
  const bool digits = error == std::errc() && stop == end && pid > 0;
  if (!digits || source.as == Source::As::path || source.as == Source::As::dump) return 0;
  return source.as == Source::As::pid || ::access(source.text.c_str(), F_OK) != 0 ? pid : 0;
}

bool is_stdin(const Source& source) { return source.text == "-"; }

bool reads_stdin(const std::vector<Source>& sources) {
  return std::any_of(sources.begin(), sources.end(), is_stdin);
}

Error unsupported(const std::string& name, SourceKind kind) {
  std::string message = name + " is " + with_article(kind);
  message += kind >= SourceKind::gzip ? ": unpack it first" : ", which this command does not take";
  return {Errc::unsupported, std::move(message), 0, {}};
}

/// A directory that was named is looked into as it is; only links and odd files stay out.
static Result<std::vector<OpenedInput>> open_in_map_dir(pid_t pid, const SourceOptions& options,
                                                        const Console& console) {
  if (Snapshot::is_at(options.map_dir)) {
    const Result<Snapshot> snapshot = Snapshot::open(options.map_dir);
    if (!snapshot) return Failure(snapshot.error());
    if (snapshot->pid() == pid) return open_snapshot_inputs(options.map_dir, options, console);
    return Failure({Errc::not_found,
                    "the snapshot " + options.map_dir + " is of process " +
                        std::to_string(snapshot->pid()) + ", not of " + std::to_string(pid),
                    0,
                    {}});
  }
  const std::string number = std::to_string(pid);
  std::vector<OpenedInput> opened;
  std::optional<Error> first;
  for (const std::string& name : {"perf-" + number + ".map", "jit-" + number + ".dump"}) {
    Result<Input> input =
        Input::open(options.map_dir + "/" + name, {.follow_link = false, .regular_only = true});
    Result<OpenedInput> one =
        input ? as_opened(*std::move(input), options, false) : Failure(std::move(input.error()));
    if (one) opened.push_back(*std::move(one));
    if (!one && !first) first = std::move(one.error());
  }
  if (opened.empty()) return Failure(*std::move(first));
  return opened;
}

static bool is_foreign(const Error& error) {
  return error.code == Errc::refused && error.message.find("belongs to user") != std::string::npos;
}

Result<std::vector<OpenedInput>> open_process_inputs(pid_t pid, const Roots& roots,
                                                     const SourceOptions& options,
                                                     const Console& console) {
  if (!options.map_dir.empty()) return open_in_map_dir(pid, options, console);
  std::vector<OpenedInput> opened;
  const auto take = [&](Input input) -> Result<void> {
    const bool is_empty = input.text().empty();
    Result<OpenedInput> one = as_opened(std::move(input), options, process_lives(pid, roots));
    if (!one) return Failure(std::move(one.error()));
    if (!is_empty || opened.empty()) opened.push_back(*std::move(one));
    return {};
  };
  Result<Input> map = find_process_map(pid, roots, options.any_owner);
  if (map && options.kind != "jitdump") {
    const Result<void> taken = take(*std::move(map));
    if (!taken) return Failure(taken.error());
  }
  ProcessDumps found = find_process_dumps(pid, roots, options.any_owner);
  for (const Error& refused : found.refused) console.warn(refused.message);
  if (options.kind.empty() || options.kind == "jitdump") {
    for (Input& dump : found.dumps) {
      const Result<void> taken = take(std::move(dump));
      if (!taken) console.warn(taken.error().message);
    }
  }
  if (!opened.empty()) return opened;
  if (!map && is_foreign(map.error())) {
    console.note("to use files of other users, too: " + console.command_with("--any-owner"));
  }
  return Failure(map ? Error{Errc::not_found, "no jitdump of process " + std::to_string(pid), 0, {}}
                     : std::move(map.error()));
}

Result<std::vector<OpenedInput>> open_inputs(const Source& source, const SourceOptions& options,
                                             const Console& console) {
  const Step step(console, "reading " + (is_stdin(source) ? "standard input" : source.text));
  if (const pid_t pid = pid_of_source(source); pid != 0) {
    return open_process_inputs(pid, roots_from_environment(), options, console);
  }
  if (may_be_snapshot(source) && Snapshot::is_at(source.text)) {
    return open_snapshot_inputs(source.text, options, console);
  }
  Result<Input> input = open_path(source.text);
  if (!input) return Failure(std::move(input.error()));
  const bool growing = still_grows(*input);
  const bool compressed = is_expandable(input->text());
  if (compressed) input = expanded(*std::move(input));
  if (!input) return Failure(std::move(input.error()));
  SourceOptions own = options;
  if (source.as == Source::As::dump) {
    own.kind_is_given = options.kind == "jitdump";
    own.kind = "jitdump";
  }
  Result<OpenedInput> opened = as_opened(*std::move(input), own, growing);
  if (!opened) return Failure(std::move(opened.error()));
  opened->was_compressed = compressed;
  if (opened->was_mended) {
    console.warn(source.text + " is damaged: its magic number is wrong");
  }
  std::vector<OpenedInput> one;
  one.push_back(*std::move(opened));
  return one;
}

Result<void> check_stdin(const std::vector<Source>& sources) {
  if (std::count_if(sources.begin(), sources.end(), is_stdin) <= 1) return {};
  return Failure({Errc::invalid_argument, "standard input can be a source only once", 0, {}});
}

Result<std::vector<OpenedInput>> open_all_inputs(const std::vector<Source>& sources,
                                                 const SourceOptions& options,
                                                 const Console& console) {
  const Result<void> checked = check_stdin(sources);
  if (!checked) return Failure(checked.error());
  std::vector<OpenedInput> all;
  for (const Source& source : sources) {
    Result<std::vector<OpenedInput>> opened = open_inputs(source, options, console);
    if (!opened) return Failure(std::move(opened.error()));
    std::move(opened->begin(), opened->end(), std::back_inserter(all));
  }
  return all;
}

// Runtimes write dumps through buffers: while one does, its last record is seldom whole.
Jitdump dump_of(OpenedInput opened, const SourceOptions& options) {
  const FileFacts& facts = opened.input.facts();
  const bool growing = opened.growing || (facts.is_regular && find_writer(facts));
  return Jitdump(std::move(opened.input),
                 {.growing = growing, .stop_at_close = options.stop_at_close});
}

}  // namespace perfmap::app
