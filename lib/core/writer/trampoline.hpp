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

/// The machine code of a trampoline, and its unwind information. `f(a, b, c, evaluator)` calls
/// `evaluator(a, b, c)`, whose arguments are already in place, from a frame of its own.
///
/// Available for every machine on every machine, so that one test can check all of them.
struct TrampolineCode {
  std::span<const unsigned char> instructions;
  std::span<const unsigned char> cie;  ///< after length and id, without padding
  std::span<const unsigned char> fde;  ///< its instructions, without padding
  /// The instructions that hold during the call: all that an exception needs.
  std::span<const unsigned char> calling;

  /// After the instructions come bytes that never run. In a jitdump they hold a unique number: perf
  /// treats DSOs with equal build ids as one, and some releases compute the build id from the code
  /// alone, so all trampolines would have the name of the first.
  static constexpr std::size_t kMark = 8;
  std::size_t size() const noexcept { return instructions.size() + kMark; }
};

inline constexpr std::size_t kTrampolineStride = 128;  ///< from one trampoline to the next

/// One trampoline as it lies in memory: code, then, where perf expects them, .eh_frame and
/// .eh_frame_hdr. All pointers in it are relative, so that every copy has the same bytes.
struct TrampolineImage {
  std::array<char, kTrampolineStride> bytes{};
  std::size_t code_size = 0;
  std::size_t frame_begin = 0;  ///< the first multiple of 8 after the code
  std::size_t frame_size = 0;
  std::size_t header_size = 0;

  std::size_t mapped_size() const noexcept { return bytes.size() - frame_begin; }
};

TrampolineImage image_of(const TrampolineCode& code);

/// An .eh_frame for exceptions that pass through any trampoline in the `size` bytes at `begin`.
std::string exception_frame(const TrampolineCode& code, const void* begin, std::size_t size);

const TrampolineCode& x86_64_trampoline() noexcept;
const TrampolineCode& aarch64_trampoline() noexcept;
/// The code for this machine; nullptr if it is not supported.
const TrampolineCode* host_trampoline() noexcept;

/// Places for trampolines, allocated 64 KiB at a time. They are filled with code before they become
/// executable and never written again, so running code does not prevent more trampolines.
///
/// A pool belongs to one process. A child makes its own, for two reasons: perf looks up names in
/// memory mapped before fork(2) in the parent's map; and the parent's lock may be held for ever by
/// a thread that the child does not have. Pools of former generations hang below the newest and
/// stay mapped, because frames of the forking thread may return through them.
class TrampolinePool {
 public:
  static constexpr std::size_t kArenaSize = std::size_t{64} << 10;

  /// `exceptions`: the code of these trampolines if exceptions may pass through them, else null.
  TrampolinePool(const TrampolineImage& image, unsigned generation, TrampolinePool* older,
                 const TrampolineCode* exceptions = nullptr)
      : image_(&image), exceptions_(exceptions), generation_(generation), older_(older) {}
  /// Unmaps all memory of this pool.
  ~TrampolinePool();
  TrampolinePool(const TrampolinePool&) = delete;
  TrampolinePool& operator=(const TrampolinePool&) = delete;

  unsigned generation() const noexcept { return generation_; }
  TrampolinePool* older() const noexcept { return older_; }
  std::size_t mapped_bytes() const noexcept { return mapped_.load(std::memory_order_relaxed); }

  /// A place that was never used, else the one that has been free the longest: if two names have
  /// the same address, not every reader takes the later one. nullptr and errno if there is no
  /// memory.
  char* take() noexcept;
  void give_back(char* place) noexcept;

 private:
  struct Arena {
    char* begin;
    std::string frame;  // registered with the C++ runtime; empty: none
    std::array<void*, 16>
        registration{};  // of the runtime: a `struct object` of libgcc, with space to spare
  };

  int add_arena();

  SpinMutex mutex_;
  const TrampolineImage* image_;
  const TrampolineCode* exceptions_;
  unsigned generation_;
  TrampolinePool* older_;
  std::deque<Arena> arenas_;       // a deque, because frames must not move
  std::size_t used_ = kArenaSize;  // bytes used in the newest arena
  std::deque<char*> free_;
  std::atomic<std::size_t> mapped_{0};
};

}  // namespace perfmap
