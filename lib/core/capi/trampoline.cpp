#include "perfmap/trampoline.hpp"

#include "capi/guard.hpp"

using perfmap::Trampoline;
using perfmap::TrampolineArena;
using perfmap::capi::copy_in;
using perfmap::capi::copy_out;
using perfmap::capi::guard;
using perfmap::capi::report;

struct perfmap_trampoline_arena {
  TrampolineArena arena;
};

struct perfmap_trampoline {
  Trampoline trampoline;
};

namespace {

std::string_view view_of(const char* text, std::size_t size) {
  return size == 0 ? std::string_view() : std::string_view(text, size);
}

}  // namespace

perfmap_status perfmap_trampoline_arena_new(const perfmap_trampoline_options* options,
                                            perfmap_trampoline_arena** out, perfmap_error* error) {
  return guard(error, [&]() -> perfmap_status {
    const perfmap_trampoline_options given = copy_in(options);
    perfmap::TrampolineOptions wanted;
    if (given.prefix != nullptr) wanted.prefix = given.prefix;
    if (given.jitdump_directory != nullptr) wanted.jitdump_directory = given.jitdump_directory;
    wanted.exceptions = given.exceptions != 0;
    auto arena = TrampolineArena::make(wanted);
    if (!arena) return report(arena.error(), error);
    *out = new perfmap_trampoline_arena{*std::move(arena)};
    return PERFMAP_OK;
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
