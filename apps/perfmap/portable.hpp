#pragma once

#include <optional>
#include <perfmap/index.hpp>
#include <perfmap/output_file.hpp>
#include <string>

#include "source.hpp"

namespace perfmap::app {

/// "-" is standard output; anything else is replaced as a whole by commit().
Result<OutputFile> open_output(const std::string& path);

/// How many problems of each rule go into a JSON document: hostile input may have one for every
/// other byte.
inline constexpr std::size_t kMostProblemsInJson = 10'000;

/// Why an index must not take its map's place: no line of it was an entry, so the file, whatever it
/// is, would be emptied. Nothing where it may.
std::optional<Error> objection_to_emptying(const Index& index, const Diagnostics& problems);

/// Writes what the index answers, as a portable perf map or as JSON, commits, and notes what was
/// changed on the way and what was skipped.
ExitCode write_merged(Index& index, const Diagnostics& problems, bool as_json, OutputFile& out,
                      const Console& console);

}  // namespace perfmap::app
