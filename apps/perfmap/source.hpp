#pragma once

#include <perfmap/index.hpp>
#include <perfmap/map.hpp>
#include <perfmap/timeline.hpp>
#include <string>
#include <vector>

#include "opened_input.hpp"

namespace perfmap::app {

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

}  // namespace perfmap::app
