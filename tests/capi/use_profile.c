/* Uses every function of perfmap_profile.h except those for stacks; compiled as strict C99. */
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "perfmap_profile.h"

void use_stacks(void);

static int calls;

static perfmap_status import_it(perfmap_tracker* tracker, int32_t pid, void* context) {
  ++calls;
  CHECK(context == &calls);
  return perfmap_tracker_import(tracker, pid, PERFMAP_NOW, NULL, NULL);
}

static perfmap_status refuse_it(perfmap_tracker* tracker, int32_t pid, void* context) {
  (void)tracker;
  (void)pid;
  (void)context;
  return PERFMAP_E_REFUSED;
}

static int is(const char* text, size_t size, const char* expected) {
  return size == strlen(expected) && memcmp(text, expected, size) == 0;
}

static void map(perfmap_tracker* tracker, int32_t pid, uint64_t time, uint64_t begin,
                const char* name) {
  perfmap_mmap_event event = {.struct_size = sizeof event};
  event.pid = pid;
  event.time = time;
  event.begin = begin;
  event.size = 0x1000;
  event.offset = 0x200;
  event.name = name;
  event.name_size = strlen(name);
  event.access = PERFMAP_ACCESS_READ | PERFMAP_ACCESS_EXECUTE;
  event.inode = 7;
  event.build_id = "\1\2\3";
  event.build_id_size = 3;
  CHECK(perfmap_tracker_on_mmap(tracker, &event, NULL) == PERFMAP_OK);
}

static void use_events(void) {
  perfmap_tracker* tracker = NULL;
  perfmap_space* before = NULL;
  perfmap_space* at_exec = NULL;
  perfmap_space* after = NULL;
  perfmap_process process = {.struct_size = sizeof process};
  perfmap_region region = {.struct_size = sizeof region};
  CHECK(perfmap_tracker_begin(NULL, &tracker, NULL) == PERFMAP_OK);
  map(tracker, 8, 1, 0x1000, "/bin/sh");
  map(tracker, 8, 2, 0x1800, "//anon");
  CHECK(perfmap_tracker_on_fork(tracker, 9, 9, 8, 3, NULL) == PERFMAP_OK);
  CHECK(perfmap_tracker_on_comm(tracker, 9, 9, 5, "cc1", 3, 1, NULL) == PERFMAP_OK);
  CHECK(perfmap_space_begin_with_tracker(tracker, 9, 4, &before, NULL) == PERFMAP_OK);
  CHECK(perfmap_space_begin_with_tracker(tracker, 9, PERFMAP_NOW, &at_exec, NULL) == PERFMAP_OK);
  map(tracker, 9, 6, 0x5000, "/usr/bin/cc1");
  CHECK(perfmap_space_begin_with_tracker(tracker, 9, PERFMAP_NOW, &after, NULL) == PERFMAP_OK);
  CHECK(perfmap_space_begin_with_tracker(tracker, 9, 2, &after, NULL) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_tracker_on_unmap(tracker, 8, 6, 0, 0x1800, NULL) == PERFMAP_OK);
  CHECK(perfmap_tracker_find_pid(tracker, 9, NULL, NULL, &process, NULL) == PERFMAP_OK);
  CHECK(process.generation == 2 && process.began == PERFMAP_BEGAN_EXECUTED);
  CHECK(process.parent == 8 && process.since == 5 && process.until == PERFMAP_NOW);
  CHECK(perfmap_tracker_on_exit(tracker, 9, 9, 7, NULL) == PERFMAP_OK);
  CHECK(perfmap_tracker_find_pid(tracker, 9, NULL, NULL, &process, NULL) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_tracker_find_pid(tracker, 9, refuse_it, NULL, &process, NULL) == PERFMAP_E_REFUSED);
  perfmap_tracker_end(tracker);

  /* After exec the old mappings count until the new program maps something. */
  CHECK(perfmap_space_size(before) == 2 && perfmap_space_size(at_exec) == 2);
  CHECK(perfmap_space_size(after) == 1);
  CHECK(perfmap_space_find(after, 0x1000, &region) == PERFMAP_E_NOT_FOUND);
  perfmap_space_process(after, &process);
  CHECK(is(process.comm, process.comm_size, "cc1"));
  CHECK(perfmap_space_find(before, 0x17ff, &region) == PERFMAP_OK);
  CHECK(region.begin == 0x1000 && region.size == 0x800 && region.offset == 0x200);
  CHECK(region.access == (PERFMAP_ACCESS_READ | PERFMAP_ACCESS_EXECUTE) && region.inode == 7);
  CHECK(region.kind == PERFMAP_REGION_FILE && region.jit == PERFMAP_JIT_UNLESS_ELF);
  CHECK(is(region.name, region.name_size, "/bin/sh") && region.build_id_size == 3);
  CHECK(perfmap_space_find(before, 0x2800, &region) == PERFMAP_E_NOT_FOUND);
  perfmap_space_region(before, 1, &region);
  CHECK(region.begin == 0x1800 && region.jit == PERFMAP_JIT_LIKELY);
  /* A program built against a shorter struct. */
  region.struct_size = offsetof(perfmap_region, size);
  region.size = 42;
  perfmap_space_region(before, 0, &region);
  CHECK(region.begin == 0x1000 && region.size == 42);
  perfmap_space_end(before);
  perfmap_space_end(at_exec);
  perfmap_space_end(after);
  perfmap_space_end(NULL);
  perfmap_tracker_end(NULL);
}

static void use_own_process(const char* directory) {
  perfmap_tracker* tracker = NULL;
  perfmap_tracker_options options = {.struct_size = sizeof options};
  perfmap_process process = {.struct_size = sizeof process};
  perfmap_jit_code code = {.struct_size = sizeof code};
  perfmap_address_name named = {.struct_size = sizeof named};
  int32_t imported = -1;
  const int32_t self = (int32_t)getpid();
  char path[1024];
  FILE* file;
  char* const memory =
      (char*)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  snprintf(path, sizeof path, "%s/perf-%d.map", directory, (int)self);
  file = fopen(path, "w");
  CHECK(file != NULL);
  fprintf(file, "%llx 10 jit::answer\n", (unsigned long long)(size_t)memory);
  fprintf(file, "%llx 10 before\n", (unsigned long long)(size_t)memory + 32);
  fprintf(file, "%llx 10 after\n", (unsigned long long)(size_t)memory + 32);
  fclose(file);

  options.tmp = directory;
  CHECK(perfmap_tracker_begin(&options, &tracker, NULL) == PERFMAP_OK);
  CHECK(perfmap_tracker_find_pid(tracker, self, import_it, &calls, &process, NULL) == PERFMAP_OK);
  CHECK(perfmap_tracker_find_pid(tracker, self, import_it, &calls, &process, NULL) == PERFMAP_OK);
  CHECK(calls == 1 && process.pid == self && process.start_ticks != 0);
  CHECK(process.began == PERFMAP_BEGAN_IMPORTED);
  CHECK(perfmap_tracker_import(tracker, 0x7ffffff0, PERFMAP_NOW, &imported, NULL) == PERFMAP_OK);
  CHECK(imported == PERFMAP_IMPORTED_VANISHED);
  CHECK(perfmap_tracker_refresh_jit(tracker, self, NULL) == PERFMAP_OK);
  CHECK(perfmap_tracker_find_jit(tracker, self, (size_t)memory + 2, PERFMAP_NOW, PERFMAP_NOW, &code,
                                 NULL) == PERFMAP_OK);
  CHECK(code.begin == (size_t)memory && code.size == 16 && code.room == PERFMAP_JIT_LIKELY);
  CHECK(is(code.name, code.name_size, "jit::answer") && code.doubts == 0);
  CHECK(perfmap_tracker_find_jit(tracker, self, (size_t)memory + 32, PERFMAP_NOW, PERFMAP_NOW,
                                 &code, NULL) == PERFMAP_OK);
  CHECK(is(code.name, code.name_size, "after") && code.doubts == PERFMAP_DOUBT_REUSED_ADDRESS);
  CHECK(perfmap_tracker_name(tracker, self, (size_t)memory + 32, PERFMAP_NOW, PERFMAP_NOW,
                             PERFMAP_DETAIL_SYMBOLS, &named, NULL) == PERFMAP_OK);
  CHECK(is(named.name, named.name_size, "after") && named.is_jit);
  CHECK(named.doubts == PERFMAP_DOUBT_REUSED_ADDRESS);
  CHECK(perfmap_tracker_find_jit(tracker, self, (size_t)memory + 16, PERFMAP_NOW, PERFMAP_NOW,
                                 &code, NULL) == PERFMAP_E_NOT_FOUND);
  perfmap_tracker_end(tracker);
  remove(path);
  munmap(memory, 4096);
}

/* Two trackers share a cache, and find the same name for a function of this process. */
static void use_names(void) {
  typedef uint64_t (*function)(uint32_t);
  const function known = perfmap_preferred_regs_mask;
  const uint64_t address = (uint64_t)(size_t)known;
  const char* const name = "perfmap_preferred_regs_mask";
  const int32_t self = (int32_t)getpid();
  perfmap_module_cache* cache = NULL;
  perfmap_module_cache_options cache_options = {.struct_size = sizeof cache_options};
  perfmap_tracker_options options = {.struct_size = sizeof options};
  uint64_t opened = 0;
  int local = 0;
  int i;
  cache_options.debug_directories = "/usr/lib/debug:/opt/debug";
  CHECK(perfmap_module_cache_begin(&cache_options, &cache, NULL) == PERFMAP_OK);
  options.modules = cache;
  for (i = 0; i < 2; ++i) {
    perfmap_tracker* tracker = NULL;
    perfmap_module* module = NULL;
    perfmap_module_facts facts = {.struct_size = sizeof facts};
    perfmap_symbol symbol = {.struct_size = sizeof symbol};
    perfmap_address_name named = {.struct_size = sizeof named};
    uint64_t vaddr = 0;
    CHECK(perfmap_tracker_begin(&options, &tracker, NULL) == PERFMAP_OK);
    CHECK(perfmap_tracker_import(tracker, self, PERFMAP_NOW, NULL, NULL) == PERFMAP_OK);
    CHECK(perfmap_tracker_find_elf(tracker, self, address, PERFMAP_NOW, &module, &vaddr, NULL) ==
          PERFMAP_OK);
    CHECK(perfmap_tracker_name(tracker, self, address + 1, PERFMAP_NOW, PERFMAP_NOW,
                               PERFMAP_DETAIL_INLINES, &named, NULL) == PERFMAP_OK);
    CHECK(is(named.name, named.name_size, name) && named.begin == address && named.size > 1);
    CHECK(!named.is_jit && named.source_size != 0);
    CHECK(perfmap_tracker_name(tracker, self, (uint64_t)(size_t)&local, PERFMAP_NOW, PERFMAP_NOW,
                               PERFMAP_DETAIL_SYMBOLS, &named, NULL) == PERFMAP_E_NOT_FOUND);
    CHECK(named.name_size == 0 && named.why == PERFMAP_NO_NAME_NO_SOURCE);
    CHECK(perfmap_tracker_name(tracker, self, address, PERFMAP_NOW, PERFMAP_NOW, 3, &named, NULL) ==
          PERFMAP_E_INVALID_ARGUMENT);
    perfmap_tracker_end(tracker);
    perfmap_module_get_facts(module, &facts);
    CHECK(facts.path_size != 0 && facts.bytes_size > 64 && facts.type == 3);
    CHECK(memcmp(facts.bytes, "\177ELF", 4) == 0);
    CHECK(perfmap_module_find_symbol(module, vaddr, &symbol, NULL) == PERFMAP_OK);
    CHECK(symbol.begin == vaddr && is(symbol.name, symbol.name_size, name));
    CHECK(is(symbol.demangled, symbol.demangled_size, name));
    CHECK(perfmap_module_find_symbol(module, 0, &symbol, NULL) == PERFMAP_E_NOT_FOUND);
    CHECK(i == 0 || perfmap_module_cache_opened(cache) == opened);
    opened = perfmap_module_cache_opened(cache);
    perfmap_module_end(module);
  }
  perfmap_module_cache_end(cache);
}

int main(void) {
  char directory[] = "perfmap-profile-XXXXXX";
  char path[512];
  use_events();
  use_names();
  CHECK(mkdtemp(directory) != NULL && getcwd(path, sizeof path - sizeof directory) != NULL);
  strcat(strcat(path, "/"), directory);
  use_own_process(path);
  use_stacks();
  rmdir(directory);
  CHECK(perfmap_preferred_regs_mask(62) == 0xff01ff);
  CHECK(perfmap_preferred_regs_mask(3) == 0x1ff);
  CHECK(perfmap_preferred_regs_mask(183) == 0x1fff80000);
  CHECK(perfmap_preferred_regs_mask(40) == 0xffff);
  CHECK(perfmap_preferred_regs_mask(243) == 0 && perfmap_preferred_regs_mask(0x1003e) == 0);
  return 0;
}
