#include "stacks/stack_jobs.hpp"

#include <algorithm>
#include <thread>

namespace perfmap {

StackJobs::StackJobs(std::string_view arch, const StackOptions& options) {
  const unsigned threads = std::clamp(options.threads, 1U, 64U);
  for (unsigned i = 0; i < threads; ++i) makers_.emplace_back(arch, options);
}

void StackJobs::add(const RecordView& record, const RecordedEvent& event, RawStack stack) {
  jobs_.push_back({record, &event});
  stacks_.push_back(std::move(stack));
}

void StackJobs::run_range(std::size_t maker, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) {
    const auto sample = decode_sample(jobs_[i].record, *jobs_[i].event);
    if (sample) makers_[maker].make(*sample, stacks_[i]);
  }
}

std::vector<RawStack> StackJobs::run() {
  // Fewer are not worth a thread.
  constexpr std::size_t kLeast = 256;
  const std::size_t threads = std::clamp<std::size_t>(jobs_.size() / kLeast, 1, makers_.size());
  const std::size_t share = (jobs_.size() + threads - 1) / threads;
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < threads; ++i) {
      others.emplace_back([this, i, share] {
        run_range(i, std::min(i * share, jobs_.size()), std::min((i + 1) * share, jobs_.size()));
      });
    }
    run_range(0, 0, std::min(share, jobs_.size()));
  }
  jobs_.clear();
  return std::exchange(stacks_, {});
}

std::uint64_t StackJobs::rules() const noexcept {
  std::uint64_t rules = 0;
  for (const StackMaker& maker : makers_) rules += maker.unwinder().statistics().rules;
  return rules;
}

}  // namespace perfmap
