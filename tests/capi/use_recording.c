/* SPDX-License-Identifier: MIT */
/* Uses every function of perfmap_profile.h for recordings; compiled as strict C99:
 * use_recording RECORDING SYMFS FOLDED SCRIPT. Writes the stacks as folded text, line by line on
 * standard output, and once as perf-script, for check_recording.py to compare. After a line "-",
 * standard output has the folded text of perfmap_stacks_write().
 * use_recording DIRECTORY FOLDED writes the stacks of a recording directory, with its own files. */
#include "check.h"
#include "perfmap_profile.h"

#define MOST 256

static int32_t one_pid;

static perfmap_stacks* begin_stacks(const perfmap_recording* recording, const char* symfs,
                                    int32_t detail) {
  perfmap_stacks* stacks = NULL;
  perfmap_stacks_options options = {.struct_size = sizeof options};
  options.symfs = symfs;
  options.detail = detail;
  CHECK(perfmap_stacks_begin(recording, &options, &stacks, NULL) == PERFMAP_OK);
  return stacks;
}

struct printing {
  const perfmap_stacks* stacks;
  uint64_t samples;
  uint64_t frames;
  uint64_t last_time;
};

/* "comm;root;...;leaf" */
static int print_stack(const perfmap_stack* stack, void* context) {
  struct printing* printing = context;
  perfmap_stack_frame frame = {.struct_size = sizeof frame};
  size_t i;
  CHECK(stack->struct_size == sizeof *stack && stack->time >= printing->last_time);
  CHECK(stack->pid > 0 && stack->tid > 0 && stack->period > 0 && stack->process_comm_size > 0);
  printing->last_time = stack->time;
  printing->samples += 1;
  printing->frames += stack->frame_count;
  one_pid = stack->pid;
  printf("%.*s", (int)stack->comm_size, stack->comm);
  for (i = stack->frame_count; i-- > 0;) {
    CHECK(perfmap_stacks_frame(printing->stacks, i, &frame) == PERFMAP_OK);
    CHECK(frame.kind == PERFMAP_KIND_NATIVE && frame.place != 0 && frame.function != 0);
    CHECK(frame.is_return == (i != 0) && frame.module_size > 0 && frame.doubts == 0);
    CHECK((frame.source == PERFMAP_FRAME_INITIAL) == (i == 0));
    CHECK(frame.system_name_size > 0 && frame.vaddr != 0);
    printf(";%.*s", (int)frame.name_size, frame.name);
  }
  printf("\n");
  CHECK(perfmap_stacks_frame(printing->stacks, stack->frame_count, &frame) == PERFMAP_E_NOT_FOUND);
  return 0;
}

static void print_stacks(const perfmap_recording* recording, const char* symfs) {
  struct printing printing = {.samples = 0};
  perfmap_stack_frame frame = {.struct_size = sizeof frame};
  perfmap_stack_counts counts = {.struct_size = sizeof counts};
  perfmap_stack_losses losses = {.struct_size = sizeof losses};
  perfmap_error error = {.struct_size = sizeof error};
  uint64_t sum = 0;
  size_t i;
  perfmap_stacks* stacks = begin_stacks(recording, symfs, PERFMAP_DETAIL_SYMBOLS);
  printing.stacks = stacks;
  CHECK(perfmap_stacks_read(stacks, print_stack, &printing, NULL) == PERFMAP_OK);
  CHECK(perfmap_stacks_read(stacks, print_stack, &printing, NULL) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_stacks_frame(stacks, 0, &frame) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_stacks_processes(stacks) == 1);
  CHECK(perfmap_stacks_get_counts(stacks, 0, &counts) == PERFMAP_OK && counts.pid == one_pid);
  CHECK(counts.samples == printing.samples && counts.frames == printing.frames);
  CHECK(counts.worst_source == PERFMAP_FRAME_EH_CFI && counts.comm_size > 0);
  for (i = 0; i < counts.source_count; ++i) sum += counts.sources[i];
  CHECK(sum == counts.frames && counts.ends[PERFMAP_STACK_ROOT] == counts.samples);
  CHECK(perfmap_stacks_get_counts(stacks, 1, &counts) == PERFMAP_OK && counts.pid == 0);
  CHECK(counts.samples == printing.samples && counts.unnamed == 0 && counts.stitched == 0);
  CHECK(perfmap_stacks_get_counts(stacks, 2, &counts) == PERFMAP_E_NOT_FOUND);
  perfmap_stacks_get_losses(stacks, &losses);
  CHECK(losses.filtered == 0 && losses.lost == 0 && losses.lost_bytes == 0);
  /* The vdso is of another kernel, which is no failure, but nothing else is missing. */
  CHECK(perfmap_stacks_get_failure(stacks, 1, &error) == PERFMAP_E_NOT_FOUND);
  perfmap_stacks_end(stacks);
}

static int stop_at_first(const perfmap_stack* stack, void* context) {
  (void)stack;
  return ++*(int*)context;
}

static int pass_over(const perfmap_stack* stack, void* context) {
  (void)stack;
  ++*(int*)context;
  return 0;
}

/* Filters, a caller that stops, and files that are not there. */
static void use_options(const perfmap_recording* recording) {
  const int32_t no_process = 1;
  const char* const comms[] = {"no", "such"};
  const char* const events[] = {"no-such-event"};
  perfmap_stacks* stacks = NULL;
  perfmap_stacks_options options = {.struct_size = sizeof options};
  perfmap_stack_losses losses = {.struct_size = sizeof losses};
  perfmap_error error = {.struct_size = sizeof error};
  int calls = 0;
  int kind;
  for (kind = 0; kind < 5; ++kind) {
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.symfs = "/nowhere";
    options.pids = kind == 0 ? &no_process : NULL;
    options.pid_count = kind == 0;
    options.tids = kind == 1 ? &no_process : NULL;
    options.tid_count = kind == 1;
    options.comms = comms;
    options.comm_count = kind == 2 ? 2 : 0;
    options.events = events;
    options.event_count = kind == 3;
    options.to = kind == 4;
    calls = 0;
    CHECK(perfmap_stacks_begin(recording, &options, &stacks, NULL) == PERFMAP_OK);
    CHECK(perfmap_stacks_read(stacks, stop_at_first, &calls, NULL) == PERFMAP_OK && calls == 0);
    perfmap_stacks_get_losses(stacks, &losses);
    CHECK(losses.filtered > 1);
    perfmap_stacks_end(stacks);
  }
  options.to = 0;
  CHECK(perfmap_stacks_begin(recording, &options, &stacks, NULL) == PERFMAP_OK);
  CHECK(perfmap_stacks_read(stacks, stop_at_first, &calls, NULL) == PERFMAP_OK && calls == 1);
  perfmap_stacks_end(stacks);
  CHECK(perfmap_stacks_begin(recording, &options, &stacks, NULL) == PERFMAP_OK);
  CHECK(perfmap_stacks_read(stacks, pass_over, &calls, NULL) == PERFMAP_OK && calls > 10);
  CHECK(perfmap_stacks_get_failure(stacks, 0, &error) == PERFMAP_OK);
  CHECK(strstr(error.message, "/nowhere") != NULL);
  perfmap_stacks_end(stacks);
  options.detail = 4;
  CHECK(perfmap_stacks_begin(recording, &options, &stacks, NULL) == PERFMAP_E_INVALID_ARGUMENT);
  options.detail = 0;
  options.from = 2;
  options.to = 1;
  CHECK(perfmap_stacks_begin(recording, &options, &stacks, NULL) == PERFMAP_E_INVALID_ARGUMENT);
  options.from = options.to = 0;
  options.kallsyms = "/nowhere/kallsyms";
  CHECK(perfmap_stacks_begin(recording, &options, &stacks, NULL) == PERFMAP_E_NOT_FOUND);
}

static void write_stacks(const perfmap_recording* recording, const char* path, const char* symfs,
                         const char* folded, const char* script) {
  perfmap_stacks_writing writing = {.struct_size = sizeof writing};
  perfmap_stacks* stacks = begin_stacks(recording, symfs, PERFMAP_DETAIL_SYMBOLS);
  CHECK(perfmap_stacks_write(stacks, "flame", folded, NULL, NULL) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_stacks_write(stacks, NULL, folded, NULL, NULL) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_stacks_write(stacks, "folded", NULL, NULL, NULL) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_stacks_write(stacks, "folded", path, NULL, NULL) == PERFMAP_E_REFUSED);
  CHECK(perfmap_stacks_write(stacks, "folded", folded, &writing, NULL) == PERFMAP_OK);
  CHECK(perfmap_stacks_write(stacks, "folded", folded, NULL, NULL) == PERFMAP_E_INVALID_ARGUMENT);
  perfmap_stacks_end(stacks);
  stacks = begin_stacks(recording, symfs, PERFMAP_DETAIL_ADDRESSES);
  CHECK(perfmap_stacks_write(stacks, "perf-script", script, NULL, NULL) == PERFMAP_OK);
  perfmap_stacks_end(stacks);
  stacks = begin_stacks(recording, symfs, PERFMAP_DETAIL_SYMBOLS);
  printf("-\n");
  fflush(stdout);
  CHECK(perfmap_stacks_write(stacks, "folded", "-", NULL, NULL) == PERFMAP_OK);
  perfmap_stacks_end(stacks);
}

/* The same by hand: events to a tracker, samples to an unwinder. */
struct by_hand {
  perfmap_recording* recording;
  perfmap_tracker* tracker;
  perfmap_unwinder* unwinder;
  perfmap_unwind_space* space;
  uint64_t samples;
  uint64_t frames;
};

static int count_frame(const perfmap_frame* frame, void* context) {
  (void)frame;
  ++*(uint64_t*)context;
  return 0;
}

static int take_record(const perfmap_record* record, void* context) {
  struct by_hand* hand = context;
  perfmap_recorded_sample decoded = {.struct_size = sizeof decoded};
  perfmap_sample sample = {.struct_size = sizeof sample};
  int32_t end = -1;
  perfmap_status status;
  CHECK(record->struct_size == sizeof *record && record->size >= 8 && record->bytes != NULL);
  CHECK(perfmap_tracker_on_record(hand->tracker, record, NULL) == PERFMAP_OK);
  status = perfmap_recording_get_sample(hand->recording, record, &decoded, &sample, NULL);
  CHECK(status == (record->type == 9 ? PERFMAP_OK : PERFMAP_E_NOT_FOUND));
  if (status != PERFMAP_OK) return 0;
  CHECK(decoded.mode == PERFMAP_CPU_USER && decoded.user_abi == 2 && decoded.pid == one_pid);
  CHECK(decoded.time == record->time && sample.machine == 62 && sample.stack_size > 0);
  if (hand->space == NULL)
    CHECK(perfmap_unwind_attach(hand->tracker, decoded.pid, decoded.time, &hand->space, NULL) ==
          PERFMAP_OK);
  CHECK(perfmap_unwind_sample(hand->unwinder, hand->space, &sample, count_frame, &hand->frames,
                              &end, NULL) == PERFMAP_OK);
  CHECK(end == PERFMAP_STACK_ROOT);
  return ++hand->samples == 0;
}

static void read_by_hand(perfmap_recording* recording, const char* symfs) {
  struct by_hand hand = {.recording = recording};
  perfmap_module_cache* cache = NULL;
  perfmap_tracker_options options = {.struct_size = sizeof options};
  perfmap_stacks* stacks = begin_stacks(recording, symfs, PERFMAP_DETAIL_ADDRESSES);
  perfmap_stack_counts counts = {.struct_size = sizeof counts};
  int calls = 0;
  CHECK(perfmap_module_cache_begin(NULL, &cache, NULL) == PERFMAP_OK);
  options.modules = cache;
  options.symfs = symfs;
  CHECK(perfmap_tracker_begin(&options, &hand.tracker, NULL) == PERFMAP_OK);
  CHECK(perfmap_unwinder_begin(NULL, &hand.unwinder, NULL) == PERFMAP_OK);
  CHECK(perfmap_recording_read(recording, take_record, &hand, NULL) == PERFMAP_OK);
  CHECK(perfmap_stacks_read(stacks, pass_over, &calls, NULL) == PERFMAP_OK);
  CHECK(perfmap_stacks_get_counts(stacks, perfmap_stacks_processes(stacks), &counts) == PERFMAP_OK);
  CHECK((uint64_t)calls == hand.samples && counts.samples == hand.samples &&
        counts.frames == hand.frames);
  perfmap_stacks_end(stacks);
  perfmap_unwind_detach(hand.space);
  perfmap_unwinder_end(hand.unwinder);
  perfmap_tracker_end(hand.tracker);
  perfmap_module_cache_end(cache);
}

static void use_facts(const perfmap_recording* recording) {
  perfmap_recording_facts facts = {.struct_size = sizeof facts};
  perfmap_recorded_event event = {.struct_size = sizeof event};
  char arch[32];
  perfmap_recording_get_facts(recording, &facts);
  CHECK(!facts.is_pipe && !facts.was_killed && !facts.is_swapped && facts.event_count >= 1);
  CHECK(facts.first_sample < facts.last_sample && facts.arch_size < sizeof arch);
  memcpy(arch, facts.arch, facts.arch_size);
  arch[facts.arch_size] = 0;
  CHECK(perfmap_machine_from_uname(arch) == 62);
  CHECK(perfmap_recording_get_event(recording, 0, &event) == PERFMAP_OK && event.name_size > 0);
  CHECK((event.user_registers & perfmap_preferred_regs_mask(62)) == event.user_registers ||
        event.user_registers != 0);
  CHECK(event.user_stack > 0);
  CHECK(perfmap_recording_get_event(recording, facts.event_count, &event) == PERFMAP_E_NOT_FOUND);
}

static void write_directory(const char* directory, const char* folded) {
  perfmap_recording* recording = NULL;
  perfmap_stacks* stacks = NULL;
  CHECK(perfmap_recording_open(directory, &recording, NULL) == PERFMAP_OK);
  stacks = begin_stacks(recording, NULL, PERFMAP_DETAIL_SYMBOLS);
  CHECK(perfmap_stacks_write(stacks, "folded", folded, NULL, NULL) == PERFMAP_OK);
  perfmap_stacks_end(stacks);
  perfmap_recording_end(recording);
}

int main(int count, char** arguments) {
  perfmap_recording* recording = NULL;
  if (count == 3) {
    write_directory(arguments[1], arguments[2]);
    return 0;
  }
  CHECK(count == 5);
  CHECK(perfmap_recording_open(NULL, &recording, NULL) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_recording_open("/nowhere", &recording, NULL) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_recording_open(arguments[0], &recording, NULL) == PERFMAP_E_BAD_FORMAT);
  CHECK(perfmap_recording_open(arguments[1], &recording, NULL) == PERFMAP_OK);
  use_facts(recording);
  print_stacks(recording, arguments[2]);
  use_options(recording);
  write_stacks(recording, arguments[1], arguments[2], arguments[3], arguments[4]);
  read_by_hand(recording, arguments[2]);
  perfmap_recording_end(recording);
  return 0;
}
