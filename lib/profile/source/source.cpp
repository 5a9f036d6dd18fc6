// SPDX-License-Identifier: MIT
#include "perfmap/profile/source.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <system_error>
#include <unistd.h>

#include "base/found_file.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/json.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/profile/archive.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/snapshot.hpp"
#include "perfmap/pypylog.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {
namespace {

/// A file that grew while it was opened is still being written: its end may be incomplete.
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

/// Files of a bundle belong to the user who unpacked it. Their shown names begin with the bundle's
/// name as typed.
Result<std::vector<OpenedInput>> open_snapshot_inputs(const std::string& directory,
                                                      SourceOptions options) {
  const Result<Snapshot> snapshot = Snapshot::open(directory);
  if (!snapshot) return failure(snapshot);
  options.any_owner = true;
  options.map_dir.clear();
  options.roots = snapshot->roots();
  Result<std::vector<OpenedInput>> opened = open_process_source(snapshot->pid(), options);
  if (!opened) {
    return Failure(Error::told(
        opened.error().code, "the snapshot " + directory + " has no perf map or jitdump to read"));
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

/// The files of a recording directory, with names below the directory as it was typed.
Result<std::vector<OpenedInput>> open_recording_inputs(const Source& source,
                                                       const SourceOptions& options) {
  const std::string& shown = source.shown.empty() ? source.text : source.shown;
  const Result<std::vector<RecordedFile>> files = recorded_files_in(source.text);
  if (!files) return failure(files);
  std::vector<OpenedInput> opened;
  for (const RecordedFile& file : *files) {
    const auto& pids = source.pids;
    if (!pids.empty() && std::ranges::find(pids, file.pid) == pids.end()) continue;
    if (!options.kind.empty() && options.kind != (file.is_dump ? "jitdump" : "perf-map")) continue;
    Result<Input> input =
        Input::open(source.text + "/" + file.path,
                    {.follow_link = false, .regular_only = true, .bounded = true});
    if (input) input->rename(shown.substr(0, shown.find_last_not_of('/') + 1) + "/" + file.path);
    Result<OpenedInput> one = input ? as_opened(*std::move(input), options, false) : failure(input);
    if (one) opened.push_back(*std::move(one));
    if (!one) options.listener().warn(one.error().message());
  }
  if (!opened.empty()) return opened;
  return Failure(
      Error::not_found("the recording " + shown + " has no perf map or jitdump to read"));
}

/// A directory given by name is searched directly; only links and special files are refused.
Result<std::vector<OpenedInput>> open_in_map_dir(pid_t pid, const SourceOptions& options) {
  if (Snapshot::is_at(options.map_dir)) {
    const Result<Snapshot> snapshot = Snapshot::open(options.map_dir);
    if (!snapshot) return failure(snapshot);
    if (snapshot->pid() == pid) return open_snapshot_inputs(options.map_dir, options);
    return Failure(Error::not_found("the snapshot " + options.map_dir + " is of process " +
                                    std::to_string(snapshot->pid()) + ", not of " +
                                    std::to_string(pid)));
  }
  std::vector<OpenedInput> opened;
  std::optional<Error> first;
  for (const std::string& name : {kMapName.of(pid), kDumpName.of(pid)}) {
    Result<Input> input =
        Input::open(options.map_dir + "/" + name, {.follow_link = false, .regular_only = true});
    Result<OpenedInput> one = input ? as_opened(*std::move(input), options, false) : failure(input);
    if (one) opened.push_back(*std::move(one));
    if (!one && !first) first = std::move(one.error());
  }
  if (opened.empty()) return Failure(*std::move(first));
  return opened;
}

Result<Input> open_path(const std::string& path, const SourceOptions& options) {
  const StreamCheck check = check_source_start(path, options);
  OpenPolicy policy;
  policy.check_start = &check;
  return path == "-" ? Input::from_descriptor(STDIN_FILENO, "-", policy)
                     : Input::open(path, policy);
}

/// Only the name of an empty file shows its kind.
SourceKind kind_of_empty(const std::string& path, const std::string& wanted) {
  const bool dump = wanted.empty() ? is_dump_path(path) : wanted == "jitdump";
  return dump ? SourceKind::jitdump : SourceKind::perf_map;
}

/// An empty file is valid as any kind.
SourceKind kind_of(const Input& input, const SourceOptions& options) {
  if (input.text().empty()) return kind_of_empty(input.name(), options.kind);
  return options.kind.empty() ? detect_kind(input.text()) : *parse_kind(options.kind);
}

Error placed(Error error, const std::string& name) {
  return error.prefix(name + ":" + std::to_string(error.where.line) + ":" +
                      std::to_string(error.where.column) + ": ");
}

/// Converts JSON that was made from a jitdump back to a dump.
Result<OpenedInput> dump_of_json(const Input& input, const SourceOptions& options) {
  Result<JitdumpBytes> dump = dump_from_json(input.text(), options.max_made_bytes);
  if (!dump) return Failure(placed(std::move(dump.error()), input.name()));
  OpenedInput opened{Input::from_text(std::move(dump->bytes), input.name()), SourceKind::jitdump};
  opened.made_from = SourceKind::json;
  opened.written_bytes = input.text().size();
  opened.without_code = dump->without_code;
  return opened;
}

Result<OpenedInput> dump_of_log(const Input& log, const SourceOptions& options) {
  const Result<LoopProfile> profile = read_loops(log, TickBase::automatic);
  if (!profile) return failure(profile);
  Result<JitdumpBytes> dump = dump_of_loops(
      profile->loops(), log.text(), {.pid = options.dump_pid, .max_bytes = options.max_made_bytes});
  if (!dump) return Failure(dump.error().prefix(log.name() + ": "));
  OpenedInput opened{Input::from_text(std::move(dump->bytes), log.name()), SourceKind::jitdump};
  opened.made_from = SourceKind::pypylog;
  opened.written_bytes = log.text().size();
  opened.without_code = dump->without_code;
  return opened;
}

/// The error for a dump without its magic number.
Error no_dump(std::string_view bytes, const std::string& name) {
  const SourceKind found = detect_kind(bytes);
  const std::string what =
      is_damaged_jitdump(bytes)
          ? " is a damaged jitdump: its magic number is wrong (--kind jitdump reads it anyway)"
          : " is " + with_article(found) + ", not a jitdump";
  return Error::bad_format(name + what);
}

/// Checks bytes that are read as a perf map because they match no other format.
Result<void> check_map(std::string_view bytes, const std::string& name,
                       const SourceOptions& options) {
  if (is_damaged_jitdump(bytes)) return Failure(no_dump(bytes, name));
  // Also in lint: no byte of it is a damaged line of a map.
  if (bytes.starts_with("\x7f"
                        "ELF")) {
    return Failure(
        Error::bad_format(name +
                          " is an ELF file, not a perf map or jitdump (--kind perf-map reads it "
                          "anyway)"));
  }
  if (!options.needs_magic || !is_binary(bytes)) return {};
  return Failure(Error::bad_format(
      name + " is binary data, not a source of names (--kind perf-map reads it anyway)"));
}

bool is_taken(SourceKind kind, const SourceOptions& options) {
  const bool is_other = kind == SourceKind::json || kind == SourceKind::pypylog;
  return kind == SourceKind::perf_map || kind == SourceKind::jitdump ||
         (is_other && options.takes_others) ||
         (kind == SourceKind::image_list && options.takes_images);
}

/// A stream that is to be read as a dump. Damage may be anywhere in it if it is linted.
Result<StreamStart> check_dump_start(std::string_view begin, const std::string& name,
                                     const SourceOptions& options) {
  if (detect_kind(begin) == SourceKind::jitdump) return StreamStart::accepted;
  if (options.needs_magic && !options.kind_is_given) return Failure(no_dump(begin, name));
  const bool is_readable = options.needs_magic ? order_without_magic(begin).has_value()
                                               : begin.find_first_not_of('\0') != begin.npos;
  return is_readable ? StreamStart::accepted : StreamStart::undecided;
}

Result<StreamStart> check_json_start(std::string_view begin, const std::string& name) {
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return StreamStart::undecided;
  if (begin[first] == '{') return StreamStart::accepted;
  return Failure(Error::of(Reason::not_of_kind, name, "JSON: it does not begin with '{'"));
}

/// A log may begin in the middle of a section, with any text.
StreamStart check_log_start(std::string_view begin) {
  LoopProfile profile({});
  profile.add(begin.substr(0, begin.rfind('\n') + 1));
  return profile.has_sections() ? StreamStart::accepted : StreamStart::undecided;
}

/// The same bytes with a corrected magic number.
OpenedInput repaired_dump(const Input& input, std::endian order) {
  std::string bytes(order == std::endian::little ? "DTiJ" : "JiTD");
  bytes += input.text().substr(bytes.size());
  OpenedInput opened{Input::from_text(std::move(bytes), input.name()), SourceKind::jitdump};
  opened.was_repaired = true;
  return opened;
}

Map map_of_text(MapText text, const std::string& name, Opening* opening) {
  if (opening != nullptr) opening->changed.add(text.changed);
  return Map(Input::from_text(std::move(text.text), name));
}

Result<Map> map_of_json(const Input& input, Opening* opening) {
  Result<MapText> text = map_text_from_json(input.text());
  if (text) return map_of_text(*std::move(text), input.name(), opening);
  return Failure(placed(std::move(text.error()), input.name()));
}

Result<Map> map_of_dump(Jitdump dump, const SourceOptions& options, Opening* opening,
                        std::uint64_t time) {
  const Input input = dump.input();
  const Result<void> comparable = check_time(dump, time);
  if (!comparable) return failure(comparable);
  Diagnostics problems(1);
  MapText text = map_text_at(Timeline(std::move(dump), problems), time);
  if (input.was_truncated()) return Failure(Error::of(Reason::truncated, input.name()));
  options.listener().skipped(problems);
  return map_of_text(std::move(text), input.name(), opening);
}

/// The entries of all maps in order, as one map; named after the first.
Map joined(const std::vector<Map>& maps) {
  std::string text;
  for (const Map& map : maps) {
    text += map.text();
    if (!text.empty() && text.back() != '\n') text += '\n';
  }
  return Map(Input::from_text(std::move(text), maps.front().input().name()));
}

/// The process that a map or a dump is of, by its name.
std::optional<std::uint64_t> pid_of(const OpenedInput& opened) {
  const std::string& name = opened.input.name();
  return opened.kind == SourceKind::jitdump ? dump_pid_in(name) : kMapName.pid_in(name);
}

/// The code of jitdumps, by address.
class DumpedCode {
 public:
  void add(const Map& map) {
    Diagnostics ignored(1);
    map.for_each(ignored, [this](const Entry& entry) { ranges_.push_back(entry.range); });
  }
  void sort() { std::ranges::sort(ranges_, {}, &AddressRange::begin); }
  /// A dump's code at a time does not overlap, so the ranges of several seldom do.
  bool overlaps(const AddressRange& range) const {
    const auto after = std::ranges::upper_bound(ranges_, range.begin, {}, &AddressRange::begin);
    const bool begins_in = after != ranges_.begin() && after[-1].last() >= range.begin;
    return begins_in || (after != ranges_.end() && after->begin <= range.last());
  }

 private:
  std::vector<AddressRange> ranges_;
};

/// Its lines, except those of entries that overlap the code.
Map without(const Map& map, const DumpedCode& code) {
  std::string text;
  std::uint64_t kept = 0;  // up to here
  Diagnostics ignored(1);
  map.for_each(ignored, [&](const Entry& entry) {
    if (!code.overlaps(entry.range)) return;
    text += map.text().substr(kept, entry.offset - kept);
    const std::size_t end = map.text().find('\n', entry.offset);
    kept = end == std::string_view::npos ? map.text().size() : end + 1;
  });
  text += map.text().substr(kept);
  return Map(Input::from_text(std::move(text), map.input().name()));
}

}  // namespace

StreamCheck check_source_start(std::string name, const SourceOptions& options) {
  return [name = std::move(name), options,
          is_map = check_map_start()](std::string_view begin) mutable -> Result<StreamStart> {
    if (is_expandable(begin)) return StreamStart::accepted;
    const SourceKind kind = options.kind.empty() ? detect_kind(begin) : *parse_kind(options.kind);
    if (!is_taken(kind, options)) return Failure(unsupported_source(name, kind));
    if (kind == SourceKind::jitdump) return check_dump_start(begin, name, options);
    if (kind == SourceKind::json) return check_json_start(begin, name);
    if (kind == SourceKind::pypylog) return check_log_start(begin);
    if (kind == SourceKind::image_list) return StreamStart::accepted;
    if (options.kind.empty()) {
      const Result<void> fits = check_map(begin, name, options);
      if (!fits) return failure(fits);
    }
    return is_map(begin);
  };
}

std::string with_article(SourceKind kind) {
  const bool counted = kind < SourceKind::gzip && kind != SourceKind::json;
  return (counted ? "a " : "") + std::string(to_string(kind));
}

std::string_view kind_id(SourceKind kind) noexcept {
  return kind == SourceKind::json         ? "json"
         : kind == SourceKind::jitdump    ? "jitdump"
         : kind == SourceKind::pypylog    ? "pypylog"
         : kind == SourceKind::image_list ? "image-list"
                                          : "perf-map";
}

std::optional<Error> refuse_snapshot(const std::string& path, const std::string& why) {
  if (path == "-" || !Snapshot::is_at(path)) return std::nullopt;
  return Error::of(Reason::other_kind, path, "a snapshot, " + why);
}

std::optional<Error> refuse_recording(const std::string& path, const std::string& why) {
  if (path == "-") return std::nullopt;
  const bool is_directory = recording_in(path).has_value();
  if (!is_directory && !is_archive(path)) return std::nullopt;
  const char* const what = is_directory ? " is a recording directory, " : " is an archive, ";
  return Error::unsupported(path + what + why);
}

Error unsupported_source(const std::string& name, SourceKind kind) {
  const char* const advice = kind == SourceKind::perf_data
                                 ? ", not a source of names (the first argument of perfmap stacks, "
                                   "report and doctor is a recording)"
                             : kind == SourceKind::image_list
                                 ? ", which has no names (those of its process are in perf-PID.map)"
                             : kind >= SourceKind::gzip ? ": unpack it first"
                                                        : ", which this command does not support";
  return Error::of(Reason::other_kind, name, with_article(kind) + advice);
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

Result<void> check_stdin(std::span<const Source> sources) {
  if (std::count_if(sources.begin(), sources.end(), is_stdin) <= 1) return {};
  return Failure(Error::invalid("standard input can be a source only once"));
}

Result<std::vector<OpenedInput>> open_process_source(pid_t pid, const SourceOptions& options) {
  if (!options.map_dir.empty()) return open_in_map_dir(pid, options);
  std::vector<OpenedInput> opened;
  const auto take = [&](Input input) -> Result<void> {
    const bool is_empty = input.text().empty();
    Result<OpenedInput> one =
        as_opened(std::move(input), options, process_lives(pid, options.roots));
    if (!one) return failure(one);
    if (!is_empty || opened.empty()) opened.push_back(*std::move(one));
    return {};
  };
  Result<Input> map = find_process_map(pid, options.roots, options.any_owner);
  if (map && options.kind != "jitdump") {
    const Result<void> taken = take(*std::move(map));
    if (!taken) return failure(taken);
  }
  ProcessDumps found = find_process_dumps(pid, options.roots, options.any_owner);
  for (const Error& refused : found.refused) options.listener().warn(refused.message());
  if (options.kind.empty() || options.kind == "jitdump") {
    for (Input& dump : found.dumps) {
      const Result<void> taken = take(std::move(dump));
      if (!taken) options.listener().warn(taken.error().message());
    }
  }
  if (!opened.empty()) return opened;
  if (!map && map.error().reason == Reason::foreign_owner) options.listener().foreign_owner();
  // Files of a process that has ended are taken; without any, its pid is probably mistyped.
  if (!map && map.error().code == Errc::not_found && !process_lives(pid, options.roots)) {
    return Failure(no_process(pid));
  }
  if (!map && map.error().code != Errc::not_found) return failure(map);
  const std::string what = options.kind == "jitdump"    ? "jitdump"
                           : options.kind == "perf-map" ? "perf map"
                                                        : "perf map or jitdump";
  const std::string number = std::to_string(pid);
  return Failure(Error::not_found("no " + what + " of process " + number + " ('perfmap doctor " +
                                  number + "' explains why)"));
}

Result<std::vector<OpenedInput>> open_source(const Source& source, const SourceOptions& options) {
  if (source.failure) return Failure(*source.failure);
  const auto step =
      options.listener().step("reading " + (is_stdin(source) ? "standard input" : source.text));
  if (const pid_t pid = pid_of_source(source); pid != 0) return open_process_source(pid, options);
  if (may_be_snapshot(source) && Snapshot::is_at(source.text)) {
    return open_snapshot_inputs(source.text, options);
  }
  if (may_be_snapshot(source) && recording_in(source.text)) {
    return open_recording_inputs(source, options);
  }
  SourceOptions own = options;
  if (source.as == Source::As::dump) {
    own.kind_is_given = options.kind == "jitdump";
    own.kind = "jitdump";
  }
  Result<Input> input = open_path(source.text, own);
  std::error_code ignored;
  if (!input && may_be_snapshot(source) && std::filesystem::is_directory(source.text, ignored)) {
    return Failure(
        Error::unsupported(source.text +
                           " is a directory, but neither a snapshot nor a recording: it has no "
                           "manifest.json and no perf.data"));
  }
  if (!input) return failure(input);
  const bool growing = still_grows(*input);
  const bool compressed = is_expandable(input->text());
  if (compressed) input = expanded(*std::move(input));
  if (!input) return failure(input);
  Result<OpenedInput> opened = as_opened(*std::move(input), own, growing);
  if (!opened) return failure(opened);
  opened->was_compressed = compressed;
  if (opened->was_repaired) {
    options.listener().warn(source.text + " is damaged: its magic number is wrong");
  }
  std::vector<OpenedInput> one;
  one.push_back(*std::move(opened));
  return one;
}

Result<std::vector<OpenedInput>> open_sources(std::span<const Source> sources,
                                              const SourceOptions& options,
                                              std::vector<Error>* failures) {
  const Result<void> checked = check_stdin(sources);
  if (!checked) return failure(checked);
  std::vector<OpenedInput> all;
  SourceOptions left = options;
  for (const Source& source : sources) {
    Result<std::vector<OpenedInput>> opened = open_source(source, left);
    if (!opened && failures == nullptr) return failure(opened);
    if (!opened) {
      failures->push_back(std::move(opened.error()));
      continue;
    }
    for (const OpenedInput& one : *opened) {
      left.max_made_bytes -= std::min(left.max_made_bytes, one.made_bytes());
    }
    std::move(opened->begin(), opened->end(), std::back_inserter(all));
  }
  return all;
}

Result<OpenedInput> as_opened(Input input, const SourceOptions& options, bool growing) {
  const SourceKind kind = kind_of(input, options);
  if (!is_taken(kind, options)) return Failure(unsupported_source(input.name(), kind));
  const bool is_dump = input.text().empty() || detect_kind(input.text()) == SourceKind::jitdump;
  if (kind == SourceKind::jitdump && options.needs_magic && !is_dump) {
    const auto order = options.kind_is_given ? order_without_magic(input.text()) : std::nullopt;
    return order ? Result<OpenedInput>(repaired_dump(input, *order))
                 : Failure(no_dump(input.text(), input.name()));
  }
  if (kind == SourceKind::perf_map && options.kind.empty()) {
    const Result<void> is_map = check_map(input.text(), input.name(), options);
    if (!is_map) return failure(is_map);
  }
  const std::size_t size = input.text().size();
  if (kind == SourceKind::jitdump && options.needs_magic && size != 0 &&
      size < JitdumpHeader::kSize) {
    options.listener().warn(input.name() + " ends within its header, so it names no code");
  }
  if (kind == SourceKind::pypylog) return dump_of_log(input, options);
  if (kind == SourceKind::json && is_dump_json(input.text())) return dump_of_json(input, options);
  return OpenedInput{std::move(input), kind, growing};
}

// Runtimes write dumps through buffers, so the last record is often incomplete while the process
// runs.
Jitdump dump_of(OpenedInput opened, const SourceOptions& options) {
  const FileFacts& facts = opened.input.facts();
  const auto is_written = [&] {
    return options.writers != nullptr ? options.writers->find(facts) : find_writer(facts);
  };
  const bool growing = opened.growing || (facts.is_regular && is_written());
  return Jitdump(std::move(opened.input),
                 {.growing = growing, .stop_at_close = options.stop_at_close});
}

Result<void> check_time(const Jitdump& dump, std::uint64_t time) {
  if (time == Timeline::kEnd || !dump.has_tsc_times()) return {};
  return Failure(Error::unsupported(dump.input().name() +
                                    " has ticks instead of times: --time cannot be used"));
}

Result<Map> map_of(OpenedInput opened, const SourceOptions& options, Opening* opening,
                   std::uint64_t time) {
  if (opening != nullptr) *opening = {opened.written_kind(), opened.input.text().size(), {}};
  if (opened.kind == SourceKind::json) return map_of_json(opened.input, opening);
  if (opened.kind == SourceKind::jitdump) {
    return map_of_dump(dump_of(std::move(opened), options), options, opening, time);
  }
  return Map(std::move(opened.input), {.growing = opened.growing, .progress = options.progress});
}

Result<Map> map_of(std::vector<OpenedInput> opened, const SourceOptions& options, Opening* opening,
                   std::uint64_t time) {
  std::vector<Map> maps;
  for (OpenedInput& one : opened) {
    Result<Map> map = map_of(std::move(one), options, maps.empty() ? opening : nullptr, time);
    if (!map) return map;
    maps.push_back(*std::move(map));
  }
  return maps.size() == 1 ? std::move(maps.front()) : joined(maps);
}

Result<Map> distinct_code_of(std::vector<OpenedInput> opened, const SourceOptions& options) {
  std::map<std::uint64_t, DumpedCode> dumped;  // by pid
  std::vector<std::optional<std::uint64_t>> pids;
  std::vector<Map> maps;
  for (OpenedInput& one : opened) {
    const std::optional<std::uint64_t> pid = pid_of(one);
    const bool is_dump = one.kind == SourceKind::jitdump;
    Result<Map> map = map_of(std::move(one), options);
    if (!map) return map;
    if (is_dump && pid) dumped[*pid].add(*map);
    pids.push_back(is_dump ? std::nullopt : pid);
    maps.push_back(*std::move(map));
  }
  for (auto& [pid, code] : dumped) code.sort();
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const auto code = pids[i] ? dumped.find(*pids[i]) : dumped.end();
    if (code != dumped.end()) maps[i] = without(maps[i], code->second);
  }
  return maps.size() == 1 ? std::move(maps.front()) : joined(maps);
}

Result<LoopProfile> read_loops(const Input& log, TickBase ticks) {
  LoopProfile profile({.base = ticks, .keep_code_bytes = true});
  read_pypylog(log, profile);
  profile.finish();
  if (!log.was_truncated()) return profile;
  return Failure(Error::of(Reason::truncated, log.name()));
}

Result<SourceFiles> source_files(std::vector<OpenedInput> opened, const SourceOptions& options) {
  SourceFiles sources;
  FileWriters own_writers;
  SourceOptions how = options;
  if (how.writers == nullptr) how.writers = &own_writers;
  for (OpenedInput& one : opened) {
    if (one.kind == SourceKind::jitdump) {
      sources.dumps.push_back(dump_of(std::move(one), how));
      continue;
    }
    Result<Map> map = map_of(std::move(one), options);
    if (!map) return failure(map);
    sources.maps.push_back(*std::move(map));
  }
  return sources;
}

}  // namespace perfmap
