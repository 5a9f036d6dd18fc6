/* A program without libraries, whose stacks are known: see README.md. */
static volatile unsigned long sink;

__attribute__((noinline)) unsigned long leaf(unsigned long seed) {
  for (int i = 0; i < 3000; ++i) seed = seed * 6364136223846793005u + 1442695040888963407u;
  sink = seed;
  return seed;
}

__attribute__((noinline)) unsigned long with_room(unsigned long size) {
  volatile char* room = __builtin_alloca(size % 200 + 8);
  room[0] = 1;
  return leaf(size) + (unsigned long)room[0];
}

__attribute__((noinline)) unsigned long aligned(unsigned long seed) {
  volatile char room[64] __attribute__((aligned(64)));
  room[seed % 64] = 1;
  return with_room(seed) + (unsigned long)room[seed % 64];
}

__attribute__((noinline)) unsigned long recursive(unsigned depth, unsigned long seed) {
  return (depth == 0 ? aligned(seed) : recursive(depth - 1, seed)) + 1;
}

void run(void) {
  unsigned long found = 0;
  for (unsigned i = 0; i < 12000; ++i) found += recursive(i % 5, found + i);
  sink = found;
  __asm__ volatile("syscall" : : "a"(60), "D"(0) : "rcx", "r11", "memory");
}

__asm__(
    ".globl _start\n"
    ".type _start, @function\n"
    "_start:\n"
    ".cfi_startproc\n"
    ".cfi_undefined rip\n"
    "  xor %ebp, %ebp\n"
    "  call run\n"
    "  hlt\n"
    ".cfi_endproc\n"
    ".size _start, . - _start\n");
