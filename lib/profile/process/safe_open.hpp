#pragma once

#include <string>
#include <sys/stat.h>

#include "base/descriptor.hpp"
#include "perfmap/input.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// At most `most` bytes of a regular file in the directory, whatever its size claims to be. A link,
/// a FIFO or a device is refused, and opening never waits. `name` is for messages.
struct ReadText {
  std::string text;
  bool was_cut = false;
};
Result<ReadText> read_text_at(int directory, const char* file, const std::string& name,
                              std::size_t max);

/// Whether a descriptor is of the kernel's own /proc, whose links are no files that a user made.
bool is_on_procfs(int fd) noexcept;
/// Whether reading a file has effects, or waits: of file systems that show the kernel.
bool is_on_kernel_file_system(int fd) noexcept;

/// A descriptor (O_PATH: nothing is opened yet) of what is at `path` below `root` as if that were
/// "/". A link as last component is answered as what it is. errno where it cannot be had.
Descriptor find_below(int root, const std::string& path) noexcept;
/// The same for kernels without openat2(2): no link at all is followed, and ".." not taken.
Descriptor find_below_by_steps(int root, const std::string& path) noexcept;

/// Opens for reading what such a descriptor is of, if it is a regular file; never waits.
Result<Descriptor> open_found(const Descriptor& found, const std::string& name);

}  // namespace perfmap
