#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "perfmap/process_tracker.hpp"
#include "processes/generation.hpp"

namespace perfmap {

struct ProcessTracker::State {
  explicit State(Options how) : options(std::move(how)) {}

  /// Who has the pid now, or nullptr.
  Generation* living(pid_t pid) noexcept;
  /// Who had it then, or nullptr.
  Generation* find(pid_t pid, std::uint64_t time) noexcept;
  /// Who has it now, begun as `seen` where nobody does.
  Generation& begun(pid_t pid, std::uint64_t time);
  /// Ends who has the pid, if anybody, and begins another one.
  Generation& begin(pid_t pid, std::uint64_t time, ProcessBegin how,
                    std::shared_ptr<const AddressSpace> space,
                    std::shared_ptr<JitLineage> parent = nullptr);
  /// After exec: with the memory of `former` until it maps something.
  Generation& begin_after_exec(Generation& former, std::uint64_t time);
  void end(pid_t pid, std::uint64_t time) noexcept;

  struct OpenedModule {
    std::weak_ptr<const MappedFile> file;
    Result<std::shared_ptr<const Module>> module;
    pid_t asked_by = 0;
    std::uint32_t asked_by_generation = 0;
  };
  void forget_dead_modules();
  std::shared_ptr<JitSources> former_jit(pid_t pid) const;
  void refresh_parents(Generation& child, const ProcSource& process) const;

  Options options;
  MappedFiles files;
  std::shared_ptr<const AddressSpace> nothing = std::make_shared<AddressSpace>();
  std::unordered_map<pid_t, std::vector<std::unique_ptr<Generation>>> processes;
  std::unordered_map<const MappedFile*, OpenedModule> modules;
  std::size_t modules_cleaned_at = 64;
  std::uint32_t lineages = 0;
};

}  // namespace perfmap
