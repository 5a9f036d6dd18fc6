#pragma once

#include <string>
#include <sys/stat.h>

#include "base/descriptor.hpp"
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

/// Whether a descriptor is in the kernel's own /proc, where links were not made by users.
bool is_on_procfs(int fd) noexcept;
/// Whether reading a file may have effects or block: true for file systems that show kernel data.
bool is_on_kernel_file_system(int fd) noexcept;

/// A descriptor (O_PATH: nothing is opened yet) for `path` with `root` as "/". If the last
/// component is a link, the descriptor is for the link itself. Not open, with errno set, on
/// failure.
Descriptor find_below(int root, const std::string& path) noexcept;
/// The same for kernels without openat2(2): follows no links at all, and refuses "..".
Descriptor find_below_by_steps(int root, const std::string& path) noexcept;

/// Opens the file of such a descriptor for reading if it is a regular file; never blocks.
Result<Descriptor> open_found(const Descriptor& found, const std::string& name);

}  // namespace perfmap
