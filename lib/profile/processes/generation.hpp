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
#include "processes/jit_lineage.hpp"

namespace perfmap {

/// One program in one process, from its beginning to exec, exit or reuse of the pid: its memory
/// over time. Changes are kept as they came; address spaces are made of them when asked for, and
/// one is kept whenever as many changes have come as it has regions, so that memory is O(changes).
class Generation {
 public:
  /// `line` is the lineage of what it maps; see pass_from() for exec.
  Generation(ProcessInfo info, std::shared_ptr<const AddressSpace> begins_with,
             std::shared_ptr<JitLineage> line);

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

  /// After exec the memory stays the former program's, `passing` being its lineage, until something
  /// is mapped: the kernel has replaced it by then, but what it calls meanwhile was called from
  /// there.
  void pass_from(std::shared_ptr<JitLineage> passing) { passing_ = std::move(passing); }

  /// Of the memory at that time. Never null.
  const std::shared_ptr<JitLineage>& line(std::uint64_t time) const noexcept {
    const bool has_passed = passing_ == nullptr || (is_mapped_ && time >= passed_at_);
    return has_passed ? line_ : passing_;
  }
  const std::shared_ptr<JitLineage>& line() const noexcept { return line_; }
  std::shared_ptr<JitSources>& jit() noexcept { return line_->jit; }  // its own

  void add_thread(pid_t tid) { threads_.insert(tid); }
  /// Whether none is left.
  bool remove_thread(pid_t tid) {
    threads_.erase(tid);
    return threads_.empty();
  }

  std::uint64_t image = 0;  // see ProcSource::image_id()
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
  void end_passing(std::uint64_t time);

  ProcessInfo info_;
  std::shared_ptr<JitLineage> line_;
  std::shared_ptr<JitLineage> passing_;  // until passed_at_, if is_mapped_
  std::uint64_t passed_at_ = 0;
  bool is_mapped_ = false;  // has been, by the program after an exec
  std::vector<Change> changes_;
  std::vector<Kept> kept_;  // never empty
  Kept last_;               // that was asked for
  std::uint64_t last_time_;
  std::optional<CodeRanges> code_;  // that there is now; made by the first change that may end some
  std::unordered_set<pid_t> threads_;
};

}  // namespace perfmap
