// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/stacks.hpp"
#include "perfmap/resolver.hpp"
#include "perfmap/timeline.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Contents of an ELF image of a jitdump, and what was left out.
struct ElfImageCounts {
  std::uint64_t functions = 0;     ///< with a symbol, or several if they are in several parts
  std::uint64_t overlaid = 0;      ///< loaded, but completely overlaid by later code
  std::uint64_t cut = 0;           ///< of `functions`, those that have lost a part
  std::uint64_t without_code = 0;  ///< of `functions`, those without code bytes in the dump
  std::uint64_t with_lines = 0;    ///< of `functions`
  std::uint64_t frames = 0;        ///< FDEs
  /// FDEs that are invalid, outside of their function, or whose first byte is overlaid.
  std::uint64_t dropped_frames = 0;
  /// Functions beyond 4 GiB, on a 32-bit machine.
  std::uint64_t out_of_reach = 0;

  friend bool operator==(const ElfImageCounts&, const ElfImageCounts&) = default;
};

/// Writes the code that exists at `time` as one ELF file (ET_EXEC, with the original addresses of
/// the code), for gdb's add-symbol-file, objdump, addr2line, llvm-symbolizer and other readers of
/// ELF and DWARF. Deterministic; does not commit `out`.
///
/// The file has a symbol for each function, with exactly the bytes of the dump's name, and one more
/// symbol for each further part of a function that was overlaid in its middle. Its code is in few
/// sections, each a segment: .text, .text.1 and so on, of type NOBITS if the dump has no code
/// bytes. It has DWARF 4 with a subprogram for each symbol and the lines of SourceLines; .eh_frame,
/// made from the dump's frames, with absolute addresses; and a build-id, the SHA-1 of everything
/// before it. Lines and frames of moved code are moved too. Code of size 0 has a symbol of one
/// byte.
///
/// Class and machine come from the dump's header; if it has no machine, or one that is invalid in
/// ELF, the machine is the one that this library was built for. The byte order is the dump's. Code
/// bytes are copied from the dump to `out` without a buffer; memory use is about the size of the
/// rest of the file. O(n log n) for n functions, lines and frames, however they overlap.
///
/// Fails with too_large if names, lines or frames need
/// more than 4 GiB, or the file on a 32-bit machine; failures of `out` are reported by it.
///
/// Sources: System V ABI, gABI 4.1, "Object Files"; DWARF 4; Linux Standard Base 5.0, "Exception
/// Frames".
PERFMAP_API Result<ElfImageCounts> write_elf_image(const Timeline& timeline, std::uint64_t time,
                                                   OutputFile& out);

/// The place of a LOAD record's code in an ELF file with all code of a dump.
struct CodeInElf {
  std::uint64_t load = 0;    ///< offset of the record in the dump
  std::uint64_t offset = 0;  ///< in the ELF file, also its address there
  std::uint64_t size = 0;

  friend bool operator==(const CodeInElf&, const CodeInElf&) = default;
};

struct ElfOfAllCode {
  ElfImageCounts counts;
  std::vector<CodeInElf> code;  ///< by `load`
  /// The segment before all code, with the file's headers, .eh_frame_hdr, which has a table for
  /// binary search, and .eh_frame. Empty if the dump has no frames, if there is no room, if code is
  /// more than 1 GiB apart, or if code was moved below everything that was loaded: then the table
  /// has no entries, and the frames have absolute addresses.
  AddressRange frames = {};
  /// The address at which to map `frames`, below the code that they refer to. They also refer to
  /// code at other distances in the file, by its address in memory. So readers that use one
  /// distance for all parts of a file, such as perf, find all frames.
  Address frames_in_memory = 0;
};

/// Writes the code of every LOAD record, also code that was overlaid, as one ELF file (ET_DYN) that
/// can be mapped in parts: an offset in the file is also the address there. Adjacent code stays
/// adjacent, unless older code had the same addresses. Code of size 0 is left out. Code without
/// bytes in the dump has a section of its own, of type NOBITS. Symbols, lines and failures are as
/// in write_elf_image(); frames have relative addresses, and are valid wherever the file is mapped.
///
/// `machine` is the ELF machine of the code, if the caller knows it: the dump's header is often
/// wrong.
/// header, which is often wrong.
PERFMAP_API Result<ElfOfAllCode> write_elf_of_all_code(const Timeline& timeline,
                                                       std::optional<std::uint16_t> machine,
                                                       OutputFile& out);

struct InjectOptions {
  /// Opens the jitdump that a recorded process mapped at a time; see open_recorded_dump().
  std::function<Result<RecordedDump>(pid_t pid, std::uint64_t time, const std::string& path)>
      open_dump = {};
  /// Dumps of the caller, instead: each belongs to the processes that had mapped a file of its
  /// name, or, if there are none, to the process in its header.
  std::vector<Jitdump> dumps = {};
  /// As in StackOptions, to find out which mapped files are ELF files. Empty: all are.
  ProcessTracker::OpenModule open_module = {};
  /// ELF files are named PREFIXjitted-PID.so. Use an absolute path, because the recording contains
  /// these names. A link with that name is replaced, not followed.
  std::string elf_prefix = {};
};

/// A dump whose code was added to a recording.
struct InjectedDump {
  pid_t pid = 0;          ///< as in the recording
  std::string path = {};  ///< of the dump
  std::string elf = {};
  ElfImageCounts counts = {};
  std::uint64_t mappings = 0;  ///< records that were added to the recording
  /// Parts of code that were left out, because an ELF file is mapped there.
  std::uint64_t in_elf_files = 0;
  /// False: the recording and the dump have different clocks. All of the code was added at the time
  /// when the process mapped its dump, in the order of the LOADs.
  bool is_timed = true;
  bool is_recorded = true;  ///< the recording has events of the process
  Doubts doubts = {};       ///< of its names; an ELF file cannot hold them
};

struct InjectReport {
  std::vector<InjectedDump> dumps;
  std::vector<Error> failures;     ///< dumps that could not be read
  std::uint64_t hidden = 0;        ///< records left out: see inject_jit()
  std::uint64_t lost_bytes = 0;    ///< of a damaged recording
  std::uint64_t out_of_order = 0;  ///< records that came too late to be sorted
};

/// Rewrites a recording so that programs without support for jitdumps name the code in them: perf
/// report, perf script and perf annotate. Does the same as `perf inject --jit`, but with one ELF
/// file per dump; see write_elf_of_all_code().
///
/// Keeps every record, decompressed and in time order. Adds MMAP2 records that map each part of
/// code, at its address and at the time of its LOAD or MOVE, to its bytes in the ELF file; and, if
/// code was moved away and its place is free, one of anonymous memory. Leaves out records of
/// anonymous memory at addresses where code of a dump already exists, such as those from a
/// runtime's mprotect(): for perf they would hide the code.
///
/// Code that a dump has where an ELF file is mapped, such as V8's builtins in node's own file, is
/// not mapped: readers have its names from that file, and would lose the file.
///
/// Reads the recording twice. Holds 40 bytes per part of code and per mapping of anonymous memory,
/// in addition to Recording::Reader, Timeline and write_elf_of_all_code(). Writes ELF files while
/// `out` is written, and does not touch them if it fails before that; does not commit `out`. Fails
/// with unsupported if the recording has AUX traces, or came from a pipe with tracing data, whose
/// bytes are outside of records.
///
/// Source: Linux, tools/perf/Documentation/jitdump-specification.txt.
PERFMAP_API Result<InjectReport> inject_jit(const Recording& recording,
                                            const InjectOptions& options, OutputFile& out,
                                            Diagnostics& problems);

}  // namespace perfmap
