// SPDX-License-Identifier: MIT
// The C interface of the writers. Needs libc alone, and throws nothing.

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/c_struct.hpp"
#include "perfmap_writer.h"
#include "writer/engines.hpp"
#include "writer/messages.hpp"
#include "writer/process_map.hpp"
#include "writer/trampoline.hpp"
#include "writer/truncation_guard.hpp"
#include "writer/unwinding.hpp"

using perfmap::CodeDescription;
using perfmap::destroy_object;
using perfmap::DumpEngine;
using perfmap::DumpFault;
using perfmap::FrameRules;
using perfmap::JitlogEngine;
using perfmap::make_object;
using perfmap::MapEngine;
using perfmap::message_of;
using perfmap::TrampolineEngine;
using perfmap::TrampolineSlot;
using perfmap::WriterMessage;
using perfmap::capi::copy_in;
using perfmap::capi::copy_out;
using perfmap::capi::is_complete;
namespace own_map = perfmap::own_map;

struct perfmap_writer {
  MapEngine engine;
};
struct perfmap_jitdump {
  explicit perfmap_jitdump(const perfmap::JitdumpOptions& options) noexcept : engine(options) {}
  DumpEngine engine;
};
struct perfmap_jitlog {
  explicit perfmap_jitlog(JitlogEngine* made) noexcept : engine(made) {}
  perfmap_jitlog(const perfmap_jitlog&) = delete;
  perfmap_jitlog& operator=(const perfmap_jitlog&) = delete;
  ~perfmap_jitlog() {
    engine->close();
    engine->release();
  }
  JitlogEngine* const engine;
};
struct perfmap_trampoline_arena {
  perfmap_trampoline_arena(const perfmap::TrampolineCode& machine, std::string_view prefix,
                           std::string_view directory, bool exceptions) noexcept
      : engine(machine, prefix, directory, exceptions) {}
  TrampolineEngine engine;
};
struct perfmap_trampoline {
  perfmap_trampoline(TrampolineEngine& engine, const CodeDescription& code) noexcept
      : slot(engine, code) {}
  TrampolineSlot slot;
};

struct perfmap_truncation_guard {
  perfmap_truncation_guard() noexcept { perfmap::hold_truncation_guard(); }
  ~perfmap_truncation_guard() { perfmap::drop_truncation_guard(); }
  perfmap_truncation_guard(const perfmap_truncation_guard&) = delete;
  perfmap_truncation_guard& operator=(const perfmap_truncation_guard&) = delete;
};

namespace {

perfmap::ForkPolicy fork_of(int32_t fork) noexcept {
  switch (fork) {
    case PERFMAP_FORK_INHERIT: return perfmap::ForkPolicy::inherit;
    case PERFMAP_FORK_OFF: return perfmap::ForkPolicy::off;
    default: return perfmap::ForkPolicy::fresh;
  }
}

perfmap::NamePolicy names_of(int32_t names) noexcept {
  return names == PERFMAP_NAMES_REFUSE ? perfmap::NamePolicy::refuse : perfmap::NamePolicy::escape;
}

constexpr const char* kNoName = "name: NULL, but its size is not 0";
constexpr const char* kNoForkPolicy = "fork: no such policy";
constexpr const char* kNoNamePolicy = "names: no such policy";

bool is_fork_policy(int32_t fork) noexcept {
  return fork >= PERFMAP_FORK_FRESH && fork <= PERFMAP_FORK_OFF;
}
bool is_name_policy(int32_t names) noexcept {
  return names == PERFMAP_NAMES_ESCAPE || names == PERFMAP_NAMES_REFUSE;
}
/// Options with a policy that does not exist: why they are refused; nullptr if they are not.
template <class Options>
const char* unknown_policy(const Options& given) noexcept {
  if constexpr (requires { given.fork; }) {
    if (!is_fork_policy(given.fork)) return kNoForkPolicy;
  }
  return is_name_policy(given.names) ? nullptr : kNoNamePolicy;
}

std::string_view view_of(const void* bytes, std::size_t size) noexcept {
  return bytes == nullptr ? std::string_view()
                          : std::string_view(static_cast<const char*>(bytes), size);
}

template <class Options>
perfmap::WriterOptions writer_options(const Options& given, bool own_map) noexcept {
  return {.names = names_of(given.names),
          .own_map = own_map,
          .buffer_bytes = given.buffer_bytes,
          .flush_after_ns = given.flush_after_ns,
          .max_bytes = given.most_bytes,
          .on_full = given.on_full,
          .on_full_context = given.on_full_context,
          .mapped = given.mapped != 0};
}

perfmap_status fail(const WriterMessage& message, perfmap_error* out) noexcept {
  if (out != nullptr) {
    perfmap_error filled{};
    filled.sys_errno = message.sys_errno;
    filled.reason = message.reason;
    const auto put = [](const char* from, auto& to) {
      std::memcpy(to, from, std::min(std::strlen(from), sizeof to - 1));
    };
    put(message.text, filled.message);
    put(message.path, filled.path);
    copy_out(filled, out);
  }
  return static_cast<perfmap_status>(message.status);
}

perfmap_status refuse(const char* why, perfmap_error* out) noexcept {
  return fail(perfmap::argument_message(why), is_complete(out) ? out : nullptr);
}

/// Whether all structs of a call have their struct_size; `error` is among them.
template <class... Structs>
perfmap_status check(perfmap_error* error, const Structs*... given) noexcept {
  if (is_complete(error) && (is_complete(given) && ...)) return PERFMAP_OK;
  return refuse("struct_size: smaller than the struct", error);
}

perfmap_status no_memory(perfmap_error* out) noexcept {
  return fail(message_of("cannot make", "a writer", ENOMEM), out);
}

/// The result of a call on the file of an engine.
perfmap_status result(perfmap::ForkSafeFile& file, const char* what, int error,
                      perfmap_error* out) noexcept {
  if (error == 0) [[likely]]
    return PERFMAP_OK;
  char path[perfmap::ForkSafeFile::kMaxPath];
  file.copy_path(path);
  return fail(message_of(what, path, error), out);
}

std::size_t copy_path(perfmap::ForkSafeFile& file, char* out, std::size_t size) noexcept {
  char path[perfmap::ForkSafeFile::kMaxPath];
  file.copy_path(path);
  const std::size_t length = std::strlen(path);
  if (size != 0) {
    const std::size_t kept = std::min(length, size - 1);
    std::memcpy(out, path, kept);
    out[kept] = '\0';
  }
  return length;
}

}  // namespace

const char* perfmap_version(void) { return PERFMAP_VERSION; }

const char* perfmap_status_text(perfmap_status status) {
  switch (status) {
    case PERFMAP_OK: return "done";
    case PERFMAP_E_IO: return "a system call failed";
    case PERFMAP_E_NOT_FOUND: return "not found";
    case PERFMAP_E_BAD_FORMAT: return "the input is malformed";
    case PERFMAP_E_UNSUPPORTED: return "this kind of input is not supported";
    case PERFMAP_E_INVALID_ARGUMENT: return "an argument is invalid";
    case PERFMAP_E_REFUSED: return "the file is not trusted";
    case PERFMAP_E_TOO_LARGE: return "the input is too large";
    case PERFMAP_E_NO_MEMORY: return "out of memory";
    case PERFMAP_E_INTERNAL: return "internal error: a bug in perfmap";
  }
  return "no such status";
}

int perfmap_state_configure(const perfmap_state_options* options) {
  if (!is_complete(options)) return own_map::refuse("struct_size: smaller than the struct");
  const perfmap_state_options given = copy_in(options);
  if (const char* const why = unknown_policy(given); why != nullptr) return own_map::refuse(why);
  return own_map::configure(
      given.directory == nullptr ? "/tmp" : given.directory, writer_options(given, true),
      given.keep_stale != 0 ? perfmap::StaleMap::keep : perfmap::StaleMap::empty,
      fork_of(given.fork));
}

int perfmap_state_set_fork(int32_t policy) {
  if (!is_fork_policy(policy)) return own_map::refuse(kNoForkPolicy);
  return own_map::set_fork_policy(fork_of(policy));
}

perfmap_state_start perfmap_state_began_with(void) {
  return static_cast<perfmap_state_start>(own_map::start());
}

int perfmap_state_init(void) { return own_map::init(); }

int perfmap_state_write_entry(const void* code, size_t size, const char* name) {
  if (name == nullptr) return own_map::refuse("name: NULL");
  return own_map::write(reinterpret_cast<std::uintptr_t>(code), size, name);
}

int perfmap_state_copy_file(const char* path) { return own_map::copy(path); }
int perfmap_state_flush(void) { return own_map::flush(); }
int perfmap_state_fini(void) { return own_map::fini(); }

size_t perfmap_state_path(char* out, size_t size) { return copy_path(own_map::file(), out, size); }

perfmap_status perfmap_state_last_error(perfmap_error* out) {
  if (!is_complete(out)) return PERFMAP_E_INVALID_ARGUMENT;
  const own_map::Failure last = own_map::last_failure();
  if (last.error == 0) return PERFMAP_OK;
  if (last.is_whole) return fail(perfmap::whole_message(last.what, last.error), out);
  if (last.from != nullptr) {
    char path[perfmap::ForkSafeFile::kMaxPath];
    own_map::file().copy_path(path);
    return fail(perfmap::copy_message(last.from, path, last.error), out);
  }
  return result(own_map::file(), last.what, last.error, out);
}

perfmap_status perfmap_writer_open(const char* path, const perfmap_writer_options* options,
                                   perfmap_writer** out, perfmap_error* error) {
  if (const perfmap_status status = check(error, options); status != PERFMAP_OK) return status;
  if (path == nullptr || out == nullptr)
    return refuse(path == nullptr ? "path: NULL" : "out: NULL", error);
  const perfmap_writer_options given = copy_in(options);
  if (const char* const why = unknown_policy(given); why != nullptr) return refuse(why, error);
  auto* const made = make_object<perfmap_writer>();
  if (made == nullptr) return no_memory(error);
  made->engine.join_list();
  made->engine.set_options(writer_options(given, given.own_map != 0));
  if (const int failed = made->engine.open(path); failed != 0) {
    destroy_object(made);
    return fail(message_of("cannot open", path, failed), error);
  }
  *out = made;
  return PERFMAP_OK;
}

perfmap_status perfmap_writer_write(perfmap_writer* writer, uint64_t start, uint64_t size,
                                    const char* name, size_t name_size, perfmap_error* error) {
  if (const perfmap_status status = check(error); status != PERFMAP_OK) return status;
  if (name == nullptr && name_size != 0) return refuse(kNoName, error);
  const int failed = writer->engine.write(start, size, view_of(name, name_size));
  if (failed == 0) [[likely]]
    return PERFMAP_OK;
  const char* const why = failed == EINVAL ? writer->engine.what_is_wrong(start, size) : nullptr;
  return why != nullptr ? refuse(why, error)
                        : result(writer->engine, "cannot write", failed, error);
}

perfmap_status perfmap_writer_copy(perfmap_writer* writer, const char* path, perfmap_error* error) {
  if (const perfmap_status status = check(error); status != PERFMAP_OK) return status;
  if (path == nullptr) return refuse("path: NULL", error);
  const int failed = writer->engine.copy(path);
  if (failed == 0) return PERFMAP_OK;
  char target[perfmap::ForkSafeFile::kMaxPath];
  writer->engine.copy_path(target);
  return fail(perfmap::copy_message(path, target, failed), error);
}

perfmap_status perfmap_writer_flush(perfmap_writer* writer, perfmap_error* error) {
  if (const perfmap_status status = check(error); status != PERFMAP_OK) return status;
  return result(writer->engine, "cannot write", writer->engine.flush(), error);
}

perfmap_status perfmap_writer_close(perfmap_writer* writer, perfmap_error* error) {
  if (const perfmap_status status = check(error); status != PERFMAP_OK) return status;
  return result(writer->engine, "cannot close", writer->engine.close(), error);
}

size_t perfmap_writer_path(perfmap_writer* writer, char* out, size_t size) {
  return copy_path(writer->engine, out, size);
}

void perfmap_writer_free(perfmap_writer* writer) { destroy_object(writer); }

perfmap_status perfmap_truncation_guard_new(perfmap_truncation_guard** out, perfmap_error* error) {
  if (const perfmap_status status = check(error); status != PERFMAP_OK) return status;
  if (out == nullptr) return refuse("out: NULL", error);
  auto* const made = make_object<perfmap_truncation_guard>();
  if (made == nullptr) return no_memory(error);
  *out = made;
  return PERFMAP_OK;
}

void perfmap_truncation_guard_free(perfmap_truncation_guard* guard) { destroy_object(guard); }

namespace {

perfmap::JitdumpOptions options_of(const perfmap_jitdump_options& given) noexcept {
  return {.pid = given.pid,
          .marker = given.no_marker == 0,
          .close_record = given.no_close_record == 0,
          .own_dump = given.own_dump != 0,
          .names = names_of(given.names),
          .process_map = given.state_map != 0,
          .max_bytes = given.most_bytes,
          .fork = fork_of(given.fork)};
}

template <class Open>
perfmap_status open_dump(const perfmap_jitdump_options* options, perfmap_jitdump** out,
                         perfmap_error* error, Open open) noexcept {
  if (const perfmap_status status = check(error, options); status != PERFMAP_OK) return status;
  if (out == nullptr) return refuse("out: NULL", error);
  const perfmap_jitdump_options given = copy_in(options);
  if (const char* const why = unknown_policy(given); why != nullptr) return refuse(why, error);
  if (given.pid < 0) return refuse("pid: negative", error);
  if (const int failed = perfmap::ForkHandlers::install(); failed != 0) {
    return fail(message_of("cannot prepare for", "fork", failed), error);
  }
  auto* const made = make_object<perfmap_jitdump>(options_of(given));
  if (made == nullptr) return no_memory(error);
  made->engine.join_list();
  DumpFault fault;
  if (open(made->engine, fault)) {
    *out = made;
    return PERFMAP_OK;
  }
  char path[perfmap::ForkSafeFile::kMaxPath];
  made->engine.copy_path(path);
  destroy_object(made);
  return fail(perfmap::dump_message(fault, path), error);
}

/// A NULL whose size says that something is there; nullptr if there is none.
const char* missing_member(const perfmap_jitdump_function& function) noexcept {
  if (function.name == nullptr && function.name_size != 0) return kNoName;
  if (function.lines == nullptr && function.line_count != 0)
    return "lines: NULL, but line_count is not 0";
  for (std::size_t i = 0; i < function.line_count; ++i) {
    const perfmap_jitdump_line& line = function.lines[i];
    if (line.file == nullptr) return "lines: a file is NULL";
    if (line.line < 0 || line.column < 0) return "lines: a line or a column is negative";
  }
  if (function.eh_frame == nullptr && function.eh_frame_size != 0)
    return "eh_frame: NULL, but its size is not 0";
  if (function.eh_frame_hdr == nullptr && function.eh_frame_hdr_size != 0)
    return "eh_frame_hdr: NULL, but its size is not 0";
  return nullptr;
}

/// The lines of a function, copied to the engine's form.
class Lines {
 public:
  explicit Lines(const perfmap_jitdump_function& function) noexcept
      : count_(function.lines == nullptr ? 0 : function.line_count),
        lines_(count_ == 0 ? nullptr
                           : static_cast<perfmap::LineRecord*>(
                                 std::calloc(count_, sizeof(perfmap::LineRecord)))) {
    for (std::size_t i = 0; lines_ != nullptr && i < count_; ++i) {
      const perfmap_jitdump_line& line = function.lines[i];
      lines_[i].address = line.address;
      lines_[i].line = line.line;
      lines_[i].column = line.column;
      if (line.file != nullptr) lines_[i].file = line.file;
    }
  }
  ~Lines() { std::free(lines_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  bool is_whole() const noexcept { return count_ == 0 || lines_ != nullptr; }
  std::span<const perfmap::LineRecord> get() const noexcept { return {lines_, count_}; }

 private:
  std::size_t count_;
  perfmap::LineRecord* lines_;
};

}  // namespace

perfmap_status perfmap_jitdump_open_own(const char* directory,
                                        const perfmap_jitdump_options* options,
                                        perfmap_jitdump** out, perfmap_error* error) {
  return open_dump(options, out, error, [&](DumpEngine& engine, DumpFault& fault) {
    return engine.open_own(directory == nullptr ? "/tmp" : directory, fault);
  });
}

perfmap_status perfmap_jitdump_open(const char* path, const perfmap_jitdump_options* options,
                                    perfmap_jitdump** out, perfmap_error* error) {
  if (path == nullptr) return refuse("path: NULL", error);
  return open_dump(options, out, error,
                   [&](DumpEngine& engine, DumpFault& fault) { return engine.open(path, fault); });
}

perfmap_status perfmap_jitdump_load(perfmap_jitdump* dump, const perfmap_jitdump_function* function,
                                    uint64_t* code_index, perfmap_error* error) {
  if (const perfmap_status status = check(error, function); status != PERFMAP_OK) return status;
  const perfmap_jitdump_function given = copy_in(function);
  if (const char* const why = missing_member(given); why != nullptr) return refuse(why, error);
  const Lines lines(given);
  const perfmap::JitFunction described = {
      .start = given.start,
      .size = given.size,
      .name = view_of(given.name, given.name_size),
      .code = view_of(given.code, given.size),
      .lines = lines.get(),
      .unwinding = {view_of(given.eh_frame, given.eh_frame_size),
                    view_of(given.eh_frame_hdr, given.eh_frame_hdr_size), given.mapped_size},
      .time = given.time};
  std::uint64_t index = 0;
  bool in_map = false;
  const int failed = lines.is_whole() ? dump->engine.load(described, index, in_map) : ENOMEM;
  if (failed != 0 && in_map) {
    if (code_index != nullptr) *code_index = index;
    return result(own_map::file(), "cannot write", failed, error);
  }
  if (failed == EINVAL) return refuse(dump->engine.what_is_wrong(described), error);
  if (failed != 0) return result(dump->engine, "cannot write", failed, error);
  if (code_index != nullptr) *code_index = index;
  return PERFMAP_OK;
}

perfmap_status perfmap_jitdump_move(perfmap_jitdump* dump, uint64_t code_index, uint64_t from,
                                    uint64_t to, uint64_t size, perfmap_error* error) {
  if (const perfmap_status status = check(error); status != PERFMAP_OK) return status;
  const int failed = dump->engine.move(code_index, from, to, size);
  if (failed == EINVAL) return refuse(DumpEngine::what_is_wrong_with_move(from, to, size), error);
  return result(dump->engine, "cannot write", failed, error);
}

perfmap_status perfmap_jitdump_close(perfmap_jitdump* dump, perfmap_error* error) {
  if (const perfmap_status status = check(error); status != PERFMAP_OK) return status;
  return result(dump->engine, "cannot close", dump->engine.close(), error);
}

size_t perfmap_jitdump_path(perfmap_jitdump* dump, char* out, size_t size) {
  return copy_path(dump->engine, out, size);
}

void perfmap_jitdump_free(perfmap_jitdump* dump) { destroy_object(dump); }

namespace {

/// Writes the sections to `room` and points the function to them.
perfmap_status add_unwinding(perfmap_jitdump_function* function, const FrameRules& rules,
                             void* room, std::size_t room_size) noexcept {
  if (function->size == 0) return PERFMAP_E_INVALID_ARGUMENT;
  auto* const bytes = static_cast<char*>(room);
  const perfmap::UnwindingSizes sizes =
      perfmap::write_unwinding({bytes, room_size}, rules, function->size, function->size);
  if (sizes.header == 0) return PERFMAP_E_TOO_LARGE;
  function->eh_frame = bytes;
  function->eh_frame_size = sizes.frame;
  function->eh_frame_hdr = bytes + sizes.frame;
  function->eh_frame_hdr_size = sizes.header;
  return PERFMAP_OK;
}

perfmap_status status_of(int error) noexcept {
  return static_cast<perfmap_status>(perfmap::status_of(error));
}

}  // namespace

perfmap_status perfmap_unwind_frame_pointer(perfmap_jitdump_function* function, void* room,
                                            size_t room_size) {
  if (!is_complete(function)) return PERFMAP_E_INVALID_ARGUMENT;
  FrameRules rules;
  const int failed = perfmap::frame_pointer_rules(rules);
  return failed != 0 ? status_of(failed) : add_unwinding(function, rules, room, room_size);
}

perfmap_status perfmap_unwind_no_frame(perfmap_jitdump_function* function, uint32_t sp_offset,
                                       void* room, size_t room_size) {
  if (!is_complete(function)) return PERFMAP_E_INVALID_ARGUMENT;
  FrameRules rules;
  char instructions[16];
  const int failed = perfmap::no_frame_rules(rules, instructions, sp_offset);
  return failed != 0 ? status_of(failed) : add_unwinding(function, rules, room, room_size);
}

perfmap_status perfmap_unwind_from_fde(perfmap_jitdump_function* function, const void* cie,
                                       size_t cie_size, const void* fde, size_t fde_size,
                                       void* room, size_t room_size) {
  if (!is_complete(function)) return PERFMAP_E_INVALID_ARGUMENT;
  FrameRules rules;
  const int failed = perfmap::rules_of_fde(rules, view_of(cie, cie_size), view_of(fde, fde_size));
  return failed != 0 ? status_of(failed) : add_unwinding(function, rules, room, room_size);
}

perfmap_status perfmap_unwind_from_eh_frame(perfmap_jitdump_function* function,
                                            const void* eh_frame, size_t size, uint64_t address,
                                            void* room, size_t room_size) {
  if (!is_complete(function)) return PERFMAP_E_INVALID_ARGUMENT;
  std::string_view cie;
  std::string_view fde;
  const int failed = perfmap::find_fde(view_of(eh_frame, size), address, function->start, cie, fde);
  if (failed != 0) return status_of(failed);
  return perfmap_unwind_from_fde(function, cie.data(), cie.size(), fde.data(), fde.size(), room,
                                 room_size);
}

perfmap_status perfmap_jitlog_open(const char* path, const perfmap_jitlog_options* options,
                                   perfmap_jitlog** out, perfmap_error* error) {
  if (const perfmap_status status = check(error, options); status != PERFMAP_OK) return status;
  if (path == nullptr || out == nullptr)
    return refuse(path == nullptr ? "path: NULL" : "out: NULL", error);
  const perfmap_jitlog_options given = copy_in(options);
  if (const char* const why = unknown_policy(given); why != nullptr) return refuse(why, error);
  if (given.clock != PERFMAP_JITLOG_COUNTER && given.clock != PERFMAP_JITLOG_MONOTONIC)
    return refuse("clock: no such clock", error);
  const perfmap::JitlogTicks ticks(given.clock == PERFMAP_JITLOG_MONOTONIC
                                       ? perfmap::JitlogClock::monotonic
                                       : perfmap::JitlogClock::counter);
  if (!ticks.exists()) return fail(perfmap::no_counter_message(), error);
  if (const int failed = perfmap::ForkHandlers::install(); failed != 0) {
    return fail(message_of("cannot prepare for", "fork", failed), error);
  }
  JitlogEngine* const engine = JitlogEngine::make_engine({.names = names_of(given.names),
                                                          .own_log = given.own_log != 0,
                                                          .one_thread = given.one_thread != 0,
                                                          .buffer_events = given.buffer_events,
                                                          .fork = fork_of(given.fork)},
                                                         ticks);
  if (engine == nullptr) return no_memory(error);
  auto* const made = make_object<perfmap_jitlog>(engine);
  if (made == nullptr) {
    engine->release();
    return no_memory(error);
  }
  engine->join_list();
  if (const int failed = engine->open(path); failed != 0) {
    char named[perfmap::ForkSafeFile::kMaxPath];
    engine->copy_path(named);
    destroy_object(made);
    return fail(perfmap::log_message(named, failed), error);
  }
  *out = made;
  return PERFMAP_OK;
}

perfmap_status perfmap_jitlog_loop(perfmap_jitlog* log, const char* name, size_t name_size,
                                   uint32_t* loop, perfmap_error* error) {
  if (const perfmap_status status = check(error); status != PERFMAP_OK) return status;
  perfmap::JitlogLoop number = 0;
  if (name == nullptr && name_size != 0) return refuse(kNoName, error);
  const int failed = log->engine->loop(view_of(name, name_size), number);
  if (failed != 0) return result(*log->engine, "cannot name a loop in", failed, error);
  *loop = number;
  return PERFMAP_OK;
}

perfmap_status perfmap_jitlog_enter(perfmap_jitlog* log, uint32_t loop) {
  return status_of(log->engine->record(loop, false));
}

perfmap_status perfmap_jitlog_exit(perfmap_jitlog* log, uint32_t loop) {
  return status_of(log->engine->record(loop, true));
}

perfmap_status perfmap_jitlog_flush(perfmap_jitlog* log, perfmap_error* error) {
  if (const perfmap_status status = check(error); status != PERFMAP_OK) return status;
  return result(*log->engine, "cannot write", log->engine->flush(), error);
}

perfmap_status perfmap_jitlog_close(perfmap_jitlog* log, perfmap_error* error) {
  if (const perfmap_status status = check(error); status != PERFMAP_OK) return status;
  return result(*log->engine, "cannot write", log->engine->close(), error);
}

uint64_t perfmap_jitlog_lost(const perfmap_jitlog* log) { return log->engine->lost(); }

size_t perfmap_jitlog_path(perfmap_jitlog* log, char* out, size_t size) {
  return copy_path(*log->engine, out, size);
}

void perfmap_jitlog_free(perfmap_jitlog* log) { destroy_object(log); }

perfmap_status perfmap_trampoline_arena_new(const perfmap_trampoline_options* options,
                                            perfmap_trampoline_arena** out, perfmap_error* error) {
  if (const perfmap_status status = check(error, options); status != PERFMAP_OK) return status;
  if (out == nullptr) return refuse("out: NULL", error);
  const perfmap_trampoline_options given = copy_in(options);
  const perfmap::TrampolineCode* const machine = perfmap::host_trampoline();
  if (machine == nullptr) return fail(perfmap::no_trampolines_message(), error);
  if (const int failed = perfmap::ForkHandlers::install(); failed != 0) {
    return fail(message_of("cannot prepare for", "fork", failed), error);
  }
  const std::string_view directory =
      given.jitdump_directory == nullptr ? "/tmp" : given.jitdump_directory;
  auto* const made = make_object<perfmap_trampoline_arena>(
      *machine, std::string_view(given.prefix == nullptr ? "" : given.prefix), directory,
      given.exceptions != 0);
  if (made == nullptr || !made->engine.is_whole()) {
    destroy_object(made);
    return no_memory(error);
  }
  *out = made;
  return PERFMAP_OK;
}

void perfmap_trampoline_arena_free(perfmap_trampoline_arena* arena) { destroy_object(arena); }

perfmap_status perfmap_trampoline_activate(perfmap_trampoline_arena* arena, int32_t backend,
                                           perfmap_error* error) {
  if (const perfmap_status status = check(error); status != PERFMAP_OK) return status;
  perfmap::TrampolineFault fault;
  if (arena->engine.activate(static_cast<std::uint32_t>(backend), fault)) return PERFMAP_OK;
  return fail(perfmap::activation_message(fault), error);
}

void perfmap_trampoline_deactivate(perfmap_trampoline_arena* arena) { arena->engine.deactivate(); }

void perfmap_trampoline_state(const perfmap_trampoline_arena* arena,
                              perfmap_trampoline_state_info* out) {
  if (!is_complete(out)) return;
  const perfmap::TrampolineState state = arena->engine.state();
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
  if (const perfmap_status status = check(error, code); status != PERFMAP_OK) return status;
  const perfmap_code_description given = copy_in(code);
  auto* const made = make_object<perfmap_trampoline>(
      arena->engine, CodeDescription{view_of(given.qualified_name, given.qualified_name_size),
                                     view_of(given.file, given.file_size), given.first_line});
  if (made == nullptr || !made->slot.is_whole()) {
    destroy_object(made);
    return no_memory(error);
  }
  *out = made;
  return PERFMAP_OK;
}

void perfmap_trampoline_free(perfmap_trampoline* trampoline) { destroy_object(trampoline); }

perfmap_status perfmap_trampoline_compile(perfmap_trampoline* trampoline, perfmap_error* error) {
  if (const perfmap_status status = check(error); status != PERFMAP_OK) return status;
  const int failed = trampoline->slot.compile();
  if (failed == 0) return PERFMAP_OK;
  return fail(perfmap::trampoline_message(trampoline->slot.name(), failed), error);
}

perfmap_trampoline_entry perfmap_trampoline_entry_of(perfmap_trampoline* trampoline) {
  return trampoline == nullptr ? nullptr : trampoline->slot.entry();
}

void* perfmap_trampoline_call(perfmap_trampoline* trampoline, void* first, void* second,
                              void* third, perfmap_evaluator evaluator) {
  if (trampoline == nullptr) return evaluator(first, second, third);
  return trampoline->slot.call(first, second, third, evaluator);
}
