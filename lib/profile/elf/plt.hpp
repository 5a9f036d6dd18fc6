// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "perfmap/profile/module.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// A PLT entry: a few instructions that jump through a slot which the dynamic linker fills.
struct PltEntry {
  AddressRange range;
  std::string name;  ///< FUNCTION@plt; PLT0: the code before them
};

/// The entries of the sections .plt, .plt.sec, .plt.got and .iplt. They are found by their
/// instructions, because each linker has its own layout. Nothing for machines other than x86-64,
/// i386 and aarch64. O(bytes of these sections + relocations, each in log time).
std::vector<PltEntry> plt_entries(const Module& module);

}  // namespace perfmap
