/* SPDX-License-Identifier: MIT */
/* Code that is made at run time, for aarch64: functions without frame records, and the jitdump that
   names and describes them. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

/* Each function has its code, and call frame information: a CIE, an FDE without its address and
   size, and the end of the section. DW_CFA_advance_loc is 0x40, DW_CFA_offset 0x80,
   DW_CFA_restore 0xc0, DW_CFA_def_cfa_offset 0x0e. */
#define CIE_OF(name)                                                                        \
  #name                                                                                     \
      "_cfi: .4byte 2f - 1f\n"                                                              \
      "1: .4byte 0\n"                /* a CIE */                                            \
      ".byte 1\n.asciz \"zR\"\n"     /* version, augmentation */                            \
      ".byte 4, 0x78, 30, 1, 0x1b\n" /* code 4, data -8, return address x30, pc-relative */ \
      ".byte 0x0c, 31, 0\n"          /* the CFA is sp */                                    \
      ".balign 4\n"                                                                         \
      "2: .4byte 4f - 3f\n"                                                                 \
      "3: .4byte 3b - " #name "_cfi\n" #name "_address: .4byte 0, " #name "_end - " #name   \
      "\n"                                                                                  \
      ".byte 0\n"
#define END_OF(name) ".balign 4\n4: .4byte 0\n" #name "_cfi_end:\n"

/* x29 stays the caller's frame pointer, so its frame record leads past the caller. */
__asm__(
    ".pushsection .rodata\n.balign 8\n"
    "jit_keeps_fp:\n" /* (callee, argument of the callee, argument of the callee) */
    "sub sp, sp, #48\n"
    "str x30, [sp, #8]\n"
    "stp x19, x20, [sp, #16]\n"
    "mov x19, x0\n"
    "mov w9, #60\n"
    "1: subs w9, w9, #1\n"
    "b.ne 1b\n"
    "mov x0, x1\n"
    "mov x1, x2\n"
    "blr x19\n"
    "mov w9, #60\n"
    "1: subs w9, w9, #1\n"
    "b.ne 1b\n"
    "ldp x19, x20, [sp, #16]\n"
    "ldr x30, [sp, #8]\n"
    "add sp, sp, #48\n"
    "ret\n"
    "jit_keeps_fp_end: .balign 8\n" CIE_OF(jit_keeps_fp)
    ".byte 0x41, 0x0e, 48\n"             /* sub */
    ".byte 0x41, 0x80 | 30, 5\n"         /* str */
    ".byte 0x41, 0x80 | 19, 4, 0x80 | 20, 3\n"
    ".byte 0x40 | 11, 0xc0 | 19, 0xc0 | 20\n" /* ldp */
    ".byte 0x41, 0xc0 | 30\n"            /* ldr */
    ".byte 0x41, 0x0e, 0\n"              /* add */
    END_OF(jit_keeps_fp) ".popsection\n");

/* x29 is a counter. */
__asm__(
    ".pushsection .rodata\n.balign 8\n"
    "jit_uses_fp:\n" /* (callee, argument of the callee) */
    "stp x29, x30, [sp, #-32]!\n"
    "str x19, [sp, #16]\n"
    "mov x19, x0\n"
    "mov w29, #60\n"
    "1: subs w29, w29, #1\n"
    "b.ne 1b\n"
    "mov w0, w1\n"
    "mov w29, #60\n"
    "blr x19\n"
    "1: subs w29, w29, #1\n"
    "b.ne 1b\n"
    "ldr x19, [sp, #16]\n"
    "ldp x29, x30, [sp], #32\n"
    "ret\n"
    "jit_uses_fp_end: .balign 8\n" CIE_OF(jit_uses_fp)
    ".byte 0x41, 0x0e, 32, 0x80 | 29, 4, 0x80 | 30, 3\n" /* stp */
    ".byte 0x41, 0x80 | 19, 2\n"                         /* str */
    ".byte 0x40 | 10, 0xc0 | 19\n"                       /* ldr */
    ".byte 0x41, 0xc0 | 29, 0xc0 | 30, 0x0e, 0\n"        /* ldp */
    END_OF(jit_uses_fp) ".popsection\n");

/* Takes the place of jit_uses_fp, with another frame. */
__asm__(
    ".pushsection .rodata\n.balign 8\n"
    "jit_later:\n" /* (callee, argument of the callee) */
    "sub sp, sp, #96\n"
    "stp x29, x30, [sp, #64]\n"
    "mov w29, #90\n"
    "1: subs w29, w29, #1\n"
    "b.ne 1b\n"
    "mov x2, x0\n"
    "mov w0, w1\n"
    "blr x2\n"
    "ldp x29, x30, [sp, #64]\n"
    "add sp, sp, #96\n"
    "ret\n"
    "jit_later_end: .balign 8\n" CIE_OF(jit_later)
    ".byte 0x41, 0x0e, 96\n"                      /* sub */
    ".byte 0x41, 0x80 | 29, 4, 0x80 | 30, 3\n"    /* stp */
    ".byte 0x40 | 7, 0xc0 | 29, 0xc0 | 30\n"      /* ldp */
    ".byte 0x41, 0x0e, 0\n"                       /* add */
    END_OF(jit_later) ".popsection\n");

struct code {
  const char* name;
  const char* code;
  const char* code_end;
  const char* cfi;
  const char* cfi_address; /* the FDE's address */
  const char* cfi_end;
};
#define DECLARE(name)                                             \
  extern const char name[] __attribute__((visibility("hidden"))), \
      name##_end[] __attribute__((visibility("hidden"))),         \
      name##_cfi[] __attribute__((visibility("hidden"))),         \
      name##_address[] __attribute__((visibility("hidden"))),     \
      name##_cfi_end[] __attribute__((visibility("hidden")))
#define ROW(name) \
  { #name, name, name##_end, name##_cfi, name##_address, name##_cfi_end }
DECLARE(jit_keeps_fp);
DECLARE(jit_uses_fp);
DECLARE(jit_later);
enum { kKeepsFp, kUsesFp, kLater };
static const struct code codes[] = {ROW(jit_keeps_fp), ROW(jit_uses_fp), ROW(jit_later)};

void __register_frame(void*);
void __deregister_frame(void*);

enum { kSlots = 2, kSlotSize = 1024 };
static char* arena;
static char* frames_of[kSlots]; /* what is registered */
static int dump = -1;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* A record of one write(), as an interrupting handler may end the process. */
static char record[4096];
static size_t record_size;
static void add(const void* bytes, size_t size) {
  if (size > sizeof record - record_size) exit(3);
  memcpy(record + record_size, bytes, size);
  record_size += size;
}
static void add_u32(uint32_t value) { add(&value, sizeof value); }
static void add_u64(uint64_t value) { add(&value, sizeof value); }
static void begin_record(uint32_t kind) {
  record_size = 0;
  add_u32(kind);
  add_u32(0);
  add_u64(now());
}
static void end_record(void) {
  const uint32_t size = (uint32_t)record_size;
  memcpy(record + 4, &size, sizeof size);
  if (write(dump, record, record_size) != (ssize_t)record_size) exit(3);
}

/* JIT_CODE_UNWINDING_INFO: .eh_frame, which follows the code, and .eh_frame_hdr with one entry. */
static void describe(const char* at, const char* frames, size_t frames_size) {
  enum { kHeaderSize = 20 };
  const char* const header = frames + frames_size;
  begin_record(4);
  add_u64(frames_size + kHeaderSize);
  add_u64(kHeaderSize);
  add_u64(frames_size + kHeaderSize);
  add(frames, frames_size);
  add("\1\x1b\3\x3b", 4);
  add_u32((uint32_t)(frames - (header + 4)));
  add_u32(1);
  add_u32((uint32_t)(at - header));
  uint32_t length;
  memcpy(&length, frames, sizeof length);
  add_u32((uint32_t)(frames + 4 + length - header));
  end_record();
}

static void load(const struct code* code, int slot) {
  static uint64_t index;
  /* libgcc locks its list of registered frames, and a handler that unwinds would wait forever. */
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  char* const at = arena + slot * kSlotSize;
  const size_t size = (size_t)(code->code_end - code->code);
  char* const frames = at + ((size + 7) & ~(size_t)7);
  const size_t frames_size = (size_t)(code->cfi_end - code->cfi);
  if (frames_of[slot] != NULL) __deregister_frame(frames_of[slot]);
  memcpy(at, code->code, size);
  memcpy(frames, code->cfi, frames_size);
  char* const address = frames + (code->cfi_address - code->cfi);
  const int32_t offset = (int32_t)(at - address);
  memcpy(address, &offset, sizeof offset);
  __builtin___clear_cache(at, frames + frames_size);
  __register_frame(frames);
  frames_of[slot] = frames;
  describe(at, frames, frames_size);
  begin_record(0);
  add_u32((uint32_t)getpid());
  add_u32((uint32_t)getpid());
  add_u64((uintptr_t)at);
  add_u64((uintptr_t)at);
  add_u64(size);
  add_u64(index++);
  add(code->name, strlen(code->name) + 1);
  add(at, size);
  end_record();
  sigprocmask(SIG_SETMASK, &before, NULL);
}

void probe_open_jit(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/jit-%d.dump", folder, (int)getpid());
  dump = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  record_size = 0;
  add_u32(0x4a695444); /* "JiTD" */
  add_u32(1);
  add_u32(40);
  add_u32(EM_AARCH64);
  add_u32(0);
  add_u32((uint32_t)getpid());
  add_u64(now());
  add_u64(0);
  if (dump < 0 || write(dump, record, record_size) != (ssize_t)record_size) exit(3);
  /* This mapping makes perf know of the dump. */
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  arena = mmap(NULL, kSlots * kSlotSize, PROT_READ | PROT_WRITE | PROT_EXEC,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (arena == MAP_FAILED ||
      mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0) == MAP_FAILED)
    exit(3);
  load(&codes[kKeepsFp], 0);
  load(&codes[kUsesFp], 1);
}

void probe_run_jit(void (*callee)(int), int argument) {
  static unsigned runs;
  typedef void (*inner)(void (*)(int), int);
  typedef void (*outer)(inner, void (*)(int), int);
  if (++runs % 32 == 0) load(&codes[runs / 32 % 2 == 0 ? kUsesFp : kLater], 1);
  ((outer)(void*)arena)((inner)(void*)(arena + kSlotSize), callee, argument);
}
