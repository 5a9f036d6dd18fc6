/* interpreter [map|jitdump|both|none] PROGRAM [DIRECTORY]: runs a program, with its functions named
 * for profilers. DIRECTORY is where a jitdump goes.
 *
 *   perf record -g ./interpreter map demo.lisp && perf script
 *
 *   perf record -k mono --call-graph dwarf ./interpreter jitdump demo.lisp
 *   perf inject --jit -i perf.data -o jitted.data && perf script -i jitted.data
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lisp.h"

static const char* program_path;
static perfmap_trampoline_arena* arena; /* NULL: all calls are direct */

void fail(int line, const char* message) {
  fflush(stdout);
  fprintf(stderr, "%s:%d: %s\n", program_path, line, message);
  exit(1);
}

void* grow(void* old, size_t size) {
  void* const made = realloc(old, size);
  if (made == NULL) fail(0, "out of memory");
  return made;
}

void* allocate(size_t count, size_t size) {
  void* const made = calloc(count, size);
  if (made == NULL) fail(0, "out of memory");
  return made;
}

/* A code object gets its trampoline; without one it runs all the same. */
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

/* A profiler that cannot be helped is no reason not to run. */
static void start_trampolines(int32_t backend, const char* directory) {
  perfmap_error error = {sizeof error, 0, 0, ""};
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

static char* read_file(const char* path) {
  FILE* const file = fopen(path, "rb");
  char* text = allocate(1, 1);
  size_t size = 0;
  if (file == NULL) fail(0, "cannot be opened");
  for (;;) {
    size_t got;
    text = grow(text, size + 4096 + 1);
    got = fread(text + size, 1, 4096, file);
    size += got;
    if (got == 0) break;
  }
  text[size] = '\0';
  fclose(file);
  return text;
}

int main(int argc, char** argv) {
  const int32_t backend = argc > 2 ? backend_of(argv[1]) : -1;
  scope* globals;
  program read;
  char* text;
  if (backend < 0) {
    fprintf(stderr, "usage: interpreter map|jitdump|both|none PROGRAM [DIRECTORY]\n");
    return 2;
  }
  program_path = argv[2];
  if (backend != 0) start_trampolines(backend, argc > 3 ? argv[3] : NULL);
  text = read_file(program_path);
  read = read_program(text, name_code);
  globals = new_scope(NULL);
  define_builtins(globals);
  release(evaluate(read.root, globals));
  while (globals->count > 0) release(globals->values[--globals->count]);
  release_scope(globals);
  free_program(&read);
  perfmap_trampoline_arena_free(arena);
  forget_symbols();
  free(text);
  return 0;
}
