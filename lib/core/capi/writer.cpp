#include "perfmap/writer.hpp"

#include <cerrno>

#include "capi/fork_policy.hpp"
#include "capi/guard.hpp"
#include "perfmap/process_map.hpp"

using perfmap::MapWriter;
using perfmap::capi::copy_in;
using perfmap::capi::fork_of;
using perfmap::capi::guard;
using perfmap::capi::report;

struct perfmap_writer {
  MapWriter writer;
};

namespace {

perfmap::NamePolicy names_of(int32_t names) {
  return names == PERFMAP_NAMES_REFUSE ? perfmap::NamePolicy::refuse : perfmap::NamePolicy::escape;
}

}  // namespace

int perfmap_state_configure(const perfmap_state_options* options) {
  const perfmap_state_options given = copy_in(options);
  int answer = -1;
  const perfmap_status status = guard(nullptr, [&] {
    perfmap::ProcessMapOptions wanted;
    if (given.directory != nullptr) wanted.directory = given.directory;
    wanted.fork = fork_of(given.fork);
    wanted.stale = given.keep_stale != 0 ? perfmap::StaleMap::keep : perfmap::StaleMap::empty;
    wanted.writer = {.names = names_of(given.names),
                     .own_map = true,
                     .buffer_bytes = given.buffer_bytes,
                     .flush_after_ns = given.flush_after_ns,
                     .max_bytes = given.most_bytes,
                     .on_full = given.on_full,
                     .on_full_context = given.on_full_context,
                     .mapped = given.mapped != 0};
    answer = perfmap::ProcessMap::configure(wanted);
    return PERFMAP_OK;
  });
  if (status != PERFMAP_OK) errno = ENOMEM;
  return answer;
}

int perfmap_state_set_fork(int32_t policy) {
  if (policy < PERFMAP_FORK_FRESH || policy > PERFMAP_FORK_OFF) {
    errno = EINVAL;
    return -1;
  }
  return perfmap::ProcessMap::set_fork_policy(fork_of(policy));
}

perfmap_state_start perfmap_state_began_with(void) {
  return static_cast<perfmap_state_start>(perfmap::ProcessMap::start());
}

int perfmap_state_init(void) { return perfmap::ProcessMap::init(); }

int perfmap_state_write_entry(const void* code, size_t size, const char* name) {
  if (name == nullptr) {
    errno = EINVAL;
    return -1;
  }
  return perfmap::ProcessMap::write(reinterpret_cast<std::uintptr_t>(code), size, name);
}

int perfmap_state_copy_file(const char* path) { return perfmap::ProcessMap::copy(path); }
int perfmap_state_flush(void) { return perfmap::ProcessMap::flush(); }
int perfmap_state_fini(void) { return perfmap::ProcessMap::fini(); }

perfmap_status perfmap_writer_open(const char* path, const perfmap_writer_options* options,
                                   perfmap_writer** out, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    if (path == nullptr || out == nullptr) {
      return report(
          {perfmap::Errc::invalid_argument, "no path, or nowhere to put a writer", EINVAL, {}},
          error);
    }
    const perfmap_writer_options given = copy_in(options);
    perfmap::Result<MapWriter> writer =
        MapWriter::open(path, {.names = names_of(given.names),
                               .own_map = given.own_map != 0,
                               .buffer_bytes = given.buffer_bytes,
                               .flush_after_ns = given.flush_after_ns,
                               .max_bytes = given.most_bytes,
                               .on_full = given.on_full,
                               .on_full_context = given.on_full_context,
                               .mapped = given.mapped != 0});
    if (!writer) return report(writer.error(), error);
    *out = new perfmap_writer{*std::move(writer)};
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_writer_write(perfmap_writer* writer, uint64_t start, uint64_t size,
                                    const char* name, size_t name_size, perfmap_error* error) {
  return guard(error, [&] {
    return report(writer->writer.write(start, size, {name, name_size}), error);
  });
}

perfmap_status perfmap_writer_copy(perfmap_writer* writer, const char* path, perfmap_error* error) {
  return guard(error, [&] { return report(writer->writer.copy(path), error); });
}

perfmap_status perfmap_writer_flush(perfmap_writer* writer, perfmap_error* error) {
  return guard(error, [&] { return report(writer->writer.flush(), error); });
}

perfmap_status perfmap_writer_close(perfmap_writer* writer, perfmap_error* error) {
  return guard(error, [&] { return report(writer->writer.close(), error); });
}

void perfmap_writer_free(perfmap_writer* writer) { delete writer; }
