/* SPDX-License-Identifier: MIT */
/* Prints the tables of layouts, one member a line: see check_layouts.py. */
#include "check.h"
#include "perfmap_profile.h"

static void print(const perfmap_layout* layouts, size_t count) {
  size_t i;
  CHECK(layouts != NULL && count != 0);
  for (i = 0; i < count; ++i) {
    printf("%s %s %zu %zu %d\n", layouts[i].record, *layouts[i].member ? layouts[i].member : "-",
           layouts[i].offset, layouts[i].size, (int)layouts[i].kind);
  }
}

int main(void) {
  size_t writers = 0;
  size_t core = 0;
  size_t profile = 0;
  const perfmap_layout* layouts = perfmap_writer_layouts(&writers);
  print(layouts, writers);
  layouts = perfmap_layouts(&core);
  print(layouts, core);
  CHECK(perfmap_layouts(&core) == layouts);
  layouts = perfmap_profile_layouts(&profile);
  print(layouts, profile);
  return 0;
}
