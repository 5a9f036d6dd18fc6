#pragma once

#include <cstdint>
#include <ctime>
#include <string>

#include "perfmap/jitlog_writer.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

namespace perfmap {

/// The clock of a log.
class JitlogTicks {
 public:
  using Script = std::uint64_t (*)(void* context);

  explicit JitlogTicks(JitlogClock clock) noexcept : counts_(clock == JitlogClock::counter) {}
  /// One that a test plays, and that the log does not state.
  JitlogTicks(Script script, void* context) noexcept : script_(script), context_(context) {}

  /// Whether this machine has it.
  bool exists() const noexcept { return !counts_ || kHasCounter; }
  /// As the log states it; empty: it does not.
  std::string name() const {
    if (script_ != nullptr) return {};
    return counts_ ? counter_name() : "CLOCK_MONOTONIC ns";
  }
  std::uint64_t now() const noexcept { return counts_ ? counter() : now_elsewhere(); }

 private:
#if defined(__x86_64__) || defined(__i386__)
  static constexpr bool kHasCounter = true;
  static std::uint64_t counter() noexcept { return __rdtsc(); }
  static std::string counter_name() { return "tsc"; }
#elif defined(__aarch64__)
  static constexpr bool kHasCounter = true;
  static std::uint64_t counter() noexcept {
    std::uint64_t ticks = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
  static std::string counter_name() {
    std::uint64_t each_second = 0;
    asm volatile("mrs %0, cntfrq_el0" : "=r"(each_second));
    return "cntvct " + std::to_string(each_second) + " Hz";
  }
#else
  static constexpr bool kHasCounter = false;
  static std::uint64_t counter() noexcept { return 0; }
  static std::string counter_name() { return {}; }
#endif

  [[gnu::noinline]] std::uint64_t now_elsewhere() const noexcept {
    if (script_ != nullptr) return script_(context_);
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
  }

  bool counts_ = false;
  Script script_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace perfmap
