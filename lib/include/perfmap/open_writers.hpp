#pragma once

#include <optional>
#include <string>

#include "perfmap/export.hpp"
#include "perfmap/input.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// A process that has the file open for writing: it would go on writing into a file without a name
/// if that were replaced. Looks through /proc/*/fd, as far as we may: O(descriptors of all
/// processes). Nothing where nobody is seen but process `except`.
PERFMAP_API std::optional<int> find_writer(const FileFacts& file, const std::string& proc = "/proc",
                                           int except = 0);

/// Why a map must not be rewritten in place, in one line: it is standard input or no regular file,
/// or, unless `force`, it lies in the root of a process, or a live process has it open for writing.
/// Nothing where it may be.
PERFMAP_API std::optional<std::string> objection_to_rewriting(const Input& input, bool force);

/// Takes the right to write a file from its group and everybody (chmod go-w), if its path still
/// leads to the file that was read: nobody can have the mode of another file changed.
PERFMAP_API Result<void> take_write_rights(const Input& input);

}  // namespace perfmap
