#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "perfmap/doubt.hpp"
#include "perfmap/export.hpp"
#include "perfmap/proc_source.hpp"
#include "perfmap/process_files.hpp"
#include "perfmap/resolver.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// The perf map and the jitdumps of one program in one process, read together.
///
/// One thread at a time.
class PERFMAP_API JitSources {
 public:
  struct Options {
    Roots roots;
    bool any_owner = false;
    Overlap overlap = Overlap::last;
    /// What the pid's former program, or former process, had. Of a file that was its already, only
    /// what was written since counts, unless it was written anew.
    std::shared_ptr<const JitSources> former = nullptr;
  };

  /// Those that are the process's own, as find_process_map() and find_process_dumps() find them,
  /// and whose last change is not older than the process. May find none. Nothing where the process
  /// is gone.
  static Result<std::optional<JitSources>> find(const ProcSource& process, Options options);
  /// Those of the caller; refresh() looks for no others. `doubts` are of all their names.
  JitSources(std::vector<Map> maps, std::vector<Jitdump> dumps, Overlap overlap = Overlap::last,
             Doubts doubts = {});
  JitSources(JitSources&&) noexcept;
  JitSources& operator=(JitSources&&) noexcept;
  ~JitSources();

  bool empty() const noexcept;
  /// Names every address, whatever is mapped there, and what a former program left included.
  const Resolver& resolver() const noexcept;
  Resolver& resolver() noexcept;
  /// Files that are there and not believed: not those owners', older than the process, links.
  std::span<const Error> refused() const noexcept;

  /// As Resolver::find(), without what a former program left, and with the doubts of the sources.
  Resolution find(const Query& query) const noexcept;

  /// Takes in what was appended, and files that are new. Where `process` is gone, or null, files
  /// that find() found stay as they are. See Resolver::refresh() for what becomes invalid.
  Result<Growth> refresh(const ProcSource* process);

 private:
  struct State;
  explicit JitSources(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
