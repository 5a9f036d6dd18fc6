#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <string>

#include "writer/fork_guard.hpp"
#include "writer/trampoline_code.hpp"

namespace perfmap {

/// Places for trampolines, 64 KiB of them at a time, which are filled with code before they become
/// executable, and never written again: live code is not in the way of more.
///
/// A pool belongs to one process. A child makes its own, for two reasons: perf takes names in what
/// was mapped before fork(2) from the parent's map, and the parent's lock may be held for ever by a
/// thread that the child does not have. Pools of former generations hang below the newest, mapped:
/// whoever forked may return through them.
class TrampolinePool {
 public:
  static constexpr std::size_t kArenaSize = std::size_t{64} << 10;

  /// `exceptions`: of which code they may pass through these trampolines, if any.
  TrampolinePool(const TrampolineImage& image, unsigned generation, TrampolinePool* older,
                 const TrampolineCode* exceptions = nullptr)
      : image_(&image), exceptions_(exceptions), generation_(generation), older_(older) {}
  /// Unmaps everything of this pool's.
  ~TrampolinePool();
  TrampolinePool(const TrampolinePool&) = delete;
  TrampolinePool& operator=(const TrampolinePool&) = delete;

  unsigned generation() const noexcept { return generation_; }
  TrampolinePool* older() const noexcept { return older_; }
  std::size_t mapped_bytes() const noexcept { return mapped_.load(std::memory_order_relaxed); }

  /// A place that was never used, else the one that has been free the longest: of two names at one
  /// address not every reader takes the later. nullptr, and errno, where there is no memory.
  char* take() noexcept;
  void give_back(char* place) noexcept;

 private:
  struct Arena {
    char* begin;
    std::string frame;  // that the C++ runtime knows; empty: none
    std::array<void*, 16>
        registration{};  // the runtime's: a `struct object` of libgcc, and to spare
  };

  int add_arena();

  SpinMutex mutex_;
  const TrampolineImage* image_;
  const TrampolineCode* exceptions_;
  unsigned generation_;
  TrampolinePool* older_;
  std::deque<Arena> arenas_;       // whose frames stay where they are
  std::size_t used_ = kArenaSize;  // of the newest arena
  std::deque<char*> free_;
  std::atomic<std::size_t> mapped_{0};
};

}  // namespace perfmap
