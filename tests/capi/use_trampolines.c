/* SPDX-License-Identifier: MIT */
/* Uses every perfmap_trampoline_* function; compiled as strict C99. Run in a separate directory. */
#include <errno.h>
#include <perfmap.h>
#include <stdint.h>
#include <unistd.h>

#include "check.h"

static perfmap_error error = {.struct_size = sizeof(perfmap_error)};

static int values[3];

static void* add(void* first, void* second, void* result) {
  *(int*)result = *(const int*)first + *(const int*)second;
  return result;
}

/* Calls the trampoline, and returns whether the sum is right. */
static int adds(perfmap_trampoline* trampoline) {
  values[0] = 40;
  values[1] = 2;
  values[2] = 0;
  return perfmap_trampoline_call(trampoline, &values[0], &values[1], &values[2], add) ==
             &values[2] &&
         values[2] == 42;
}

static perfmap_trampoline* trampoline_of(perfmap_trampoline_arena* arena, const char* name) {
  perfmap_trampoline* made = NULL;
  perfmap_code_description code;
  memset(&code, 0, sizeof code);
  code.struct_size = sizeof code;
  code.qualified_name = name;
  code.qualified_name_size = strlen(name);
  code.file = "/x.toy";
  code.file_size = 6;
  code.first_line = 3;
  CHECK(perfmap_trampoline_new(arena, &code, &made, &error) == PERFMAP_OK);
  return made;
}

static void check_own_map(const char* ending) {
  char path[64];
  char line[256];
  FILE* file;
  sprintf(path, "./perf-%ld.map", (long)getpid());
  file = fopen(path, "r");
  CHECK(file != NULL);
  CHECK(fgets(line, sizeof line, file) != NULL);
  CHECK(strstr(line, ending) != NULL);
  CHECK(fgets(line, sizeof line, file) == NULL);
  fclose(file);
  CHECK(perfmap_state_fini() == 0);
  remove(path);
}

static void use_trampolines(void) {
  perfmap_state_options options;
  perfmap_trampoline_options wanted;
  perfmap_trampoline_state_info state;
  perfmap_trampoline_arena* arena = NULL;
  perfmap_trampoline* code;
  memset(&options, 0, sizeof options);
  memset(&wanted, 0, sizeof wanted);
  options.struct_size = sizeof options;
  options.directory = ".";
  wanted.struct_size = sizeof wanted;
  wanted.prefix = "toy";
  wanted.jitdump_directory = "no/such";
  state.struct_size = sizeof state;
  CHECK(adds(NULL));
  CHECK(perfmap_trampoline_entry_of(NULL) == NULL);
  if (perfmap_trampoline_arena_new(&wanted, &arena, &error) == PERFMAP_E_UNSUPPORTED) return;
  CHECK(arena != NULL && perfmap_state_configure(&options) == 0);

  code = trampoline_of(arena, "A.m");
  CHECK(adds(code) && perfmap_trampoline_entry_of(code) == NULL);
  CHECK(perfmap_trampoline_compile(code, &error) == PERFMAP_OK);
  CHECK(perfmap_trampoline_activate(arena, 0, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_trampoline_activate(arena, PERFMAP_TRAMPOLINES_JITDUMP, &error) != PERFMAP_OK);
  perfmap_trampoline_state(arena, &state);
  CHECK(!state.active && state.backend == 0 && state.compiled == 0 && state.mapped_bytes == 0);

  CHECK(perfmap_trampoline_activate(arena, PERFMAP_TRAMPOLINES_MAP, &error) == PERFMAP_OK);
  CHECK(perfmap_trampoline_compile(code, &error) == PERFMAP_OK);
  CHECK(adds(code) && perfmap_trampoline_entry_of(code) != NULL);
  perfmap_trampoline_state(arena, &state);
  CHECK(state.active && state.backend == PERFMAP_TRAMPOLINES_MAP && state.compiled == 1);
  CHECK(state.failed == 0 && state.last_errno == 0 && state.mapped_bytes == 65536);
  perfmap_trampoline_deactivate(arena);
  CHECK(adds(code) && perfmap_trampoline_entry_of(code) == NULL);
  perfmap_trampoline_free(code);
  perfmap_trampoline_free(NULL);
  perfmap_trampoline_arena_free(arena);
  perfmap_trampoline_arena_free(NULL);
  check_own_map(" toy::A.m:/x.toy\n");
}

int main(void) {
  use_trampolines();
  return 0;
}
