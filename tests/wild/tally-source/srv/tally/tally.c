/* Adds up numbers without any library, so that a recording of it needs no file but this program.
   gcc -O2 -g -fomit-frame-pointer -fno-optimize-sibling-calls -static -nostdlib -o tally tally.c */
#define CALLED __attribute__((noinline, noclone))
typedef unsigned long number;

static inline number weight(number n) {
  for (int i = 0; i < 20; ++i) n = n * 6364136223846793005u + (n >> 7);
  return n;
}

CALLED number sum(number from, number to) {
  number total = 0;
  for (number n = from; n < to; ++n) total += weight(n);
  return total;
}

CALLED number digits(number n) {
  volatile number count = 0;
  while (n != 0) {
    n /= 10;
    ++count;
  }
  return count;
}

CALLED number print(number n) {
  number all = 0;
  for (int i = 0; i < 16000; ++i) all += digits(n + i);
  return all;
}

CALLED number halves(number from, number to) {
  number all = print(from);
  if (to - from < 8000) return all + sum(from, to);
  number middle = from + (to - from) / 2;
  return all + halves(from, middle) + halves(middle, to);
}

CALLED int run(void) {
  number all = 0;
  for (int i = 0; i < 60; ++i) all += halves(0, 120000 + i);
  return all != 0 ? 0 : 1;
}

void _start(void) {
  __asm__ volatile(".cfi_undefined rip"); /* here every stack ends */
  int status = run();
  __asm__ volatile("syscall" : : "a"(231), "D"(status) : "rcx", "r11");
  for (;;) {
  }
}
