/* SPDX-License-Identifier: MIT */
/* Uses every function of perfmap_profile.h for stacks; compiled as strict C99. */
#include <unistd.h>

#include "check.h"
#include "perfmap_profile.h"

void use_stacks(void);

extern char** environ;

#if defined(__x86_64__)
#define MOST 64

struct walk {
  size_t frames;
  size_t most;
  uint64_t pcs[MOST];
  uint64_t last_sp;
};

/* The last sample that was unwound. */
static uint64_t registers[17];
static perfmap_sample sample;

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
  static char copy[16384];
  size_t size = 0;
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
  memset(&sample, 0, sizeof sample);
  sample.struct_size = sizeof sample;
  sample.machine = 62;
  sample.is_stack_full = 1;
  sample.time = PERFMAP_NOW;
  sample.register_mask = perfmap_preferred_regs_mask(62);
  sample.registers = registers;
  sample.register_count = 17;
  sample.stack = copy;
  sample.stack_size = size;
  CHECK(perfmap_unwind_sample(unwinder, space, &sample, take_frame, walk, end, NULL) == PERFMAP_OK);
}

/* All frames of a stack. */
struct stack {
  size_t count;
  perfmap_frame frames[MOST];
  uint64_t saved[MOST]; /* rbp, of DWARF number 6; 0: not known */
};

static int take_whole(const perfmap_frame* frame, void* context) {
  struct stack* stack = context;
  const uint64_t* values = frame->registers;
  CHECK(stack->count < MOST);
  CHECK((frame->register_mask == 0) == (values == NULL));
  if (values != NULL) {
    CHECK((frame->register_mask >> 7 & 1) == 1 && values[7] == frame->sp);
    /* A callee may have changed rax; the pc is not one of them. */
    CHECK((frame->register_mask & 1) == 0 || frame->source == PERFMAP_FRAME_INITIAL);
    CHECK(frame->register_mask >> 16 == 0);
  }
  stack->saved[stack->count] = values != NULL && (frame->register_mask >> 6 & 1) ? values[6] : 0;
  stack->frames[stack->count++] = *frame;
  return 0;
}

static int32_t unwind_again(perfmap_unwinder* unwinder, const perfmap_unwind_space* space,
                            const perfmap_sample* given, struct stack* stack) {
  int32_t end = -1;
  stack->count = 0;
  CHECK(perfmap_unwind_sample(unwinder, space, given, take_whole, stack, &end, NULL) == PERFMAP_OK);
  return end;
}

/* The registers in an order of the caller's, and with two that do not count. */
static void use_own_order(perfmap_unwinder* unwinder, const perfmap_unwind_space* space,
                          const struct stack* expected) {
  /* pc, sp, -1, rbp, rbx, 99, r12 to r15 */
  static const int32_t numbers[] = {16, 7, -1, 6, 3, 99, 12, 13, 14, 15};
  const uint64_t values[] = {registers[8],  registers[7], 4711,          registers[6],
                             registers[1],  4711,         registers[13], registers[14],
                             registers[15], registers[16]};
  perfmap_sample mapped = sample;
  struct stack stack;
  mapped.register_mask = 0;
  mapped.registers = values;
  mapped.dwarf_numbers = numbers;
  mapped.register_count = sizeof numbers / sizeof *numbers;
  CHECK(unwind_again(unwinder, space, &mapped, &stack) == PERFMAP_STACK_ROOT);
  CHECK(stack.count == expected->count);
  for (size_t i = 0; i < stack.count; ++i) CHECK(stack.frames[i].pc == expected->frames[i].pc);
}

/* The kernel's frames come before those of the user, which are unwound if there are registers. */
static void use_callchain(perfmap_unwinder* unwinder, const perfmap_unwind_space* space,
                          const struct stack* expected) {
  const uint64_t kernel = (uint64_t)-128;
  const uint64_t user = (uint64_t)-512;
  const uint64_t chain[] = {kernel, 0xffffffff81000010, 0xffffffff81000020, user, 0x1000, 0x2000};
  perfmap_sample merged = sample;
  struct stack stack;
  merged.callchain = chain;
  merged.callchain_size = sizeof chain / sizeof *chain;
  CHECK(unwind_again(unwinder, space, &merged, &stack) == PERFMAP_STACK_ROOT);
  CHECK(stack.count == expected->count + 2);
  CHECK(stack.frames[0].pc == chain[1] && stack.frames[0].source == PERFMAP_FRAME_KERNEL);
  CHECK(stack.frames[0].is_return == 0 && stack.frames[1].is_return == 1);
  CHECK(stack.frames[2].pc == expected->frames[0].pc && stack.saved[0] == 0);
  CHECK(stack.saved[2] == expected->saved[0]);
  merged.register_mask = 0;
  CHECK(unwind_again(unwinder, space, &merged, &stack) == PERFMAP_STACK_CALLCHAIN);
  CHECK(stack.count == 4 && stack.frames[2].source == PERFMAP_FRAME_CALLCHAIN);
  CHECK(stack.frames[3].pc == 0x2000 && stack.frames[3].is_return == 1);
}

/* A stack that was cut gets the callers that it had in another sample. */
static void use_stitcher(perfmap_unwinder* unwinder, const perfmap_unwind_space* space,
                         const struct stack* whole) {
  perfmap_stitcher* stitcher = NULL;
  perfmap_stitcher_options options = {.struct_size = sizeof options};
  perfmap_sample cut = sample;
  struct stack stack;
  int32_t end = -1;
  cut.stack_size = whole->frames[2].sp - whole->frames[0].sp;
  CHECK(unwind_again(unwinder, space, &cut, &stack) == PERFMAP_STACK_TRUNCATED);
  CHECK(stack.count == 3);
  options.max_distance = 100;
  CHECK(perfmap_stitcher_begin(&options, &stitcher, NULL) == PERFMAP_OK);
  CHECK(perfmap_stitcher_learn(stitcher, 1, 2, 1000, whole->frames, whole->count,
                               PERFMAP_STACK_ROOT, NULL) == PERFMAP_OK);
  CHECK(perfmap_stitcher_repair(stitcher, 1, 2, 2000, stack.frames, &stack.count, MOST, &end,
                                NULL) == PERFMAP_OK);
  CHECK(stack.count == 3 && end == PERFMAP_STACK_TRUNCATED); /* too late */
  CHECK(perfmap_stitcher_repair(stitcher, 1, 2, 1050, stack.frames, &stack.count, 4, &end, NULL) ==
        PERFMAP_OK);
  CHECK(stack.count == (whole->count < 4 ? whole->count : 4));
  CHECK(end == (whole->count <= 4 ? PERFMAP_STACK_ROOT : PERFMAP_STACK_LIMIT));
  CHECK(perfmap_stitcher_repair(stitcher, 1, 2, 1050, stack.frames, &stack.count, MOST, &end,
                                NULL) == PERFMAP_OK);
  CHECK(stack.count == whole->count && end == PERFMAP_STACK_ROOT);
  CHECK(stack.frames[3].source == PERFMAP_FRAME_STITCHED);
  CHECK(stack.frames[3].pc == whole->frames[3].pc && stack.frames[3].is_return == 1);
  perfmap_stitcher_forget_before(stitcher, 5000);
  stack.frames[0].source = 99;
  CHECK(perfmap_stitcher_learn(stitcher, 1, 2, 1, stack.frames, 1, 0, NULL) ==
        PERFMAP_E_INVALID_ARGUMENT);
  stack.frames[0].source = PERFMAP_FRAME_INITIAL;
  CHECK(perfmap_stitcher_learn(stitcher, 1, 2, 1, stack.frames, 1, 99, NULL) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_stitcher_learn(stitcher, 1, 2, 1, stack.frames, 1, -1, NULL) ==
        PERFMAP_E_INVALID_ARGUMENT);
  perfmap_stitcher_end(stitcher);
}

/* Of a machine whose stacks are not unwound: the kernel's chain, else the pc alone. */
static void use_not_unwound(perfmap_unwinder* unwinder, const perfmap_unwind_space* space) {
  static const int32_t numbers[] = {65, 15}; /* the pc and the stack pointer */
  const uint64_t kernel = (uint64_t)-128;
  const uint64_t user = (uint64_t)-512;
  const uint64_t chain[] = {kernel, 0xffffffff81000010, user, 0x1000, 0x2000};
  const uint64_t values[] = {0x7000, 0x1000}; /* sp, pc */
  perfmap_unwinder_statistics statistics = {.struct_size = sizeof statistics};
  uint64_t samples;
  perfmap_sample other = sample;
  struct stack stack = {.count = 0};
  int32_t end = -1;
  perfmap_unwinder_get_statistics(unwinder, &statistics);
  samples = statistics.samples;
  other.machine = 22; /* EM_S390 */
  other.register_mask = 1ULL << 15 | 1ULL << 33;
  other.registers = values;
  other.register_count = 2;
  CHECK(perfmap_unwind_sample(unwinder, space, &other, take_whole, &stack, &end, NULL) ==
        PERFMAP_E_UNSUPPORTED);
  CHECK(stack.count == 1 && stack.frames[0].pc == 0x1000 && end == PERFMAP_STACK_NO_INFO);
  CHECK(stack.frames[0].source == PERFMAP_FRAME_INITIAL && stack.frames[0].is_return == 0);
  other.callchain = chain;
  other.callchain_size = sizeof chain / sizeof *chain;
  stack.count = 0;
  CHECK(perfmap_unwind_sample(unwinder, space, &other, take_whole, &stack, &end, NULL) ==
        PERFMAP_E_UNSUPPORTED);
  CHECK(stack.count == 3 && end == PERFMAP_STACK_CALLCHAIN);
  CHECK(stack.frames[0].source == PERFMAP_FRAME_KERNEL && stack.frames[2].pc == 0x2000);
  other.dwarf_numbers = numbers; /* which perfmap does not know of that machine */
  stack.count = 0;
  CHECK(perfmap_unwind_sample(unwinder, space, &other, take_whole, &stack, NULL, NULL) ==
        PERFMAP_E_UNSUPPORTED);
  CHECK(stack.count == 3);
  perfmap_unwinder_get_statistics(unwinder, &statistics);
  CHECK(statistics.samples == samples + 3);
  /* Without registers no machine is needed. */
  for (uint32_t machine = 0; machine < 2; ++machine) {
    other.machine = machine * 4711;
    other.register_count = 0;
    CHECK(unwind_again(unwinder, space, &other, &stack) == PERFMAP_STACK_CALLCHAIN);
    CHECK(stack.count == 3);
  }
  other.callchain_size = 0;
  CHECK(unwind_again(unwinder, space, &other, &stack) == PERFMAP_STACK_NO_INFO);
  CHECK(stack.count == 0);
}

/* The same sample in other forms. */
static void use_forms(const perfmap_unwind_space* space) {
  perfmap_unwinder* unwinder = NULL;
  perfmap_unwinder_options options = {.struct_size = sizeof options};
  perfmap_unwinder_statistics statistics = {.struct_size = sizeof statistics};
  perfmap_sample other = sample;
  struct stack stack;
  uint64_t frames = 0;
  options.with_registers = 1;
  CHECK(perfmap_unwinder_begin(&options, &unwinder, NULL) == PERFMAP_OK);
  CHECK(unwind_again(unwinder, space, &sample, &stack) == PERFMAP_STACK_ROOT);
  CHECK(stack.count >= 4 && stack.saved[0] == registers[6]);
  perfmap_unwinder_get_statistics(unwinder, &statistics);
  CHECK(statistics.samples == 1 && statistics.frames == stack.count && statistics.rules > 0);
  CHECK(statistics.end_count > PERFMAP_STACK_CALLCHAIN && statistics.ends[0] == 1);
  for (size_t i = 0; i < statistics.source_count; ++i) frames += statistics.sources[i];
  CHECK(frames == stack.count && statistics.sources[PERFMAP_FRAME_INITIAL] == 1);
  use_own_order(unwinder, space, &stack);
  use_callchain(unwinder, space, &stack);
  use_stitcher(unwinder, space, &stack);
  other.machine = 0; /* that of the process's files */
  CHECK(unwind_again(unwinder, space, &other, &stack) == PERFMAP_STACK_ROOT && stack.count >= 4);
  use_not_unwound(unwinder, space);
  other.machine = 4711;
  CHECK(perfmap_unwind_sample(unwinder, space, &other, take_whole, &stack, NULL, NULL) ==
        PERFMAP_E_INVALID_ARGUMENT);
  perfmap_unwinder_end(unwinder);
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
  use_forms(space);
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
