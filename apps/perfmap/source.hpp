// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
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
  /// Takes a positional that is not a source, and returns true; null if all are sources.
  std::function<bool(const std::string&)> take_other = nullptr;
  bool with_pid = true;    ///< false if -p selects processes
  bool is_single = false;  ///< check_number() allows one source
  /// What a recording directory, or an archive of one, is as a source.
  enum class Recorded : std::uint8_t {
    one_process,  ///< the names of one process; -p selects it
    memory,       ///< the same, and its ELF files
    each_file,    ///< all its maps and jitdumps, or those of the processes of -p
    whole,        ///< the command reads the recording itself
  };
  Recorded recorded = Recorded::one_process;
  /// The texts of the options.
  const char* pid_help = "Use the map and jitdumps of this process";
  const char* map_help = "Use this perf map, such as /tmp/perf-42.map";
  const char* dump_help = "Use this jitdump, such as /tmp/jit-42.dump";
  const char* source_help = "Use this source: a path, '-' or a pid";
  const char* input_help = "Use this file of any kind; never a pid";
};
/// Adds positionals, -p, -m, -j, -s and -i. `sources` gets all in the order of the command line.
/// Before the command runs, archives are unpacked, and -p selects processes of recordings, if there
/// are any.
Option add_sources(CommandOptions& command, std::vector<Source>& sources, SourceWords words);
/// A process, as a positional or by -p.
void add_process(CommandOptions& command, std::vector<pid_t>& pids);
/// Fails unless there is one process.
Result<void> check_process(const std::vector<pid_t>& pids);
/// The error, and for a process of another user `perfmap COMMAND` as root. `command` has its
/// arguments.
Error with_rights_advice(Error error, const std::string& command);
/// Fails unless the number of sources is in this range.
Result<void> check_number(const std::vector<Source>& sources, std::size_t least, std::size_t most);

/// /proc, and /tmp or the directory of PERFMAP_TMPDIR.
Roots roots_from_environment();

/// Fails if a directory of --map-dir or --symfs does not exist; empty: the option is not given.
Result<void> check_directories(std::initializer_list<std::string> directories);

bool reads_stdin(const std::vector<Source>& sources);

/// Prints messages about sources.
class ConsoleObserver final : public SourceObserver {
 public:
  explicit ConsoleObserver(const Console& console) : console_(console) {}

  /// Shows how much of a map is read. May be called when the observer is gone.
  std::function<void(std::uint64_t, std::uint64_t)> progress() const {
    return [&console = console_](std::uint64_t part, std::uint64_t whole) {
      console.progress().done(part, whole);
    };
  }
  void warn(const std::string& message) override { console_.warn(message); }
  void note(const std::string& message) override { console_.note(message); }
  void foreign_owner() override;
  void skipped(const Diagnostics& problems) override;
  void missing(const Error& error) override { console_.fail(error); }
  std::shared_ptr<void> step(const std::string& what) override {
    return std::make_shared<Step>(console_, what);
  }

 private:
  const Console& console_;
};

/// The options, with the environment and `observer`, which is borrowed.
SourceOptions told_to(ConsoleObserver& observer, SourceOptions options);

/// open_source() and open_sources() with messages on the console.
Result<std::vector<OpenedInput>> open_inputs(const Source& source, const SourceOptions& options,
                                             const Console& console);
Result<std::vector<OpenedInput>> open_inputs(const std::vector<Source>& sources,
                                             const SourceOptions& options, const Console& console);
Result<SourceFiles> open_source_files(const std::vector<Source>& sources,
                                      const SourceOptions& options, const Console& console);

/// map_of() with messages on the console.
Result<Map> make_map(std::vector<OpenedInput> opened, const SourceOptions& options,
                     const Console& console, Opening* opening = nullptr,
                     std::uint64_t time = Timeline::kEnd);

/// distinct_code_of() with messages on the console.
Result<Map> make_distinct_map(std::vector<OpenedInput> opened, const SourceOptions& options,
                              const Console& console);

/// A SOURCE as one map. If a process has a map and jitdumps, the map has the entries of all, first
/// those of the map.
Result<Map> open_map(const Source& source, const SourceOptions& options, const Console& console);
Result<std::vector<Map>> open_maps(const std::vector<Source>& sources, const SourceOptions& options,
                                   const Console& console);
/// Makes the index of the maps, as a Step.
Index make_index(std::vector<Map> maps, Overlap overlap, Diagnostics& problems,
                 const Console& console);
Index make_index(Map map, Overlap overlap, Diagnostics& problems, const Console& console);

/// Prints in one line how many malformed lines all sources have, if any.
void note_skipped(const Console& console, const Diagnostics& problems);
/// The same for records of jitdumps.
void note_skipped_records(const Console& console, const Diagnostics& problems);

/// Prints which maps end in a line that its writer has not finished. Such a line is left out.
void note_unfinished(const Console& console, std::span<const Map> maps);

/// False, with an error, if a source was truncated while it was read. Call it at the end.
bool is_whole(const Console& console, const Input& input);
bool is_whole(const Console& console, std::span<const Map> maps);

/// Malformed lines of maps and records of dumps.
struct Problems {
  Diagnostics lines{1};
  Diagnostics records{1};
};
void note_skipped(const Console& console, const Problems& problems);

bool is_whole(const Console& console, const Resolver& resolver);

/// Prints errors of files. All files that cannot be opened share one line, which names the first,
/// because a recording of another machine has any number of them. --verbose prints each.
void warn_unreadable(std::span<const Error> failures, const Console& console);

/// Prints in one line which ELF files have no source lines, because most libraries of a system have
/// none. --verbose prints each.
void note_without_lines(std::span<const std::string> modules, const Console& console);

/// Prints once why no server answers.
inline FetchDebugFile asking(const Debuginfod& servers, const Console& console) {
  return [servers, &console,
          told = std::make_shared<std::atomic<bool>>(false)](std::string_view build_id) {
    auto path = servers.find(build_id);
    const std::optional<Error> failure = servers.failure();
    if (failure && !told->exchange(true)) console.warn(failure->message());
    return path;
  };
}

}  // namespace perfmap::app
