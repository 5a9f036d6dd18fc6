// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "bench/areas.hpp"
#include "bench/measure.hpp"
#include "perfmap.h"

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

namespace perfmap::bench {
namespace {

constexpr std::uint32_t kBuffer = 4096;
constexpr int kBuffers = 250;
constexpr std::uint32_t kTimed = kBuffer - 2;
constexpr double kEvents = double{kBuffer} * kBuffers;
constexpr std::string_view kShortLoop = "loop1";
constexpr std::string_view kUsualLoop = "Loop 1 (compute;/srv/app/server.py:10-24~#12 FOR_ITER)";

std::uint64_t counter() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}

std::uint64_t monotonic() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// A log with one loop.
struct Log {
  Log(const std::string& path, std::int32_t clock, std::string_view name) {
    perfmap_jitlog_options options{};
    options.struct_size = sizeof options;
    options.clock = clock;
    options.buffer_events = kBuffer;
    if (perfmap_jitlog_open(path.c_str(), &options, &log, nullptr) != PERFMAP_OK) std::abort();
    perfmap_jitlog_loop(log, name.data(), name.size(), &loop, nullptr);
  }
  ~Log() { perfmap_jitlog_free(log); }
  Log(const Log&) = delete;

  void record(std::uint32_t count) const {
    for (std::uint32_t i = 0; i < count; i += 2) {
      perfmap_jitlog_enter(log, loop);
      perfmap_jitlog_exit(log, loop);
    }
  }

  perfmap_jitlog* log = nullptr;
  std::uint32_t loop = 0;
};

/// The minimal work of an event: reading the time, and a store.
struct Bare {
  struct Event {
    std::uint64_t tick;
    std::uint64_t loop;
  };

  template <class Clock>
  void record(std::uint32_t count, Clock now) {
    for (std::uint32_t i = 0; i < count; ++i) {
      events[i] = {now(), i};
      asm volatile("" : : "r"(events.data()) : "memory");
    }
  }

  std::vector<Event> events = std::vector<Event>(kBuffer);
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + kBuffers / 2);
  return values[kBuffers / 2];
}

/// Times only events that fit into the buffer, so that writing is left out.
template <class Clock>
Paired compare_events(const std::string& path, std::int32_t clock, Clock now) {
  const Log log(path + ".log", clock, kShortLoop);
  Bare bare;
  std::vector<double> ours;
  std::vector<double> limit;
  for (int i = 0; i < kBuffers; ++i) {
    ours.push_back(time_ms([&] { log.record(kTimed); }));
    limit.push_back(time_ms([&] { bare.record(kTimed, now); }));
    log.record(kBuffer - kTimed);
  }
  return {median(ours), median(limit), median(ours) / median(limit)};
}

void bench_event(const Files& files) {
  const Paired counted = compare_events(files.out, PERFMAP_JITLOG_COUNTER, counter);
  print_row("event of a jitlog by the counter: ns", ns_each(counted.ours_ms, kTimed),
            ns_each(counted.limit_ms, kTimed), counted.ours_ms * 1e6 / kTimed, 25);
  const Paired timed = compare_events(files.out, PERFMAP_JITLOG_MONOTONIC, monotonic);
  print_row("by CLOCK_MONOTONIC: ns", ns_each(timed.ours_ms, kTimed),
            ns_each(timed.limit_ms, kTimed), timed.ours_ms * 1e6 / kTimed, 25);
  print_row("the same: ns more than to read the clock", ns_each(timed.ours_ms, kTimed),
            ns_each(timed.limit_ms, kTimed), (timed.ours_ms - timed.limit_ms) * 1e6 / kTimed, 15);
}

void write_plainly(const std::string& path, const std::string& text) {
  constexpr std::size_t kBlock = std::size_t{512} << 10;
  std::filesystem::remove(path);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  for (std::size_t at = 0; at < text.size(); at += kBlock) {
    const std::string_view block = std::string_view(text).substr(at, kBlock);
    if (::write(fd, block.data(), block.size()) < 0) std::abort();
  }
  ::close(fd);
}

/// CPU time of writing the log, and of writing its bytes directly.
Paired compare_written(const std::string& path, std::string_view loop) {
  const std::string log_path = path + ".log";
  const auto write_log = [&] {
    std::filesystem::remove(log_path);  // truncating a file takes longer
    const Log log(log_path, PERFMAP_JITLOG_COUNTER, loop);
    for (int i = 0; i < kBuffers; ++i) log.record(kBuffer);
  };
  write_log();
  const std::string text(std::filesystem::file_size(log_path), 'x');
  return compare_cpu(
      7, [&] { return thread_ms(write_log); },
      [&] { return thread_ms([&] { write_plainly(path, text); }); });
}

}  // namespace

void bench_jitlog(const Files& files) {
  bench_event(files);
  const Paired brief = compare_written(files.out, kShortLoop);
  print_row("the same, and written: ns", ns_each(brief.ours_ms, kEvents),
            ns_each(brief.limit_ms, kEvents), brief.ours_ms * 1e6 / kEvents, 60);
  const Paired usual = compare_written(files.out, kUsualLoop);
  print_row("with PyPy's names: ns", ns_each(usual.ours_ms, kEvents),
            ns_each(usual.limit_ms, kEvents), usual.ours_ms * 1e6 / kEvents, 60);
}

}  // namespace perfmap::bench
