/* SPDX-License-Identifier: MIT */
/* A profiler for Linux: samples with perf_event_open(2), and prints folded stacks with names:
 *   cc -std=c99 profiler.c $(pkg-config --cflags --libs perfmap-profile) -o profiler
 *   ./profiler -p 4242 -d 10 > stacks.folded      one process, and the children that it forks later
 *   ./profiler -a -F 99 -d 10 > stacks.folded     all processes; needs root
 *
 * -k adds the kernel's frames. The library follows processes by the kernel's events, unwinds copies
 * of their stacks, and names addresses by ELF files, perf maps, jitdumps and kallsyms.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <perfmap_profile.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000, MAX_CPUS = 1024, MAX_FRAMES = 1024, SPACE_SLOTS = 4096 };

static struct ring { /* the kernel's buffer of a CPU */
  int fd;
  struct perf_event_mmap_page* page;
} rings[MAX_CPUS];

static struct space { /* a process ready for unwinding, until an event changes it */
  int32_t pid;
  perfmap_unwind_space* space;
} spaces[SPACE_SLOTS];

typedef struct {
  unsigned long count;
  char text[];
} line;
static void* lines; /* for tsearch(3) */
static struct perf_event_attr attr = {.size = sizeof attr, .sample_freq = 999, .exclude_kernel = 1};
static uint64_t started;
static size_t frame_count, sample_count, lost_count;
static perfmap_frame frames[MAX_FRAMES];
static perfmap_tracker* tracker;
static perfmap_unwinder* unwinder;
static perfmap_kernel* kernel; /* NULL: without names */
static perfmap_machine machine = {.struct_size = sizeof machine};

static void* checked(void* memory) {
  if (memory == NULL) errx(1, "out of memory");
  return memory;
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static void open_event(int32_t tid, int cpu) {
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
                     PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.sample_regs_user = machine.register_mask;
  attr.sample_stack_user = 16384;
  attr.clockid = CLOCK_MONOTONIC; /* that of jitdumps */
  attr.freq = attr.use_clockid = attr.sample_id_all = attr.exclude_callchain_user = 1;
  attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 1;
  attr.exclude_callchain_kernel = attr.exclude_kernel;
  attr.inherit = tid != -1;
  const int fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0 && (errno == ESRCH || errno == ENODEV)) return; /* it has ended; the CPU is off */
  if (fd < 0) err(1, "perf_event_open");
  if (rings[cpu].page != NULL && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, rings[cpu].fd) != 0)
    err(1, "PERF_EVENT_IOC_SET_OUTPUT");
  if (rings[cpu].page != NULL) return;
  const size_t pages = geteuid() == 0 ? 1024 : 128; /* users may lock 516 KiB */
  void* const page = mmap(NULL, (pages + 1) * (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                          MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) err(1, "cannot map the kernel's buffer");
  rings[cpu] = (struct ring){fd, page};
}

static void open_thread(int32_t tid) {
  const long cpus = sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < cpus && cpu < MAX_CPUS; ++cpu) open_event(tid, cpu);
}

static void import(int32_t pid) { perfmap_tracker_import(tracker, pid, started, NULL, NULL); }

/* Calls `take` for each number that is a name in the directory. */
static void for_numbers(const char* path, void (*take)(int32_t number)) {
  DIR* const directory = opendir(path);
  if (directory == NULL) err(1, "%s", path);
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;)
    if (atoi(entry->d_name) > 0) take(atoi(entry->d_name));
  closedir(directory);
}

/* A record may go on at the beginning of the buffer. */
static void copy(const struct ring* from, uint64_t at, void* to, size_t size) {
  const char* const data = (const char*)from->page + from->page->data_offset;
  const uint64_t begin = at % from->page->data_size, room = from->page->data_size - begin;
  memcpy(to, data + begin, size < room ? size : room);
  if (size > room) memcpy((char*)to + room, data, size - room);
}

/* The oldest record, if any. Samples have their time after ip, pid and tid, others at their end. */
static int peek(const struct ring* from, uint64_t* time, struct perf_event_header* header) {
  const uint64_t tail = from->page->data_tail;
  if (__atomic_load_n(&from->page->data_head, __ATOMIC_ACQUIRE) == tail) return 0;
  copy(from, tail, header, sizeof *header);
  copy(from, tail + (header->type == PERF_RECORD_SAMPLE ? 24U : header->size - 8U), time, 8);
  return 1;
}

static void forget(struct space* known) {
  perfmap_unwind_detach(known->space);
  known->space = NULL;
}

static struct space* slot_of(int32_t pid) { return &spaces[(uint32_t)pid % SPACE_SLOTS]; }

static const perfmap_unwind_space* space_of(int32_t pid, uint64_t time) {
  struct space* const known = slot_of(pid);
  if (known->pid != pid) forget(known);
  known->pid = pid;
  if (known->space != NULL) return known->space;
  perfmap_tracker_refresh_jit(tracker, pid, NULL);
  perfmap_unwind_attach(tracker, pid, time, &known->space, NULL);
  return known->space;
}

static int take_frame(const perfmap_frame* frame, void* context) {
  (void)context;
  frames[frame_count++] = *frame;
  return frame_count == MAX_FRAMES;
}

/* Without a name its file's, in brackets, as `perfmap stacks` has it. Returns the length. */
static size_t print_name(char* to, size_t room, int32_t pid, uint64_t time,
                         const perfmap_frame* frame) {
  perfmap_address_name named = {.struct_size = sizeof named};
  const uint64_t address = frame->pc - (frame->is_return != 0);
  const int is_kernel = frame->source == PERFMAP_FRAME_KERNEL;
  int size;
  if (is_kernel && kernel == NULL) return (size_t)snprintf(to, room, ";[kernel]_[k]");
  if ((is_kernel ? perfmap_kernel_name(kernel, address, &named, NULL)
                 : perfmap_tracker_name(tracker, pid, address, time, time, PERFMAP_DETAIL_SYMBOLS,
                                        &named, NULL)) == PERFMAP_OK) {
    size = snprintf(to, room, ";%.*s%s%s", (int)named.name_size, named.name,
                    is_kernel ? "_[k]" : "", named.is_jit ? "_[j]" : "");
  } else {
    char source[256] = "unknown";
    snprintf(source, sizeof source, "%.*s", (int)named.source_size, named.source);
    const char* const slash = strrchr(source, '/');
    size = snprintf(to, room, source[0] == '[' ? ";%s" : ";[%s]", slash ? slash + 1 : source);
  }
  for (char* c = to; *c != '\0' && (c = strchr(c + 1, ';')) != NULL;) *c = ':';
  return (size_t)size;
}

static int by_text(const void* a, const void* b) {
  return strcmp(((const line*)a)->text, ((const line*)b)->text);
}

static void count_line(const char* text) {
  line* const one = checked(calloc(1, sizeof *one + strlen(text) + 1));
  strcpy(one->text, text);
  line** const known = checked(tsearch(one, &lines, by_text));
  if (*known != one) free(one);
  ++(*known)->count;
}

static void print_line(const void* node, VISIT visit, int depth) {
  const line* const one = *(line* const*)node;
  (void)depth;
  if (visit == postorder || visit == leaf) printf("%s %lu\n", one->text, one->count);
}

/* The words of a sample: ip, pid and tid, time, callchain, registers, stack. */
static void take_sample(const uint64_t* word, uint64_t time) {
  static char text[1 << 16];
  const int32_t pid = (int32_t)word[1];
  perfmap_process process = {.struct_size = sizeof process};
  perfmap_sample sample = {.struct_size = sizeof sample, .machine = machine.machine, .time = time};
  const perfmap_unwind_space* const space = space_of(pid, time);
  word += 3;
  sample.callchain_size = *word++;
  sample.callchain = word;
  word += sample.callchain_size;
  if (*word == PERF_SAMPLE_REGS_ABI_32) sample.machine = machine.compat;
  if (*word++ != PERF_SAMPLE_REGS_ABI_NONE) {
    sample.register_mask = machine.register_mask;
    sample.registers = word;
    sample.register_count = machine.register_count;
    word += machine.register_count;
  }
  if (*word != 0) {
    sample.stack = word + 1;
    sample.stack_size = word[1 + *word / 8]; /* as much as was copied */
    sample.is_stack_full = sample.stack_size == *word;
  }
  frame_count = 0;
  if (space == NULL || /* nothing is known of that process */
      perfmap_unwind_sample(unwinder, space, &sample, take_frame, NULL, NULL, NULL) != 0 ||
      perfmap_tracker_find_pid(tracker, pid, NULL, NULL, &process, NULL) != 0)
    return;
  size_t used = (size_t)snprintf(text, sizeof text, "%.*s", (int)process.comm_size, process.comm);
  for (size_t i = frame_count; i-- > 0 && used < sizeof text;)
    used += print_name(text + used, sizeof text - used, pid, time, &frames[i]);
  count_line(text);
  ++sample_count;
}

static void take_record(const struct perf_event_header* header, uint64_t time) {
  const uint64_t* const body = (const uint64_t*)(const void*)(header + 1);
  perfmap_record event = {.struct_size = sizeof event, .time = time};
  if (header->type == PERF_RECORD_SAMPLE) {
    take_sample(body, time);
  } else if (header->type == PERF_RECORD_LOST) {
    lost_count += body[1];
  } else if (time >= started) { /* what was before is in /proc */
    event.type = header->type;
    event.misc = header->misc;
    event.bytes = header;
    event.size = header->size;
    perfmap_tracker_on_record(tracker, &event, NULL);
    forget(slot_of((int32_t)*body));
  }
}

/* Takes the records in the order of their times. All CPUs have written what is older than `until`,
 * the beginning of the last call. */
static void take_records(uint64_t until) {
  static uint64_t room[1 << 13]; /* a record has less than 64 KiB */
  for (;;) {
    struct ring* oldest = NULL;
    struct perf_event_header header;
    for (uint64_t first = until, time, cpu = 0; cpu < MAX_CPUS; ++cpu) {
      if (rings[cpu].page == NULL || !peek(&rings[cpu], &time, &header) || time >= first) continue;
      oldest = &rings[cpu];
      first = time;
    }
    uint64_t time;
    if (oldest == NULL || !peek(oldest, &time, &header)) return;
    copy(oldest, oldest->page->data_tail, room, header.size);
    take_record((void*)room, time);
    __atomic_store_n(&oldest->page->data_tail, oldest->page->data_tail + header.size,
                     __ATOMIC_RELEASE);
  }
}

int main(int count, char** arguments) {
  uint64_t seconds = 5, before, tick;
  int32_t pid = 0;
  char path[64];
  struct utsname host;
  perfmap_module_cache* cache = NULL;
  perfmap_module_cache_options caching = {.struct_size = sizeof caching,
                                          .debug_directories = "/usr/lib/debug"};
  for (int option; (option = getopt(count, arguments, "ap:F:d:k")) != -1;) {
    if (option == 'a' || option == 'p') pid = option == 'a' ? -1 : atoi(optarg);
    if (option == 'F') attr.sample_freq = strtoull(optarg, NULL, 10);
    if (option == 'd') seconds = strtoull(optarg, NULL, 10);
    if (option == 'k') attr.exclude_kernel = 0;
  }
  if (attr.sample_freq == 0) errx(2, "-F: a number of samples a second, at least 1");
  if (pid == 0) errx(2, "usage: profiler (-a | -p PID) [-F HERTZ] [-d SECONDS] [-k]");
  uname(&host);
  perfmap_machine_get(perfmap_machine_from_uname(host.machine), &machine);
  if (!machine.is_unwound) errx(1, "%s: stacks are not unwound", host.machine);
  perfmap_module_cache_begin(&caching, &cache, NULL);
  perfmap_tracker_options options = {.struct_size = sizeof options, .modules = checked(cache)};
  perfmap_tracker_begin(&options, &tracker, NULL);
  perfmap_unwinder_begin(NULL, &unwinder, NULL);
  checked(unwinder != NULL ? tracker : NULL);
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  if (!attr.exclude_kernel) perfmap_kernel_begin(NULL, &kernel, NULL);
  pid == -1 ? open_thread(-1) : for_numbers(path, open_thread);
  started = before = tick = now();
  pid == -1 ? for_numbers("/proc", import) : import(pid);
  for (uint64_t round; (round = now()) - started < seconds * SECOND; usleep(20000)) {
    take_records(before);
    before = round;
    if (round - tick < SECOND) continue;
    for (int32_t i = 0; i < SPACE_SLOTS; ++i)
      forget(&spaces[i]); /* there may be new code of JITs */
    perfmap_tracker_forget_before(tracker, tick, NULL);
    tick = round;
  }
  take_records(started + seconds * SECOND);
  twalk(lines, print_line);
  fprintf(stderr, "profiler: %zu samples, %zu records lost\n", sample_count, lost_count);
  return 0;
}
