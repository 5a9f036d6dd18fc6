/* SPDX-License-Identifier: MIT */
/* Every entry point of the writers while memory is exhausted: each allocation of a call fails in
 * turn (malloc, calloc, aligned_alloc and mmap are replaced here), once that one alone and once all
 * from there on; then with a limit of the address space. The call answers NO_MEMORY or succeeds,
 * the process lives, and the same call succeeds afterwards. Links the static library; run it in an
 * empty directory. */
#define _GNU_SOURCE
#include <errno.h>
#include <perfmap_writer.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../capi/check.h"

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static long allocations_left = -1; /* -1: no failure */
static int fails_once;
static long failures;

static int fails(void) {
  if (allocations_left < 0) return 0;
  if (allocations_left-- > 0) return 0;
  allocations_left = fails_once ? -1 : 0;
  ++failures;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return fails() ? NULL : __libc_memalign(alignment, size);
}
void* mmap(void* at, size_t size, int rights, int flags, int fd, off_t offset) {
  if (fails()) return MAP_FAILED;
  return (void*)syscall(SYS_mmap, at, size, rights, flags, fd, offset);
}

static perfmap_writer* writer;
static perfmap_writer* buffered;
static perfmap_writer* mapped;
static perfmap_jitdump* dump;
static perfmap_jitlog* log_of_loops;
static perfmap_trampoline_arena* arena;
static perfmap_error error = {.struct_size = sizeof(perfmap_error)};
static char long_name[5000];

static perfmap_status status_of(int answer) {
  if (answer == 0) return PERFMAP_OK;
  return errno == ENOMEM ? PERFMAP_E_NO_MEMORY : PERFMAP_E_IO;
}

static perfmap_status open_writer(void) {
  perfmap_writer* made = NULL;
  perfmap_status status = perfmap_writer_open("opened.map", NULL, &made, &error);
  perfmap_writer_free(made);
  return status;
}

static perfmap_status write_to(perfmap_writer* to) {
  return perfmap_writer_write(to, 0x1000, 16, long_name, sizeof long_name, &error);
}
static perfmap_status write_plain(void) { return write_to(writer); }
static perfmap_status write_buffered(void) {
  perfmap_status status = write_to(buffered);
  return status != PERFMAP_OK ? status : perfmap_writer_flush(buffered, &error);
}
static perfmap_status write_mapped(void) {
  perfmap_status status = PERFMAP_OK;
  int i;
  for (i = 0; i < 20 && status == PERFMAP_OK; ++i) status = write_to(mapped);
  return status;
}
static perfmap_status copy_map(void) { return perfmap_writer_copy(writer, "source.map", &error); }
static perfmap_status write_state(void) {
  return status_of(perfmap_state_write_entry((const void*)0x1000, 16, long_name));
}
static perfmap_status copy_state(void) { return status_of(perfmap_state_copy_file("source.map")); }

static perfmap_status inherit(void) {
  int status;
  pid_t child = fork();
  if (child == 0) _exit((int)write_state());
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
  return (perfmap_status)WEXITSTATUS(status);
}

static perfmap_status open_dump(void) {
  perfmap_jitdump* made = NULL;
  perfmap_status status = perfmap_jitdump_open("jit-77.dump", NULL, &made, &error);
  perfmap_jitdump_free(made);
  return status;
}

static perfmap_status load(void) {
  static perfmap_jitdump_line lines[100];
  static const char code[100];
  perfmap_jitdump_function function;
  size_t i;
  for (i = 0; i < 100; ++i) {
    lines[i].address = 0x1000 + i;
    lines[i].line = (int32_t)i;
    lines[i].file = "/a/long/path/to/a/file.c";
  }
  memset(&function, 0, sizeof function);
  function.struct_size = sizeof function;
  function.start = 0x1000;
  function.size = sizeof code;
  function.code = code;
  function.name = long_name;
  function.name_size = sizeof long_name;
  function.lines = lines;
  function.line_count = 100;
  return perfmap_jitdump_load(dump, &function, NULL, &error);
}
static perfmap_status move(void) {
  return perfmap_jitdump_move(dump, 1, 0x1000, 0x2000, 16, &error);
}

static perfmap_status open_log(void) {
  perfmap_jitlog* made = NULL;
  perfmap_status status = perfmap_jitlog_open("opened.log", NULL, &made, &error);
  perfmap_jitlog_free(made);
  return status;
}
static perfmap_status name_loop(void) {
  static unsigned number;
  char name[32];
  uint32_t loop = 0;
  sprintf(name, "loop %u of %d", number++, (int)getpid());
  return perfmap_jitlog_loop(log_of_loops, name, strlen(name), &loop, &error);
}
static perfmap_status enter_loop(void) {
  perfmap_status status = perfmap_jitlog_enter(log_of_loops, 1);
  return status != PERFMAP_OK ? status : perfmap_jitlog_flush(log_of_loops, &error);
}

static perfmap_status make_arena(void) {
  perfmap_trampoline_arena* made = NULL;
  perfmap_status status = perfmap_trampoline_arena_new(NULL, &made, &error);
  if (status == PERFMAP_OK) {
    status = perfmap_trampoline_activate(made, PERFMAP_TRAMPOLINES_MAP, &error);
  }
  perfmap_trampoline_arena_free(made);
  return status;
}
static perfmap_status make_trampoline(void) {
  perfmap_trampoline* made = NULL;
  perfmap_code_description code;
  perfmap_status status;
  memset(&code, 0, sizeof code);
  code.struct_size = sizeof code;
  code.qualified_name = "name";
  code.qualified_name_size = 4;
  status = perfmap_trampoline_new(arena, &code, &made, &error);
  if (status == PERFMAP_OK) status = perfmap_trampoline_compile(made, &error);
  perfmap_trampoline_free(made);
  return status;
}
static perfmap_status make_guard(void) {
  perfmap_truncation_guard* made = NULL;
  perfmap_status status = perfmap_truncation_guard_new(&made, &error);
  perfmap_truncation_guard_free(made);
  return status;
}

static const struct {
  const char* name;
  perfmap_status (*run)(void);
} calls[] = {{"writer_open", open_writer},
             {"writer_write", write_plain},
             {"writer_write, buffered", write_buffered},
             {"writer_write, mapped", write_mapped},
             {"writer_copy", copy_map},
             {"state_write_entry", write_state},
             {"state_copy_file", copy_state},
             {"inherit", inherit},
             {"jitdump_open", open_dump},
             {"jitdump_load", load},
             {"jitdump_move", move},
             {"jitlog_open", open_log},
             {"jitlog_loop", name_loop},
             {"jitlog_enter", enter_loop},
             {"trampoline_arena", make_arena},
             {"trampoline", make_trampoline},
             {"truncation_guard", make_guard}};

static void open_all(void) {
  perfmap_state_options state;
  perfmap_writer_options options;
  perfmap_jitdump_function moved;
  uint32_t loop = 0;
  char path[64];
  memset(&state, 0, sizeof state);
  state.struct_size = sizeof state;
  state.directory = ".";
  state.fork = PERFMAP_FORK_INHERIT;
  CHECK(perfmap_state_configure(&state) == 0);
  CHECK(perfmap_state_write_entry((const void*)16, 16, "first") == 0);
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  sprintf(path, "plain-%d.map", (int)getpid());
  CHECK(perfmap_writer_open(path, &options, &writer, &error) == PERFMAP_OK);
  options.buffer_bytes = 1 << 20;
  sprintf(path, "buffered-%d.map", (int)getpid());
  CHECK(perfmap_writer_open(path, &options, &buffered, &error) == PERFMAP_OK);
  options.mapped = 1;
  sprintf(path, "mapped-%d.map", (int)getpid());
  CHECK(perfmap_writer_open(path, &options, &mapped, &error) == PERFMAP_OK);
  CHECK(perfmap_jitdump_open_own(".", NULL, &dump, &error) == PERFMAP_OK);
  memset(&moved, 0, sizeof moved);
  moved.struct_size = sizeof moved;
  moved.start = 0x1000;
  moved.size = 16;
  CHECK(perfmap_jitdump_load(dump, &moved, NULL, &error) == PERFMAP_OK);
  CHECK(perfmap_jitlog_open("log-%d", NULL, &log_of_loops, &error) == PERFMAP_OK);
  CHECK(perfmap_jitlog_loop(log_of_loops, "loop", 4, &loop, &error) == PERFMAP_OK);
  CHECK(perfmap_trampoline_arena_new(NULL, &arena, &error) == PERFMAP_OK);
  CHECK(perfmap_trampoline_activate(arena, PERFMAP_TRAMPOLINES_MAP, &error) == PERFMAP_OK);
}

static void check_answer(perfmap_status status, const char* name, long n) {
  if (status == PERFMAP_OK || status == PERFMAP_E_NO_MEMORY) return;
  fprintf(stderr, "%s, allocation %ld: status %d, %s\n", name, n, (int)status, error.message);
  exit(1);
}

/* Whether allocation n of the call was reached; in a process of its own, because a call that has
 * succeeded once may keep its memory. */
static int try(size_t call, long n, int once) {
  int status;
  pid_t child = fork();
  if (child == 0) {
    long before;
    open_all();
    before = failures;
    fails_once = once;
    allocations_left = n;
    check_answer(calls[call].run(), calls[call].name, n);
    allocations_left = -1;
    usleep(calls[call].run == inherit ? 1000 : 0);
    CHECK(calls[call].run() == PERFMAP_OK);
    _exit(failures == before && calls[call].run != inherit ? 42 : 0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 42)) {
    fprintf(stderr, "%s ended badly at allocation %ld\n", calls[call].name, n);
    exit(1);
  }
  return WEXITSTATUS(status) == 0;
}

static void limit_address_space(size_t call) {
  int status;
  pid_t child = fork();
  if (child == 0) {
    struct rlimit little = {1 << 20, RLIM_INFINITY};
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    open_all();
    CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    check_answer(calls[call].run(), calls[call].name, -1);
    CHECK(setrlimit(RLIMIT_AS, &all) == 0);
    CHECK(calls[call].run() == PERFMAP_OK);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  FILE* source = fopen("source.map", "w");
  size_t call;
  long runs = 0;
  int i, reached = 0;
  memset(long_name, '\n', sizeof long_name - 1);
  CHECK(source != NULL);
  for (i = 0; i < 1000; ++i) fprintf(source, "%x 10 function %d\n", 0x1000 + i * 16, i);
  fclose(source);
  for (call = 0; call < sizeof calls / sizeof *calls; ++call) {
    int once;
    for (once = 0; once < 2; ++once) {
      const long most = calls[call].run == inherit ? 12 : 200;
      long n = 0;
      while (n < most && try(call, n, once)) ++n, ++reached;
      runs += n + 1;
    }
    limit_address_space(call);
  }
  printf("%ld runs, %d failed allocations\n", runs, reached);
  CHECK(reached > 40);
  return 0;
}
