/* SPDX-License-Identifier: MIT */
/* Errors, memory, and the limit of the C stack. */
#define _XOPEN_SOURCE 600 /* getrlimit() */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "lisp.h"

#define MAX_STACK ((rlim_t)16 << 20)
#define MAX_TEXT ((size_t)64 << 20) /* so that counts of lines and nodes fit into an int */

const char* program_path;
static uintptr_t stack_end; /* the stack grows towards lower addresses */

void fail(int line, const char* format, ...) {
  va_list arguments;
  fflush(stdout);
  fputs(program_path, stderr);
  if (line > 0) fprintf(stderr, ":%d", line);
  fputs(": ", stderr);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
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

/* Half of the stack is for nesting. Arguments and environment, above this frame, may take a
 * quarter; the rest is for functions that are called at the deepest level. */
void bound_stack(void) {
  struct rlimit limit;
  rlim_t size = MAX_STACK;
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < size) size = limit.rlim_cur;
  stack_end = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)(size / 2);
}

/* Counts bytes, not levels: only the compiler knows how much stack a level takes. */
void check_stack(int line) {
  if ((uintptr_t)__builtin_frame_address(0) < stack_end)
    fail(line, "nesting or recursion is too deep");
}

char* read_file(const char* path, size_t* size) {
  FILE* const file = fopen(path, "rb");
  char* text = NULL;
  size_t room = 0;
  size_t got = 0;
  if (file == NULL) fail(0, "cannot be opened: %s", strerror(errno));
  *size = 0;
  do {
    *size += got;
    if (*size > MAX_TEXT) fail(0, "is too long");
    if (*size == room) text = grow(text, (room = 2 * room + 4096) + 1);
    got = fread(text + *size, 1, room - *size, file);
  } while (got > 0);
  if (ferror(file)) fail(0, "cannot be read: %s", strerror(errno));
  text[*size] = '\0';
  fclose(file);
  return text;
}
