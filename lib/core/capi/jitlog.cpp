#include <cerrno>

#include "capi/fork_policy.hpp"
#include "capi/guard.hpp"
#include "perfmap/jitlog_writer.hpp"

using perfmap::JitlogWriter;
using perfmap::capi::copy_in;
using perfmap::capi::guard;
using perfmap::capi::report;

struct perfmap_jitlog {
  JitlogWriter writer;
};

namespace {

perfmap_status status_of(int error) noexcept {
  switch (error) {
    case 0: return PERFMAP_OK;
    case EINVAL: return PERFMAP_E_INVALID_ARGUMENT;
    case EPERM: return PERFMAP_E_REFUSED;
    case ENOMEM: return PERFMAP_E_NO_MEMORY;
    default: return PERFMAP_E_IO;
  }
}

}  // namespace

perfmap_status perfmap_jitlog_open(const char* path, const perfmap_jitlog_options* options,
                                   perfmap_jitlog** out, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const perfmap_jitlog_options given = copy_in(options);
    auto writer = JitlogWriter::open(
        path, {.clock = given.clock == PERFMAP_JITLOG_MONOTONIC ? perfmap::JitlogClock::monotonic
                                                                : perfmap::JitlogClock::counter,
               .names = given.names == PERFMAP_NAMES_REFUSE ? perfmap::NamePolicy::refuse
                                                            : perfmap::NamePolicy::escape,
               .own_log = given.own_log != 0,
               .one_thread = given.one_thread != 0,
               .buffer_events = given.buffer_events,
               .fork = perfmap::capi::fork_of(given.fork)});
    if (!writer) return report(writer.error(), error);
    *out = new perfmap_jitlog{*std::move(writer)};
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_jitlog_loop(perfmap_jitlog* log, const char* name, size_t name_size,
                                   uint32_t* loop, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const auto number = log->writer.loop({name, name_size});
    if (!number) return report(number.error(), error);
    *loop = *number;
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_jitlog_enter(perfmap_jitlog* log, uint32_t loop) {
  return status_of(log->writer.enter(loop));
}

perfmap_status perfmap_jitlog_exit(perfmap_jitlog* log, uint32_t loop) {
  return status_of(log->writer.exit(loop));
}

perfmap_status perfmap_jitlog_flush(perfmap_jitlog* log, perfmap_error* error) {
  return guard(error, [&] { return report(log->writer.flush(), error); });
}

perfmap_status perfmap_jitlog_close(perfmap_jitlog* log, perfmap_error* error) {
  return guard(error, [&] { return report(log->writer.close(), error); });
}

uint64_t perfmap_jitlog_lost(const perfmap_jitlog* log) { return log->writer.lost(); }

void perfmap_jitlog_free(perfmap_jitlog* log) { delete log; }
