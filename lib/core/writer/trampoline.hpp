#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "writer/fork_safe_file.hpp"

namespace perfmap {

/// The machine code of a trampoline, and how to unwind through it: `f(a, b, c, evaluator)` calls
/// `evaluator(a, b, c)`, which finds its arguments where they are, from a frame of its own.
///
/// Known for every machine on every machine, so that a test on one may check all of them.
struct TrampolineCode {
  std::span<const unsigned char> instructions;
  std::span<const unsigned char> cie;  ///< behind length and id, without padding
  std::span<const unsigned char> fde;  ///< its instructions, without padding
  /// Those that hold in the middle of the call: all that an exception needs.
  std::span<const unsigned char> calling;

  /// Behind the instructions come bytes that never run. In a jitdump they hold a number, because
  /// perf takes DSOs with equal build-ids for one, and some of its releases make build-ids of the
  /// code alone: all trampolines would have the first one's name.
  static constexpr std::size_t kMark = 8;
  std::size_t size() const noexcept { return instructions.size() + kMark; }
};

inline constexpr std::size_t kTrampolineStride = 128;  ///< from one trampoline to the next

/// One trampoline as it lies in memory: code, then, where perf expects them, .eh_frame and
/// .eh_frame_hdr. All pointers in it are relative, so that every copy has the same bytes.
struct TrampolineImage {
  std::array<char, kTrampolineStride> bytes{};
  std::size_t code_size = 0;
  std::size_t frame_begin = 0;  ///< the first multiple of 8 behind the code
  std::size_t frame_size = 0;
  std::size_t header_size = 0;

  std::size_t mapped_size() const noexcept { return bytes.size() - frame_begin; }
};

TrampolineImage image_of(const TrampolineCode& code);

/// An .eh_frame for exceptions that pass through any trampoline in `size` bytes at `begin`.
std::string exception_frame(const TrampolineCode& code, const void* begin, std::size_t size);

const TrampolineCode& x86_64_trampoline() noexcept;
const TrampolineCode& aarch64_trampoline() noexcept;
/// This machine's; nullptr where none is known.
const TrampolineCode* host_trampoline() noexcept;

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
