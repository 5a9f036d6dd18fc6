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

/// What an ELF image of a jitdump holds, and what it could not hold.
struct ElfImageCounts {
  std::uint64_t functions = 0;     ///< that have a symbol, or several where they lie in pieces
  std::uint64_t overlaid = 0;      ///< loaded by then, and nothing of them left
  std::uint64_t cut = 0;           ///< of `functions`, those that have lost a part
  std::uint64_t without_code = 0;  ///< of `functions`, those whose code bytes the dump lacks
  std::uint64_t with_lines = 0;    ///< of `functions`
  std::uint64_t frames = 0;        ///< FDEs
  /// FDEs that make no sense, lie outside their function, or whose first byte is overlaid.
  std::uint64_t dropped_frames = 0;
  /// Functions beyond 4 GiB, on a machine that has no such addresses.
  std::uint64_t out_of_reach = 0;

  friend bool operator==(const ElfImageCounts&, const ElfImageCounts&) = default;
};

/// Writes the code that was there at `time` as one ELF file (ET_EXEC: every address is the one that
/// the code had): for gdb's add-symbol-file, objdump, addr2line, llvm-symbolizer and other
/// readers of ELF and DWARF. Deterministic; does not commit `out`.
///
/// It has a symbol for each function, whose name is byte by byte that of the dump (one more symbol
/// for each further piece, where a function was overlaid in its middle); its code in few sections,
/// each a segment: .text, .text.1 and so on, of type NOBITS where the dump has no code bytes;
/// DWARF 4 with a subprogram for each symbol and the lines of `details`; .eh_frame, made of the
/// dump's frames with absolute addresses; and a build-id, the SHA-1 of what comes before it. Where
/// code was moved, its lines and frames were moved along. Code of size 0 has a symbol of one byte.
///
/// The class and the machine are those of the dump's header; where that has none, or a number that
/// no ELF file can have, the machine is the one that this library was built for. The byte order is
/// the dump's. Code bytes go from the dump to `out` without being held; what is held is about as
/// large as the rest of the file. O(n log n) for n functions, lines and frames, whatever overlaps.
///
/// `details` must be made of timeline.dump(). Fails with too_large where names, lines or frames
/// need more than 4 GiB, or the file does on a 32-bit machine; failures of `out` stick to it.
///
/// Sources: System V ABI, gABI 4.1, "Object Files"; DWARF 4; Linux Standard Base 5.0, "Exception
/// Frames".
PERFMAP_API Result<ElfImageCounts> write_elf_image(const Timeline& timeline,
                                                   const JitDetails& details, std::uint64_t time,
                                                   OutputFile& out);

/// Where the code of a LOAD record lies in an ELF file that has all code of a dump.
struct CodeInElf {
  std::uint64_t load = 0;    ///< offset of the record in the dump
  std::uint64_t offset = 0;  ///< in the ELF file, and its address there
  std::uint64_t size = 0;

  friend bool operator==(const CodeInElf&, const CodeInElf&) = default;
};

struct ElfOfAllCode {
  ElfImageCounts counts;
  std::vector<CodeInElf> code;  ///< by `load`
  /// The segment before all code, with the file's headers, .eh_frame_hdr, which has a table for
  /// binary search, and .eh_frame. Empty where the dump has no frames, where there is no room,
  /// where code lies more than 1 GiB apart, or where code was moved below all that was loaded: then
  /// the table has no entries, and the frames absolute addresses.
  AddressRange frames = {};
  /// Where `frames` have to be mapped, below the code that they reach: they name code that lies at
  /// other distances in the file by its address in memory, too. Readers, such as perf, that find
  /// all parts of a file by one distance find all of it then.
  Address frames_in_memory = 0;
};

/// Writes the code of every LOAD record, whatever was at its address before and after, as one ELF
/// file (ET_DYN) that can be mapped piece by piece: an offset in the file is the address there.
/// What lay side by side does so here, where nothing came to the same addresses before it. Code of
/// size 0 is left out; code whose bytes the dump lacks has a section of its own, of type NOBITS.
/// Symbols, lines and failures are as above; frames have relative addresses, and count wherever the
/// file is mapped.
///
/// `machine` is the ELF machine of the code where the caller knows it better than the dump's
/// header, which is often wrong.
PERFMAP_API Result<ElfOfAllCode> write_elf_of_all_code(const Timeline& timeline,
                                                       const JitDetails& details,
                                                       std::optional<std::uint16_t> machine,
                                                       OutputFile& out);

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
