/* SPDX-License-Identifier: MIT */
/* A model of a tracing JIT: an interpreter that counts the iterations of its loops, "compiles" hot
 * loops, and logs when it enters and leaves compiled loops.
 *
 * jitlog [LOG]: the path of the log, by default jitlog-%d.log; %d stands for the pid.
 */
#include <perfmap_writer.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define HOT 3 /* iterations in the interpreter until a loop is compiled */

/* A loop of the interpreted program: a number of iterations, each of which may run an inner loop.
 */
struct loop {
  const char* name;
  unsigned rounds;
  struct loop* inner;
  unsigned seen;   /* iterations in the interpreter */
  uint32_t number; /* its number in the log; 0: not compiled */
};

static perfmap_jitlog* profile;
static perfmap_error error = {.struct_size = sizeof(perfmap_error)};

static uint64_t work(uint64_t value) {
  unsigned i;
  for (i = 0; i < 1000; ++i) value = value * 6364136223846793005u + 1442695040888963407u;
  return value;
}

/* Entering an inner loop implicitly leaves the outer one, so the outer one is entered again after
 * it. */
static uint64_t run(struct loop* loop, const struct loop* outer, uint64_t value) {
  unsigned round;
  if (loop->number != 0) perfmap_jitlog_enter(profile, loop->number);
  for (round = 0; round < loop->rounds; ++round) {
    if (loop->number == 0 && ++loop->seen == HOT &&
        perfmap_jitlog_loop(profile, loop->name, strlen(loop->name), &loop->number, &error) ==
            PERFMAP_OK) {
      perfmap_jitlog_enter(profile, loop->number); /* just after tracing */
    }
    value = work(value);
    if (loop->inner != NULL) value = run(loop->inner, loop, value);
  }
  if (outer != NULL && outer->number != 0) {
    perfmap_jitlog_enter(profile, outer->number);
  } else if (loop->number != 0) {
    perfmap_jitlog_exit(profile, loop->number);
  }
  return value;
}

int main(int argc, char** argv) {
  struct loop inner = {"inner loop", 50, NULL, 0, 0};
  struct loop outer = {"outer loop", 100, NULL, 0, 0};
  uint64_t value;
  outer.inner = &inner;
  if (perfmap_jitlog_open(argc > 1 ? argv[1] : "jitlog-%d.log", NULL, &profile, &error) !=
      PERFMAP_OK) {
    fprintf(stderr, "jitlog: %s\n", error.message);
    return 1;
  }
  value = run(&outer, NULL, 1);
  if (perfmap_jitlog_close(profile, &error) != PERFMAP_OK) {
    fprintf(stderr, "jitlog: %s\n", error.message);
    return 1;
  }
  perfmap_jitlog_free(profile);
  return value == 0;
}
