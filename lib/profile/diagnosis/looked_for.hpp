#pragma once

#include <functional>
#include <string>
#include <vector>

#include "diagnosis/process_view.hpp"
#include "perfmap/doctor.hpp"
#include "perfmap/input.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"

namespace perfmap {

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

/// How a map or dump is opened that was found and not named.
OpenPolicy found_file_policy();

/// A place where a map or a dump may be.
struct FilePlace {
  std::string path;      ///< LookedFor::path
  std::string our_path;  ///< LookedFor::our_path
  std::string below;     ///< the path below the process's root; empty: on our side
};

/// What a search knows of files that judge_file() does not.
struct FileJudge {
  std::function<Result<FileFacts>(const FilePlace&)> look;  ///< as lstat(2)
  std::function<Result<Input>(const FilePlace&)> open;
  /// Sets `fate` and `why` of a file that is not believed.
  std::function<void(const Input&, LookedFor&)> object;
};

/// What became of a file: `used`, and then it is in `good`, or why not.
LookedFor judge_file(const FilePlace& place, const FileJudge& judge, Input* good);

/// lstat(2) and open(2) on our side.
Result<FileFacts> look_at_path(const std::string& path);

/// Fate and `why` of a file that could not be opened.
void set_fate(const Error& error, LookedFor& file);

/// Reads a map or dump that is used: counts its entries, adds them to the coverage, and notes
/// damage. `is_growing`: a last record that is not whole is not there yet.
void take_map(Input input, LookedFor& file, Coverage& coverage);
void take_dump(Input input, LookedFor& file, Coverage& coverage, bool is_growing);

/// jit-PID.dump, wherever it lies.
bool is_dump_of_number(std::string_view path) noexcept;

/// Looks for the perf map and the jitdumps of a process where find_process_map() and
/// find_process_dumps() do, and says of each what became of it. Those that are used are read, and
/// added to `coverage`.
class FileSearch {
 public:
  FileSearch(const ProcSource& process, const ProcessView& view, const DoctorOptions& options,
             Coverage& coverage)
      : process_(process), view_(view), options_(options), coverage_(coverage) {}

  void look_for_map();
  void look_for_dumps();

  std::vector<LookedFor> looked_for;
  std::int64_t map_time_ns = 0;  ///< when the map in use was last changed
  /// The map in use is one that perf opens, too.
  bool perf_opens_map = false;

 private:
  FilePlace in_tmp(const std::string& name, bool by_process) const;
  Result<FileFacts> look(const FilePlace& place) const;
  Result<Input> open(const FilePlace& place) const;
  LookedFor judge(const FilePlace& place, Input* good) const;
  void object(const Input& input, LookedFor& file) const;
  void try_map(const FilePlace& place, bool perf_opens);
  void try_other_pids();
  bool try_dump(const FilePlace& place, bool has_marker);
  bool is_known(const FileFacts& facts);
  bool leads_to_map(const LookedFor& link) const;

  const ProcSource& process_;
  const ProcessView& view_;
  const DoctorOptions& options_;
  Coverage& coverage_;
  bool has_map_ = false;
  std::string map_path_;                                        // as we see it
  std::vector<std::pair<std::uint64_t, std::uint64_t>> known_;  // device and inode
};

}  // namespace perfmap
