#pragma once

#include <functional>
#include <memory>
#include <perfmap/index.hpp>
#include <perfmap/profile/module.hpp>
#include <perfmap/profile/source.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"

namespace perfmap::app {

void add_source_options(CommandOptions& command, SourceOptions& options);

/// The positionals of a command, which are sources, and the other options that give it sources.
struct SourceWords {
  const char* name = "source";
  const char* type = kSource;
  std::string help = {};
  /// Takes a positional that is no source; null if all are sources.
  std::function<bool(const std::string&)> take_other = nullptr;
  bool with_pid = true;  ///< false if -p selects processes
};
/// Adds positionals, -p, -m, -j, -s and -i. `sources` gets all in the order of the command line.
Option add_sources(CommandOptions& command, std::vector<Source>& sources, SourceWords words);
/// One process, as a positional or by -p; 0 if there is none.
void add_process(CommandOptions& command, pid_t& pid);
/// Fails unless there are so many.
Result<void> check_number(const std::vector<Source>& sources, std::size_t least, std::size_t most);

/// /proc, and /tmp or what PERFMAP_TMPDIR says instead.
Roots roots_from_environment();

bool reads_stdin(const std::vector<Source>& sources);

/// Tells the user what happens with sources.
class ConsoleObserver final : public SourceObserver {
 public:
  explicit ConsoleObserver(const Console& console) : console_(console) {}

  void warn(const std::string& message) override { console_.warn(message); }
  void note(const std::string& message) override { console_.note(message); }
  void foreign_owner() override;
  void missing(const Error& error) override { console_.fail(error); }
  std::shared_ptr<void> step(const std::string& what) override {
    return std::make_shared<Step>(console_, what);
  }

 private:
  const Console& console_;
};

/// The options with what the program adds to them; `observer` is borrowed.
SourceOptions told_to(ConsoleObserver& observer, SourceOptions options);

/// open_source() and open_sources() for a command, which tells the user what happens.
Result<std::vector<OpenedInput>> open_inputs(const Source& source, const SourceOptions& options,
                                             const Console& console);
Result<std::vector<OpenedInput>> open_inputs(const std::vector<Source>& sources,
                                             const SourceOptions& options, const Console& console);
Result<SourceFiles> open_source_files(const std::vector<Source>& sources,
                                      const SourceOptions& options, const Console& console);

/// A SOURCE as one map: of a process with a map and a jitdump it has the entries of both, the
/// dump's after the map's.
Result<Map> open_map(const Source& source, const SourceOptions& options, const Console& console);
Result<std::vector<Map>> open_maps(const std::vector<Source>& sources, const SourceOptions& options,
                                   const Console& console);
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

/// What made no sense in maps and dumps.
struct Problems {
  Diagnostics lines{1};
  Diagnostics records{1};
};
void note_skipped(const Console& console, const Problems& problems);

bool is_whole(const Console& console, const Resolver& resolver);

/// Prints errors of files. Those of files that cannot be opened are one line, which names the
/// first, as a recording of another machine, or a hostile one, has any number of them; with
/// --verbose, a line for each.
void warn_unreadable(std::span<const Error> failures, const Console& console);

/// Says of which ELF files there are no lines: in one line, as most systems have debug information
/// of few libraries.
void note_without_lines(std::span<const std::string> modules, const Console& console);

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
