/* SPDX-License-Identifier: MIT */
/* Uses every function of perfmap_profile.h except those for stacks; compiled as strict C99. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
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
  /* A struct_size that is too small, or forgotten. */
  region.struct_size = offsetof(perfmap_region, size);
  region.size = 42;
  perfmap_space_region(before, 0, &region);
  CHECK(region.begin == 0x1800 && region.size == 42);
  CHECK(perfmap_space_find(before, 0x1000, &region) == PERFMAP_E_INVALID_ARGUMENT);
  perfmap_space_end(before);
  perfmap_space_end(at_exec);
  perfmap_space_end(after);
  perfmap_space_end(NULL);
  perfmap_tracker_end(NULL);
}

/* Short processes, whose pids come again, take no memory once they are forgotten. */
static void use_forgetting(void) {
  perfmap_tracker* tracker = NULL;
  perfmap_space* space = NULL;
  perfmap_process process = {.struct_size = sizeof process};
  CHECK(perfmap_tracker_begin(NULL, &tracker, NULL) == PERFMAP_OK);
  map(tracker, 8, 1, 0x1000, "/bin/sh");
  CHECK(perfmap_tracker_on_fork(tracker, 9, 9, 8, 10, NULL) == PERFMAP_OK);
  CHECK(perfmap_tracker_on_exit(tracker, 9, 9, 20, NULL) == PERFMAP_OK);
  map(tracker, 8, 30, 0x5000, "/bin/other");
  CHECK(perfmap_tracker_forget_before(tracker, 15, NULL) == PERFMAP_OK);
  CHECK(perfmap_space_begin_with_tracker(tracker, 9, 12, &space, NULL) == PERFMAP_OK);
  perfmap_space_end(space);
  CHECK(perfmap_tracker_forget_before(tracker, 40, NULL) == PERFMAP_OK);
  CHECK(perfmap_space_begin_with_tracker(tracker, 9, 12, &space, NULL) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_space_begin_with_tracker(tracker, 8, 2, &space, NULL) == PERFMAP_OK);
  CHECK(perfmap_space_size(space) == 2); /* as at 40 */
  perfmap_space_end(space);
  CHECK(perfmap_tracker_on_fork(tracker, 9, 9, 8, 50, NULL) == PERFMAP_OK);
  CHECK(perfmap_tracker_find_pid(tracker, 9, NULL, NULL, &process, NULL) == PERFMAP_OK);
  CHECK(process.generation == 2);
  perfmap_tracker_end(tracker);
}

static void use_machines(void) {
  static const uint32_t known[] = {62, 3, 183, 40};
  static const int32_t sps[] = {7, 7, 31, 13};
  static const int32_t dwarf_sps[] = {7, 4, 31, 13};
  perfmap_machine machine = {.struct_size = sizeof machine};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    uint32_t count = 0;
    CHECK(perfmap_machine_get(known[i], &machine) == PERFMAP_OK);
    for (int n = 0; n < 64; ++n) count += (machine.register_mask >> n & 1) != 0;
    CHECK(machine.machine == known[i] && machine.register_count == count);
    CHECK(machine.register_mask == perfmap_preferred_regs_mask(known[i]));
    CHECK(machine.sp_register == sps[i] && machine.sp_dwarf_register == dwarf_sps[i]);
    CHECK(perfmap_register_place(machine.register_mask, machine.pc_register) >= 0);
  }
  CHECK(perfmap_machine_get(62, &machine) == PERFMAP_OK);
  CHECK(machine.is_unwound == 1 && machine.compat == 3 && machine.register_count == 17);
  CHECK(perfmap_machine_get(8, &machine) == PERFMAP_OK); /* EM_MIPS */
  CHECK(machine.is_unwound == 0 && machine.register_count == 0 && machine.sp_register == -1);
  CHECK(perfmap_machine_get(4711, &machine) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_machine_from_uname("x86_64") == 62 && perfmap_machine_from_uname("i686") == 3);
  CHECK(perfmap_machine_from_uname("aarch64") == 183 && perfmap_machine_from_uname("vax") == 0);
  CHECK(strcmp(perfmap_frame_source_name(PERFMAP_FRAME_EH_CFI), "eh-cfi") == 0);
  CHECK(strcmp(perfmap_frame_source_name(PERFMAP_FRAME_SIGNAL), "signal") == 0);
  CHECK(strcmp(perfmap_frame_source_name(PERFMAP_FRAME_SIGNAL + 1), "unknown") == 0);
  CHECK(strcmp(perfmap_frame_source_name(-1), "unknown") == 0);
  CHECK(strcmp(perfmap_stack_end_name(PERFMAP_STACK_TRUNCATED), "truncated") == 0);
  CHECK(strcmp(perfmap_stack_end_name(PERFMAP_STACK_OTHER), "other-stack") == 0);
  CHECK(strcmp(perfmap_stack_end_name(PERFMAP_STACK_OTHER + 1), "unknown") == 0);
  CHECK(strcmp(perfmap_stack_end_name(-1), "unknown") == 0);
  CHECK(perfmap_machine_from_uname("riscv64") == 243 && perfmap_machine_from_uname("riscv32") == 0);
  CHECK(perfmap_machine_from_uname("aarch64_be") == 0 && perfmap_machine_from_uname("armv7b") == 0);
  CHECK(perfmap_register_place(0xff01ff, 7) == 7 && perfmap_register_place(0xff01ff, 16) == 9);
  CHECK(perfmap_register_place(0xff01ff, 9) == -1 && perfmap_register_place(~0ULL, 64) == -1);
  CHECK(perfmap_register_place(~0ULL, 63) == 63 && perfmap_register_place(1, -1) == -1);
}

static int write_text(const char* path, const char* text) {
  FILE* const file = fopen(path, "w");
  return file != NULL && fputs(text, file) >= 0 && fclose(file) == 0;
}

static void use_kernel(const char* directory) {
  perfmap_kernel* kernel = NULL;
  perfmap_address_name named = {.struct_size = sizeof named};
  char path[1024];
  snprintf(path, sizeof path, "%s/kallsyms", directory);
  CHECK(perfmap_kernel_begin(path, &kernel, NULL) == PERFMAP_E_NOT_FOUND && kernel == NULL);
  CHECK(write_text(path,
                   "ffffffff81000000 T _stext\nffffffff81000040 t spread\n"
                   "ffffffff81000060 D table\nffffffffc0000000 t hook\t[nf_tables]\n"));
  CHECK(perfmap_kernel_begin(path, &kernel, NULL) == PERFMAP_OK);
  CHECK(perfmap_kernel_name(kernel, 0xffffffff81000070, &named, NULL) == PERFMAP_OK);
  CHECK(named.name_size == 6 && memcmp(named.name, "spread", 6) == 0);
  CHECK(named.begin == 0xffffffff81000040 && named.size == 0 && named.is_jit == 0);
  CHECK(named.source_size == 17 && memcmp(named.source, "[kernel.kallsyms]", 17) == 0);
  CHECK(perfmap_kernel_name(kernel, ~0ULL, &named, NULL) == PERFMAP_OK);
  CHECK(named.source_size == 11 && memcmp(named.source, "[nf_tables]", 11) == 0);
  CHECK(perfmap_kernel_name(kernel, 0x1000, &named, NULL) == PERFMAP_E_NOT_FOUND);
  CHECK(named.name == NULL && named.why == PERFMAP_NO_NAME_NO_SYMBOL);
  perfmap_kernel_end(kernel);
  CHECK(write_text(path, "0000000000000000 T _stext\n0000000000000000 t spread\n"));
  CHECK(perfmap_kernel_begin(path, &kernel, NULL) == PERFMAP_E_REFUSED);
  CHECK(write_text(path, "no symbols\n"));
  CHECK(perfmap_kernel_begin(path, &kernel, NULL) == PERFMAP_E_BAD_FORMAT);
  CHECK(write_text(path, ""));
  CHECK(perfmap_kernel_begin(path, &kernel, NULL) == PERFMAP_OK);
  CHECK(perfmap_kernel_name(kernel, ~0ULL, &named, NULL) == PERFMAP_E_NOT_FOUND);
  perfmap_kernel_end(kernel);
  remove(path);
  switch (perfmap_kernel_begin(NULL, &kernel, NULL)) { /* as far as this user may read it */
    case PERFMAP_OK:
      perfmap_kernel_name(kernel, ~0ULL, &named, NULL);
      perfmap_kernel_end(kernel);
      break;
    case PERFMAP_E_REFUSED:
    case PERFMAP_E_IO: break;
    default: CHECK(0);
  }
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

#define GONE 0x7ffffff0 /* no process has this pid */
#define PLACE 0x400000

/* The file of this program. */
struct program {
  char path[1024];
  uint64_t inode;
  char build_id[64];
  size_t build_id_size;
  const void* bytes; /* of `module` */
  size_t size;
  perfmap_module* module;
};

static void look_at_program(perfmap_module_cache* cache, struct program* program) {
  struct stat status;
  perfmap_module_facts facts = {.struct_size = sizeof facts};
  const ssize_t size = readlink("/proc/self/exe", program->path, sizeof program->path - 1);
  CHECK(size > 0);
  program->path[size] = 0;
  CHECK(stat(program->path, &status) == 0);
  program->inode = status.st_ino;
  CHECK(perfmap_module_open(cache, program->path, &program->module, NULL) == PERFMAP_OK);
  perfmap_module_get_facts(program->module, &facts);
  CHECK(facts.build_id_size > 0 && facts.build_id_size < sizeof program->build_id);
  memcpy(program->build_id, facts.build_id, facts.build_id_size);
  program->build_id_size = facts.build_id_size;
  program->bytes = facts.bytes;
  program->size = facts.bytes_size;
}

/* What find_elf() says of a file that a process mapped that has ended. */
static perfmap_status find_mapped(const perfmap_tracker_options* options, const char* path,
                                  uint64_t inode, const char* build_id, size_t build_id_size,
                                  uint64_t* id) {
  perfmap_tracker* tracker = NULL;
  perfmap_module* module = NULL;
  perfmap_mmap_event event = {.struct_size = sizeof event};
  perfmap_status status;
  CHECK(perfmap_tracker_begin(options, &tracker, NULL) == PERFMAP_OK);
  event.pid = GONE;
  event.access = PERFMAP_ACCESS_READ | PERFMAP_ACCESS_EXECUTE;
  event.begin = PLACE;
  event.size = 0x1000;
  event.name = path;
  event.name_size = strlen(path);
  event.inode = inode;
  event.build_id = build_id;
  event.build_id_size = build_id_size;
  CHECK(perfmap_tracker_on_mmap(tracker, &event, NULL) == PERFMAP_OK);
  status = perfmap_tracker_find_elf(tracker, GONE, PLACE, PERFMAP_NOW, &module, NULL, NULL);
  *id = module != NULL ? perfmap_module_id(module) : 0;
  perfmap_module_end(module);
  perfmap_tracker_end(tracker);
  return status;
}

/* A NULL that has to be something is the caller's fault. */
static void use_null(perfmap_module_cache* cache) {
  perfmap_module* module = NULL;
  perfmap_error error = {.struct_size = sizeof error};
  CHECK(perfmap_module_open(cache, NULL, &module, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strcmp(error.message, "path: NULL") == 0);
  CHECK(perfmap_module_from_memory(cache, NULL, 10, NULL, &module, NULL) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_module_from_memory(cache, NULL, 0, NULL, &module, NULL) == PERFMAP_E_BAD_FORMAT);
  CHECK(perfmap_module_find_build_id(cache, NULL, 20, &module, NULL) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_module_find_build_id(cache, NULL, 0, &module, NULL) == PERFMAP_E_NOT_FOUND);
  CHECK(module == NULL && perfmap_machine_from_uname(NULL) == 0);
}

static void use_ended_processes(void) {
  struct program self;
  perfmap_module_cache* cache = NULL;
  perfmap_tracker_options options = {.struct_size = sizeof options};
  uint64_t id = 0;
  uint64_t same = 0;
  CHECK(perfmap_module_cache_begin(NULL, &cache, NULL) == PERFMAP_OK);
  look_at_program(cache, &self);
  id = perfmap_module_id(self.module);
  options.modules = cache;
  CHECK(id != 0);
  CHECK(find_mapped(&options, self.path, self.inode, NULL, 0, &same) == PERFMAP_OK && same == id);
  CHECK(find_mapped(&options, self.path, 0, self.build_id, self.build_id_size, &same) ==
        PERFMAP_OK);
  CHECK(same == id);
  CHECK(find_mapped(&options, self.path, 0, NULL, 0, &same) == PERFMAP_OK && same == id);
  CHECK(find_mapped(&options, self.path, self.inode + 1, NULL, 0, &same) == PERFMAP_E_REFUSED);
  CHECK(find_mapped(&options, self.path, 0, "other", 5, &same) == PERFMAP_E_REFUSED);
  CHECK(find_mapped(&options, "/gone", 0, NULL, 0, &same) == PERFMAP_E_NOT_FOUND);
  CHECK(find_mapped(&options, "//anon", 0, NULL, 0, &same) == PERFMAP_E_UNSUPPORTED);
  CHECK(find_mapped(&options, "[heap]", 0, NULL, 0, &same) == PERFMAP_E_UNSUPPORTED);
  CHECK(find_mapped(&options, "/memfd:jit", 0, NULL, 0, &same) == PERFMAP_E_UNSUPPORTED);
  CHECK(find_mapped(&options, "relative", 0, NULL, 0, &same) == PERFMAP_E_UNSUPPORTED);
  CHECK(find_mapped(NULL, self.path, 0, NULL, 0, &same) == PERFMAP_E_UNSUPPORTED);
  use_null(cache);
  CHECK(perfmap_module_cache_opened(cache) >= 1);
  perfmap_module_end(self.module);
  perfmap_module_cache_end(cache);
}

/* Files below a directory, as a recording of another machine needs. */
static void use_symfs(const char* directory) {
  struct program self;
  perfmap_module_cache* cache = NULL;
  perfmap_tracker_options options = {.struct_size = sizeof options};
  char path[1024];
  FILE* file;
  uint64_t id = 0;
  CHECK(perfmap_module_cache_begin(NULL, &cache, NULL) == PERFMAP_OK);
  look_at_program(cache, &self);
  snprintf(path, sizeof path, "%s/copied", directory);
  file = fopen(path, "w");
  CHECK(file != NULL && fwrite(self.bytes, 1, self.size, file) == self.size && fclose(file) == 0);
  options.modules = cache;
  options.symfs = directory;
  CHECK(find_mapped(&options, "/copied", 4711, NULL, 0, &id) == PERFMAP_OK);
  CHECK(find_mapped(&options, "/copied", 0, "other", 5, &id) == PERFMAP_E_REFUSED);
  CHECK(find_mapped(&options, self.path, 0, NULL, 0, &id) == PERFMAP_E_NOT_FOUND);
  remove(path);
  perfmap_module_end(self.module);
  perfmap_module_cache_end(cache);
}

struct supply {
  perfmap_module_cache* cache;
  const struct program* program;
  int fd;
  int calls;
};

static perfmap_status supply(int32_t pid, const perfmap_region* region, perfmap_module** out,
                             void* context) {
  struct supply* from = context;
  const struct program* program = from->program;
  ++from->calls;
  CHECK(pid == 0 && region->struct_size == sizeof *region && region->begin == PLACE);
  if (is(region->name, region->name_size, "/memory"))
    return perfmap_module_from_memory(from->cache, program->bytes, program->size, "mine", out,
                                      NULL);
  if (is(region->name, region->name_size, "/descriptor"))
    return perfmap_module_open_descriptor(from->cache, from->fd, NULL, out, NULL);
  if (is(region->name, region->name_size, "/build-id"))
    return perfmap_module_find_build_id(from->cache, program->build_id, program->build_id_size, out,
                                        NULL);
  if (is(region->name, region->name_size, "/handle"))
    return perfmap_module_copy(program->module, out, NULL);
  return is(region->name, region->name_size, "/secret") ? PERFMAP_E_REFUSED : PERFMAP_E_NOT_FOUND;
}

/* The caller opens files; what it does not have the tracker looks for. */
static void use_own_files(void) {
  static const char* const supplied[] = {"/memory", "/descriptor", "/build-id", "/handle"};
  struct program self;
  struct supply from = {.program = &self};
  perfmap_module* none = NULL;
  perfmap_tracker_options options = {.struct_size = sizeof options};
  uint64_t id = 0;
  size_t i;
  CHECK(perfmap_module_cache_begin(NULL, &from.cache, NULL) == PERFMAP_OK);
  look_at_program(from.cache, &self);
  from.fd = open(self.path, O_RDONLY);
  CHECK(from.fd >= 0);
  options.open = supply;
  options.open_context = &from;
  for (i = 0; i < sizeof supplied / sizeof *supplied; ++i) {
    CHECK(find_mapped(&options, supplied[i], 0, NULL, 0, &id) == PERFMAP_OK);
    CHECK(id == perfmap_module_id(self.module));
  }
  CHECK(find_mapped(&options, "/secret", 0, NULL, 0, &id) == PERFMAP_E_REFUSED);
  CHECK(find_mapped(&options, self.path, 0, NULL, 0, &id) == PERFMAP_E_NOT_FOUND);
  options.modules = from.cache;
  CHECK(find_mapped(&options, self.path, 0, NULL, 0, &id) == PERFMAP_OK);
  CHECK(from.calls == 7);
  CHECK(perfmap_module_find_build_id(from.cache, "no", 2, &none, NULL) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_module_from_memory(from.cache, "no", 2, NULL, &none, NULL) == PERFMAP_E_BAD_FORMAT);
  CHECK(perfmap_module_open(from.cache, "/", &none, NULL) != PERFMAP_OK && none == NULL);
  close(from.fd);
  perfmap_module_end(self.module);
  perfmap_module_cache_end(from.cache);
}

int main(void) {
  char directory[] = "perfmap-profile-XXXXXX";
  char path[512];
  use_events();
  use_forgetting();
  use_machines();
  use_names();
  use_ended_processes();
  use_own_files();
  CHECK(mkdtemp(directory) != NULL && getcwd(path, sizeof path - sizeof directory) != NULL);
  strcat(strcat(path, "/"), directory);
  use_own_process(path);
  use_kernel(path);
  use_symfs(path);
  use_stacks();
  rmdir(directory);
  CHECK(perfmap_preferred_regs_mask(62) == 0xff01ff);
  CHECK(perfmap_preferred_regs_mask(3) == 0x1ff);
  CHECK(perfmap_preferred_regs_mask(183) == 0x1fff81fff);
  CHECK(perfmap_preferred_regs_mask(40) == 0xffff);
  CHECK(perfmap_preferred_regs_mask(243) == 0xffffffff &&
        perfmap_preferred_regs_mask(0x1003e) == 0);
  return 0;
}
