#pragma once

#include <perfmap/jitdump.hpp>
#include <perfmap/lint.hpp>
#include <perfmap/map.hpp>
#include <string>
#include <variant>
#include <vector>

#include "source.hpp"

namespace perfmap::app {

/// What lint checks: a map or a jitdump, told by content.
using LintSource = std::variant<Map, Jitdump>;

/// A source again, which has been rewritten.
Result<LintSource> open_lint_file_again(const Input& was, const SourceOptions& options);
/// A process among the sources, and which of the files are its own.
struct ProcessSource {
  pid_t pid = 0;
  std::size_t first = 0;
  std::size_t count = 0;
  Error why_none;  ///< where there is no file
};
struct LintSources {
  std::vector<LintSource> files;
  /// Of each file: the pids of its process, if it is in a snapshot.
  std::vector<std::vector<pid_t>> namespace_pids;
  std::vector<ProcessSource> processes;
};
/// Of a process both its map and its dumps are checked. It need not have any that may be read.
Result<LintSources> open_lint_sources(const std::vector<std::string>& sources,
                                      const SourceOptions& options, const Console& console);

const Input& input_of(const LintSource& source);
/// The text that findings are about.
std::string_view text_of(const LintSource& source);

/// The source with its findings, for what sources say about each other. Borrows both.
LintedFile linted(const LintSource& source, Diagnostics& problems);

}  // namespace perfmap::app
