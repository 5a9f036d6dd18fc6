#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "perfmap/input.hpp"
#include "perfmap/profile/doctor.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/runtimes.hpp"

/// What is seen of a process before anything is concluded: who it is, its memory, and the maps and
/// jitdumps that are there for it.
namespace perfmap {

/// One text of strings and whole numbers.
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

struct ProcessView : ProgramStart {
  ProcessStatus status;
  MemoryMap memory;
  pid_t pid = 0;
  pid_t inner = 0;  ///< as the process knows itself
  /// Our temporary directory is the process's, too: paths mean the same.
  bool shares_tmp = false;
  /// perf enters its mount namespace to find its map.
  bool other_mounts = false;
};

/// Fails with not_found where the process is gone.
/// `is_snapshot`: the roots are those of one, which does not tell mount namespaces.
Result<ProcessView> view_process(const ProcSource& process, const Roots& roots, bool is_snapshot);

/// What is behind the last slash.
inline std::string_view base_name(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

struct FoundRuntime {
  Runtime runtime = Runtime::unknown;
  std::string evidence;
  std::string version;
  bool is_the_program = false;  ///< and no library in another one, as Python is in gdb
};

/// By the program's name, else the names of its memory, else those of its libraries.
FoundRuntime find_runtime(const ProcSource& process, const ProcessView& view);
/// The same by the view alone: of a process that is gone.
FoundRuntime find_runtime(const ProcessView& view);

/// Adds up which executable memory of a process its entries name. Holds 16 bytes for each entry
/// that lies there, and no more than the most below where they overlap.
class Coverage {
 public:
  explicit Coverage(const MemoryMap& memory);
  void add(AddressRange entry);
  /// Whether a region of a file shows an ELF file, as far as that can be told.
  using IsElf = std::function<bool(const Region& region)>;
  /// What was added, and the memory. The memory map has to live still. Of files only those count of
  /// which something was added, and which `is_elf` denies.
  JitMemory result(const IsElf& is_elf);

 private:
  bool meets_executable(AddressRange entry) const noexcept;
  void unite();
  std::uint64_t named_in(const AddressRange& range) const noexcept;

  std::vector<const Region*> executable_;  // by address
  std::vector<AddressRange> named_;
  std::size_t unite_at_ = std::size_t{1} << 20;
  std::uint64_t hits_ = 0;
};

/// Of a living process, or of a recorded one. What cannot be read is taken for one.
bool shows_elf(const ProcSource& process, const Region& region);
bool shows_elf(const ProcessTracker::OpenModule& open_module, const Region& region);

/// lstat(2) on our side.
Result<FileFacts> look_at_path(const std::string& path);

/// A place where a map or a dump may be.
struct FilePlace {
  std::string path;      ///< LookedFor::path
  std::string our_path;  ///< LookedFor::our_path
  std::string below;     ///< the path below the process's root; empty: on our side
};

/// What a search knows of files that judge_file() does not. Of a place on our side `look` and
/// `open` may be left to it.
struct FileJudge {
  /// Sets `fate` and `why` of a file that is not believed.
  std::function<void(const Input&, LookedFor&)> object;
  std::function<Result<FileFacts>(const FilePlace&)> look = {};  ///< as lstat(2)
  std::function<Result<Input>(const FilePlace&)> open = {};
};

/// What became of a file: `used`, and then it is in `good`, or why not.
LookedFor judge_file(const FilePlace& place, const FileJudge& judge, Input* good);

/// Reads a map or dump that is used: counts its entries, adds them to the coverage, and notes
/// damage. `is_growing`: a last record that is not whole is not there yet.
void take_map(Input input, LookedFor& file, Coverage& coverage);
void take_dump(Input input, LookedFor& file, Coverage& coverage, bool is_growing);

struct FoundFiles {
  std::vector<LookedFor> looked_for;
  std::int64_t map_time_ns = 0;  ///< when the map in use was last changed
  bool perf_opens_map = false;   ///< the map in use is one that perf opens, too
};

/// Looks for the perf map and the jitdumps of a process where find_process_map() and
/// find_process_dumps() do, and says of each what became of it. Those that are used are read, and
/// added to `coverage`.
FoundFiles search_files(const ProcSource& process, const ProcessView& view,
                        const DoctorOptions& options, Coverage& coverage);

}  // namespace perfmap
