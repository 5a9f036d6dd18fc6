#pragma once

#include "diagnosis/doctor_coverage.hpp"
#include "diagnosis/doctor_view.hpp"
#include "diagnosis/found_file.hpp"

namespace perfmap {

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
