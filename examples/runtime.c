/* SPDX-License-Identifier: MIT */
/* A JIT compiler writes an entry for each function after it has generated the code. */
#include <perfmap_writer.h>
#include <stdio.h>

static const unsigned char code[16];

int main(void) {
  if (perfmap_state_write_entry(code, sizeof code, "jit::answer:/demo.js:1") != 0) {
    perfmap_error error = {.struct_size = sizeof error};
    perfmap_state_last_error(&error);
    fprintf(stderr, "runtime: %s\n", error.message);
    return 1;
  }
  return perfmap_state_fini() == 0 ? 0 : 1;
}
