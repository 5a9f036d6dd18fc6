/* SPDX-License-Identifier: MIT */
// Code with call frame information only in .debug_frame, and enough of it that a linker compresses
// the section.

#define FUNCTION(n)                                           \
  int callee_##n(volatile int* a);                            \
  int __attribute__((noinline)) callee_##n(volatile int* a) { \
    volatile char room[16 * (n + 1)];                         \
    room[n] = (char)*a;                                       \
    return room[n] + *a;                                      \
  }                                                           \
  int caller_##n(volatile int* a, int b, int c);              \
  int caller_##n(volatile int* a, int b, int c) {             \
    int sum = b;                                              \
    for (int i = 0; i < c; ++i) sum += callee_##n(a) * b;     \
    return sum + c;                                           \
  }

#define EIGHT(n) \
  FUNCTION(n##0) \
  FUNCTION(n##1) \
  FUNCTION(n##2) FUNCTION(n##3) FUNCTION(n##4) FUNCTION(n##5) FUNCTION(n##6) FUNCTION(n##7)

EIGHT(1)
EIGHT(2)
EIGHT(3)
EIGHT(4)
EIGHT(5)
