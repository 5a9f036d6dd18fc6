// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perfmap::test {

/// Other readers of perf maps, reduced to parsing and look-up, after the sources of bcc
/// (bcc_perf_map.c, bcc_syms.cc), blazesym (perf_map.rs), samply (perf_map.rs), parca-agent's last
/// reader and pyroscope (perfmap.go). perf itself is Overlap::perf.
enum class OtherReader { bcc, blazesym, samply, parca, pyroscope };

struct OtherEntry {
  std::uint64_t begin;
  std::uint64_t end;  // begin + size
  std::string name;
};

/// The entries that the reader accepts; nothing if it refuses the whole map.
std::optional<std::vector<OtherEntry>> read_as(OtherReader reader, std::string_view text);

/// The name that the reader finds for an address; empty if none.
std::string find_as(OtherReader reader, const std::vector<OtherEntry>& entries,
                    std::uint64_t address);

}  // namespace perfmap::test
