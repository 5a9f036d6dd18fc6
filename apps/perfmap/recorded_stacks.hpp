// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <perfmap/profile/module.hpp>
#include <perfmap/profile/recording.hpp>
#include <perfmap/profile/source.hpp>
#include <perfmap/profile/stacks.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"
#include "recording.hpp"
#include "source.hpp"

namespace perfmap {
class SourceText;
}

namespace perfmap::app {

/// The options of a command that reads the stacks of a recording.
struct RecordedStacksOptions {
  std::string recording;
  StackOptions stacks;
  std::string from_text;  ///< of the filter, as typed
  std::string to_text;
  std::vector<Source> sources;  ///< of names: perf maps and jitdumps
  std::string map_dir;
  std::string symfs;
  std::string kallsyms;
  bool any_owner = false;
  bool debuginfod = false;
  bool private_sources = false;  ///< --private-sources
  /// Changes the options of the reader when all are set; null: does not.
  std::function<void(StackOptions&)> watch = nullptr;
  ModuleCache* modules = nullptr;  ///< of several recordings; null: each has its own
};

/// The cache of ELF files for recordings. Fails if --debuginfod is given and the library that it
/// needs is not installed.
Result<ModuleCacheOptions> module_cache_options(const RecordedStacksOptions& options,
                                                const Console& console);

/// RECORDING, which may be a pprof profile, and further sources of names; as many threads as the
/// machine has processors. `take_more` takes a positional after RECORDING that is not a source, and
/// returns true.
void add_profile(CommandOptions& command, RecordedStacksOptions& options,
                 const std::function<bool(const std::string&)>& take_more);
/// --no-demangle, --no-kernel.
void add_frame_names(CommandOptions& command, StackOptions& stacks);
/// --pid, --tid, --comm, --event, --from, --to-time.
void add_filters(CommandOptions& command, RecordedStacksOptions& options);
/// --max-stack, --stitch, --scan, --jit-cfi, --threads.
void add_unwinding(CommandOptions& command, StackOptions& stacks);
/// --private-sources, of a command that writes pages with source lines.
Option add_private_sources(CommandOptions& command, RecordedStacksOptions& options);
/// --map-dir, --symfs, --kallsyms, --any-owner, --debuginfod.
void add_files(CommandOptions& command, RecordedStacksOptions& options);

/// Fails if these options contradict each other, or name directories that do not exist.
Result<void> check_recorded_options(const RecordedStacksOptions& options);

/// The sources of the command line. Prints how many parts of them are malformed.
Result<std::shared_ptr<JitSources>> open_given(const std::vector<Source>& sources,
                                               const Console& console);

/// All objects that turn samples into stacks.
class Reading {
 public:
  static Result<std::unique_ptr<Reading>> open(Input input, const RecordedStacksOptions& options,
                                               StackOptions::Names names, const Console& console);

  const Recording& recording() const noexcept { return recording_; }
  StackReader& reader() noexcept { return *reader_; }

  /// Reads all samples, as a Step.
  ExitCode read(const std::function<void(const StackSample&)>& visit, Diagnostics& problems,
                const Console& console);

  /// Prints which files were missing or refused.
  void warn(const Console& console) const;

 private:
  explicit Reading(Recording recording) : recording_(std::move(recording)) {}

  Result<void> prepare(const RecordedStacksOptions& options, StackOptions::Names names,
                       const Console& console);

  Recording recording_;
  std::optional<ModuleCache> own_modules_;
  RecordedRefusals refused_;
  KernelSource kernel_;
  std::optional<StackReader> reader_;
};

/// Prints notes about the stacks that were read: the filters if no sample passes them, damage,
/// losses, doubts and, with `needs_names`, missing names.
void note_stacks(const Reading& reading, const StackFilter& filter,
                 const StackStatistics& statistics, const Diagnostics& problems, bool needs_names,
                 const Console& console);

/// Why functions of an ELF file without debug information, or of a runtime, have no source lines,
/// and what adds them: a clause. Empty if that is unknown. `without_lines` is that of the reader.
std::string reason_for_no_lines(const FrameFunction& function,
                                std::span<const std::string> without_lines);

/// If one of the functions is a runtime's interpreter, or other code of a runtime, why the
/// functions that it runs have no names. Examines the recording then.
std::vector<std::string> reasons_for_no_names(std::span<const FrameFunction> functions,
                                              const Recording& recording,
                                              const RecordedStacksOptions& options,
                                              const Console& console);

/// Prints which source files cannot be shown, and which were changed after their code was made.
void warn_sources(const SourceText& source, const Console& console);
/// Warns that there is no disassembler.
void warn_no_text(const std::string& why, const Console& console);

/// If the function is optimized JIT code whose runtime inlines functions that it does not name, and
/// the recorded command does not turn that off, a note about that; else empty.
std::string note_of_inlining(const FrameFunction& function, const Recording& recording);

/// If no sample passes the filters, prints the names that exist: one may be mistyped. `span` is
/// added if only times are filtered.
void note_filters(const std::vector<StackProfile::Event>& events, const StackFilter& filter,
                  const StackStatistics& statistics, const std::string& span,
                  const Console& console);

}  // namespace perfmap::app
