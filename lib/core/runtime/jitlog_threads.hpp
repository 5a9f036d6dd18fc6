#pragma once

#include <cstdint>
#include <memory>

#include "runtime/jitlog_buffer.hpp"

namespace perfmap {

class JitlogEngine;

/// The log that the calling thread recorded in last, in this process, and its buffer there.
struct JitlogHere {
  std::uint64_t key = 0;
  JitlogBuffer* buffer = nullptr;
};
inline constinit thread_local JitlogHere jitlog_here{};

/// All logs in which the calling thread has recorded. When it ends, it leaves them.
struct JitlogThread {
  /// Its buffer there, joined in that generation of processes; nullptr: none.
  static JitlogBuffer* find(const JitlogEngine& engine, unsigned generation) noexcept;
  /// Forgets logs that have been closed, too.
  static void add(std::shared_ptr<JitlogEngine> engine, JitlogBuffer& buffer, unsigned generation);
  /// In a child that goes on with the buffer.
  static void renew(const JitlogEngine& engine, unsigned generation) noexcept;
};

}  // namespace perfmap
