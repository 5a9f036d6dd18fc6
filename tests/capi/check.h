/* SPDX-License-Identifier: MIT */
/* Shared by the tests of the C interface. */
#ifndef PERFMAP_TEST_CHECK_H
#define PERFMAP_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

static inline void check_file(const char* path, const char* expected) {
  char text[4096];
  FILE* file = fopen(path, "rb");
  size_t size;
  CHECK(file != NULL);
  size = fread(text, 1, sizeof text - 1, file);
  text[size] = '\0';
  fclose(file);
  if (strcmp(text, expected) != 0) {
    fprintf(stderr, "%s holds\n%sinstead of\n%s", path, text, expected);
    exit(1);
  }
}

void use_state(void);

#endif
