/* SPDX-License-Identifier: MIT */
/* Calls CPython's functions from C as documented, with the process's own map in /tmp. */
#include <errno.h>
#include <perfmap/cpython.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capi/check.h"

static const char* own_map(void) {
  static char path[64];
  sprintf(path, "/tmp/perf-%ld.map", (long)getpid());
  return path;
}

/* The content of the map; "" if there is none. */
static const char* map_text(void) {
  static char text[65536];
  FILE* const file = fopen(own_map(), "rb");
  size_t size = 0;
  if (file != NULL) {
    size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
  }
  text[size] = '\0';
  return text;
}

static void run_in_child(void (*body)(void)) {
  int status = 0;
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    body();
    remove(own_map());
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int open_descriptors(void) {
  int count = 0;
  int fd;
  for (fd = 0; fd < 256; ++fd) {
    struct stat state;
    if (fstat(fd, &state) == 0) ++count;
  }
  return count;
}

static void write_entries(void) {
  int before;
  CHECK(PyUnstable_PerfMapState_Init() == 0);
  before = open_descriptors();
  CHECK(PyUnstable_PerfMapState_Init() == 0 && open_descriptors() == before);
  CHECK(PyUnstable_WritePerfMapEntry((const void*)0x1234, 5678, "entry1") == 0);
  CHECK(PyUnstable_WritePerfMapEntry((const void*)0x2345, 6789, "entry2") == 0);
  CHECK(PyUnstable_WritePerfMapEntry((const void*)0x3456, (size_t)1 << 33, "large") == 0);
  CHECK(strcmp(map_text(), "1234 162e entry1\n2345 1a85 entry2\n3456 200000000 large\n") == 0);
  CHECK(PyUnstable_WritePerfMapEntry((const void*)1, 1, NULL) == -1 && errno == EINVAL);
  PyUnstable_PerfMapState_Fini();
  PyUnstable_PerfMapState_Fini();
  CHECK(PyUnstable_WritePerfMapEntry((const void*)0x4, 1, "again") == 0);
  CHECK(strstr(map_text(), "\n4 1 again\n") != NULL);
}

static void report_failures(void) {
  const struct rlimit small = {10, 10};
  remove(own_map()); /* of an earlier process with the same pid */
  CHECK(symlink("/dev/null", own_map()) == 0);
  CHECK(PyUnstable_PerfMapState_Init() == -1 && errno == ELOOP);
  CHECK(PyUnstable_WritePerfMapEntry((const void*)1, 1, "entry") == -1 && errno == ELOOP);
  remove(own_map());
  signal(SIGXFSZ, SIG_IGN);
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK(PyUnstable_WritePerfMapEntry((const void*)0x1234, 5678, "entry1") == -1 && errno == EFBIG);
  CHECK(strcmp(map_text(), "") == 0);
}

static void copy_maps(void) {
  char other[] = "/tmp/perfmap-cpython-XXXXXX";
  const int fd = mkstemp(other);
  CHECK(fd >= 0 && write(fd, "1000 10 of the parent", 21) == 21);
  close(fd);
  CHECK(PyUnstable_CopyPerfMapFile(other) == 0);
  CHECK(PyUnstable_WritePerfMapEntry((const void*)0x2000, 16, "own") == 0);
  CHECK(strcmp(map_text(), "1000 10 of the parent\n2000 10 own\n") == 0);
  CHECK(PyUnstable_CopyPerfMapFile(own_map()) == -1 && errno == EINVAL);
  CHECK(PyUnstable_CopyPerfMapFile("/tmp/no/such.map") == -1 && errno == ENOENT);
  CHECK(PyUnstable_CopyPerfMapFile("/tmp") == -1 && errno == EISDIR);
  CHECK(PyUnstable_CopyPerfMapFile(NULL) == -1 && errno == EINVAL);
  CHECK(truncate(other, 0) == 0 && PyUnstable_CopyPerfMapFile(other) == 0);
  remove(other);
}

static void* evaluator(void* first, void* second, void* third) {
  (void)second;
  (void)third;
  return first;
}

static void compile_code(void) {
  perfmap_trampoline_options options;
  perfmap_trampoline_arena* arena = NULL;
  PyCodeObject bare, code;
  int word = 0;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.prefix = "py";
  CHECK(PyUnstable_PerfTrampoline_CompileCode(NULL) == -1 && errno == EINVAL);
  perfmap_code_init(&bare, NULL, "bare", NULL, 0, evaluator);
  CHECK(PyUnstable_PerfTrampoline_CompileCode(&bare) == 0);
  CHECK(perfmap_code_call(&bare, &word, NULL, NULL) == &word);
  if (perfmap_trampoline_arena_new(&options, &arena, NULL) != PERFMAP_OK) return;
  perfmap_code_init(&code, arena, "bar", "/run/t.py", 1, evaluator);
  CHECK(PyUnstable_PerfTrampoline_CompileCode(&code) == 0);
  CHECK(strcmp(map_text(), "") == 0);
  CHECK(perfmap_trampoline_activate(arena, PERFMAP_TRAMPOLINES_MAP, NULL) == PERFMAP_OK);
  CHECK(PyUnstable_PerfTrampoline_CompileCode(&code) == 0);
  CHECK(PyUnstable_PerfTrampoline_CompileCode(&code) == 0);
  CHECK(perfmap_code_call(&code, &word, NULL, NULL) == &word);
  CHECK(strstr(map_text(), " py::bar:/run/t.py\n") != NULL);
  CHECK(strchr(map_text(), '\n')[1] == '\0');
  perfmap_code_clear(&code);
  perfmap_code_clear(&bare);
  perfmap_trampoline_arena_free(arena);
}

static void persist(void) {
  CHECK(PyUnstable_PerfTrampoline_SetPersistAfterFork(5) == 0);
  CHECK(PyUnstable_PerfTrampoline_SetPersistAfterFork(0) == 0);
}

int main(void) {
  run_in_child(write_entries);
  run_in_child(report_failures);
  run_in_child(copy_maps);
  run_in_child(compile_code);
  run_in_child(persist);
  return 0;
}
