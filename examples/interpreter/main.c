/* SPDX-License-Identifier: MIT */
/* interpreter map|jitdump|both|none PROGRAM [DIRECTORY]: runs a program whose functions profilers
 * can name. DIRECTORY is the place of a jitdump, by default /tmp.
 *
 *   cc -std=c99 -O2 -fno-omit-frame-pointer *.c $(pkg-config --cflags --libs perfmap) -lm \
 *     -o interpreter
 *   perf record -g ./interpreter map demo.lisp && perf script
 *
 * `perf record -g` follows frame pointers. The evaluator and all functions that it calls must keep
 * them, which -O2 alone does not do: if one function on a stack has no frame pointer, perf loses
 * its callers, and with them the program's functions. Code without frame pointers can be unwound
 * from copies of the stack; the jitdump contains the unwinding tables of the trampolines:
 *
 *   perf record -k mono --call-graph dwarf ./interpreter jitdump demo.lisp
 *   perf inject --jit -i perf.data -o jitted.data && perf script -i jitted.data
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lisp.h"

static perfmap_trampoline_arena* arena; /* NULL: all calls are direct */

/* Creates the trampoline of a code object, which also runs without one. */
static void name_code(code* made) {
  perfmap_code_description description;
  if (arena == NULL) return;
  memset(&description, 0, sizeof description);
  description.struct_size = sizeof description;
  description.qualified_name = made->name;
  description.qualified_name_size = strlen(made->name);
  description.file = program_path;
  description.file_size = strlen(program_path);
  description.first_line = made->line;
  perfmap_trampoline_new(arena, &description, &made->trampoline, NULL);
}

static int32_t backend_of(const char* word) {
  if (strcmp(word, "map") == 0) return PERFMAP_TRAMPOLINES_MAP;
  if (strcmp(word, "jitdump") == 0) return PERFMAP_TRAMPOLINES_JITDUMP;
  if (strcmp(word, "both") == 0) return PERFMAP_TRAMPOLINES_BOTH;
  return strcmp(word, "none") == 0 ? 0 : -1;
}

/* If trampolines cannot be used, the program runs without names for profilers. */
static void start_trampolines(int32_t backend, const char* directory) {
  perfmap_error error = {.struct_size = sizeof error};
  perfmap_trampoline_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.prefix = "lisp";
  options.jitdump_directory = directory;
  if (perfmap_trampoline_arena_new(&options, &arena, &error) != PERFMAP_OK ||
      perfmap_trampoline_activate(arena, backend, &error) != PERFMAP_OK) {
    fprintf(stderr, "interpreter: %s\n", error.message);
  }
}

/* Frees everything: an embedded runtime cannot leave that to exit(). */
static void run(const char* text, size_t size) {
  program read = read_program(text, size, name_code);
  scope* const globals = new_scope(NULL);
  define_builtins(globals);
  release(evaluate(read.root, globals));
  clear_scope(globals);
  release_scope(globals);
  free_program(&read);
  forget_symbols();
}

int main(int argc, char** argv) {
  const int32_t backend = argc > 2 ? backend_of(argv[1]) : -1;
  size_t size;
  char* text;
  if (backend < 0) {
    fprintf(stderr, "usage: interpreter map|jitdump|both|none PROGRAM [DIRECTORY]\n");
    return 2;
  }
  program_path = argv[2];
  bound_stack();
  text = read_file(program_path, &size);
  if (backend != 0) start_trampolines(backend, argc > 3 ? argv[3] : NULL);
  run(text, size);
  perfmap_trampoline_arena_free(arena);
  free(text);
  if (ferror(stdout) || fflush(stdout) != 0) fail(0, "cannot print");
  return 0;
}
