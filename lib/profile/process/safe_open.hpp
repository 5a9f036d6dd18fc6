// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <sys/stat.h>

#include "base/descriptor.hpp"
#include "base/found_file.hpp"
#include "perfmap/input.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// At most `max` bytes of a regular file in the directory, regardless of its stated size. Links,
/// FIFOs and devices are refused, and opening never blocks. `name` is for messages.
struct ReadText {
  std::string text;
  bool was_cut = false;
};
Result<ReadText> read_text_at(int directory, const char* file, const std::string& name,
                              std::size_t max);

/// A descriptor (O_PATH: nothing is opened yet) for `path` with `root` as "/". If the last
/// component is a link, the descriptor is for the link itself. Not open, with errno set, on
/// failure.
Descriptor find_below(int root, const std::string& path) noexcept;
/// The same for kernels without openat2(2): follows no links at all, and refuses "..".
Descriptor find_below_by_steps(int root, const std::string& path) noexcept;

}  // namespace perfmap
