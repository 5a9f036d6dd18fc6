#include "source.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <perfmap/expanded_input.hpp>
#include <perfmap/jitdump_json.hpp>
#include <perfmap/map_json.hpp>
#include <perfmap/map_text.hpp>
#include <perfmap/open_writers.hpp>
#include <perfmap/rules.hpp>
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

namespace {

/// Nothing tells what an empty file is but what it is called.
SourceKind kind_of_empty(const std::string& path, const std::string& wanted) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  const bool dump =
      wanted.empty() ? name.starts_with("jit-") && name.ends_with(".dump") : wanted == "jitdump";
  return dump ? SourceKind::jitdump : SourceKind::perf_map;
}

/// An empty file is empty under any kind.
SourceKind kind_of(const Input& input, const SourceOptions& options) {
  if (input.text().empty()) return kind_of_empty(input.name(), options.kind);
  return options.kind.empty() ? detect_kind(input.text()) : *parse_kind(options.kind);
}

Error placed(Error error, const std::string& name) {
  error.message = name + ":" + std::to_string(error.where.line) + ":" +
                  std::to_string(error.where.column) + ": " + error.message;
  return error;
}

/// A jitdump of what was made of one.
Result<OpenedInput> dump_of_json(const Input& input) {
  Result<DumpBytes> dump = dump_from_json(input.text());
  if (!dump) return Failure(placed(std::move(dump.error()), input.name()));
  OpenedInput opened{Input::from_text(std::move(dump->bytes), input.name()), SourceKind::jitdump};
  opened.made_from = SourceKind::json;
  opened.without_code = dump->without_code;
  return opened;
}

/// A dump without its magic cannot be read as one, unless there is nothing to be read.
Error no_dump(const Input& input) {
  const SourceKind found = detect_kind(input.text());
  const std::string what = is_damaged_jitdump(input.text())
                               ? " is a damaged jitdump: its magic number is wrong (--kind jitdump "
                                 "reads it all the same)"
                               : " is " + with_article(found) + ", not a jitdump";
  return {Errc::bad_format, input.name() + what, 0, {}};
}

/// What is taken for a perf map because it is nothing else.
Result<void> check_map(const Input& input, const SourceOptions& options) {
  if (is_damaged_jitdump(input.text())) return Failure(no_dump(input));
  if (!options.needs_magic || !is_binary(input.text())) return {};
  return Failure({Errc::bad_format,
                  input.name() + " is binary data and no source of names (--kind perf-map reads it "
                                 "all the same)",
                  0,
                  {}});
}

/// The same bytes with the magic number that they should have.
OpenedInput mended_dump(const Input& input, std::endian order) {
  std::string bytes(order == std::endian::little ? "DTiJ" : "JiTD");
  bytes += input.text().substr(bytes.size());
  OpenedInput opened{Input::from_text(std::move(bytes), input.name()), SourceKind::jitdump};
  opened.was_mended = true;
  return opened;
}

}  // namespace

Result<OpenedInput> as_opened(Input input, const SourceOptions& options, bool growing) {
  const SourceKind kind = kind_of(input, options);
  const bool is_other = kind == SourceKind::json || kind == SourceKind::pypylog;
  const bool taken = kind == SourceKind::perf_map || kind == SourceKind::jitdump ||
                     (is_other && options.takes_others);
  if (!taken) return Failure(unsupported(input.name(), kind));
  const bool is_dump = input.text().empty() || detect_kind(input.text()) == SourceKind::jitdump;
  if (kind == SourceKind::jitdump && options.needs_magic && !is_dump) {
    const auto order = options.kind_is_given ? order_without_magic(input.text()) : std::nullopt;
    return order ? Result<OpenedInput>(mended_dump(input, *order)) : Failure(no_dump(input));
  }
  if (kind == SourceKind::perf_map && options.kind.empty()) {
    const Result<void> is_map = check_map(input, options);
    if (!is_map) return Failure(is_map.error());
  }
  if (kind == SourceKind::pypylog) return dump_of_log(input, options.dump_pid);
  if (kind == SourceKind::json && is_dump_json(input.text())) return dump_of_json(input);
  return OpenedInput{std::move(input), kind, growing};
}

namespace {

Map map_of_text(MapText text, const std::string& name, Opening* opening) {
  if (opening != nullptr) opening->changed_names += text.changed_names;
  return Map(Input::from_text(std::move(text.text), name));
}

Result<Map> map_of_json(const Input& input, Opening* opening) {
  Result<MapText> text = map_text_from_json(input.text());
  if (text) return map_of_text(*std::move(text), input.name(), opening);
  Error error = std::move(text.error());
  error.message = input.name() + ":" + std::to_string(error.where.line) + ":" +
                  std::to_string(error.where.column) + ": " + error.message;
  return Failure(std::move(error));
}

Result<Map> map_of_dump(Jitdump dump, Opening* opening, std::uint64_t time) {
  const Input input = dump.input();
  const Result<void> comparable = check_time(dump, time);
  if (!comparable) return Failure(comparable.error());
  Diagnostics problems(1);
  MapText text = map_text_at(Timeline(std::move(dump), problems), time);
  if (input.was_truncated()) {
    return Failure({Errc::io, input.name() + " was truncated while it was read", 0, {}});
  }
  return map_of_text(std::move(text), input.name(), opening);
}

/// Entries in the order of the maps, as one; named after the first.
Map joined(const std::vector<Map>& maps) {
  std::string text;
  for (const Map& map : maps) {
    text += map.text();
    if (!text.empty() && text.back() != '\n') text += '\n';
  }
  return Map(Input::from_text(std::move(text), maps.front().input().name()));
}

}  // namespace

Result<void> check_time(const Jitdump& dump, std::uint64_t time) {
  if (time == Timeline::kEnd || !dump.has_tsc_times()) return {};
  return Failure(
      {Errc::unsupported,
       dump.input().name() + " has ticks of the processor for times: --time cannot be compared",
       0,
       {}});
}

Result<Map> map_of(OpenedInput opened, const SourceOptions& options, Opening* opening,
                   std::uint64_t time) {
  if (opening != nullptr) *opening = {written_kind(opened), opened.input.text().size(), 0};
  if (opened.kind == SourceKind::json) return map_of_json(opened.input, opening);
  if (opened.kind == SourceKind::jitdump) {
    return map_of_dump(dump_of(std::move(opened), options), opening, time);
  }
  return Map(std::move(opened.input), {.growing = opened.growing});
}

Result<Map> open_source(const Source& source, const SourceOptions& options, const Console& console,
                        Opening* opening) {
  Result<std::vector<OpenedInput>> opened = open_inputs(source, options, console);
  if (!opened) return Failure(std::move(opened.error()));
  return map_of_inputs(*std::move(opened), options, opening);
}

Result<Map> map_of_inputs(std::vector<OpenedInput> opened, const SourceOptions& options,
                          Opening* opening, std::uint64_t time) {
  std::vector<Map> maps;
  for (OpenedInput& one : opened) {
    Result<Map> map = map_of(std::move(one), options, maps.empty() ? opening : nullptr, time);
    if (!map) return map;
    maps.push_back(*std::move(map));
  }
  return maps.size() == 1 ? std::move(maps.front()) : joined(maps);
}

Result<std::vector<Map>> open_sources(const std::vector<std::string>& sources,
                                      const SourceOptions& options, const Console& console) {
  std::vector<Source> named;
  for (const std::string& source : sources) named.push_back({source});
  const Result<void> checked = check_stdin(named);
  if (!checked) return Failure(checked.error());
  std::vector<Map> maps;
  for (const Source& source : named) {
    Result<Map> map = open_source(source, options, console);
    if (!map) return Failure(std::move(map.error()));
    maps.push_back(*std::move(map));
  }
  return maps;
}

Index make_index(std::vector<Map> maps, Overlap overlap, Diagnostics& problems,
                 const Console& console) {
  const Step step(console, "indexing");
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
  console.note("skipped " + std::to_string(lost) + (lost == 1 ? " line" : " lines") +
               " that made no sense ('perfmap lint' says which)");
}

void note_skipped_records(const Console& console, const Diagnostics& problems) {
  // What the reader gave up; of all others a part was taken.
  const std::uint64_t skipped =
      problems.count_of(rule::kDamagedRecord) + problems.count_of(rule::kUnendedName);
  const auto note = [&](const std::string& done, std::uint64_t count, const std::string& why) {
    if (count == 0) return;
    console.note(done + std::to_string(count) + (count == 1 ? " record" : " records") + why +
                 " ('perfmap lint' says which)");
  };
  note("skipped ", skipped, " that made no sense");
  note("found ", problems.total() - skipped, " whose sizes contradict each other");
}

void note_unfinished(const Console& console, std::span<const Map> maps) {
  for (const Map& map : maps) {
    if (!map.ends_in_part()) continue;
    console.note("left out the last line of " + map.input().name() + ", which is not finished yet");
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

Result<NameSources> name_sources_of(std::vector<OpenedInput> opened, const SourceOptions& options) {
  NameSources sources;
  for (OpenedInput& one : opened) {
    if (one.kind == SourceKind::jitdump) {
      sources.dumps.push_back(dump_of(std::move(one), options));
      continue;
    }
    Result<Map> map = map_of(std::move(one), options);
    if (!map) return Failure(std::move(map.error()));
    sources.maps.push_back(*std::move(map));
  }
  return sources;
}

Result<NameSources> open_name_sources(const std::vector<Source>& sources,
                                      const SourceOptions& options, const Console& console) {
  Result<std::vector<OpenedInput>> opened = open_all_inputs(sources, options, console);
  if (!opened) return Failure(std::move(opened.error()));
  return name_sources_of(*std::move(opened), options);
}

void note_skipped(const Console& console, const Problems& problems) {
  note_skipped(console, problems.lines);
  note_skipped_records(console, problems.records);
}

Resolver make_resolver(NameSources sources, Overlap overlap, Problems& problems,
                       const Console& console) {
  const Step step(console, "indexing");
  return {std::move(sources.maps), std::move(sources.dumps), overlap, problems.lines,
          problems.records};
}

bool is_whole(const Console& console, const Resolver& resolver) {
  const auto timelines = resolver.timelines();
  return is_whole(console, resolver.maps()) &&
         std::all_of(timelines.begin(), timelines.end(), [&](const Timeline& timeline) {
           return is_whole(console, timeline.dump().input());
         });
}

void note_without_lines(std::span<const std::string> modules, const Console& console) {
  if (modules.empty()) return;
  const std::string count = std::to_string(modules.size());
  console.note((modules.size() == 1 ? modules.front() + " has" : count + " ELF files have") +
               " no debug information: no lines and no inlined functions there" +
               (modules.size() == 1 || console.verbose() ? "" : " (--verbose lists them)"));
  if (modules.size() == 1 || !console.verbose()) return;
  for (const std::string& module : modules) console.note("no debug information: " + module);
}

const Jitdump* with_ticks(const std::vector<Jitdump>& dumps) {
  const auto found = std::find_if(dumps.begin(), dumps.end(),
                                  [](const Jitdump& dump) { return dump.has_tsc_times(); });
  return found == dumps.end() ? nullptr : &*found;
}

Result<LoopProfile> read_loops(const Input& log, TickBase ticks) {
  LoopProfile profile({.base = ticks, .keep_code_bytes = true});
  read_pypylog(log, profile);
  profile.finish();
  if (!log.was_truncated()) return profile;
  return Failure({Errc::io, log.name() + " was truncated while it was read", 0, {}});
}

Result<OpenedInput> dump_of_log(const Input& log, std::uint32_t pid) {
  const Result<LoopProfile> profile = read_loops(log, TickBase::automatic);
  if (!profile) return Failure(profile.error());
  Result<DumpBytes> dump = dump_of_loops(profile->loops(), log.text(), {.pid = pid});
  if (!dump) return Failure({dump.error().code, log.name() + ": " + dump.error().message, 0, {}});
  OpenedInput opened{Input::from_text(std::move(dump->bytes), log.name()), SourceKind::jitdump};
  opened.made_from = SourceKind::pypylog;
  opened.without_code = dump->without_code;
  return opened;
}

}  // namespace perfmap::app
