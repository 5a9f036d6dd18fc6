#pragma once

#include <memory>
#include <optional>
#include <perfmap/debuginfod.hpp>
#include <perfmap/index.hpp>
#include <perfmap/jitdump.hpp>
#include <perfmap/loop_profile.hpp>
#include <perfmap/map.hpp>
#include <perfmap/module.hpp>
#include <perfmap/process_files.hpp>
#include <perfmap/pypylog_code.hpp>
#include <perfmap/resolver.hpp>
#include <perfmap/source_kind.hpp>
#include <perfmap/timeline.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"

namespace perfmap::app {

/// A source as it was named on the command line.
struct Source {
  enum class As { any, path, pid, dump };

  std::string text = {};
  As as = As::any;  ///< any: decimal digits that name no file are a pid; dump: a jitdump's path
};

/// How SOURCE arguments are opened.
struct SourceOptions {
  std::string kind;            ///< --kind; empty: by content
  bool kind_is_given = true;   ///< false: it follows from another option, and overrides nothing
  bool any_owner = false;      ///< --any-owner: files found through a pid may belong to anybody
  bool stop_at_close = false;  ///< --stop-at-close
  bool needs_magic = true;     ///< false: --kind jitdump takes what is none, to say so in its way
  /// false: maps and dumps alone, and nothing that one is made of; for what goes by their lines.
  bool takes_others = true;
  std::uint32_t dump_pid = 0;  ///< of a jitdump that is made of a log, which names no process
  std::string map_dir = {};    ///< where perf-PID.map and jit-PID.dump of processes are, if said
};
void add_source_options(CommandOptions& command, SourceOptions& options);

/// A source's bytes before anything is made of them.
struct OpenedInput {
  Input input;
  SourceKind kind = SourceKind::perf_map;
  bool growing = false;                      ///< somebody may still write to it
  std::optional<SourceKind> made_from = {};  ///< of a jitdump that was JSON of ours, or a log
  std::uint64_t without_code = 0;  ///< such a dump's LOADs with zeros for code; see DumpBytes
  bool was_compressed = false;     ///< the file has other bytes than the input
  bool was_mended = false;         ///< it is a jitdump whose magic number was wrong
};

/// /proc, and /tmp or what PERFMAP_TMPDIR says instead.
Roots roots_from_environment();

/// "no process 42".
Error no_process(pid_t pid);
/// For what takes no snapshot: "DIR is a snapshot, " and why it is not taken; nothing where the
/// path is no snapshot.
std::optional<Error> refuse_snapshot(const std::string& path, const std::string& why);

/// The pid that a source means, or 0.
pid_t pid_of_source(const Source& source);
bool is_stdin(const Source& source);
bool reads_stdin(const std::vector<Source>& sources);
/// Fails where more than one is standard input.
Result<void> check_stdin(const std::vector<Source>& sources);

/// "a jitdump", "JSON", "gzip data".
std::string with_article(SourceKind kind);
/// "perf-map", "jitdump", "pypylog", "json": as --kind and JSON have them.
std::string_view kind_id(SourceKind kind) noexcept;
/// "N is a jitdump, which this command does not take".
Error unsupported(const std::string& name, SourceKind kind);

/// What a source was before it was made a map or dump of.
inline SourceKind written_kind(const OpenedInput& opened) {
  return opened.made_from.value_or(opened.kind);
}

/// What stands behind a SOURCE: a file or standard input; or, of a process or a snapshot of one,
/// its map and then its jitdumps, at least one of them. Names the source where it cannot be opened,
/// or is of a kind that no command takes. Only maps, JSON of maps and jitdumps come back, some of
/// which were made of JSON or of a log of PyPy.
Result<std::vector<OpenedInput>> open_inputs(const Source& source, const SourceOptions& options,
                                             const Console& console);
/// The same of several sources, of which one at most may be standard input.
Result<std::vector<OpenedInput>> open_all_inputs(const std::vector<Source>& sources,
                                                 const SourceOptions& options,
                                                 const Console& console);
Result<std::vector<OpenedInput>> open_process_inputs(pid_t pid, const Roots& roots,
                                                     const SourceOptions& options,
                                                     const Console& console);
/// An input that is open already.
Result<OpenedInput> as_opened(Input input, const SourceOptions& options, bool growing);

/// The dump that these bytes are.
Jitdump dump_of(OpenedInput opened, const SourceOptions& options);

/// How a source was read, where somebody wants to know.
struct Opening {
  SourceKind kind = SourceKind::perf_map;
  std::uint64_t bytes = 0;          ///< of the file, not of the map that was made of it
  std::uint64_t changed_names = 0;  ///< names that no perf map can hold
};

/// The map that these bytes are, or describe: our JSON's entries; what a jitdump says was there at
/// that time. Fails with one line that names the source.
Result<Map> map_of(OpenedInput opened, const SourceOptions& options, Opening* opening = nullptr,
                   std::uint64_t time = Timeline::kEnd);
/// The same of all that stands behind one source, as one.
Result<Map> map_of_inputs(std::vector<OpenedInput> opened, const SourceOptions& options,
                          Opening* opening = nullptr, std::uint64_t time = Timeline::kEnd);

/// A SOURCE: a path, "-", or a pid (decimal digits that name no file), as one map. Of a process
/// with a map and a jitdump it has the entries of both, the dump's behind the map's.
Result<Map> open_source(const Source& source, const SourceOptions& options, const Console& console,
                        Opening* opening = nullptr);
inline Result<Map> open_source(const std::string& source, const SourceOptions& options,
                               const Console& console) {
  return open_source(Source{source}, options, console);
}
Result<std::vector<Map>> open_sources(const std::vector<std::string>& sources,
                                      const SourceOptions& options, const Console& console);
/// Fails where a time is asked for, and the dump's are ticks of the processor.
Result<void> check_time(const Jitdump& dump, std::uint64_t time);
/// Their index, shown as a step.
Index make_index(std::vector<Map> maps, Overlap overlap, Diagnostics& problems,
                 const Console& console);
Index make_index(Map map, Overlap overlap, Diagnostics& problems, const Console& console);

/// Says in one line how many lines of all sources made no sense, if any.
void note_skipped(const Console& console, const Diagnostics& problems);
/// The same of the records of jitdumps.
void note_skipped_records(const Console& console, const Diagnostics& problems);

/// Says which of the maps end in a line that its producer has not finished, and which is not taken.
void note_unfinished(const Console& console, std::span<const Map> maps);

/// After the work: fails where a source was cut off under our hands.
bool is_whole(const Console& console, const Input& input);
bool is_whole(const Console& console, std::span<const Map> maps);

/// Sources as resolve asks them: maps by address, jitdumps by address and time.
struct NameSources {
  std::vector<Map> maps;
  std::vector<Jitdump> dumps;
};
Result<NameSources> open_name_sources(const std::vector<Source>& sources,
                                      const SourceOptions& options, const Console& console);
Result<NameSources> name_sources_of(std::vector<OpenedInput> opened, const SourceOptions& options);

/// What made no sense in them.
struct Problems {
  Diagnostics lines{1};
  Diagnostics records{1};
};
void note_skipped(const Console& console, const Problems& problems);

Resolver make_resolver(NameSources sources, Overlap overlap, Problems& problems,
                       const Console& console);
bool is_whole(const Console& console, const Resolver& resolver);

/// Says of which ELF files there are no lines: in one line, as most systems have debug information
/// of few libraries.
void note_without_lines(std::span<const std::string> modules, const Console& console);

/// The first dump whose times are ticks of the processor, which nothing can be compared with.
const Jitdump* with_ticks(const std::vector<Jitdump>& dumps);

/// What a log of PyPy tells of its loops and bridges, with their code.
Result<LoopProfile> read_loops(const Input& log, TickBase ticks);

/// The jitdump that a log is as a source of names. Its times are 0.
Result<OpenedInput> dump_of_log(const Input& log, std::uint32_t pid);

/// Says once why no server answers.
inline FetchDebugFile asking(const Debuginfod& servers, const Console& console) {
  return [servers, &console, told = std::make_shared<bool>(false)](std::string_view build_id) {
    auto path = servers.find(build_id);
    const std::optional<Error> failure = servers.failure();
    if (failure && !std::exchange(*told, true)) console.warn(failure->message);
    return path;
  };
}

}  // namespace perfmap::app
