#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "perfmap/jitdump.hpp"

namespace perfmap {

/// The machine that an ELF file is for.
struct Target {
  std::endian order = std::endian::native;
  bool is_64 = true;
  std::uint16_t machine = 0;  ///< EM_…
  std::uint32_t flags = 0;    ///< e_flags

  std::uint8_t address_size() const noexcept { return is_64 ? 8 : 4; }
  /// The last address that there is.
  std::uint64_t last_address() const noexcept { return is_64 ? UINT64_MAX : UINT32_MAX; }
};

/// The machine of a dump; the one that we run on where the dump does not say.
Target target_of(const std::optional<JitdumpHeader>& header) noexcept;
/// The same where it is known to be `machine`.
Target target_of(const std::optional<JitdumpHeader>& header, std::uint16_t machine) noexcept;

}  // namespace perfmap
