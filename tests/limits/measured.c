/* SPDX-License-Identifier: MIT */
/* Runs a command, for at most a minute of processor time, and writes what it used to a file: the
 * status of wait(2), bytes of memory at the peak, and nanoseconds of processor time. A process
 * counts as its own peak what the process that forked it held at exec, so the parent has to be as
 * small as this program. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static long long nanoseconds(struct timeval time) {
  return time.tv_sec * 1000000000LL + time.tv_usec * 1000LL;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    const struct rlimit minute = {60, 60};
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test takes too long, and ends this program */
    setrlimit(RLIMIT_CPU, &minute);
    execv(argv[2], argv + 2);
    _exit(127);
  }
  int status = 0;
  struct rusage used;
  if (wait4(child, &status, 0, &used) != child) return 2;
  FILE* const out = fopen(argv[1], "w");
  if (out == NULL) return 2;
  fprintf(out, "%d %lld %lld\n", status, used.ru_maxrss * 1024LL,
          nanoseconds(used.ru_utime) + nanoseconds(used.ru_stime));
  return fclose(out) == 0 ? 0 : 2;
}
