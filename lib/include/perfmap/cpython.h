/* perfmap/cpython.h - CPython's calls for perf maps and trampolines, for any runtime.
 *
 * libperfmap-cpython.so exports these six names with what CPython documents for them, for runtimes
 * that were written against them and for tests of such. Where CPython itself differs from its
 * documentation, these do not: PerfMapState_Init may be called again, failed writes are reported, a
 * copy ends, SetPersistAfterFork answers 0 or -1. It is a library of its own because a process that
 * has CPython in it has the names already: link it only where that is not so.
 *
 * Any thread may call any of them at any time, but not a signal handler. They work on the process's
 * own map, as perfmap_state_*() of perfmap.h do: mixing both is fine. The map is /tmp/perf-PID.map,
 * whatever TMPDIR says; only who calls perfmap_state_configure() has it elsewhere. -1 comes with
 * errno.
 */
#ifndef PERFMAP_CPYTHON_H
#define PERFMAP_CPYTHON_H

#ifdef Py_PYTHON_H
#error "Python.h has these names already"
#endif

#include <perfmap.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a host has for a code object. Make it with perfmap_code_init(), leave its members alone. */
typedef struct PyCodeObject {
  perfmap_trampoline* trampoline;
  perfmap_evaluator evaluator;
} PyCodeObject;

/* Opens the map unless it is open. 0; -1: it cannot be created or opened; -2: the lock, or the
 * handlers of fork(), cannot be set up. */
PERFMAP_C_API int PyUnstable_PerfMapState_Init(void);
/* Appends `ADDRESS SIZE NAME`, one whole line, and calls Init where needed. 0, or as Init; -1, too,
 * where the line cannot be written, nothing of which is then in the file, and EINVAL without a
 * name. Bytes of the name that readers trip over are escaped, and names of less than three bytes,
 * which perf ignores, get brackets: [z]. (In CPython before 3.15 the size was
 * an unsigned int.) */
PERFMAP_C_API int PyUnstable_WritePerfMapEntry(const void* code_addr, size_t code_size,
                                               const char* entry_name);
/* Closes the map; a later write opens it again. Any number of times. */
PERFMAP_C_API void PyUnstable_PerfMapState_Fini(void);
/* Opens the map where needed and appends what the parent's holds now. 0; -1: EINVAL for the own
 * map, what is neither a regular file nor a directory (EISDIR), and NULL; ELOOP for a link, which
 * CPython follows; -2 as Init. */
PERFMAP_C_API int PyUnstable_CopyPerfMapFile(const char* parent_filename);
/* Gives a code object its trampoline now, if its arena is active, and names it as the arena's
 * backend says; once, but tries again what has failed. 0, also where there is no arena, or an
 * inactive one, and nothing is written; -1: it cannot be made or named, and EINVAL for NULL. */
PERFMAP_C_API int PyUnstable_PerfTrampoline_CompileCode(PyCodeObject* code);
/* Not 0: a forked child's map has its parent's entries, and its trampolines stay in use. 0, as at
 * first: the child starts with an empty map. Answers 0 or -1. */
PERFMAP_C_API int PyUnstable_PerfTrampoline_SetPersistAfterFork(int enable);

/* --- Code objects --------------------------------------------------------------------------------
 *
 * These are in the header, over libperfmap's perfmap_trampoline_*(). CPython has one arena, whose
 * prefix is "py", and sys.activate_stack_trampoline() is perfmap_trampoline_activate().
 */

/* `arena` NULL, or no memory: the code object runs without a trampoline. `file` may be NULL. */
static inline void perfmap_code_init(PyCodeObject* code, perfmap_trampoline_arena* arena,
                                     const char* qualified_name, const char* file,
                                     int32_t first_line, perfmap_evaluator evaluator) {
  perfmap_code_description description;
  memset(&description, 0, sizeof description);
  description.struct_size = sizeof description;
  description.qualified_name = qualified_name;
  description.qualified_name_size = strlen(qualified_name);
  description.file = file;
  description.file_size = file == NULL ? 0 : strlen(file);
  description.first_line = first_line;
  code->trampoline = NULL;
  code->evaluator = evaluator;
  if (arena != NULL) perfmap_trampoline_new(arena, &description, &code->trampoline, NULL);
}

/* Runs the code object: through its trampoline, which is made now at the latest, or directly. */
static inline void* perfmap_code_call(const PyCodeObject* code, void* first, void* second,
                                      void* third) {
  return perfmap_trampoline_call(code->trampoline, first, second, third, code->evaluator);
}

/* The end of a code object, which no thread may be running. */
static inline void perfmap_code_clear(PyCodeObject* code) {
  perfmap_trampoline_free(code->trampoline);
  code->trampoline = NULL;
}

#ifdef __cplusplus
}
#endif

#endif
