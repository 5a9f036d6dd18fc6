#pragma once

#include <cstdint>

#include "perfmap/export.hpp"

namespace perfmap {

/// The machine that this library was built for, as ELF files and jitdumps number them (EM_…); 0
/// where it has no number here.
PERFMAP_API std::uint32_t host_machine() noexcept;

}  // namespace perfmap
