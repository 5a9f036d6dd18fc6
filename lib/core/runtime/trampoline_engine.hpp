#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "perfmap/jitdump_writer.hpp"
#include "perfmap/trampoline.hpp"
#include "runtime/fork_guard.hpp"
#include "runtime/trampoline_code.hpp"
#include "runtime/trampoline_pool.hpp"

namespace perfmap {

/// An activation and a generation of ForkGuard: what a trampoline was settled for. A process that
/// forks, and an arena that is activated again, make all of them look again.
using Moment = std::uint64_t;

/// What a Trampoline has behind it.
struct CompiledCode {
  std::string name;
  std::string file;
  std::int32_t line = 0;

  static constexpr Moment kNever = ~Moment{0};

  /// Holds once `settled` is the present moment; nullptr: the evaluator is called directly.
  std::atomic<TrampolineEntry> entry{nullptr};
  std::atomic<Moment> settled{kNever};
  /// 0, or when somebody began to settle it. Of a former generation: by a thread that the child
  /// does not have.
  std::atomic<Moment> begun{0};
  std::atomic<int> error{0};  // of the last time

  // Of whoever has begun:
  TrampolinePool* pool = nullptr;
  char* place = nullptr;
  unsigned generation = 0;      // in which `announced` was last looked at
  std::uint32_t announced = 0;  // bits of TrampolineBackend: who knows its name
};

/// What TrampolineArena has behind it. Free of locks but for the pool's, which a child does not
/// inherit.
class TrampolineEngine {
 public:
  TrampolineEngine(const TrampolineCode& code, TrampolineOptions options);
  ~TrampolineEngine();
  TrampolineEngine(const TrampolineEngine&) = delete;
  TrampolineEngine& operator=(const TrampolineEngine&) = delete;

  const TrampolineOptions& options() const noexcept { return options_; }
  Result<void> activate(TrampolineBackend backend);
  void deactivate() noexcept { set_activation(0); }
  TrampolineState state() const noexcept;

  // Here, because every call of an interpreted function passes through them.
  /// Whether code.entry holds: one that is settled was so while this was active.
  bool is_settled(const CompiledCode& code) const noexcept {
    return code.settled.load(std::memory_order_acquire) == now_->load(std::memory_order_relaxed);
  }
  TrampolineEntry entry(CompiledCode& code) noexcept {
    if (is_settled(code)) return code.entry.load(std::memory_order_relaxed);
    return settle(code) == Settled::done ? code.entry.load() : nullptr;
  }
  /// Settles it now, also what has failed, and where another thread is at it waits for that. 0 or
  /// an errno value; EDEADLK within what this thread does to settle one.
  int compile(CompiledCode& code) noexcept;
  void forget(const CompiledCode& code) noexcept;

 private:
  Result<void> open_dump();
  void set_activation(std::uint32_t activation) noexcept;
  Moment now() noexcept;
  enum class Settled : std::uint8_t { done, inactive, by_another };
  Settled settle(CompiledCode& code, bool again = false) noexcept;
  int try_to_make(CompiledCode& code, Moment moment) noexcept;
  int make(CompiledCode& code, Moment moment);
  void enter_child(CompiledCode& code) noexcept;
  int find_place(CompiledCode& code);
  int announce(CompiledCode& code, std::uint32_t backends);
  int load(const CompiledCode& code);
  TrampolinePool* pool(unsigned generation);

  TrampolineOptions options_;
  const TrampolineCode* code_;
  TrampolineImage image_;
  unsigned birth_;  // the generation that made this
  /// 0 where not active; else a number that grows, and in its low two bits the backend.
  std::atomic<std::uint32_t> activation_{0};
  WipedWord word_;
  std::atomic<Moment>* now_;           // the present moment, or 0: now() knows it
  std::atomic<Moment> activating_{0};  // a ChildProofLock's
  std::uint32_t activations_ = 0;      // under that lock
  std::atomic<TrampolinePool*> pool_{nullptr};
  std::atomic<JitdumpWriter*> dump_{nullptr};
  std::atomic<ForkPolicy> dump_fork_{ForkPolicy::fresh};  // of dump_
  std::atomic<std::uint64_t> next_mark_;
  std::atomic<std::uint64_t> compiled_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<int> last_errno_{0};
};

}  // namespace perfmap
