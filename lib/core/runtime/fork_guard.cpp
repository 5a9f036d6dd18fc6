#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>
#include <pthread.h>
#include <vector>

#include "runtime/registry.hpp"

namespace perfmap {

std::atomic<unsigned> ForkGuard::forks_{0};

Registry& Registry::get() noexcept {
  // Never destroyed: writers with static storage may outlive any order of destruction.
  alignas(Registry) static std::byte room[sizeof(Registry)];
  static Registry* const registry = new (room) Registry;
  return *registry;
}

void Registry::add(ForkAware* engine) {
  const std::lock_guard lock(mutex_);
  engines_.push_back(engine);
}

void Registry::remove(ForkAware* engine) noexcept {
  const std::lock_guard lock(mutex_);
  engines_.erase(std::remove(engines_.begin(), engines_.end(), engine), engines_.end());
}

void Registry::lock_all() noexcept {
  setup_mutex_.lock();
  mutex_.lock();
  for (ForkAware* engine : engines_) engine->before_fork();
}

void Registry::unlock_all() noexcept {
  for (ForkAware* engine : engines_) engine->after_fork();
  mutex_.unlock();
  setup_mutex_.unlock();
}

int ForkGuard::install() noexcept {
  static const int installed =
      ::pthread_atfork([] { Registry::get().lock_all(); }, [] { Registry::get().unlock_all(); },
                       [] {
                         forks_.fetch_add(1, std::memory_order_relaxed);
                         Registry::get().unlock_all();
                       });
  return installed;
}

}  // namespace perfmap
