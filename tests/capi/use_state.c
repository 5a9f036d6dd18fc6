/* SPDX-License-Identifier: MIT */
/* Uses every function for the process's own map. */
#include <errno.h>
#include <perfmap.h>
#include <sys/types.h>
#include <unistd.h>

#include "check.h"

static int raise_nothing(void* context) {
  ++*(int*)context;
  return 0;
}

void use_state(void) {
  char own[64];
  int asked = 0;
  perfmap_state_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.directory = ".";
  options.fork = PERFMAP_FORK_FRESH;
  options.most_bytes = 60;
  options.on_full = raise_nothing;
  options.on_full_context = &asked;
  CHECK(perfmap_state_began_with() == PERFMAP_START_NONE);
  CHECK(perfmap_state_configure(&options) == 0);
  CHECK(perfmap_state_init() == 0);
  CHECK(perfmap_state_init() == 0);
  CHECK(perfmap_state_began_with() == PERFMAP_START_MADE);
  CHECK(perfmap_state_set_fork(PERFMAP_FORK_INHERIT) == 0);
  CHECK(perfmap_state_configure(&options) == -1 && errno == EBUSY);
  CHECK(perfmap_state_write_entry((const void*)0x1234, 5678, "entry1") == 0);
  CHECK(perfmap_state_write_entry((const void*)0x2345, (size_t)1 << 33, "entry2") == 0);
  CHECK(perfmap_state_write_entry((const void*)0x1, 1, NULL) == -1 && errno == EINVAL);
  CHECK(perfmap_state_flush() == 0);
  sprintf(own, "./perf-%ld.map", (long)getpid());
  check_file(own, "1234 162e entry1\n2345 200000000 entry2\n");
  CHECK(perfmap_state_copy_file(own) == -1 && errno == EINVAL);
  CHECK(perfmap_state_copy_file("missing.map") == -1 && errno == ENOENT);
  CHECK(perfmap_state_fini() == 0);
  CHECK(perfmap_state_fini() == 0);
  CHECK(perfmap_state_write_entry((const void*)0x3, 1, "again") == 0);
  CHECK(perfmap_state_fini() == 0);
  check_file(own, "1234 162e entry1\n2345 200000000 entry2\n3 1 again\n");
  CHECK(perfmap_state_write_entry((const void*)0x4, 1, "has no room left") == -1);
  CHECK(errno == EFBIG && asked == 1);
  CHECK(perfmap_state_began_with() == PERFMAP_START_APPENDED);
  CHECK(perfmap_state_fini() == 0);
  remove(own);
}
