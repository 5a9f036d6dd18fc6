#pragma once

#include <optional>
#include <perfmap/jitdump.hpp>
#include <perfmap/process_files.hpp>
#include <perfmap/source_kind.hpp>
#include <string>
#include <vector>

#include "command_line.hpp"

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

}  // namespace perfmap::app
