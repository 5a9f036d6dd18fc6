#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "perfmap/elf_image.hpp"
#include "perfmap/recording.hpp"
#include "perfmap/timeline.hpp"

namespace perfmap {

/// Code of a dump comes to an address, or goes from there.
struct CodeMapping {
  static constexpr std::uint64_t kNothing = UINT64_MAX;  ///< for `offset`: the code is gone

  std::uint64_t time = 0;
  AddressRange range;
  std::uint64_t offset = 0;  ///< in the ELF file
  std::uint32_t dump = 0;    ///< the caller's number for it
};

/// What LOAD and MOVE records of a dump did, in the order of their times. `code` is where
/// write_elf_of_all_code() has put it. Without `is_timed` all of it happens at `otherwise`.
/// O(n log n).
std::vector<CodeMapping> code_mappings(const Timeline& timeline, const std::vector<CodeInElf>& code,
                                       bool is_timed, std::uint64_t otherwise);

/// Maps the file's frames from the first of the mappings on. Nothing where it has none, or code
/// lies there at any time. O(n).
std::optional<CodeMapping> frames_mapping(const std::vector<CodeMapping>& mappings,
                                          const ElfOfAllCode& elf);

/// The ELF machine of a dump that was recorded on `arch`, where its header names one whose code
/// could not have run there; nothing where the header is right, or nobody knows.
std::optional<std::uint16_t> machine_recorded(const Jitdump& dump, std::string_view arch) noexcept;

}  // namespace perfmap
