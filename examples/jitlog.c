/* A tracing JIT in small: an interpreter that counts how often its loops go round, "compiles" those
 * that do so often, and records in a log when it runs compiled loops.
 *
 * jitlog [LOG]: where the log goes, jitlog-%d.log without; %d is the pid.
 */
#include <perfmap.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define HOT 3 /* rounds in the interpreter before a loop is compiled */

/* A loop of the program that is run: so many rounds, with another loop in each of them. */
struct loop {
  const char* name;
  unsigned rounds;
  struct loop* inner;
  unsigned seen;   /* rounds in the interpreter */
  uint32_t number; /* in the log; 0: not compiled */
};

static perfmap_jitlog* profile;
static perfmap_error error = {sizeof(perfmap_error), 0, 0, ""};

static uint64_t work(uint64_t value) {
  unsigned i;
  for (i = 0; i < 1000; ++i) value = value * 6364136223846793005u + 1442695040888963407u;
  return value;
}

/* Events: a loop that is entered from another one leaves that, and the outer one is entered again
 * behind it. */
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
