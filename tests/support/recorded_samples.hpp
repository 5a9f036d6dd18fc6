// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/recording.hpp"
#include "perfmap/profile/unwinder.hpp"

namespace perfmap::test {

/// A sample of a recording, with the state of its process at that time.
struct RecordedUser {
  UserRegisters registers;
  std::string stack;
  bool is_stack_full = false;
  std::uint64_t time = 0;
  pid_t pid = 0;
  pid_t tid = 0;
  std::shared_ptr<const AddressSpace> space;
  std::shared_ptr<const UnwindSpace> unwind;

  UserSample sample() const { return {registers, stack, is_stack_full, time}; }
};

/// The samples of a recording that have a copy of the stack, and the mappings of their processes.
/// Unwinding them reads no files except for call frame information.
class RecordedUsers {
 public:
  /// Aborts if the recording cannot be read. All samples are of processes of `machine`, whose files
  /// are below `symfs`.
  explicit RecordedUsers(const std::string& path, Machine machine = Machine::x86_64,
                         const std::string& symfs = "");

  const std::vector<RecordedUser>& samples() const noexcept { return samples_; }
  /// The module mapped at a region, or null.
  std::shared_ptr<const Module> module_of(pid_t pid, const Region& region);

 private:
  void take(const RecordView& record, const RecordedEvent& event);

  Machine machine_;
  ModuleCache cache_;
  ProcessTracker tracker_;
  std::vector<RecordedUser> samples_;
};

}  // namespace perfmap::test
