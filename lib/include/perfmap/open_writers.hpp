#pragma once

#include <optional>
#include <string>

#include "perfmap/export.hpp"
#include "perfmap/input.hpp"

namespace perfmap {

/// A process that has the file open for writing: it would go on writing into a file without a name
/// if that were replaced. Looks through /proc/*/fd, as far as we may: O(descriptors of all
/// processes). Nothing where nobody is seen.
PERFMAP_API std::optional<int> find_writer(const FileFacts& file,
                                           const std::string& proc = "/proc");

/// Why a map must not be rewritten in place, in one line: it is no regular file, or, unless
/// `force`, a live process has it open for writing. Nothing where it may be.
PERFMAP_API std::optional<std::string> objection_to_rewriting(const Input& input, bool force);

}  // namespace perfmap
