#pragma once

#include <string>
#include <vector>

#include "perfmap/profile/module.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// An entry of a linkage table: a few instructions that jump through a slot which the dynamic
/// linker fills.
struct PltEntry {
  AddressRange range;
  std::string name;  ///< FUNCTION@plt
};

/// Those of the sections .plt, .plt.sec, .plt.got and .iplt, found by their instructions, as
/// linkers lay them out differently. Nothing for machines other than x86-64, i386 and aarch64.
/// O(bytes of these sections + relocations, log of which each).
std::vector<PltEntry> plt_entries(const Module& module);

}  // namespace perfmap
