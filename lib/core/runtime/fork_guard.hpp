#pragma once

#include <atomic>

namespace perfmap {

/// How the writers of a process live through fork(2): their locks are taken around it, and each one
/// sees afterwards that it is in a child.
class ForkGuard {
 public:
  /// Installs the handlers once; 0 or an errno value.
  static int install() noexcept;
  /// Grows by one in every child.
  static unsigned generation() noexcept { return forks_.load(std::memory_order_relaxed); }

 private:
  static std::atomic<unsigned> forks_;
};

/// An engine with a lock of its own, which the Registry takes around fork(2).
class ForkAware {
 public:
  virtual void before_fork() noexcept = 0;
  /// In the parent and in the child.
  virtual void after_fork() noexcept = 0;

 protected:
  ~ForkAware() = default;
};

}  // namespace perfmap
