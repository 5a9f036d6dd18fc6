/* SPDX-License-Identifier: MIT */
/* A program that samples itself: probe_begin() starts a timer whose handler writes the interrupted
   registers, the stack, and what is known of the callers. dump.py reads what it writes. */
#ifndef PROBE_H
#define PROBE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PROBE_MOST_ENTERED = 256 };

/* The functions that were entered and not yet left, the last one last. */
struct probe_entered {
  const char* name;
  void* caller; /* the return address */
};
extern volatile struct probe_entered probe_entered[PROBE_MOST_ENTERED];
extern volatile int probe_depth;

#define PROBE_ORDER() __asm__ volatile("" ::: "memory")
/* The first and the last statement of a function. */
#define ENTER()                                                     \
  do {                                                              \
    probe_entered[probe_depth].name = __func__;                     \
    probe_entered[probe_depth].caller =                             \
        __builtin_extract_return_addr(__builtin_return_address(0)); \
    PROBE_ORDER();                                                  \
    probe_depth = probe_depth + 1;                                  \
    PROBE_ORDER();                                                  \
  } while (0)
#define LEAVE()                    \
  do {                             \
    PROBE_ORDER();                 \
    probe_depth = probe_depth - 1; \
    PROBE_ORDER();                 \
  } while (0)
/* The same of a signal handler, which may interrupt ENTER(). */
#define ENTER_HANDLER()                                                \
  const struct probe_entered interrupted = probe_entered[probe_depth]; \
  ENTER()
#define LEAVE_HANDLER()                       \
  do {                                        \
    LEAVE();                                  \
    probe_entered[probe_depth] = interrupted; \
    PROBE_ORDER();                            \
  } while (0)

/* Writes a line of /proc/self/maps for each mapping to `output`, and then samples until `samples`
   are taken or `seconds` have passed; then the process ends. What is mapped and executable must not
   change any more. */
void probe_begin(const char* output, unsigned samples, unsigned seconds);

/* A stack for signal handlers, which ends at a page that cannot be read. */
void probe_use_alternate_stack(void);

/* Code made at run time, with a jitdump in `folder`. Calls of probe_run_jit() run it; some replace
   it by other code. */
void probe_open_jit(const char* folder);
void probe_run_jit(void (*callee)(int), int argument);

#ifdef __cplusplus
}
#endif

#endif
