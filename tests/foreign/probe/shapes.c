/* SPDX-License-Identifier: MIT */
/* Functions with frames of all kinds: shapes OUTPUT SAMPLES SECONDS. With WITH_JIT also code made
   at run time: shapes OUTPUT SAMPLES SECONDS FOLDER has its jitdump in the folder. Compile with
   -fno-builtin. */
#define _GNU_SOURCE
#include <alloca.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/time.h>
#include <unistd.h>

#include "probe.h"

#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

static volatile double sum;
static volatile long number;

/* Leaves: without a frame, and with one that has no return address in it. */
APART double leaf(int count) {
  double result = 0;
  for (int i = 1; i < count; ++i) result += i * 0.5;
  return result;
}

APART int leaf_with_array(int count) {
  volatile int values[16];
  for (int i = 0; i < 16; ++i) values[i] = i * count;
  return values[count & 15];
}

/* Calls through the PLT, of functions that are as short as its entries. */
APART void through_plt(int count) {
  ENTER();
  for (int i = 0; i < count; ++i) number += labs(i - 3) + ffs(i) + (long)strlen("word");
  LEAVE();
}

APART double in_math(int value) {
  ENTER();
  const double result = sin(value) * log(value + 2);
  LEAVE();
  return result;
}

APART double in_frame_of_any_size(int value) {
  ENTER();
  char* const room = alloca((size_t)value * 16 + 1);
  memset(room, value, (size_t)value * 16);
  __asm__ volatile("" ::"r"(room) : "memory");
  const double result = leaf(20) + in_math(value) + room[3];
  LEAVE();
  return result;
}

/* More than one instruction can subtract from the stack pointer. */
APART int in_large_frame(int value) {
  ENTER();
  volatile char room[5000];
  room[value] = 1;
  room[4999 - value] = 2;
  const int result = room[value] + (int)in_math(value) + leaf_with_array(value);
  LEAVE();
  return result;
}

APART double with_many_arguments(int a, int b, int c, int d, int e, int f, int g, int h, int i,
                                 int j) {
  ENTER();
  const double result = leaf(a + b + c + d + e + f + g + h + i + j);
  LEAVE();
  return result;
}

/* Values in callee-saved registers, of both kinds. */
APART double recursive(int depth, double x) {
  ENTER();
  double result = x * 0.25;
  if (depth <= 0) {
    result += in_frame_of_any_size(7) + in_large_frame(9);
  } else {
    const double below = recursive(depth - 1, x + 1);
    result += below + with_many_arguments(depth, 1, 2, 3, 4, 5, 6, 7, 8, 9) * x;
  }
  LEAVE();
  return result;
}

APART int compare(const void* a, const void* b) {
  ENTER();
  number += *(const int*)a;
  const int result = *(const int*)a - *(const int*)b;
  LEAVE();
  return result;
}

APART void sorts(void) {
  ENTER();
  int values[24];
  for (int i = 0; i < 24; ++i) values[i] = (i * 7919) % 211;
  qsort(values, 24, sizeof *values, compare);
  LEAVE();
}

/* Replaced by the function that it calls, if optimised. */
APART double in_tail_call(int value) { return in_math(value); }

/* The call is the last instruction of its function. */
static jmp_buf back;
APART __attribute__((noreturn)) void goes_back(int value) {
  number += leaf_with_array(value);
  longjmp(back, 1);
}
APART __attribute__((noreturn)) void ends_with_call(int value) {
  ENTER();
  sum += leaf(value);
  LEAVE();
  goes_back(value);
}
APART void returns_by_jump(int value) {
  ENTER();
  if (setjmp(back) == 0) ends_with_call(value);
  LEAVE();
}

/* Most calls leave before there is a frame. */
APART int rarely_has_a_frame(int value) {
  if (value % 8 != 0) return value;
  ENTER();
  const int result = leaf_with_array(value) + (int)leaf(value);
  LEAVE();
  return result;
}

APART void in_system_calls(void) {
  ENTER();
  for (int i = 0; i < 3; ++i) number += getppid();
  LEAVE();
}

APART void work(int count) {
  ENTER();
  for (int i = 0; i < count; ++i) sum += leaf(10);
  LEAVE();
}

static void on_raised(int signal) {
  ENTER_HANDLER();
  work(40 + signal % 2);
  LEAVE_HANDLER();
}

/* Interrupts any instruction. Armed anew by the program, or it would be all that runs if the
   machine is slow. */
static volatile sig_atomic_t is_armed;
static void on_interval(int signal) {
  ENTER_HANDLER();
  work(20 + signal % 2);
  through_plt(3);
  is_armed = 0;
  LEAVE_HANDLER();
}

static void on_own_stack(int signal) {
  ENTER_HANDLER();
  work(40 + signal % 2);
  LEAVE_HANDLER();
}

#ifdef WITH_JIT
APART void called_by_jit(int value) {
  ENTER();
  sum += leaf(value);
  through_plt(2);
  LEAVE();
}
APART void runs_jit(int value) {
  ENTER();
  probe_run_jit(called_by_jit, value);
  LEAVE();
}
#endif

APART void all_shapes(int round) {
  ENTER();
  sum += recursive(round % 12, round);
  sorts();
  through_plt(10);
  sum += in_tail_call(round);
  returns_by_jump(round % 9);
  for (int i = 0; i < 12; ++i) number += rarely_has_a_frame(i);
  in_system_calls();
  raise(round % 2 == 0 ? SIGUSR1 : SIGUSR2);
  LEAVE();
}

static void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | flags;
  sigaction(signal, &action, NULL);
}

int main(int count, char** arguments) {
  ENTER();
  if (count < 4) return 2;
  probe_use_alternate_stack();
  handle(SIGUSR1, on_raised, 0);
  handle(SIGUSR2, on_own_stack, SA_ONSTACK);
  handle(SIGVTALRM, on_interval, 0);
#ifdef WITH_JIT
  if (count < 5) return 2;
  probe_open_jit(arguments[4]);
#endif
  probe_begin(arguments[1], (unsigned)atoi(arguments[2]), (unsigned)atoi(arguments[3]));
  for (int round = 0;; ++round) {
    if (!is_armed) {
      const struct itimerval once = {{0, 0}, {0, 500 + round % 7 * 300}};
      is_armed = 1;
      setitimer(ITIMER_VIRTUAL, &once, NULL);
    }
    all_shapes(round);
#ifdef WITH_JIT
    runs_jit(round % 16);
#endif
  }
}
