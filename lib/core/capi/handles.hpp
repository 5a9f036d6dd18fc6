// SPDX-License-Identifier: MIT
#pragma once

#include "base/c_border.hpp"
#include "perfmap.h"
#include "perfmap/index.hpp"
#include "perfmap/types.hpp"

/// Handles and conversions that several files of this folder use.
namespace perfmap::capi {

inline perfmap_entry to_c(const Entry& entry, std::size_t map) noexcept {
  return {
      0,  entry.range.begin, entry.range.size, entry.name.data(), entry.name.size(), entry.offset,
      map};
}

}  // namespace perfmap::capi

struct perfmap_map {
  perfmap::Map map;
};
