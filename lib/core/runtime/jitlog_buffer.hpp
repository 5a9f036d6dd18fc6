#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "formats/jitlog_text.hpp"
#include "perfmap/jitlog_writer.hpp"
#include "runtime/spin_mutex.hpp"

namespace perfmap {

/// An event as it is recorded.
struct JitlogEvent {
  std::uint64_t tick;
  JitlogLoop loop;
  std::uint32_t is_exit;
};

/// What one thread has recorded. Its owner alone adds events, without a lock; whoever has the lock
/// may read those that are there, and write them. Only the owner, with the lock, begins anew.
struct JitlogBuffer {
  explicit JitlogBuffer(std::uint32_t size)
      : capacity(size), events(std::make_unique_for_overwrite<JitlogEvent[]>(size)) {}

  void clear() noexcept {
    count.store(0, std::memory_order_release);  // first: a child that is made in between has none
    written = 0;
  }

  std::atomic<std::uint32_t> count{0};
  const std::uint32_t capacity;
  const std::unique_ptr<JitlogEvent[]> events;

  alignas(64) SpinMutex mutex;
  std::uint32_t written = 0;     // of the events; the log's lock is held, too, when it changes
  bool used = true;              // by a thread; with the lock of the list
  std::uint64_t first_tick = 0;  // no event of the thread is before it
  JitlogBuffer* next = nullptr;  // in the log's list
  JitlogPrefix prefix;           // of each line
};

}  // namespace perfmap
