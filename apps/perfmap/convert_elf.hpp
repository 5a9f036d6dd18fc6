#pragma once

#include <cstdint>

#include "convert.hpp"

namespace perfmap::app {

/// convert --to elf: one ELF file of a jitdump, as of `time`.
ExitCode convert_to_elf(const ConvertOptions& options, const Console& console);

}  // namespace perfmap::app
