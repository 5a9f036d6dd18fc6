/* SPDX-License-Identifier: MIT */
/* Uses every perfmap_jitlog_* function; compiled as strict C99. Run in a separate directory. */
#include <perfmap.h>
#include <unistd.h>

#include "check.h"

static perfmap_error error = {.struct_size = sizeof(perfmap_error)};

static void check_log(const char* path) {
  char text[4096];
  const char* at;
  FILE* const file = fopen(path, "rb");
  size_t size;
  CHECK(file != NULL);
  size = fread(text, 1, sizeof text - 1, file);
  text[size] = '\0';
  fclose(file);
  at = strstr(text, "{jit-profile-clock\nCLOCK_MONOTONIC ns\n");
  CHECK(text[0] == '[' && at != NULL);
  at = strstr(at, "{jit-profile-enter\nloop1\n");
  CHECK(at != NULL);
  at = strstr(at, "jit-profile-enter}\n");
  CHECK(at != NULL);
  at = strstr(at, "{jit-profile-exit\nloop1\n");
  CHECK(at != NULL && strstr(at, "jit-profile-exit}\n") != NULL);
}

static void use_jitlog(void) {
  perfmap_jitlog* log = NULL;
  perfmap_jitlog_options options;
  uint32_t loop = 0;
  uint32_t again = 0;
  char path[64];
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.clock = PERFMAP_JITLOG_MONOTONIC;
  options.names = PERFMAP_NAMES_REFUSE;
  options.own_log = 1;
  options.one_thread = 1;
  options.buffer_events = 16;
  options.fork = PERFMAP_FORK_OFF;
  CHECK(perfmap_jitlog_open("no/such", NULL, &log, &error) != PERFMAP_OK && log == NULL);
  CHECK(perfmap_jitlog_open("jit-%d.log", &options, &log, &error) == PERFMAP_OK);
  CHECK(perfmap_jitlog_enter(log, 1) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_jitlog_loop(log, "a\nb", 3, &loop, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(loop == 0);
  CHECK(perfmap_jitlog_loop(log, "loop1", 5, &loop, &error) == PERFMAP_OK);
  CHECK(perfmap_jitlog_loop(log, "loop1", 5, &again, NULL) == PERFMAP_OK);
  CHECK(loop != 0 && loop == again);
  CHECK(perfmap_jitlog_enter(log, loop) == PERFMAP_OK);
  CHECK(perfmap_jitlog_exit(log, loop) == PERFMAP_OK);
  CHECK(perfmap_jitlog_flush(log, &error) == PERFMAP_OK);
  CHECK(perfmap_jitlog_lost(log) == 0);
  CHECK(perfmap_jitlog_close(log, &error) == PERFMAP_OK);
  CHECK(perfmap_jitlog_enter(log, loop) == PERFMAP_E_IO);
  perfmap_jitlog_free(log);
  perfmap_jitlog_free(NULL);
  sprintf(path, "jit-%ld.log", (long)getpid());
  check_log(path);
  remove(path);
}

int main(void) {
  use_jitlog();
  return 0;
}
