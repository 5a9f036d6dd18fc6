#pragma once

#include <cstdint>

#include "modules/image_code.hpp"
#include "perfmap/jit_details.hpp"
#include "perfmap/output_file.hpp"

namespace perfmap {

/// What a file of the type ET_DYN has before its code.
struct ImageBegin {
  AddressRange frames = {};      ///< .eh_frame_hdr and .eh_frame; empty: not there to be mapped
  Address frames_in_memory = 0;  ///< where to map them
  std::uint64_t shift = 0;       ///< how much farther behind all code lies for that
};

/// Writes an ELF file of that code, which is in clusters, with its symbols, frames and lines.
/// `type` is ET_EXEC, or ET_DYN where the addresses are not those that the code had. Fails with
/// too_large.
Result<ImageBegin> write_image_file(const Timeline& timeline, const JitDetails& details,
                                    const Target& target, ImageCode&& code, std::uint16_t type,
                                    ElfImageCounts& counts, OutputFile& out);

}  // namespace perfmap
