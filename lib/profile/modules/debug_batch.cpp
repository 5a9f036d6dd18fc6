#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "modules/debug_index_impl.hpp"

namespace perfmap {
namespace {

/// Addresses of one unit: [first, last) in the sorted order.
struct Task {
  std::uint32_t unit = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Calls `work(i)` once for each i below `count`, on up to `threads` threads. The first exception
/// is thrown again when all have ended.
template <class Work>
void share_out(std::size_t count, unsigned threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto take_tasks = [&] {
    try {
      for (std::size_t i; (i = next.fetch_add(1)) < count;) work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) {
    others.emplace_back(take_tasks);
  }
  take_tasks();
  others.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

std::vector<std::vector<SourceFrame>> DebugIndex::find_all(std::span<const Address> vaddrs,
                                                           unsigned threads) const {
  std::vector<std::size_t> order(vaddrs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<std::uint32_t> units(vaddrs.size());
  std::ranges::transform(vaddrs, units.begin(),
                         [&](Address vaddr) { return impl_->unit_of(vaddr); });
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return std::pair(units[a], vaddrs[a]) < std::pair(units[b], vaddrs[b]);
  });
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t unit = units[order[i]];
    if (unit == Partition::kNobody) break;
    if (tasks.empty() || tasks.back().unit != unit) tasks.push_back({unit, i, i});
    tasks.back().last = i + 1;
  }
  std::vector<std::vector<SourceFrame>> found(vaddrs.size());
  share_out(tasks.size(), threads, [&](std::size_t number) {
    const Task& task = tasks[number];
    impl_->find(task.unit, std::span(order).subspan(task.first, task.last - task.first), vaddrs,
                found);
  });
  return found;
}

}  // namespace perfmap
