/* SPDX-License-Identifier: MIT */
/* A small JIT: generates two functions, writes a jitdump of them for profilers, and runs them for a
 * while.
 *
 *   perf record -k mono ./jit
 *   perf inject --jit -i perf.data -o jitted.data
 *   perf script -i jitted.data -F ip,sym,srcline
 *
 * jit [DIRECTORY [MILLISECONDS]]: the directory of the dump, and the processor time of each
 * function. Exit status 77: it has no code for this machine.
 */
#define _GNU_SOURCE
#include <perfmap_writer.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define STRIDE 128 /* distance between the functions */

typedef uint64_t (*countdown)(uint64_t from);

#if defined(__x86_64__)
static const unsigned char template_code[] = {
    0x48, 0x89, 0xf8, /* mov rax, rdi */
    0x48, 0xff, 0xc8, /* dec rax */
    0x75, 0xfb,       /* jnz to the previous line */
    0xc3,             /* ret */
};
static const unsigned offsets[] = {0, 3, 6, 8};
#define RETURN_ADDRESS 8 /* bytes of the stack that a call takes */
#elif defined(__aarch64__)
static const uint32_t template_code[] = {
    0xaa0003e0, /* mov x0, x0 */
    0xf1000400, /* subs x0, x0, #1 */
    0x54ffffe1, /* b.ne to the previous line */
    0xd65f03c0, /* ret */
};
static const unsigned offsets[] = {0, 4, 8, 12};
#define RETURN_ADDRESS 0
#else
static const unsigned char template_code[1];
static const unsigned offsets[4];
#define RETURN_ADDRESS 0
#define NO_CODE 1
#endif

static double used_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Writes the function at `code` to the dump; its four instructions are four lines of countdown.src.
 * Call it before the function runs: earlier samples get no name. */
static perfmap_status announce(perfmap_jitdump* dump, const char* name, const void* code,
                               int32_t first_line, perfmap_error* error) {
  char unwinding[PERFMAP_UNWIND_ROOM];
  perfmap_jitdump_line lines[4];
  perfmap_jitdump_function function;
  int i;
  for (i = 0; i < 4; ++i) {
    lines[i].address = (uintptr_t)code + offsets[i];
    lines[i].line = first_line + i;
    lines[i].column = 1;
    lines[i].file = "/src/countdown.src";
  }
  memset(&function, 0, sizeof function);
  function.struct_size = sizeof function;
  function.start = (uintptr_t)code;
  function.size = sizeof template_code;
  function.name = name;
  function.name_size = strlen(name);
  function.code = code;
  function.lines = lines;
  function.line_count = 4;
  /* Its stack pointer stays where it is after the call. */
  perfmap_unwind_no_frame(&function, RETURN_ADDRESS, unwinding, sizeof unwinding);
  /* From the end of the code up to the next function. */
  function.mapped_size = STRIDE - ((sizeof template_code + 7) & ~(size_t)7);
  return perfmap_jitdump_load(dump, &function, NULL, error);
}

static uint64_t run(const unsigned char* code, double milliseconds) {
  const double end = used_ms() + milliseconds;
  countdown function;
  uint64_t sum = 0;
  memcpy(&function, &code, sizeof function);
  while (used_ms() < end) sum += function(1000000);
  return sum;
}

int main(int argc, char** argv) {
  const char* const directory = argc > 1 ? argv[1] : "/tmp";
  const double milliseconds = argc > 2 ? atof(argv[2]) : 1000;
  perfmap_error error = {.struct_size = sizeof error};
  perfmap_jitdump* dump = NULL;
  unsigned char* code;
  uint64_t sum;
#ifdef NO_CODE
  return 77;
#endif
  if (perfmap_jitdump_open_own(directory, NULL, &dump, &error) != PERFMAP_OK) {
    fprintf(stderr, "jit: %s\n", error.message);
    return 1;
  }
  code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  memcpy(code, template_code, sizeof template_code);
  memcpy(code + STRIDE, template_code, sizeof template_code);
  if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0) return 1;
  __builtin___clear_cache((char*)code, (char*)code + 4096);
  if (announce(dump, "jit::count_down", code, 10, &error) != PERFMAP_OK ||
      announce(dump, "jit::count_again", code + STRIDE, 20, &error) != PERFMAP_OK) {
    fprintf(stderr, "jit: %s\n", error.message);
    return 1;
  }
  sum = run(code, milliseconds);
  sum += run(code + STRIDE, milliseconds);
  if (perfmap_jitdump_close(dump, &error) != PERFMAP_OK) {
    fprintf(stderr, "jit: %s\n", error.message);
    return 1;
  }
  perfmap_jitdump_free(dump);
  return sum == 1;
}
