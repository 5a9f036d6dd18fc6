#pragma once

#include <memory>
#include <perfmap/module_cache.hpp>
#include <perfmap/snapshot.hpp>
#include <perfmap/symbolizer.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "source.hpp"

namespace perfmap::app {

struct ProcessNameOptions {
  SourceOptions source = {};  // of its map and dumps
  Overlap overlap = Overlap::last;
  Symbolizer::Options symbols = {};
  FetchDebugFile fetch = {};  ///< debug files that this machine has not
  std::string symfs = {};  ///< ELF files are looked for below it; empty: where the process has them
};

/// A process as resolve asks it: its memory, its ELF files, its perf map and its dumps.
class ProcessNames {
 public:
  /// null where there is no such process, but files that it left, or its memory may not be seen,
  /// which then is said. Fails with not_found where there is neither.
  static Result<std::unique_ptr<ProcessNames>> open(pid_t pid, const ProcessNameOptions& options,
                                                    const Console& console);
  /// One that was packed up.
  static Result<std::unique_ptr<ProcessNames>> open_snapshot(const std::string& directory,
                                                             const ProcessNameOptions& options,
                                                             const Console& console);

  pid_t pid() const noexcept { return pid_; }
  /// Answers by what the process has now; once it has ended, that it is gone.
  void find_all(std::span<const Query> queries, std::span<AddressName> answers);
  /// How a source of it is called: that of a snapshot below the directory as it was typed. Lives as
  /// long as this.
  std::string_view shown(const std::string& source);
  /// The first of its dumps whose times are ticks of the processor, or null.
  const Jitdump* with_ticks() const noexcept;
  /// At the end: says what could not be opened, and fails where a source was cut off.
  bool finish() const;

 private:
  ProcessNames(pid_t pid, const ProcessNameOptions& options,
               std::shared_ptr<const Snapshot> snapshot, const Console& console);
  static Result<std::unique_ptr<ProcessNames>> import(std::unique_ptr<ProcessNames> names,
                                                      const ProcessNameOptions& options);
  Result<void> take_jit(const ProcessNameOptions& options);
  Result<void> take_jit_of_directory(const ProcessNameOptions& options);
  bool has_files(const ProcessNameOptions& options) const;
  void look_again();

  pid_t pid_;
  const Console& console_;
  bool may_change_;
  std::string absolute_;  // of a snapshot
  std::string typed_;
  std::unordered_map<std::string, std::string> shown_;
  ModuleCache cache_;
  ProcessTracker tracker_;
  Symbolizer symbolizer_;
  std::uint64_t seen_at_ = 0;  // tracker's time
  bool is_gone_ = false;
  bool was_asked_ = false;
};

}  // namespace perfmap::app
