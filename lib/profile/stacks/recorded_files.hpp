#pragma once

#include <string>
#include <vector>

#include "perfmap/recorded_jit.hpp"
#include "stacks/recorded_owner.hpp"

namespace perfmap {

/// The perf map and the jitdumps of one recorded process; see find_recorded_jit().
class RecordedFiles {
 public:
  RecordedFiles(const RecordedJitOptions& options, RecordedLives* lives, const ProcessInfo& process,
                RecordedRefusals& refused)
      : options_(options), lives_(lives), process_(process), refused_(refused) {}

  /// `paths` are those of the dumps that it had mapped.
  void find(const std::vector<std::string>& paths);

  std::vector<Map> maps;
  std::vector<Jitdump> dumps;
  Doubts doubts;

 private:
  void find_in_directory(const std::vector<std::string>& paths);
  void find_in_snapshot();
  bool find_of_living(const std::vector<std::string>& paths);
  void find_of_dead(const std::vector<std::string>& paths);
  void take_living_map(const ProcSource& process, uid_t user);
  void take_living_dump(const ProcSource& process, uid_t user, const std::string& path);
  void take_unmapped_dumps();
  void take_below_symfs(const std::vector<std::string>& paths);
  void judge(std::vector<CandidateFile> files);
  bool is_newer_than_process(const CandidateFile& file) const;

  bool is_trusted(uid_t owner) const noexcept;
  void refuse_foreign(const Input& input, std::string why);
  void refuse(Error error);
  void refuse_stale(const Input& input);
  void take_map(Result<Input> input);
  void take_dump(Result<Input> input);
  void take(CandidateFile file);

  const RecordedJitOptions& options_;
  RecordedLives* lives_;  // null: nothing is known of processes
  const ProcessInfo& process_;
  RecordedRefusals& refused_;
};

}  // namespace perfmap
