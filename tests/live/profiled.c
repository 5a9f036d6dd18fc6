/* SPDX-License-Identifier: MIT */
/* Spends its time in one function, which it calls in three ways, without frame pointers. Runs until
 * it is killed. */
static volatile unsigned long sink;

static __attribute__((noinline)) void hot(unsigned long rounds) {
  for (unsigned long i = 0; i < rounds; ++i) sink = sink * 31 + i;
}

static __attribute__((noinline)) void directly(void) {
  hot(40000);
  ++sink;
}

static __attribute__((noinline)) void with_array(unsigned long size) {
  volatile unsigned long array[size];
  array[size - 1] = sink;
  hot(30000);
  sink += array[size - 1];
}

static __attribute__((noinline)) void recursive(unsigned depth) {
  if (depth == 0) {
    with_array(100);
  } else {
    recursive(depth - 1);
  }
  ++sink;
}

int main(void) {
  for (;;) {
    directly();
    with_array(10 + sink % 50);
    recursive(3);
  }
}
