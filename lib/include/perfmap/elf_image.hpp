#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "perfmap/export.hpp"
#include "perfmap/jit_details.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/result.hpp"
#include "perfmap/timeline.hpp"

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
  /// binary search, and .eh_frame. Empty where the dump has no frames, where there is no room, where
  /// code lies more than 1 GiB apart, or where code was moved below all that was loaded: then the
  /// table has no entries, and the frames absolute addresses.
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

}  // namespace perfmap
