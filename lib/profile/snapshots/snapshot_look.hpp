#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perfmap/memory_map.hpp"
#include "perfmap/proc_source.hpp"
#include "perfmap/snapshot.hpp"

namespace perfmap {

/// What is seen of one program in one process at one moment.
struct SnapshotLook {
  pid_t pid = 0;
  ProcessStatus status;
  std::uint64_t image = 0;
  std::string executable;
  std::vector<std::pair<const char*, std::string>> texts;  ///< files of /proc/PID, as they are
  MemoryMap memory;
  std::optional<Input> map;
  std::vector<Input> dumps;
  std::string vdso;
  std::uint64_t vdso_address = 0;
  std::vector<std::string> left_out;  ///< why, one line each
  std::vector<SnapshotLook> parents;  ///< that it was forked from, without their vdso
};

/// Nothing where the process is gone.
Result<std::optional<SnapshotLook>> look_for_snapshot(const ProcSource& process, const Roots& roots,
                                                      const SnapshotOptions& options,
                                                      MappedFiles& files);

/// The ELF files that it has mapped, by path.
std::vector<SnapshotModule> modules_of(const ProcSource& process, const SnapshotLook& look);

}  // namespace perfmap
