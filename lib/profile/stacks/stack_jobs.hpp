#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "perfmap/recording.hpp"
#include "perfmap/stacks.hpp"
#include "stacks/raw_stack.hpp"

namespace perfmap {

/// Unwinds the samples of a group of records, on several threads.
class StackJobs {
 public:
  StackJobs(std::string_view arch, const StackOptions& options);

  /// `stack` has everything but its frames. The record must stay until run().
  void add(const RecordView& record, const RecordedEvent& event, RawStack stack);
  /// In the order in which they were added.
  std::vector<RawStack> run();
  /// Rules that were computed, by all threads.
  std::uint64_t rules() const noexcept;

 private:
  struct Job {
    RecordView record;
    const RecordedEvent* event;
  };
  void run_range(std::size_t maker, std::size_t from, std::size_t to);

  std::vector<StackMaker> makers_;  // one a thread
  std::vector<Job> jobs_;
  std::vector<RawStack> stacks_;
};

}  // namespace perfmap
