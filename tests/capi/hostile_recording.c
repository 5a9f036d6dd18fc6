/* SPDX-License-Identifier: MIT */
/* Damages a recording and a copy of /proc/kallsyms, and passes them to every function for them:
 * hostile_recording CASE RECORDING SYMFS. All must answer with a status that is no bug, and end.
 * Compiled as strict C99. */
#include <stdint.h>
#include <unistd.h>

#include "check.h"
#include "perfmap_profile.h"

#define HEADER 104

static char path[64];
static const char* symfs;
static perfmap_module_cache* modules;
static unsigned opened;

static void write_file(const char* bytes, size_t size) {
  FILE* file = fopen(path, "wb");
  CHECK(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static void check_status(perfmap_status status) {
  CHECK(status >= PERFMAP_OK && status < PERFMAP_E_INTERNAL);
}

struct reading {
  perfmap_recording* recording;
  perfmap_tracker* tracker;
  perfmap_unwinder* unwinder;
  perfmap_unwind_space* space;
  perfmap_stacks* stacks;
  size_t size; /* of the file */
  uint64_t records;
  uint64_t stacks_read;
};

static int ignore_frame(const perfmap_frame* frame, void* context) {
  (void)frame;
  (void)context;
  return 0;
}

static void unwind(struct reading* reading, const perfmap_recorded_sample* decoded,
                   const perfmap_sample* sample) {
  int32_t end = -1;
  if (reading->space == NULL)
    check_status(perfmap_unwind_attach(reading->tracker, decoded->pid, decoded->time,
                                       &reading->space, NULL));
  if (reading->space == NULL) return;
  check_status(perfmap_unwind_sample(reading->unwinder, reading->space, sample, ignore_frame, NULL,
                                     &end, NULL));
}

static int take_record(const perfmap_record* record, void* context) {
  struct reading* reading = context;
  perfmap_recorded_sample decoded = {.struct_size = sizeof decoded};
  perfmap_sample sample = {.struct_size = sizeof sample};
  perfmap_status status;
  CHECK(record->size >= 8 && record->size <= UINT16_MAX && record->bytes != NULL);
  CHECK(record->offset < reading->size);
  CHECK(++reading->records <= reading->size / 8);
  check_status(perfmap_tracker_on_record(reading->tracker, record, NULL));
  status = perfmap_recording_get_sample(reading->recording, record, &decoded, &sample, NULL);
  check_status(status);
  if (status == PERFMAP_OK) unwind(reading, &decoded, &sample);
  return 0;
}

static int take_stack(const perfmap_stack* stack, void* context) {
  struct reading* reading = context;
  perfmap_stack_frame frame = {.struct_size = sizeof frame};
  size_t i;
  CHECK(++reading->stacks_read <= reading->size / 8);
  for (i = 0; i < stack->frame_count; ++i)
    CHECK(perfmap_stacks_frame(reading->stacks, i, &frame) == PERFMAP_OK);
  CHECK(perfmap_stacks_frame(reading->stacks, i, &frame) == PERFMAP_E_NOT_FOUND);
  return 0;
}

static void read_facts(const perfmap_recording* recording) {
  perfmap_recording_facts facts = {.struct_size = sizeof facts};
  perfmap_recorded_event event = {.struct_size = sizeof event};
  size_t i;
  perfmap_recording_get_facts(recording, &facts);
  for (i = 0; i < facts.event_count; ++i)
    CHECK(perfmap_recording_get_event(recording, i, &event) == PERFMAP_OK);
  CHECK(perfmap_recording_get_event(recording, i, &event) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_recording_get_event(recording, SIZE_MAX, &event) == PERFMAP_E_NOT_FOUND);
}

static void read_records(struct reading* reading) {
  perfmap_tracker_options options = {.struct_size = sizeof options};
  options.modules = modules;
  options.symfs = symfs;
  CHECK(perfmap_tracker_begin(&options, &reading->tracker, NULL) == PERFMAP_OK);
  CHECK(perfmap_unwinder_begin(NULL, &reading->unwinder, NULL) == PERFMAP_OK);
  check_status(perfmap_recording_read(reading->recording, take_record, reading, NULL));
  perfmap_unwind_detach(reading->space);
  perfmap_unwinder_end(reading->unwinder);
  perfmap_tracker_end(reading->tracker);
}

static void read_stacks(struct reading* reading) {
  perfmap_stacks_options options = {.struct_size = sizeof options};
  perfmap_stack_counts counts = {.struct_size = sizeof counts};
  perfmap_stack_losses losses = {.struct_size = sizeof losses};
  perfmap_error error = {.struct_size = sizeof error};
  size_t i;
  options.modules = modules;
  options.symfs = symfs;
  options.no_kernel = 1;
  CHECK(perfmap_stacks_begin(reading->recording, &options, &reading->stacks, NULL) == PERFMAP_OK);
  check_status(perfmap_stacks_read(reading->stacks, take_stack, reading, NULL));
  for (i = 0; i <= perfmap_stacks_processes(reading->stacks); ++i)
    CHECK(perfmap_stacks_get_counts(reading->stacks, i, &counts) == PERFMAP_OK);
  CHECK(perfmap_stacks_get_counts(reading->stacks, i, &counts) == PERFMAP_E_NOT_FOUND);
  perfmap_stacks_get_losses(reading->stacks, &losses);
  CHECK(losses.lost_bytes <= reading->size);
  for (i = 0; perfmap_stacks_get_failure(reading->stacks, i, &error) == PERFMAP_OK; ++i)
    CHECK(i < reading->size);
  perfmap_stacks_end(reading->stacks);
}

/* Returns the number of samples of which stacks were made. */
static uint64_t read_all(const char* bytes, size_t size) {
  struct reading reading = {.size = size};
  perfmap_status status;
  write_file(bytes, size);
  status = perfmap_recording_open(path, &reading.recording, NULL);
  check_status(status);
  if (status != PERFMAP_OK) return 0;
  ++opened;
  read_facts(reading.recording);
  read_records(&reading);
  read_stacks(&reading);
  perfmap_recording_end(reading.recording);
  return reading.stacks_read;
}

static void put(char* bytes, size_t at, uint64_t value, size_t size) {
  memcpy(bytes + at, &value, size); /* the recording is little-endian, as is x86-64 */
}

static uint64_t get(const char* bytes, size_t at, size_t size) {
  uint64_t value = 0;
  memcpy(&value, bytes + at, size);
  return value;
}

static void test_empty(char* bytes, size_t size) {
  (void)size;
  read_all("", 0);
  read_all(bytes, 8);   /* the magic number */
  read_all(bytes, 16);  /* the header of a pipe's recording has this size */
  put(bytes, 8, 16, 8); /* which this one says that it has */
  read_all(bytes, 16);
  put(bytes, 8, HEADER, 8);
  CHECK(read_all(bytes, HEADER) == 0);
}

static void test_torn(char* bytes, size_t size) {
  const uint64_t whole = read_all(bytes, size);
  size_t cut;
  CHECK(whole > 10);
  for (cut = 0; cut < size; cut += 97) CHECK(read_all(bytes, cut) <= whole);
  for (cut = 0; cut < 512; ++cut) read_all(bytes, cut);
}

/* Each of the numbers at [from, to), replaced by each of the lies. */
static void lie(char* bytes, size_t size, size_t from, size_t to, size_t width) {
  const uint64_t lies[] = {0,
                           1,
                           7,
                           size - 1,
                           size,
                           size + 1,
                           INT32_MAX,
                           UINT64_C(1) << 32,
                           INT64_MAX,
                           UINT64_MAX - 103,
                           UINT64_MAX - 7,
                           UINT64_MAX};
  size_t at, i;
  for (at = from; at + width <= to; at += width) {
    const uint64_t truth = get(bytes, at, width);
    for (i = 0; i < sizeof lies / sizeof *lies; ++i) {
      put(bytes, at, lies[i], width);
      read_all(bytes, size);
    }
    put(bytes, at, truth, width);
  }
}

static void test_sizes(char* bytes, size_t size) {
  const size_t events = get(bytes, 24, 8), data = get(bytes, 40, 8), records = get(bytes, 48, 8);
  const size_t sections = data + records;
  size_t count = 0, bit, i;
  for (bit = 0; bit < 256; ++bit) count += bytes[72 + bit / 8] >> bit % 8 & 1;
  CHECK(count > 5 && sections + 16 * count < size && events < data);
  lie(bytes, size, 0, HEADER, 8);
  lie(bytes, size, events + 4, events + 8, 4); /* of the event's attributes */
  lie(bytes, size, data - 16, data, 8);        /* the section of its ids */
  lie(bytes, size, sections, sections + 16 * count, 8);
  for (i = 0; i < count; ++i) { /* the numbers at the beginning of each section */
    const size_t at = get(bytes, sections + 16 * i, 8);
    if (at + 8 <= size) lie(bytes, size, at, at + 8, 4);
  }
  memset(bytes + 72, 0xff, 32); /* all sections that there may be */
  read_all(bytes, size);
  memset(bytes + 16, 0xff, HEADER - 16);
  read_all(bytes, size);
}

static void test_records(char* bytes, size_t size) {
  const size_t begin = get(bytes, 40, 8), end = begin + get(bytes, 48, 8);
  const uint64_t sizes[] = {0, 1, 7, 8, 9, 16, UINT16_MAX};
  const uint64_t whole = read_all(bytes, size);
  char* const copy = malloc(size);
  size_t at, i, count = 0;
  CHECK(copy != NULL);
  memcpy(copy, bytes, size);
  for (at = begin; at < end; at += get(copy, at + 6, 2), ++count) {
    for (i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
      put(bytes, at + 6, sizes[i], 2);
      CHECK(read_all(bytes, size) <= whole);
    }
    put(bytes, at + 6, get(copy, at + 6, 2), 2);
  }
  CHECK(count > 20);
  for (at = begin; at < end; at += get(copy, at + 6, 2)) put(bytes, at + 6, 0, 2);
  CHECK(read_all(bytes, size) == 0);
  free(copy);
}

/* A large file of such records, which takes too long if the reader does more than to pass over. */
static void test_many(char* bytes, size_t size) {
  const size_t begin = get(bytes, 40, 8), all = (size_t)4 << 20;
  const uint64_t records[] = {0, UINT64_C(9), UINT64_C(9) | UINT64_C(8) << 48,
                              UINT64_C(3) | UINT64_C(1) << 48, UINT64_MAX};
  char* const large = malloc(all);
  size_t i, at;
  CHECK(large != NULL && begin < size);
  memcpy(large, bytes, begin);
  put(large, 48, all - begin, 8);
  memset(large + 72, 0, 32); /* no sections follow */
  for (i = 0; i < sizeof records / sizeof *records; ++i) {
    for (at = begin; at + 8 <= all; at += 8) put(large, at, records[i], 8);
    read_all(large, all);
  }
  free(large);
}

struct cut {
  perfmap_recording* recording;
  perfmap_tracker* tracker;
  uint64_t samples;
};

/* The record as a caller has it that has lost its end, on the heap with nothing after it. */
static int cut_record(const perfmap_record* record, void* context) {
  struct cut* cut = context;
  perfmap_recorded_sample decoded = {.struct_size = sizeof decoded};
  perfmap_sample sample = {.struct_size = sizeof sample};
  perfmap_record shorter = *record;
  const size_t most = record->size < 700 ? record->size : 700;
  for (shorter.size = 0; shorter.size < most; ++shorter.size) {
    char* const bytes = shorter.size == 0 ? NULL : malloc(shorter.size);
    if (bytes != NULL) memcpy(bytes, record->bytes, shorter.size);
    shorter.bytes = bytes;
    check_status(perfmap_tracker_on_record(cut->tracker, &shorter, NULL));
    check_status(perfmap_recording_get_sample(cut->recording, &shorter, &decoded, &sample, NULL));
    free(bytes);
  }
  shorter = *record;
  shorter.event = UINT32_MAX;
  CHECK(perfmap_recording_get_sample(cut->recording, &shorter, &decoded, &sample, NULL) ==
        PERFMAP_E_NOT_FOUND);
  cut->samples += record->type == 9;
  return cut->samples == 3;
}

static void test_callers(char* bytes, size_t size) {
  struct cut cut = {.samples = 0};
  write_file(bytes, size);
  CHECK(perfmap_recording_open(path, &cut.recording, NULL) == PERFMAP_OK);
  ++opened;
  CHECK(perfmap_tracker_begin(NULL, &cut.tracker, NULL) == PERFMAP_OK);
  CHECK(perfmap_recording_read(cut.recording, cut_record, &cut, NULL) == PERFMAP_OK);
  CHECK(cut.samples == 3);
  perfmap_tracker_end(cut.tracker);
  perfmap_recording_end(cut.recording);
}

static void name_all(const char* text, size_t size) {
  const uint64_t addresses[] = {0, 1, UINT64_C(0xffffffff81000010), UINT64_MAX};
  perfmap_kernel* kernel = NULL;
  perfmap_address_name name = {.struct_size = sizeof name};
  perfmap_status status;
  size_t i;
  write_file(text, size);
  status = perfmap_kernel_begin(path, &kernel, NULL);
  check_status(status);
  if (status != PERFMAP_OK) return;
  ++opened;
  for (i = 0; i < sizeof addresses / sizeof *addresses; ++i) {
    status = perfmap_kernel_name(kernel, addresses[i], &name, NULL);
    CHECK(status == PERFMAP_OK || status == PERFMAP_E_NOT_FOUND);
    CHECK(status != PERFMAP_OK || (name.name_size > 0 && name.begin <= addresses[i]));
  }
  perfmap_kernel_end(kernel);
}

static void test_kernel(char* bytes, size_t size) {
  static const char text[] =
      "ffffffff81000000 T _stext\nffffffff81000010 t do_one_initcall\t[nf_tables]\n"
      "0 A fixed_percpu_data\nfffffffffffffffff T too_long\nffffffff81000020 T\n\n \t \n"
      "ffffffff81000010 T same\n1 t lower\nffffffff81000030 T last";
  size_t cut;
  for (cut = 0; cut <= sizeof text; ++cut) name_all(text, cut);
  name_all(bytes, size); /* something else */
  for (cut = 0; cut + 17 < size; cut += 17) memcpy(bytes + cut, "0 T hidden      \n", 17);
  name_all(bytes, cut);
  memset(bytes, 'f', size); /* one line */
  name_all(bytes, size);
}

int main(int count, char** arguments) {
  static const struct {
    const char* name;
    void (*run)(char* bytes, size_t size);
  } tests[] = {{"empty", test_empty},     {"torn", test_torn}, {"sizes", test_sizes},
               {"records", test_records}, {"many", test_many}, {"callers", test_callers},
               {"kernel", test_kernel}};
  const size_t room = (size_t)1 << 20;
  char* const bytes = malloc(room);
  size_t i, size = 0, runs = 0;
  FILE* file;
  CHECK(count == 4 && bytes != NULL);
  snprintf(path, sizeof path, "hostile-%s-%ld", arguments[1], (long)getpid());
  symfs = arguments[3];
  file = fopen(arguments[2], "rb");
  CHECK(file != NULL);
  size = fread(bytes, 1, room, file);
  CHECK(size > HEADER && size < room && fclose(file) == 0);
  CHECK(perfmap_module_cache_begin(NULL, &modules, NULL) == PERFMAP_OK);
  for (i = 0; i < sizeof tests / sizeof *tests; ++i) {
    if (strcmp(tests[i].name, arguments[1]) != 0) continue;
    tests[i].run(bytes, size);
    ++runs;
  }
  CHECK(runs == 1 && opened > 0);
  printf("%u opened\n", opened);
  perfmap_module_cache_end(modules);
  unlink(path);
  free(bytes);
  return 0;
}
