#pragma once

#include <CLI/CLI.hpp>
#include <perfmap/index.hpp>
#include <perfmap/map.hpp>
#include <perfmap/process_files.hpp>
#include <perfmap/source_kind.hpp>
#include <string>
#include <vector>

#include "console.hpp"

namespace perfmap::app {

/// A source as it was named on the command line.
struct Source {
  enum class As { any, path, pid };

  std::string text = {};
  As as = As::any;  ///< any: decimal digits that name no file are a pid
};

/// How SOURCE arguments are opened.
struct SourceOptions {
  std::string kind;        ///< --kind; empty: by content
  bool any_owner = false;  ///< --any-owner: maps found through a pid may belong to anybody
  bool takes_json = true;  ///< false: only what a producer wrote, for what goes by lines
};
void add_source_options(CLI::App& command, SourceOptions& options);

/// How a source was read, where somebody wants to know.
struct Opening {
  SourceKind kind = SourceKind::perf_map;
  std::uint64_t bytes = 0;          ///< of the file, not of the map that was made of it
  std::uint64_t changed_names = 0;  ///< JSON: names that no perf map can hold
};

/// /proc, and /tmp or what PERFMAP_TMPDIR says instead.
Roots roots_from_environment();

/// A SOURCE: a path, "-", or a pid (decimal digits that name no file). JSON of ours becomes the map
/// that it describes. Fails with one line that names the source and the kind that it is not.
Result<Map> open_source(const Source& source, const SourceOptions& options, const Console& console,
                        Opening* opening = nullptr);
inline Result<Map> open_source(const std::string& source, const SourceOptions& options,
                               const Console& console) {
  return open_source(Source{source}, options, console);
}
Result<std::vector<Map>> open_sources(const std::vector<std::string>& sources,
                                      const SourceOptions& options, const Console& console);
Result<std::vector<Map>> open_sources(const std::vector<Source>& sources,
                                      const SourceOptions& options, const Console& console);
bool reads_stdin(const std::vector<Source>& sources);

/// The map in an input that is open already. A kind that was asked for, or else the content's.
Result<Map> map_of_input(Input input, const SourceOptions& options, bool growing,
                         Opening* opening = nullptr);

/// The map of a process, named `source` in messages.
Result<Map> open_process(pid_t pid, const SourceOptions& options, Opening* opening = nullptr);

/// The pid that a source means, or 0.
pid_t pid_of_source(const Source& source);

/// Their index, shown as a step.
Index make_index(std::vector<Map> maps, Overlap overlap, Diagnostics& problems,
                 const Console& console);
Index make_index(Map map, Overlap overlap, Diagnostics& problems, const Console& console);

/// Says in one line how many lines of all sources made no sense, if any.
void note_skipped(const Console& console, const Diagnostics& problems);

/// Says which of the maps end in a line that its producer has not finished, and which is not taken.
void note_unfinished(const Console& console, std::span<const Map> maps);

/// After the work: fails where a source was cut off under our hands.
bool is_whole(const Console& console, std::span<const Map> maps);

}  // namespace perfmap::app
