// A program that spends its time in a signal handler, which returns to a signal trampoline. signals
// MILLISECONDS
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <sys/time.h>

static volatile unsigned long sink;

extern "C" __attribute__((noinline)) void busy(unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) sink = sink + i * i;
}
extern "C" __attribute__((noinline)) void in_handler(int) {
  busy(400000);
  sink = sink + 1;
}
extern "C" __attribute__((noinline)) void interrupted() {
  busy(1000);
  sink = sink + 1;
}

int main(int argc, char** argv) {
  const long milliseconds = argc > 1 ? std::atol(argv[1]) : 1000;
  struct sigaction action = {};
  action.sa_handler = in_handler;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval every = {{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &every, nullptr);
  timespec begin{}, now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  do {
    interrupted();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 <
           milliseconds);
}
