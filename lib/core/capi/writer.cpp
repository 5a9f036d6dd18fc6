#include "perfmap/writer.hpp"

#include <cerrno>
#include <vector>

#include "capi/guard.hpp"

using perfmap::JitdumpWriter;
using perfmap::JitlogWriter;
using perfmap::MapWriter;
using perfmap::Trampoline;
using perfmap::TrampolineArena;
using perfmap::capi::copy_in;
using perfmap::capi::copy_out;
using perfmap::capi::guard;
using perfmap::capi::report;

struct perfmap_writer {
  MapWriter writer;
};
struct perfmap_jitdump {
  JitdumpWriter writer;
};
struct perfmap_jitlog {
  JitlogWriter writer;
};
struct perfmap_trampoline_arena {
  TrampolineArena arena;
};
struct perfmap_trampoline {
  Trampoline trampoline;
};

namespace {

perfmap::ForkPolicy fork_of(int32_t fork) {
  switch (fork) {
    case PERFMAP_FORK_INHERIT: return perfmap::ForkPolicy::inherit;
    case PERFMAP_FORK_OFF: return perfmap::ForkPolicy::off;
    default: return perfmap::ForkPolicy::fresh;
  }
}

perfmap::NamePolicy names_of(int32_t names) {
  return names == PERFMAP_NAMES_REFUSE ? perfmap::NamePolicy::refuse : perfmap::NamePolicy::escape;
}

std::string_view view_of(const void* bytes, std::size_t size) {
  return bytes == nullptr ? std::string_view()
                          : std::string_view(static_cast<const char*>(bytes), size);
}

template <class Options>
perfmap::WriterOptions writer_options(const Options& given, bool own_map) {
  return {.names = names_of(given.names),
          .own_map = own_map,
          .buffer_bytes = given.buffer_bytes,
          .flush_after_ns = given.flush_after_ns,
          .max_bytes = given.most_bytes,
          .on_full = given.on_full,
          .on_full_context = given.on_full_context,
          .mapped = given.mapped != 0};
}

template <class Writer, class Handle>
perfmap_status hand_over(perfmap::Result<Writer> made, Handle** out, perfmap_error* error) {
  if (!made) return report(made.error(), error);
  *out = new Handle{*std::move(made)};
  return PERFMAP_OK;
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
    wanted.writer = writer_options(given, true);
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
    return hand_over(MapWriter::open(path, writer_options(given, given.own_map != 0)), out, error);
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

namespace {

perfmap::JitdumpOptions options_of(const perfmap_jitdump_options* options) {
  const perfmap_jitdump_options given = copy_in(options);
  return {.pid = given.pid,
          .marker = given.no_marker == 0,
          .close_record = given.no_close_record == 0,
          .own_dump = given.own_dump != 0,
          .names = names_of(given.names),
          .process_map = given.state_map != 0,
          .max_bytes = given.most_bytes,
          .fork = fork_of(given.fork)};
}

std::vector<perfmap::LineRecord> lines_of(const perfmap_jitdump_function& function) {
  std::vector<perfmap::LineRecord> lines;
  lines.reserve(function.line_count);
  for (std::size_t i = 0; i < function.line_count; ++i) {
    const perfmap_jitdump_line& line = function.lines[i];
    lines.push_back({.address = line.address,
                     .line = line.line,
                     .column = line.column,
                     .file = line.file == nullptr ? std::string_view() : line.file});
  }
  return lines;
}

}  // namespace

perfmap_status perfmap_jitdump_open_own(const char* directory,
                                        const perfmap_jitdump_options* options,
                                        perfmap_jitdump** out, perfmap_error* error) {
  return guard(error, [&] {
    const char* const where = directory == nullptr ? "/tmp" : directory;
    return hand_over(JitdumpWriter::open_own(where, options_of(options)), out, error);
  });
}

perfmap_status perfmap_jitdump_open(const char* path, const perfmap_jitdump_options* options,
                                    perfmap_jitdump** out, perfmap_error* error) {
  return guard(
      error, [&] { return hand_over(JitdumpWriter::open(path, options_of(options)), out, error); });
}

perfmap_status perfmap_jitdump_load(perfmap_jitdump* dump, const perfmap_jitdump_function* function,
                                    uint64_t* code_index, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const perfmap_jitdump_function given = copy_in(function);
    const std::vector<perfmap::LineRecord> lines = lines_of(given);
    const auto index = dump->writer.load(
        {.start = given.start,
         .size = given.size,
         .name = view_of(given.name, given.name_size),
         .code = view_of(given.code, given.size),
         .lines = lines,
         .unwinding = {view_of(given.eh_frame, given.eh_frame_size),
                       view_of(given.eh_frame_hdr, given.eh_frame_hdr_size), given.mapped_size},
         .time = given.time});
    if (!index) return report(index.error(), error);
    if (code_index != nullptr) *code_index = *index;
    return PERFMAP_OK;
  });
}

perfmap_status perfmap_jitdump_move(perfmap_jitdump* dump, uint64_t code_index, uint64_t from,
                                    uint64_t to, uint64_t size, perfmap_error* error) {
  return guard(error, [&] { return report(dump->writer.move(code_index, from, to, size), error); });
}

perfmap_status perfmap_jitdump_close(perfmap_jitdump* dump, perfmap_error* error) {
  return guard(error, [&] { return report(dump->writer.close(), error); });
}

void perfmap_jitdump_free(perfmap_jitdump* dump) { delete dump; }

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
    const auto clock = given.clock == PERFMAP_JITLOG_MONOTONIC ? perfmap::JitlogClock::monotonic
                                                               : perfmap::JitlogClock::counter;
    return hand_over(JitlogWriter::open(path, {.clock = clock,
                                               .names = names_of(given.names),
                                               .own_log = given.own_log != 0,
                                               .one_thread = given.one_thread != 0,
                                               .buffer_events = given.buffer_events,
                                               .fork = fork_of(given.fork)}),
                     out, error);
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

perfmap_status perfmap_trampoline_arena_new(const perfmap_trampoline_options* options,
                                            perfmap_trampoline_arena** out, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const perfmap_trampoline_options given = copy_in(options);
    perfmap::TrampolineOptions wanted;
    if (given.prefix != nullptr) wanted.prefix = given.prefix;
    if (given.jitdump_directory != nullptr) wanted.jitdump_directory = given.jitdump_directory;
    wanted.exceptions = given.exceptions != 0;
    return hand_over(TrampolineArena::make(wanted), out, error);
  });
}

void perfmap_trampoline_arena_free(perfmap_trampoline_arena* arena) { delete arena; }

perfmap_status perfmap_trampoline_activate(perfmap_trampoline_arena* arena, int32_t backend,
                                           perfmap_error* error) {
  return guard(error, [&] {
    const auto wanted = static_cast<perfmap::TrampolineBackend>(backend);
    return report(arena->arena.activate(wanted), error);
  });
}

void perfmap_trampoline_deactivate(perfmap_trampoline_arena* arena) { arena->arena.deactivate(); }

void perfmap_trampoline_state(const perfmap_trampoline_arena* arena,
                              perfmap_trampoline_state_info* out) {
  const perfmap::TrampolineState state = arena->arena.state();
  perfmap_trampoline_state_info filled{};
  filled.active = state.active ? 1 : 0;
  filled.backend = state.active ? static_cast<int32_t>(state.backend) : 0;
  filled.compiled = state.compiled;
  filled.failed = state.failed;
  filled.last_errno = state.last_errno;
  filled.mapped_bytes = state.mapped_bytes;
  copy_out(filled, out);
}

perfmap_status perfmap_trampoline_new(perfmap_trampoline_arena* arena,
                                      const perfmap_code_description* code,
                                      perfmap_trampoline** out, perfmap_error* error) {
  return guard(error, [&] {
    const perfmap_code_description given = copy_in(code);
    *out = new perfmap_trampoline{
        arena->arena.add({view_of(given.qualified_name, given.qualified_name_size),
                          view_of(given.file, given.file_size), given.first_line})};
    return PERFMAP_OK;
  });
}

void perfmap_trampoline_free(perfmap_trampoline* trampoline) { delete trampoline; }

perfmap_status perfmap_trampoline_compile(perfmap_trampoline* trampoline, perfmap_error* error) {
  return guard(error, [&] { return report(trampoline->trampoline.compile(), error); });
}

perfmap_trampoline_entry perfmap_trampoline_entry_of(perfmap_trampoline* trampoline) {
  return trampoline == nullptr ? nullptr : trampoline->trampoline.entry();
}

void* perfmap_trampoline_call(perfmap_trampoline* trampoline, void* first, void* second,
                              void* third, perfmap_evaluator evaluator) {
  if (trampoline == nullptr) return evaluator(first, second, third);
  return trampoline->trampoline.call(first, second, third, evaluator);
}
