#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "perfmap/address_space.hpp"
#include "perfmap/process_tracker.hpp"
#include "perfmap/result.hpp"
#include "processes/code_ranges.hpp"

namespace perfmap {

/// One program in one process, from its beginning to exec, exit or reuse of the pid: its memory
/// over time. Changes are kept as they came; address spaces are made of them when asked for, and
/// one is kept whenever as many changes have come as it has regions, so that memory is O(changes).
class Generation {
 public:
  Generation(ProcessInfo info, std::shared_ptr<const AddressSpace> begins_with);

  ProcessInfo& info() noexcept { return info_; }
  const ProcessInfo& info() const noexcept { return info_; }
  bool covers(std::uint64_t time) const noexcept {
    return info_.since <= time && (time < info_.until || info_.until == ProcessTracker::kNow);
  }

  /// Times never go back: an earlier one counts as the last. What was executable stays so for as
  /// long as it is mapped.
  void change(std::uint64_t time, Region region);
  void replace(std::uint64_t time, std::shared_ptr<const AddressSpace> space);
  std::shared_ptr<const AddressSpace> at(std::uint64_t time);
  /// Keeps no memory of what was before.
  void forget_before(std::uint64_t time);

  /// All of it: for one that has ended.
  void forget_memory();

  /// After a fork: the parent's sources go on naming what the child got from it.
  void inherit_jit(const Generation& parent);

  void add_thread(pid_t tid) { threads_.insert(tid); }
  /// Whether none is left.
  bool remove_thread(pid_t tid) {
    threads_.erase(tid);
    return threads_.empty();
  }

  std::shared_ptr<JitSources> jit;                      // its own
  std::vector<std::shared_ptr<JitSources>> jit_before;  // of what it was forked from, nearest first
  /// The same for one that was alive when it was first seen: those that live, too, nearest first.
  struct Original {
    pid_t pid;
    std::shared_ptr<JitSources> jit;
  };
  std::vector<Original> originals;
  std::shared_ptr<const AddressSpace> began_with;  // where those of before count
  std::uint64_t image = 0;                         // see ProcSource::image_id()
  /// Of this program: a 32-bit one has another than a 64-bit one, under the same name.
  std::optional<Result<std::shared_ptr<const Module>>> vdso;

 private:
  struct Change {
    std::uint64_t time;
    Region region;
  };
  struct Kept {
    std::uint64_t time;
    std::size_t changes;  // that it has seen
    std::shared_ptr<const AddressSpace> space;
  };
  const Kept& nearest(std::uint64_t time, std::size_t changes) const noexcept;
  Kept made_of(const Kept& kept, std::size_t changes) const;
  void add_change(Region region);

  ProcessInfo info_;
  std::vector<Change> changes_;
  std::vector<Kept> kept_;  // never empty
  Kept last_;               // that was asked for
  std::uint64_t last_time_;
  std::optional<CodeRanges> code_;  // that there is now; made by the first change that may end some
  std::unordered_set<pid_t> threads_;
};

}  // namespace perfmap
