/* SPDX-License-Identifier: MIT */
/* The readers while memory is exhausted: each allocation of a call fails in turn (malloc and its
 * relatives are replaced here, for the libraries, too), once that one alone and once all from there
 * on. The call answers NO_MEMORY or succeeds, the process lives, and the same call succeeds
 * afterwards. out_of_memory MAP DUMP */
#define _GNU_SOURCE
#include <errno.h>
#include <perfmap_profile.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static long allocations_left = -1; /* -1: no failure */
static int fails_once;
static int has_failed;

static int fails(void) {
  if (allocations_left < 0) return 0;
  if (allocations_left-- > 0) return 0;
  allocations_left = fails_once ? -1 : 0;
  has_failed = 1;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return fails() ? NULL : __libc_realloc(old, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return fails() ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  if (fails()) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return *out == NULL ? ENOMEM : 0;
}

static const char* map_path;
static const char* dump_path;
static perfmap_error error = {.struct_size = sizeof(perfmap_error)};

static int ignore(const perfmap_finding* finding, void* context) {
  (void)finding;
  (void)context;
  return 0;
}

static perfmap_status read_map(void) {
  perfmap_map* map = NULL;
  perfmap_status status = perfmap_map_open(map_path, &map, &error);
  perfmap_entry entry = {sizeof entry, 0, 0, NULL, 0, 0, 0};
  uint64_t offset = 0;
  if (status != PERFMAP_OK) return status;
  perfmap_map_next(map, &offset, &entry);
  perfmap_map_line_number(map, offset);
  status = perfmap_map_lint(map, 2, ignore, NULL, &error);
  perfmap_map_free(map);
  return status;
}

static perfmap_status index_map(void) {
  static const char text[] = "1000 10 one\n1008 10 two\n1000 40 three\n";
  perfmap_map* map = NULL;
  perfmap_index* index = NULL;
  perfmap_entry entry = {sizeof entry, 0, 0, NULL, 0, 0, 0};
  const uint64_t address = 0x1004;
  size_t found = 0;
  int changed = 0;
  perfmap_status status = perfmap_map_from_memory(text, sizeof text - 1, &map, &error);
  const perfmap_map* maps = map;
  if (status != PERFMAP_OK) return status;
  status = perfmap_index_new(&maps, 1, PERFMAP_OVERLAP_LAST, &index, &error);
  if (status == PERFMAP_OK) status = perfmap_index_find(index, 0x1004, &entry);
  if (status == PERFMAP_OK) status = perfmap_index_refresh(index, &changed, &error);
  if (status == PERFMAP_OK) {
    status = perfmap_map_find_batch(map, PERFMAP_OVERLAP_LAST, &address, 1, &entry, &found, &error);
  }
  perfmap_index_free(index);
  perfmap_map_free(map);
  return status;
}

static perfmap_status read_dump(void) {
  perfmap_timeline* timeline = NULL;
  perfmap_code code;
  const char* file = NULL;
  size_t file_size = 0;
  int32_t line = 0;
  int changed = 0;
  perfmap_status status = perfmap_timeline_open(dump_path, &timeline, &error);
  if (status != PERFMAP_OK) return status;
  memset(&code, 0, sizeof code);
  code.struct_size = sizeof code;
  status = perfmap_timeline_find(timeline, 0x7f5bf9fca65a, 4526072590440, &code);
  if (status == PERFMAP_OK) {
    status =
        perfmap_timeline_line(timeline, &code, 0x7f5bf9fca65a, &file, &file_size, &line, &error);
  }
  if (status == PERFMAP_OK) status = perfmap_timeline_refresh(timeline, &changed, &error);
  perfmap_timeline_free(timeline);
  return status == PERFMAP_E_NOT_FOUND ? PERFMAP_OK : status;
}

static perfmap_status decode_names(void) {
  static const char chain[] = "Lfoo;::outer->Lbar;::inner";
  perfmap_name_part parts[4];
  perfmap_name name;
  memset(&name, 0, sizeof name);
  name.struct_size = sizeof name;
  perfmap_name_decode(chain, sizeof chain - 1, &name);
  perfmap_name_inline_chain(chain, sizeof chain - 1, parts, 4);
  return PERFMAP_OK;
}

static perfmap_status track(void) {
  perfmap_tracker* tracker = NULL;
  perfmap_address_name name;
  perfmap_status status = perfmap_tracker_begin(NULL, &tracker, &error);
  if (status != PERFMAP_OK) return status;
  memset(&name, 0, sizeof name);
  name.struct_size = sizeof name;
  status = perfmap_tracker_import(tracker, (int32_t)getpid(), PERFMAP_NOW, NULL, &error);
  if (status == PERFMAP_OK) {
    status = perfmap_tracker_name(tracker, (int32_t)getpid(), (uint64_t)(size_t)&track, PERFMAP_NOW,
                                  PERFMAP_NOW, PERFMAP_DETAIL_LINES, &name, &error);
  }
  perfmap_tracker_end(tracker);
  return status == PERFMAP_E_NOT_FOUND ? PERFMAP_OK : status;
}

static const struct {
  const char* name;
  perfmap_status (*run)(void);
} calls[] = {{"map", read_map},
             {"index", index_map},
             {"timeline", read_dump},
             {"names", decode_names},
             {"tracker", track}};

/* Whether allocation n of the call was reached. */
static int try(size_t call, long n, int once) {
  int status;
  pid_t child = fork();
  if (child == 0) {
    perfmap_status answer;
    fails_once = once;
    allocations_left = n;
    answer = calls[call].run();
    allocations_left = -1;
    if (answer != PERFMAP_OK && answer != PERFMAP_E_NO_MEMORY && answer != PERFMAP_E_IO) {
      fprintf(stderr, "%s, allocation %ld: status %d, %s\n", calls[call].name, n, (int)answer,
              error.message);
      _exit(1);
    }
    CHECK(calls[call].run() == PERFMAP_OK);
    _exit(has_failed ? 0 : 42);
  }
  CHECK(waitpid(child, &status, 0) == child);
  if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 42)) {
    fprintf(stderr, "%s ended badly at allocation %ld (%s)\n", calls[call].name, n,
            once ? "one" : "all");
    exit(1);
  }
  return WEXITSTATUS(status) == 0;
}

int main(int count, char** arguments) {
  size_t call;
  int reached = 0;
  CHECK(count == 3);
  map_path = arguments[1];
  dump_path = arguments[2];
  for (call = 0; call < sizeof calls / sizeof *calls; ++call) {
    int once;
    CHECK(calls[call].run() == PERFMAP_OK);
    for (once = 0; once < 2; ++once) {
      long n;
      for (n = 0; n < 400 && try(call, n, once); ++n) ++reached;
    }
  }
  printf("%d failed allocations\n", reached);
  CHECK(reached > 100);
  return 0;
}
