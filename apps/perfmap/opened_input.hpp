#pragma once

#include <perfmap/jitdump.hpp>
#include <perfmap/process_files.hpp>
#include <perfmap/source_kind.hpp>
#include <string>
#include <vector>

#include "console.hpp"

namespace CLI {
class App;
}  // namespace CLI

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
  bool any_owner = false;      ///< --any-owner: files found through a pid may belong to anybody
  bool stop_at_close = false;  ///< --stop-at-close
  bool needs_magic = true;     ///< false: --kind jitdump takes what is none, to say so in its way
  bool takes_json = true;      ///< false: only what a producer wrote, for what goes by lines
  std::string map_dir = {};    ///< where perf-PID.map and jit-PID.dump of processes are, if said
};
void add_source_options(CLI::App& command, SourceOptions& options);

/// A source's bytes before anything is made of them.
struct OpenedInput {
  Input input;
  SourceKind kind = SourceKind::perf_map;
  bool growing = false;            ///< somebody may still write to it
  bool was_json = false;           ///< a jitdump that was JSON of ours
  std::uint64_t without_code = 0;  ///< such a dump's LOADs with zeros for code; see DumpBytes
};

/// /proc, and /tmp or what PERFMAP_TMPDIR says instead.
Roots roots_from_environment();

/// The pid that a source means, or 0.
pid_t pid_of_source(const Source& source);
bool is_stdin(const Source& source);
bool reads_stdin(const std::vector<Source>& sources);
/// Fails where more than one is standard input.
Result<void> check_stdin(const std::vector<Source>& sources);

/// "a jitdump", "JSON", "gzip data".
std::string with_article(SourceKind kind);
/// "N is a jitdump, which this command does not take".
Error unsupported(const std::string& name, SourceKind kind);

/// What a source was before it was made a map or dump of: jitdump, JSON or perf map.
inline SourceKind written_kind(const OpenedInput& opened) {
  return opened.was_json ? SourceKind::json : opened.kind;
}

/// What stands behind a SOURCE: a file or standard input; or, of a process or a snapshot of one,
/// its map and then its jitdumps, at least one of them. Names the source where it cannot be opened,
/// or is of a kind that no command takes: only maps, JSON and jitdumps come back.
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
