#pragma once

#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/lint.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

struct ProcessLintOptions {
  Roots roots;             ///< where the process is, and where its files may be
  bool any_owner = false;  ///< whose files were read; see find_process_map()
  /// Opens what is mapped, for PM112, such as open_through() gives; nothing: that rule is silent.
  ProcessTracker::OpenModule open_module;
};

/// A file of a process that was not read, with the reasons: it is refused, or shadowed by another,
/// or it should be there.
struct UnreadFile {
  std::string path;
  bool is_dump = false;
  Diagnostics problems;
};

/// What is known of a process's files besides findings about those that were read.
struct ProcessFindings {
  std::vector<UnreadFile> unread;
  /// Why the process's memory was not seen, as of another user's: then PM091, PM092, PM094, PM111,
  /// PM112 and JD110 are silent.
  std::optional<Error> unseen;
};

/// Checks the files of a process against the process as it is now: PM060, PM064 to PM066, PM091,
/// PM092, PM094, PM111, PM112 and JD110, and for files that find_process_map() and
/// find_process_dumps() did not give, why: PM060, PM062 to PM064, PM067, XF003.
///
/// `files` are those that they gave, after lint(): findings about them go to their Diagnostics, in
/// the order of places. Findings about others come back, collected as `wanted` says, which should
/// be empty but for the rules that it ignores. A process that is gone is an answer (PM065), and one
/// that goes meanwhile leaves what was found by then. Fails as ProcSource::open() and status() do.
///
/// Nothing in the process's directories is believed or waited for; see ProcSource. The memory is
/// read up to three times, as runtimes take away the right to execute while they write. Modules are
/// opened for entries over mapped files alone. O(entries log regions).
PERFMAP_API Result<ProcessFindings> lint_process(pid_t pid, std::span<const LintedFile> files,
                                                 const Diagnostics& wanted,
                                                 const ProcessLintOptions& options);

}  // namespace perfmap
