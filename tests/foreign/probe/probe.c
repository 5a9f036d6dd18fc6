/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "probe.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

/* The registers of a perf sample. Source: Linux, arch/ARCH/include/uapi/asm/perf_regs.h. */
#if defined(__aarch64__)
enum { kMachine = EM_AARCH64, kRegisters = 33, kSp = 31, kPc = 32 };
static void copy_registers(const ucontext_t* from, uint64_t* to) {
  for (int i = 0; i < 31; ++i) to[i] = from->uc_mcontext.regs[i];
  to[kSp] = from->uc_mcontext.sp;
  to[kPc] = from->uc_mcontext.pc;
}
#elif defined(__arm__)
enum { kMachine = EM_ARM, kRegisters = 16, kSp = 13, kPc = 15 };
static void copy_registers(const ucontext_t* from, uint64_t* to) {
  const unsigned long* const registers = (const unsigned long*)&from->uc_mcontext.arm_r0;
  for (int i = 0; i < kRegisters; ++i) to[i] = registers[i];
}
#elif defined(__riscv)
enum { kMachine = EM_RISCV, kRegisters = 32, kSp = 2, kPc = 0 };
static void copy_registers(const ucontext_t* from, uint64_t* to) {
  for (int i = 0; i < kRegisters; ++i) to[i] = from->uc_mcontext.__gregs[i];
}
#elif defined(__i386__)
enum { kMachine = EM_386, kRegisters = 9, kSp = 7, kPc = 8 };
static void copy_registers(const ucontext_t* from, uint64_t* to) {
  static const int order[kRegisters] = {REG_EAX, REG_EBX, REG_ECX, REG_EDX, REG_ESI,
                                        REG_EDI, REG_EBP, REG_ESP, REG_EIP};
  for (int i = 0; i < kRegisters; ++i) to[i] = (uint32_t)from->uc_mcontext.gregs[order[i]];
}
#else
#error "Add the registers of this machine"
#endif

enum { kMagic = 0x50524f42, kStack = 32768, kFrames = 512, kName = 24 };

volatile struct probe_entered probe_entered[PROBE_MOST_ENTERED];
volatile int probe_depth;

extern char** environ;
static int output = -1;
static unsigned samples_left;
static uint64_t end_ns;
static struct {
  uintptr_t begin, end;
} alternate;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void write_all(const void* bytes, size_t size) {
  for (const char* at = bytes; size > 0;) {
    const ssize_t written = write(output, at, size);
    if (written <= 0) _exit(3);
    at += written;
    size -= (size_t)written;
  }
}

static void signal_after(int microseconds) {
  const struct itimerval timer = {{0, 0}, {0, microseconds}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

/* After a time that differs, so that loops are not met at the same instruction each time. */
static void sample_later(void) {
  static uint32_t random = 2463534242u;
  random ^= random << 13;
  random ^= random >> 17;
  random ^= random << 5;
  signal_after(100 + (int)(random % 1500));
}

struct backtrace {
  uint64_t frames[kFrames];
  uint64_t count;
  unsigned calls; /* wrong rules can lead in circles */
  uintptr_t from; /* the frame with which it begins */
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context* context, void* argument) {
  struct backtrace* const to = argument;
  const uintptr_t pc = _Unwind_GetIP(context);
  if (++to->calls == kFrames) return _URC_END_OF_STACK;
  if (to->count == 0 && pc != to->from) return _URC_NO_REASON;
  to->frames[to->count++] = pc;
  return _URC_NO_REASON;
}

/* libgcc reads where wrong rules lead, aborts if they make no sense or if it was interrupted while
   it prepared its tables, and waits forever for a lock that the interrupted code was about to take
   or to give back: the timer ends that. */
static sigjmp_buf given_up;
static volatile sig_atomic_t is_unwinding;
static void on_unreadable(int number) {
  if (!is_unwinding) _exit(128 + number);
  siglongjmp(given_up, 1);
}

static size_t stack_size(uintptr_t sp) {
  const uintptr_t end = sp >= alternate.begin && sp < alternate.end
                            ? alternate.end
                            : (uintptr_t)environ & ~(uintptr_t)7;
  const size_t size = sp < end ? end - sp : 0;
  return size < kStack ? size & ~(size_t)7 : kStack;
}

static void on_timer(int number, siginfo_t* info, void* context) {
  (void)info;
  if (is_unwinding) on_unreadable(number);
  static struct backtrace backtrace;
  static struct {
    char name[kName];
    uint64_t caller;
  } entered[PROBE_MOST_ENTERED];
  uint64_t head[4 + kRegisters] = {now()};
  uint64_t* const registers = head + 4;
  copy_registers(context, registers);
  backtrace.count = backtrace.calls = 0;
  backtrace.from = (uintptr_t)registers[kPc];
  if (sigsetjmp(given_up, 0) == 0) {
    is_unwinding = 1;
    signal_after(200000);
    _Unwind_Backtrace(add_frame, &backtrace);
    signal_after(0);
  } else {
    backtrace.count = 0;
  }
  is_unwinding = 0;
  head[1] = stack_size((uintptr_t)registers[kSp]);
  head[2] = backtrace.count;
  head[3] = (uint64_t)probe_depth;
  for (int i = 0; i < probe_depth; ++i) {
    strncpy(entered[i].name, probe_entered[i].name, kName - 1);
    entered[i].caller = (uintptr_t)probe_entered[i].caller;
  }
  write_all(head, sizeof head);
  write_all((const void*)(uintptr_t)registers[kSp], (size_t)head[1]);
  write_all(backtrace.frames, backtrace.count * sizeof *backtrace.frames);
  write_all(entered, (size_t)probe_depth * sizeof *entered);
  if (--samples_left == 0 || head[0] >= end_ns) _exit(0);
  sample_later();
}

static void write_head(void) {
  static char maps[65536];
  uint64_t head[5] = {kMagic, kMachine, kRegisters, (uint64_t)getpid(), 0};
  const int file = open("/proc/self/maps", O_RDONLY);
  for (ssize_t got; (got = read(file, maps + head[4], sizeof maps - head[4])) > 0;)
    head[4] += (size_t)got;
  close(file);
  write_all(head, sizeof head);
  write_all(maps, head[4]);
}

void probe_begin(const char* path, unsigned samples, unsigned seconds) {
  output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (output < 0) exit(3);
  write_head();
  struct sigaction action = {0};
  action.sa_handler = on_unreadable;
  action.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
  sigaction(SIGABRT, &action, NULL);
  action.sa_sigaction = on_timer;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
  sigfillset(&action.sa_mask);
  sigdelset(&action.sa_mask, SIGALRM);
  sigdelset(&action.sa_mask, SIGSEGV);
  sigdelset(&action.sa_mask, SIGBUS);
  sigdelset(&action.sa_mask, SIGABRT);
  sigaction(SIGALRM, &action, NULL);
  samples_left = samples;
  end_ns = now() + (uint64_t)seconds * 1000000000;
  sample_later();
}

void probe_use_alternate_stack(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 16 * page;
  char* const place = mmap(NULL, size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED || mprotect(place, size, PROT_READ | PROT_WRITE) != 0) exit(3);
  alternate.begin = (uintptr_t)place;
  alternate.end = alternate.begin + size;
  const stack_t stack = {.ss_sp = place, .ss_size = size};
  if (sigaltstack(&stack, NULL) != 0) exit(3);
}
