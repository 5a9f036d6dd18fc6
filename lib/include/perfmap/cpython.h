/* SPDX-License-Identifier: MIT */
/* perfmap/cpython.h - CPython's functions for perf maps and trampolines, for any runtime.
 *
 * libperfmap-cpython.so exports these six functions as CPython documents them, for runtimes that
 * use them and for tests of these runtimes. CPython itself differs from its documentation; these
 * functions do not: PerfMapState_Init may be called again, failed writes are reported, a copy ends,
 * and SetPersistAfterFork returns 0 or -1. They are in a separate library, because a process that
 * contains CPython already has functions with these names. Link it only into other processes.
 *
 * Any thread may call these functions at any time; a signal handler must not. They write the
 * process's own map, like perfmap_state_*() of perfmap.h, so a program may use both. The map is
 * /tmp/perf-PID.map. TMPDIR has no effect; only perfmap_state_configure() sets another directory. A
 * function that returns -1 sets errno.
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

/* A code object of an interpreter. Initialize it with perfmap_code_init(), and do not access its
 * members. */
typedef struct PyCodeObject {
  perfmap_trampoline* trampoline;
  perfmap_evaluator evaluator;
} PyCodeObject;

/* Opens the map unless it is open. Returns 0; -1 if the map cannot be created or opened; -2 if the
 * lock or the handlers of fork() cannot be set up. */
PERFMAP_C_API int PyUnstable_PerfMapState_Init(void);
/* Appends one whole line, `ADDRESS SIZE NAME`, and calls Init if needed. Returns 0, or the same
 * errors as Init. Returns -1 if the line cannot be written (then no part of it is in the file), and
 * -1 with EINVAL if the name is NULL or the range exceeds the address space. Bytes of the name that
 * readers misread are escaped. Names shorter than three bytes, which perf ignores, get brackets:
 * [z]. (In CPython before 3.15 the size was an unsigned int.) */
PERFMAP_C_API int PyUnstable_WritePerfMapEntry(const void* code_addr, size_t code_size,
                                               const char* entry_name);
/* Closes the map; a later write opens it again. May be called any number of times. */
PERFMAP_C_API void PyUnstable_PerfMapState_Fini(void);
/* Opens the map if needed, and appends the current content of the parent's map. Returns 0; -1 with
 * EINVAL for the process's own map, for a file that is not regular and for NULL; -1 with EISDIR for
 * a directory; -1 with ELOOP for a link (CPython follows links); -2 as Init does. */
PERFMAP_C_API int PyUnstable_CopyPerfMapFile(const char* parent_filename);
/* If the arena of the code object is active, compiles the trampoline of the code object now and
 * writes its name to the arena's backend. Does this only once, but tries again after a failure.
 * Returns 0; also if there is no arena or the arena is not active, and then writes nothing. Returns
 * -1 if the trampoline cannot be compiled or named, and -1 with EINVAL for NULL. */
PERFMAP_C_API int PyUnstable_PerfTrampoline_CompileCode(PyCodeObject* code);
/* If `enable` is not 0, the map of a forked child begins with its parent's entries, and the child
 * keeps using its parent's trampolines. If it is 0 (the default), the child starts with an empty
 * map. Returns 0 or -1. */
PERFMAP_C_API int PyUnstable_PerfTrampoline_SetPersistAfterFork(int enable);

/* --- Code objects --------------------------------------------------------------------------------
 *
 * These inline functions call perfmap_trampoline_*() of libperfmap. In CPython, there is one arena
 * with the prefix "py", and sys.activate_stack_trampoline() corresponds to
 * perfmap_trampoline_activate().
 */

/* If `arena` is NULL or memory is exhausted, the code object runs without a trampoline. `file` may
 * be NULL. */
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

/* Runs the code object through its trampoline, which is compiled now if it does not exist yet, or
 * directly. */
static inline void* perfmap_code_call(const PyCodeObject* code, void* first, void* second,
                                      void* third) {
  return perfmap_trampoline_call(code->trampoline, first, second, third, code->evaluator);
}

/* Destroys a code object. No thread may be running it. */
static inline void perfmap_code_clear(PyCodeObject* code) {
  perfmap_trampoline_free(code->trampoline);
  code->trampoline = NULL;
}

#ifdef __cplusplus
}
#endif

#endif
