// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/found_file.hpp"
#include "perfmap/input.hpp"
#include "perfmap/profile/doctor.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/runtimes.hpp"

/// The facts about a process before any conclusion: its identity, its memory, and the maps and
/// jitdumps that exist for it.
namespace perfmap {

/// Joins strings and integers into one text.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string text;
  const auto append = [&text](const auto& part) {
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(part)>>) {
      text += std::to_string(part);
    } else {
      text += part;
    }
  };
  (append(parts), ...);
  return text;
}

/// Why a map or dump that is older than the process is not used.
inline std::string stale_text() {
  return concat("it is older than the process, so it belongs to an earlier process with this pid");
}

struct ProcessView : ProgramStart {
  ProcessStatus status;
  MemoryMap memory;
  pid_t pid = 0;
  pid_t inner = 0;  ///< the pid inside its namespace
  /// Our temporary directory is also the process's: paths mean the same in both.
  bool shares_tmp = false;
  /// perf must enter its mount namespace to find its map.
  bool other_mounts = false;
};

/// Fails with not_found if the process does not exist. `is_snapshot`: the roots are those of a
/// snapshot, which does not contain mount namespaces.
Result<ProcessView> view_process(const ProcSource& process, const Roots& roots, bool is_snapshot);

struct FoundRuntime {
  Runtime runtime = Runtime::unknown;
  std::string evidence;
  std::string version;
  bool is_the_program = false;  ///< not a library in another program, like Python in gdb
};

/// By the name of the program, else the names of its memory, else those of its libraries.
FoundRuntime find_runtime(const ProcSource& process, const ProcessView& view);
/// The same from the view alone, for a process that has ended.
FoundRuntime find_runtime(const ProcessView& view);

/// Computes how much executable memory of a process its entries name. Holds 16 bytes for each entry
/// in that memory; where entries overlap, at most as many as the limit below.
class Coverage {
 public:
  explicit Coverage(const MemoryMap& memory);
  void add(AddressRange entry);
  /// Whether a region of a file shows an ELF file, if known.
  using IsElf = std::function<bool(const Region& region)>;
  /// The result for all entries added. The memory map must still exist. Of mapped files, only those
  /// count that have entries and are not ELF files by `is_elf`.
  JitMemory result(const IsElf& is_elf);

 private:
  bool meets_executable(AddressRange entry) const noexcept;
  void unite();
  std::uint64_t named_in(const AddressRange& range) const noexcept;

  std::vector<const Region*> executable_;  // sorted by address
  std::vector<AddressRange> named_;
  std::size_t unite_at_ = std::size_t{1} << 20;
  std::uint64_t hits_ = 0;
};

/// For a living or a recorded process. An unreadable file counts as ELF.
bool shows_elf(const ProcSource& process, const Region& region);
bool shows_elf(const ProcessTracker::OpenModule& open_module, const Region& region);

/// lstat(2) on the host.
Result<FileFacts> look_at_path(const std::string& path);

/// A possible path of a map or a dump.
struct FilePlace {
  std::string path;      ///< LookedFor::path
  std::string our_path;  ///< LookedFor::our_path
  std::string below;     ///< path below the process's root; empty: on the host
};

/// The parts of a search that judge_file() does not know. For a place on the host, `look` and
/// `open` may be empty.
struct FileJudge {
  /// Sets `fate` and `why` of a file that is rejected.
  std::function<void(const Input&, LookedFor&)> object;
  std::function<Result<FileFacts>(const FilePlace&)> look = {};  ///< like lstat(2)
  std::function<Result<Input>(const FilePlace&)> open = {};
};

/// Decides the fate of a file: `used`, and then it is added to `good`, or the reason why not.
LookedFor judge_file(const FilePlace& place, const FileJudge& judge, Input* good);

/// Reads a map or dump in use: counts its entries, adds them to the coverage, and records damage.
/// `is_growing`: ignores an incomplete last record.
void take_map(Input input, LookedFor& file, Coverage& coverage);
void take_dump(Input input, LookedFor& file, Coverage& coverage, bool is_growing);

struct FoundFiles {
  std::vector<LookedFor> looked_for;
  std::int64_t map_time_ns = 0;  ///< modification time of the map in use
  bool perf_opens_map = false;   ///< perf opens the map in use as well
};

/// Searches for the perf map and the jitdumps of a process in the same places as find_process_map()
/// and find_process_dumps(), and reports the fate of each. The files in use are read and added to
/// `coverage`.
FoundFiles search_files(const ProcSource& process, const ProcessView& view,
                        const DoctorOptions& options, Coverage& coverage);

}  // namespace perfmap
