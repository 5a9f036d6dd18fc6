/* Uses every function of perfmap_profile.h for stacks; compiled as strict C99. */
#include <unistd.h>

#include "check.h"
#include "perfmap_profile.h"

void use_stacks(void);

extern char** environ;

#if defined(__x86_64__)
struct walk {
  size_t frames;
  size_t most;
  uint64_t pcs[64];
  uint64_t last_sp;
};

static int take_frame(const perfmap_frame* frame, void* context) {
  struct walk* walk = context;
  CHECK(frame->struct_size == sizeof *frame);
  CHECK(frame->is_return == (walk->frames != 0));
  CHECK(frame->sp >= walk->last_sp);
  walk->last_sp = frame->sp;
  walk->pcs[walk->frames++] = frame->pc;
  return walk->frames == walk->most;
}

/* Reads the redzones between variables of other functions, which AddressSanitizer would report. */
static void __attribute__((no_sanitize_address, noinline))
copy_stack(char* to, uint64_t from, size_t size) {
  const volatile char* bytes = (const volatile char*)(uintptr_t)from;
  for (size_t i = 0; i < size; ++i) to[i] = bytes[i];
}

/* Works like a profiler of its own process: its own registers, and a copy of its own stack. */
static void __attribute__((noinline))
unwind_here(perfmap_unwinder* unwinder, const perfmap_unwind_space* space, struct walk* walk,
            int32_t* end) {
  uint64_t registers[17] = {0};
  static char copy[16384];
  size_t size = 0;
  perfmap_sample sample = {.struct_size = sizeof sample};
  __asm__ volatile(
      "mov %%rbx, 8(%0)\n mov %%rbp, 48(%0)\n mov %%rsp, 56(%0)\n lea (%%rip), %%rax\n"
      "mov %%rax, 64(%0)\n mov %%r12, 104(%0)\n mov %%r13, 112(%0)\n mov %%r14, 120(%0)\n"
      "mov %%r15, 128(%0)\n"
      :
      : "r"(registers)
      : "rax", "memory");
  /* Only up to the environment strings, which are at the end of the stack. */
  size = (uint64_t)(uintptr_t)environ[0] - registers[7];
  if (size > sizeof copy) size = sizeof copy;
  copy_stack(copy, registers[7], size);
  sample.machine = 62;
  sample.is_stack_full = 1;
  sample.time = PERFMAP_NOW;
  sample.register_mask = perfmap_preferred_regs_mask(62);
  sample.registers = registers;
  sample.register_count = 17;
  sample.stack = copy;
  sample.stack_size = size;
  CHECK(perfmap_unwind_sample(unwinder, space, &sample, take_frame, walk, end, NULL) == PERFMAP_OK);
  sample.machine = 4711;
  CHECK(perfmap_unwind_sample(unwinder, space, &sample, take_frame, walk, end, NULL) ==
        PERFMAP_E_INVALID_ARGUMENT);
}

void use_stacks(void) {
  perfmap_module_cache* cache = NULL;
  perfmap_tracker* tracker = NULL;
  perfmap_unwind_space* space = NULL;
  perfmap_unwinder* unwinder = NULL;
  perfmap_tracker_options options = {.struct_size = sizeof options};
  perfmap_unwinder_options few = {.struct_size = sizeof few};
  struct walk walk = {.most = 64};
  int32_t end = -1;
  CHECK(perfmap_module_cache_begin(NULL, &cache, NULL) == PERFMAP_OK);
  options.modules = cache;
  CHECK(perfmap_tracker_begin(&options, &tracker, NULL) == PERFMAP_OK);
  CHECK(perfmap_unwind_attach(tracker, getpid(), PERFMAP_NOW, &space, NULL) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_tracker_import(tracker, getpid(), PERFMAP_NOW, NULL, NULL) == PERFMAP_OK);
  CHECK(perfmap_unwind_attach(tracker, getpid(), PERFMAP_NOW, &space, NULL) == PERFMAP_OK);
  CHECK(perfmap_unwinder_begin(NULL, &unwinder, NULL) == PERFMAP_OK);
  unwind_here(unwinder, space, &walk, &end);
  /* unwind_here, use_stacks (unless it is inlined), main, and libc's caller of main. */
  CHECK(walk.frames >= 4);
  CHECK(end == PERFMAP_STACK_ROOT);
  perfmap_unwinder_end(unwinder);
  few.most_frames = 2;
  CHECK(perfmap_unwinder_begin(&few, &unwinder, NULL) == PERFMAP_OK);
  walk.frames = 0;
  walk.last_sp = 0;
  unwind_here(unwinder, space, &walk, &end);
  CHECK(walk.frames == 2 && end == PERFMAP_STACK_LIMIT);
  perfmap_unwinder_end(unwinder);
  perfmap_unwind_detach(space);
  perfmap_tracker_end(tracker);
  perfmap_module_cache_end(cache);
}
#else
static int take_frame(const perfmap_frame* frame, void* context) {
  (void)frame;
  (void)context;
  return 0;
}

/* On other machines: a sample without registers, which gives no frames. */
void use_stacks(void) {
  perfmap_tracker* tracker = NULL;
  perfmap_unwind_space* space = NULL;
  perfmap_unwinder* unwinder = NULL;
  perfmap_sample sample = {.struct_size = sizeof sample, .machine = 183};
  int32_t end = -1;
  CHECK(perfmap_tracker_begin(NULL, &tracker, NULL) == PERFMAP_OK);
  CHECK(perfmap_tracker_import(tracker, getpid(), PERFMAP_NOW, NULL, NULL) == PERFMAP_OK);
  CHECK(perfmap_unwind_attach(tracker, getpid(), PERFMAP_NOW, &space, NULL) == PERFMAP_OK);
  CHECK(perfmap_unwinder_begin(NULL, &unwinder, NULL) == PERFMAP_OK);
  CHECK(perfmap_unwind_sample(unwinder, space, &sample, take_frame, NULL, &end, NULL) ==
        PERFMAP_OK);
  CHECK(end == PERFMAP_STACK_NO_INFO);
  perfmap_unwinder_end(unwinder);
  perfmap_unwind_detach(space);
  perfmap_tracker_end(tracker);
}
#endif
