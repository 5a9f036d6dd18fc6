// SPDX-License-Identifier: MIT
#include "support/recorded_samples.hpp"

#include <bit>
#include <cstdlib>
#include <map>

#include "perfmap/profile/process_tracker.hpp"

namespace perfmap::test {
namespace {

ProcessTracker::Options tracker_options(ModuleCache& cache, const std::string& symfs) {
  ProcessTracker::Options options;
  options.open_module = open_below(cache, symfs);
  return options;
}

/// Passes records about processes to the tracker.
void follow(const RecordView& record, ProcessTracker& tracker) {
  const auto mmap = decode_mmap(record);
  if (mmap && mmap->pid >= 0) tracker.on_mmap(*mmap);
  if (const auto comm = decode_comm(record)) tracker.on_comm(*comm);
  if (const auto fork = decode_fork(record)) tracker.on_fork(*fork);
  if (const auto exit = decode_exit(record)) tracker.on_exit(*exit);
}

}  // namespace

RecordedUsers::RecordedUsers(const std::string& path, Machine machine, const std::string& symfs)
    : machine_(machine), tracker_(tracker_options(cache_, symfs)) {
  Result<Input> input = Input::open(path);
  if (!input) std::abort();
  Result<Recording> recording = Recording::open(*std::move(input));
  if (!recording) std::abort();
  Recording::Reader reader(*recording);
  Diagnostics problems(1);
  for (auto group = reader.next(problems); !group.empty(); group = reader.next(problems)) {
    for (const RecordView& record : group) {
      if (record.type != RecordType::sample) {
        follow(record, tracker_);
      } else if (record.event < reader.events().size()) {
        take(record, reader.events()[record.event]);
      }
    }
  }
}

void RecordedUsers::take(const RecordView& record, const RecordedEvent& event) {
  const auto sample = decode_sample(record, event);
  if (!sample || sample->user.abi == 0 || sample->user_stack.empty()) return;
  RecordedUser user;
  user.registers.machine = machine_;
  user.registers.mask = sample->user.mask;
  std::size_t at = 0;
  for (std::uint64_t left = sample->user.mask; left != 0; left &= left - 1) {
    user.registers.values[static_cast<std::size_t>(std::countr_zero(left))] =
        sample->user.values[at++];
  }
  user.stack = sample->user_stack;
  user.is_stack_full = sample->is_stack_full();
  user.time = record.time;
  user.pid = sample->pid;
  user.tid = sample->tid;
  user.space = tracker_.at(user.pid);
  if (user.space == nullptr) return;
  const bool is_known = !samples_.empty() && samples_.back().space == user.space;
  user.unwind = is_known ? samples_.back().unwind
                         : UnwindSpace::attach(tracker_, user.pid, ProcessTracker::kNow);
  samples_.push_back(std::move(user));
}

std::shared_ptr<const Module> RecordedUsers::module_of(pid_t pid, const Region& region) {
  auto module = tracker_.module_of(pid, region);
  return module ? *std::move(module) : nullptr;
}

}  // namespace perfmap::test
