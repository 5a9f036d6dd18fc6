// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "writer/engines.hpp"
#include "writer/unwinding.hpp"

/// A native frame for each code object of an interpreter. Needs libc alone; with libgcc in the
/// process, exceptions may pass.

namespace perfmap {

/// The machine code of a trampoline, and its unwind information. `f(a, b, c, evaluator)` calls
/// `evaluator(a, b, c)`, whose arguments are already in place, from a frame of its own.
///
/// Available for every machine on every machine, so that one test can check all of them.
struct TrampolineCode {
  std::span<const unsigned char> instructions;
  FrameRules rules;
  /// The instructions that hold during the call: all that an exception needs.
  std::string_view calling;

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

TrampolineImage image_of(const TrampolineCode& code) noexcept;

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
                 const TrampolineCode* exceptions = nullptr) noexcept
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
  static constexpr std::size_t kPlaces = kArenaSize / kTrampolineStride;
  /// 64 KiB of places, the newest first in the list. Frames do not move: the C++ runtime has their
  /// addresses.
  struct Arena {
    char* begin = nullptr;
    Arena* older = nullptr;
    std::size_t frame_size = 0;  // 0: not registered with the C++ runtime
    std::array<char, 128> frame{};
    std::array<void*, 16>
        registration{};  // of the runtime: a `struct object` of libgcc, with space to spare
  };

  int add_arena() noexcept;
  bool add_room() noexcept;

  SpinMutex mutex_;
  const TrampolineImage* image_;
  const TrampolineCode* exceptions_;
  unsigned generation_;
  TrampolinePool* older_;
  Arena* newest_ = nullptr;
  std::size_t used_ = kArenaSize;  // bytes used in the newest arena
  /// Free places, a ring with room for every place of the pool, so that giving back cannot fail.
  char** free_ = nullptr;
  std::size_t room_ = 0;
  std::size_t first_free_ = 0;
  std::size_t free_count_ = 0;
  std::atomic<std::size_t> mapped_{0};
};

/// An activation and a fork generation: what a trampoline was settled for. After a fork, or when an
/// arena is activated or deactivated, all trampolines are settled again.
using TrampolineEpoch = std::uint64_t;

class TrampolineEngine;

/// One code object's slot: the implementation of Trampoline.
class TrampolineSlot {
 public:
  TrampolineSlot(TrampolineEngine& engine, const CodeDescription& code) noexcept;
  ~TrampolineSlot();
  TrampolineSlot(const TrampolineSlot&) = delete;
  TrampolineSlot& operator=(const TrampolineSlot&) = delete;

  /// False: there was no memory for its name, and it must not be used.
  bool is_whole() const noexcept { return text_ != nullptr; }
  std::string_view name() const noexcept { return {text_, name_size_}; }
  /// See Trampoline::entry().
  TrampolineEntry entry() noexcept;
  /// See Trampoline::compile(). 0 or an errno value.
  int compile() noexcept;
  void* call(void* first, void* second, void* third, Evaluator evaluator) {
    if (settled_.load(std::memory_order_acquire) != now_->load(std::memory_order_relaxed))
        [[unlikely]] {
      return call_newly(first, second, third, evaluator);
    }
    const TrampolineEntry made = entry_.load(std::memory_order_relaxed);
    if (made == nullptr) return evaluator(first, second, third);
    return made(first, second, third, evaluator);
  }

 private:
  friend class TrampolineEngine;
  // Out of line, so that the fast path needs no stack frame.
  [[gnu::noinline, gnu::cold]] void* call_newly(void* first, void* second, void* third,
                                                Evaluator evaluator);
  std::string_view file() const noexcept { return {text_ + name_size_, file_size_}; }
  void give_back() noexcept;

  static constexpr TrampolineEpoch kNever = ~TrampolineEpoch{0};

  /// Valid if `settled_` is the current epoch; nullptr: the evaluator is called directly.
  std::atomic<TrampolineEntry> entry_{nullptr};
  std::atomic<TrampolineEpoch> settled_{kNever};
  const std::atomic<TrampolineEpoch>* const now_;  // the engine's current epoch, or 0
  TrampolineEngine* const engine_;
  /// 0, or the epoch in which a thread began to settle it. If that is of a former generation, the
  /// thread does not exist in this child.
  std::atomic<TrampolineEpoch> begun_{0};
  std::atomic<int> error_{0};  // of the last attempt

  // Owned by the thread that has begun:
  TrampolinePool* pool_ = nullptr;
  char* place_ = nullptr;
  unsigned generation_ = 0;      // the generation in which `announced_` was last checked
  std::uint32_t announced_ = 0;  // bits of TrampolineBackend: those that know its name

  char* text_ = nullptr;  // its name, then its file
  std::size_t name_size_ = 0;
  std::size_t file_size_ = 0;
  std::int32_t line_ = 0;
};

/// What a caller learns about a failed activation.
struct TrampolineFault {
  int error = 0;
  enum class Kind : std::uint8_t { argument, map, dump } kind = Kind::argument;
  DumpFault dump{};
  char path[ForkSafeFile::kMaxPath] = {};  // of the dump
};

/// The implementation of TrampolineArena.
class TrampolineEngine {
 public:
  /// `prefix` and `directory` are copied; is_whole() is false if there was no memory for that.
  TrampolineEngine(const TrampolineCode& machine, std::string_view prefix,
                   std::string_view directory, bool exceptions) noexcept;
  ~TrampolineEngine();
  TrampolineEngine(const TrampolineEngine&) = delete;
  TrampolineEngine& operator=(const TrampolineEngine&) = delete;
  bool is_whole() const noexcept { return text_ != nullptr; }

  bool activate(std::uint32_t backends, TrampolineFault& fault) noexcept;
  void deactivate() noexcept { set_activation(0); }
  TrampolineState state() const noexcept;

 private:
  friend class TrampolineSlot;
  bool open_dump(TrampolineFault& fault) noexcept;
  TrampolineEpoch now() noexcept;
  enum class Settled : std::uint8_t { done, inactive, by_another };
  Settled settle(TrampolineSlot& slot, bool again) noexcept;
  void settle_alone(TrampolineSlot& slot, TrampolineEpoch present, bool again) noexcept;
  int make(TrampolineSlot& slot, TrampolineEpoch present) noexcept;
  void enter_child(TrampolineSlot& slot) noexcept;
  int announce(TrampolineSlot& slot, std::uint32_t backends) noexcept;
  int load(const TrampolineSlot& slot) noexcept;
  TrampolinePool* pool(unsigned generation) noexcept;
  void set_activation(std::uint32_t activated) noexcept {
    activation_.store(activated);
    if (word_.get() != nullptr) word_.get()->store(0);
  }
  std::string_view prefix() const noexcept { return {text_, prefix_size_}; }
  std::string_view directory() const noexcept { return {text_ + prefix_size_, directory_size_}; }

  const TrampolineCode* const machine_;
  const TrampolineImage image_;
  const bool exceptions_;
  char* text_ = nullptr;  // the prefix, then the directory
  const std::size_t prefix_size_;
  const std::size_t directory_size_;
  /// 0 if not active; else a growing number, with the backends in its low two bits.
  std::atomic<std::uint32_t> activation_{0};
  WipedWord word_;
  /// The current epoch, or 0: call now().
  std::atomic<TrampolineEpoch>* const moment_;
  SpinMutex activating_;
  std::uint32_t activations_ = 0;  // protected by the lock
  std::atomic<TrampolinePool*> newest_pool_{nullptr};
  std::atomic<DumpEngine*> dump_{nullptr};
  std::atomic<ForkPolicy> dump_fork_{ForkPolicy::fresh};  // of the dump
  std::atomic<std::uint64_t> next_mark_{monotonic_ns()};
  std::atomic<std::uint64_t> compiled_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<int> last_errno_{0};
};

}  // namespace perfmap
