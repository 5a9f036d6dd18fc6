#include "runtime/jitlog_loops.hpp"

#include <mutex>
#include <utility>

namespace perfmap {

JitlogLoop JitlogLoops::add(std::string name) {
  const std::lock_guard lock(mutex_);
  const auto known = numbers_.find(name);
  if (known != numbers_.end()) return known->second;
  const JitlogLoop next = count_.load(std::memory_order_relaxed) + 1;
  const Place at = place(next);
  if (at.chunk >= kChunks) return 0;
  auto& chunk = chunks_[at.chunk];
  if (chunk == nullptr) chunk = std::make_unique<std::string_view[]>(std::size_t{1} << at.chunk);
  const auto added = numbers_.emplace(std::move(name), next);
  chunk[at.index] = added.first->first;
  count_.store(next, std::memory_order_release);
  return next;
}

}  // namespace perfmap
