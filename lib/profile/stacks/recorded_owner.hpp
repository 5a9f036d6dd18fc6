#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>

#include "perfmap/input.hpp"
#include "perfmap/proc_source.hpp"
#include "perfmap/process_files.hpp"
#include "stacks/recorded_life.hpp"

namespace perfmap {

/// A file that may be of a recorded process, and what says whether it is.
struct CandidateFile {
  Input input;
  bool is_dump = false;
  std::uint64_t links = 0;
  std::int64_t changed_ns = 0;  ///< st_ctim: nobody but the kernel sets it

  uid_t owner() const noexcept { return input.facts().uid; }
};

/// Opens a path that was found, not typed: no link as last component, regular files only, bounded.
/// Any owner.
Result<CandidateFile> open_candidate(const std::string& path, bool is_dump);

/// The process that was recorded, if it still lives here. Another one may have its pid by now: see
/// RecordedLives. Where times are not known for sure, its name has to be the same, too. `lives` may
/// be null: then nothing is known of it.
std::optional<ProcSource> find_living(const ProcessInfo& process, RecordedLives* lives,
                                      const Roots& roots);

/// Why a file of another user is not taken for one of a process that is gone; empty where it is.
std::string objection_to(const CandidateFile& file, const ProcessInfo& process,
                         RecordedLives* lives);

}  // namespace perfmap
