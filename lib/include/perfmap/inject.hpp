#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/doubt.hpp"
#include "perfmap/elf_image.hpp"
#include "perfmap/export.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/process_tracker.hpp"
#include "perfmap/recording.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// A dump of a recorded process.
struct RecordedDump {
  Jitdump dump;
  Doubts doubts = {};  ///< of its names
};

struct InjectOptions {
  /// Opens the jitdump that a recorded process mapped at a time; see open_recorded_dump().
  std::function<Result<RecordedDump>(pid_t pid, std::uint64_t time, const std::string& path)>
      open_dump = {};
  /// Dumps of the caller, instead: each belongs to the processes that had mapped a file of its
  /// name, or, where none had, to the one of its header.
  std::vector<Jitdump> dumps = {};
  /// As StackOptions has it, to tell which mapped files are ELF files. Nothing: all are.
  ProcessTracker::OpenModule open_module = {};
  /// ELF files have the name PREFIXjitted-PID.so. Absolute: the recording names them so. A link of
  /// that name is replaced, not followed.
  std::string elf_prefix = {};
};

/// A dump whose code is part of a recording now.
struct InjectedDump {
  pid_t pid = 0;          ///< as the recording has it
  std::string path = {};  ///< of the dump
  std::string elf = {};
  ElfImageCounts counts = {};
  std::uint64_t mappings = 0;  ///< records that were put into the recording
  /// Pieces of code that were left out, because an ELF file is mapped where they are.
  std::uint64_t in_elf_files = 0;
  /// False: the recording has another clock than the dump, and all of the code was put where the
  /// process mapped its dump, in the order in which it was loaded.
  bool is_timed = true;
  Doubts doubts = {};  ///< of its names, which an ELF file has no place for
};

struct InjectReport {
  std::vector<InjectedDump> dumps;
  std::vector<Error> failures;     ///< dumps that could not be read
  std::uint64_t hidden = 0;        ///< records left out: see inject_jit()
  std::uint64_t lost_bytes = 0;    ///< of a damaged recording
  std::uint64_t out_of_order = 0;  ///< records that came too late to be put in order
};

/// Writes a recording again so that programs that know nothing of jitdumps name the code in them:
/// perf report, perf script and perf annotate. What `perf inject --jit` does, but for one ELF file
/// a dump; see write_elf_of_all_code().
///
/// Every record is kept, expanded and in the order of time. Put in are MMAP2 records that map each
/// piece of code, at its address and when it was loaded or moved, to its bytes in the ELF file;
/// and, where code was moved away and nothing else has its place, one of anonymous memory. Left out
/// are records of anonymous memory that come where code of a dump is already, as a runtime's
/// mprotect() makes them: for perf they would hide it.
///
/// Code that a dump has where an ELF file is mapped, such as V8's builtins in node's own file, is
/// not mapped: readers have its names from that file, and would lose the file.
///
/// Goes over the recording twice; holds 40 bytes a piece of code and a mapping of anonymous memory,
/// and what Recording::Reader, Timeline and write_elf_of_all_code() do. Writes ELF files when `out`
/// is written; does not commit `out`, and leaves ELF files alone where it fails before that. Fails
/// with unsupported where the recording has AUX traces, or was piped with tracing data, whose bytes
/// lie outside of records.
///
/// Source: Linux, tools/perf/Documentation/jitdump-specification.txt.
PERFMAP_API Result<InjectReport> inject_jit(const Recording& recording,
                                            const InjectOptions& options, OutputFile& out,
                                            Diagnostics& problems);

}  // namespace perfmap
