// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "perfmap/profile/inject.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/written.hpp"

namespace perfmap::test {

/// The ELF file that is written for a dump.
struct ElfOf {
  ElfImageCounts counts;
  std::string bytes;

  explicit ElfOf(const std::string& dump, std::uint64_t time = Timeline::kEnd) {
    Diagnostics problems(1);
    const Timeline timeline(dump_of(dump), problems);
    bytes = written([&](OutputFile& out) {
      const auto result = write_elf_image(timeline, time, out);
      if (!result) std::abort();
      counts = *result;
    });
  }
};

}  // namespace perfmap::test
