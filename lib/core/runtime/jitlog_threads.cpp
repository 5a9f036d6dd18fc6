#include "runtime/jitlog_threads.hpp"

#include <utility>
#include <vector>

#include "runtime/jitlog_engine.hpp"

namespace perfmap {
namespace {

struct Joined {
  std::shared_ptr<JitlogEngine> engine;
  JitlogBuffer* buffer;
  unsigned generation;
};
using Logs = std::vector<Joined>;

/// Not an object: destructors of other objects of the thread may record after AtEnd's.
constinit thread_local Logs* logs = nullptr;

struct AtEnd {
  AtEnd() noexcept = default;
  AtEnd(const AtEnd&) = delete;
  ~AtEnd() {
    jitlog_here = {};
    const std::unique_ptr<Logs> left(std::exchange(logs, nullptr));
    if (left == nullptr) return;
    for (const Joined& log : *left) log.engine->leave(*log.buffer, log.generation);
  }
  bool used = false;
};
thread_local AtEnd at_end;

}  // namespace

JitlogBuffer* JitlogThread::find(const JitlogEngine& engine, unsigned generation) noexcept {
  if (logs == nullptr) return nullptr;
  for (const Joined& log : *logs) {
    if (log.engine.get() == &engine && log.generation == generation) return log.buffer;
  }
  return nullptr;
}

void JitlogThread::add(std::shared_ptr<JitlogEngine> engine, JitlogBuffer& buffer,
                       unsigned generation) {
  if (logs == nullptr) {
    logs = new Logs;
    at_end.used = true;
  }
  std::erase_if(*logs, [&](const Joined& log) {
    return !log.engine->is_recording() || (log.engine == engine && log.generation != generation);
  });
  logs->push_back({std::move(engine), &buffer, generation});
}

void JitlogThread::renew(const JitlogEngine& engine, unsigned generation) noexcept {
  if (logs == nullptr) return;
  for (Joined& log : *logs) {
    if (log.engine.get() == &engine) log.generation = generation;
  }
}

}  // namespace perfmap
