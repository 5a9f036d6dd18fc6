/* SPDX-License-Identifier: MIT */
/* What a runtime that links the writers can rely on: whatever happens to its memory, its limits,
 * its descriptors and its files, the process lives and hears why. host_test SCENARIO, in an empty
 * directory; exits with 77 and a reason where the machine cannot play it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <perfmap_writer.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "../capi/check.h"

static perfmap_error error = {.struct_size = sizeof(perfmap_error)};

enum mode { PLAIN, BUFFERED, MAPPED, MODES };

static void configure(enum mode mode, int32_t fork_policy) {
  perfmap_state_options options;
  char directory[4000];
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  CHECK(getcwd(directory, sizeof directory) != NULL);
  options.directory = directory;
  options.fork = fork_policy;
  options.buffer_bytes = mode == BUFFERED ? 65536 : 0;
  options.mapped = mode == MAPPED;
  CHECK(perfmap_state_configure(&options) == 0);
}

static int entry(const char* name) {
  return perfmap_state_write_entry((const void*)0x1000, 16, name);
}

static void path_of(pid_t pid, char path[64]) { sprintf(path, "./perf-%d.map", (int)pid); }

static size_t size_of(const char* path) {
  struct stat status;
  return stat(path, &status) == 0 ? (size_t)status.st_size : (size_t)-1;
}

static void skip(const char* why) {
  printf("skipped: %s\n", why);
  exit(77);
}

/* Runs `act` in a child, which must end by itself with status 0. Returns its pid. */
static pid_t in_child(void (*act)(int), int argument) {
  int status;
  pid_t child;
  fflush(stdout);
  child = fork();
  if (child == 0) {
    alarm(60);
    act(argument);
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) fprintf(stderr, "signal %d\n", WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) exit(77);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return child;
}

/* --- The process's limit of file sizes --- */

static void limit_files(rlim_t bytes) {
  struct rlimit limit;
  CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  limit.rlim_cur = bytes;
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void fill_map(int mode) {
  int i, failed = 0;
  configure((enum mode)mode, PERFMAP_FORK_FRESH);
  limit_files(mode == MAPPED ? 20000 : 1000);
  for (i = 0; i < 2000; ++i) { /* "1000 10 abcdefghijk\n" is 20 bytes: line 50 ends at the limit */
    if (entry("abcdefghijk") != 0) {
      CHECK(errno == EFBIG);
      ++failed;
    }
  }
  if (mode != BUFFERED) CHECK(failed > 0);
  if (mode == BUFFERED) CHECK(perfmap_state_flush() == -1 && errno == EFBIG);
}

static perfmap_jitdump_function function_abc(void) {
  static const char code[100] = {1};
  perfmap_jitdump_function function;
  memset(&function, 0, sizeof function);
  function.struct_size = sizeof function;
  function.start = 0x1000;
  function.size = sizeof code;
  function.code = code;
  function.name = "abc";
  function.name_size = 3;
  return function;
}

static void fill_dump(int unused) {
  perfmap_jitdump* dump = NULL;
  const perfmap_jitdump_function function = function_abc();
  int i, failed = 0;
  (void)unused;
  limit_files(1000);
  CHECK(perfmap_jitdump_open_own(".", NULL, &dump, &error) == PERFMAP_OK);
  for (i = 0; i < 30; ++i) {
    if (perfmap_jitdump_load(dump, &function, NULL, &error) == PERFMAP_OK) continue;
    CHECK(error.sys_errno == EFBIG);
    ++failed;
  }
  CHECK(failed > 0);
  perfmap_jitdump_free(dump);
}

static void inherit_much(int unused) {
  int i;
  (void)unused;
  configure(PLAIN, PERFMAP_FORK_INHERIT);
  for (i = 0; i < 100; ++i) CHECK(entry("abcdefghijk") == 0);
  if (fork() == 0) {
    limit_files(1000);
    CHECK(entry("abcdefghijk") == -1 && errno == EFBIG);
    exit(0);
  }
  CHECK(wait(&i) > 0 && i == 0);
}

static void scenario_size_limit(void) {
  int mode;
  for (mode = PLAIN; mode < MODES; ++mode) {
    char path[64];
    path_of(in_child(fill_map, mode), path);
    if (mode != MAPPED) CHECK(size_of(path) == 1000); /* every line that fits */
  }
  in_child(fill_dump, 0);
  in_child(inherit_much, 0);
}

/* --- Descriptors that others close --- */

static void be_daemon(int at_exit) {
  int fd;
  configure(BUFFERED, PERFMAP_FORK_FRESH);
  CHECK(entry("before") == 0);
  CHECK(perfmap_state_flush() == 0 && entry("meanwhile") == 0);
  for (fd = 3; fd < 64; ++fd) close(fd);
  CHECK(entry("after") == 0);
  if (!at_exit) CHECK(perfmap_state_fini() == 0);
}

static void close_all(void) {
  int fd;
  for (fd = 3; fd < 64; ++fd) close(fd);
}

static void end_mapped_as_daemon(int is_written) {
  configure(MAPPED, PERFMAP_FORK_FRESH);
  CHECK(entry("before") == 0);
  close_all();
  if (is_written) CHECK(entry("after") == 0);
  CHECK(perfmap_state_fini() == 0);
}

static void find_loads(const char* path, int loads, int closes) {
  unsigned char bytes[4096];
  uint32_t kind, size;
  FILE* const file = fopen(path, "rb");
  size_t at = 40, end;
  CHECK(file != NULL);
  end = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  for (; at < end; at += size) {
    CHECK(end - at >= 16);
    memcpy(&kind, bytes + at, sizeof kind);
    memcpy(&size, bytes + at + 4, sizeof size);
    CHECK(size >= 16 && size <= end - at);
    if (kind == 0) --loads;
    if (kind == 3) --closes;
  }
  CHECK(loads == 0 && closes == 0);
}

/* The map is opened on the number that the dump had. */
static void write_both_as_daemon(int unused) {
  perfmap_jitdump* dump = NULL;
  const perfmap_jitdump_function function = function_abc();
  char path[64];
  (void)unused;
  CHECK(perfmap_jitdump_open_own(".", NULL, &dump, &error) == PERFMAP_OK);
  configure(PLAIN, PERFMAP_FORK_FRESH);
  CHECK(entry("before") == 0);
  CHECK(perfmap_jitdump_load(dump, &function, NULL, &error) == PERFMAP_OK);
  close_all();
  CHECK(entry("after") == 0);
  CHECK(perfmap_jitdump_load(dump, &function, NULL, &error) == PERFMAP_OK);
  CHECK(entry("more") == 0);
  close_all();
  CHECK(perfmap_jitdump_close(dump, &error) == PERFMAP_OK);
  perfmap_jitdump_free(dump);
  CHECK(perfmap_state_fini() == 0);
  path_of(getpid(), path);
  check_file(path, "1000 10 before\n1000 10 after\n1000 10 more\n");
  sprintf(path, "./jit-%d.dump", (int)getpid());
  find_loads(path, 2, 1);
}

/* A dump whose file others have replaced or lengthened meanwhile is left alone. */
static void lose_dump(int is_replaced) {
  perfmap_jitdump* dump = NULL;
  const perfmap_jitdump_function function = function_abc();
  FILE* file;
  CHECK(perfmap_jitdump_open("lost.dump", NULL, &dump, &error) == PERFMAP_OK);
  close_all();
  if (is_replaced) CHECK(rename("lost.dump", "former.dump") == 0);
  file = fopen("lost.dump", "ab");
  CHECK(file != NULL && fputs("other", file) >= 0 && fclose(file) == 0);
  CHECK(perfmap_jitdump_load(dump, &function, NULL, &error) == PERFMAP_E_IO);
  CHECK(error.sys_errno == EBADF);
  CHECK(size_of("lost.dump") == (is_replaced ? 5 : 45));
  perfmap_jitdump_free(dump);
  CHECK(remove("lost.dump") == 0);
}

static void inherit_closed_dump(int unused) {
  perfmap_jitdump* dump = NULL;
  perfmap_jitdump_options options;
  const perfmap_jitdump_function function = function_abc();
  char path[64];
  int status;
  pid_t child;
  (void)unused;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.fork = PERFMAP_FORK_INHERIT;
  CHECK(perfmap_jitdump_open_own(".", &options, &dump, &error) == PERFMAP_OK);
  CHECK(perfmap_jitdump_load(dump, &function, NULL, &error) == PERFMAP_OK);
  child = fork();
  if (child == 0) {
    close_all();
    CHECK(perfmap_jitdump_load(dump, &function, NULL, &error) == PERFMAP_OK);
    CHECK(perfmap_jitdump_close(dump, &error) == PERFMAP_OK);
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  sprintf(path, "./jit-%d.dump", (int)child);
  find_loads(path, 1, 1);
  perfmap_jitdump_free(dump);
}

/* An index of the parent's dump means nothing in the new dump of a child. */
static void move_in_child(int unused) {
  perfmap_jitdump* dump = NULL;
  const perfmap_jitdump_function function = function_abc();
  uint64_t of_parent = 0, of_child = 0;
  int status;
  pid_t child;
  (void)unused;
  CHECK(perfmap_jitdump_open_own(".", NULL, &dump, &error) == PERFMAP_OK);
  CHECK(perfmap_jitdump_load(dump, &function, &of_parent, &error) == PERFMAP_OK);
  child = fork();
  if (child == 0) {
    CHECK(perfmap_jitdump_load(dump, &function, &of_child, &error) == PERFMAP_OK);
    CHECK(perfmap_jitdump_move(dump, of_parent, 0x1000, 0x2000, 100, &error) ==
          PERFMAP_E_INVALID_ARGUMENT);
    CHECK(perfmap_jitdump_move(dump, of_child, 0x1000, 0x2000, 100, &error) == PERFMAP_OK);
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0 && of_parent == 1);
  perfmap_jitdump_free(dump);
}

/* The dump has a function whose entry in the map failed, and its index is known. */
static void load_without_map(int unused) {
  perfmap_jitdump* dump = NULL;
  perfmap_jitdump_options options;
  perfmap_state_options state;
  const perfmap_jitdump_function function = function_abc();
  uint64_t index = 0;
  (void)unused;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.state_map = 1;
  memset(&state, 0, sizeof state);
  state.struct_size = sizeof state;
  state.directory = "missing";
  CHECK(perfmap_state_configure(&state) == 0);
  CHECK(perfmap_jitdump_open("both.dump", &options, &dump, &error) == PERFMAP_OK);
  CHECK(perfmap_jitdump_load(dump, &function, &index, &error) == PERFMAP_E_NOT_FOUND);
  CHECK(index == 1 && strstr(error.message, "missing/perf-") != NULL);
  CHECK(perfmap_jitdump_close(dump, &error) == PERFMAP_OK);
  perfmap_jitdump_free(dump);
  find_loads("both.dump", 1, 1);
}

static void scenario_closed_descriptors(void) {
  int at_exit;
  for (at_exit = 0; at_exit < 2; ++at_exit) {
    char path[64];
    path_of(in_child(be_daemon, at_exit), path);
    check_file(path, "1000 10 before\n1000 10 meanwhile\n1000 10 after\n");
    path_of(in_child(end_mapped_as_daemon, at_exit), path);
    check_file(path, at_exit ? "1000 10 before\n1000 10 after\n" : "1000 10 before\n");
    in_child(lose_dump, at_exit);
  }
  in_child(write_both_as_daemon, 0);
  in_child(inherit_closed_dump, 0);
  in_child(move_in_child, 0);
  in_child(load_without_map, 0);
}

/* --- Files of others, and files that go --- */

static void open_foreign(int mode) {
  char path[64];
  perfmap_writer* writer = NULL;
  perfmap_writer_options options;
  FILE* file;
  path_of(getpid(), path);
  file = fopen(path, "w");
  CHECK(file != NULL && fputs("2000 10 planted\n", file) >= 0 && fclose(file) == 0);
  CHECK(chown(path, 12345, 12345) == 0);
  configure((enum mode)mode, PERFMAP_FORK_FRESH);
  if (mode != BUFFERED) CHECK(entry("secret") == -1 && errno == EPERM);
  if (mode == BUFFERED) CHECK(perfmap_state_init() == -1 && errno == EPERM);
  CHECK(perfmap_state_last_error(&error) == PERFMAP_E_REFUSED);
  CHECK(strstr(error.message, "perf-") != NULL);
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.own_map = 1;
  options.mapped = mode == MAPPED;
  CHECK(perfmap_writer_open(path, &options, &writer, &error) == PERFMAP_E_REFUSED);
  CHECK(error.sys_errno == EPERM);
  check_file(path, "2000 10 planted\n");
}

static void scenario_foreign_file(void) {
  int mode;
  if (geteuid() != 0) skip("only root can make a file of another user");
  for (mode = PLAIN; mode < MODES; ++mode) in_child(open_foreign, mode);
}

static void lose_path(int mode) {
  char path[64];
  char other[80];
  configure((enum mode)mode, PERFMAP_FORK_FRESH);
  CHECK(entry("first") == 0);
  CHECK(perfmap_state_flush() == 0);
  path_of(getpid(), path);
  sprintf(other, "%s.1", path);
  CHECK(rename(path, other) == 0);
  CHECK(perfmap_state_init() == 0);
  CHECK(entry("second") == 0);
  CHECK(perfmap_state_flush() == 0);
  CHECK(remove(path) == 0);
  CHECK(perfmap_state_flush() == 0 && size_of(path) != (size_t)-1);
  CHECK(remove(path) == 0);
  CHECK(perfmap_state_init() == 0);
  CHECK(entry("second") == 0);
  CHECK(perfmap_state_fini() == 0);
  check_file(other, "1000 10 first\n");
  check_file(path, "1000 10 second\n");
}

static void scenario_renamed(void) {
  int mode;
  for (mode = PLAIN; mode < MODES; ++mode) in_child(lose_path, mode);
}

static void be_truncated(int guarded) {
  perfmap_truncation_guard* guard = NULL;
  char path[64];
  int i;
  configure(MAPPED, PERFMAP_FORK_FRESH);
  if (guarded) CHECK(perfmap_truncation_guard_new(&guard, &error) == PERFMAP_OK);
  CHECK(entry("first") == 0);
  path_of(getpid(), path);
  if (size_of(path) < 4096) skip("entries are not mapped on this file system");
  CHECK(truncate(path, 0) == 0);
  if (!guarded) signal(SIGBUS, _exit); /* SIGBUS is 7 */
  CHECK(entry("second") == -1 && errno == EIO);
  for (i = 0; i < 3; ++i) CHECK(entry("third") == 0);
  CHECK(perfmap_state_fini() == 0);
  check_file(path, "1000 10 third\n1000 10 third\n1000 10 third\n");
  perfmap_truncation_guard_free(guard);
}

static void scenario_truncated(void) { in_child(be_truncated, 1); }

static void scenario_noexec(void) {
  perfmap_jitdump* dump = NULL;
  CHECK(mkdir("noexec", 0700) == 0);
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("tmpfs", "noexec", "tmpfs", MS_NOEXEC, NULL) != 0) {
    skip("no mounts here");
  }
  CHECK(perfmap_jitdump_open_own("noexec", NULL, &dump, &error) == PERFMAP_E_IO);
  CHECK(strstr(error.message, "noexec, and perf finds") != NULL);
}

/* --- Forks --- */

static void inherit_late(int mode) {
  char parent[64];
  char child[64];
  int status;
  pid_t pid;
  configure((enum mode)mode, PERFMAP_FORK_INHERIT);
  CHECK(entry("before") == 0);
  path_of(getpid(), parent);

  pid = fork();
  if (pid == 0) _exit(0); /* and nothing is copied */
  CHECK(waitpid(pid, &status, 0) == pid);
  path_of(pid, child);
  CHECK(size_of(child) == (size_t)-1);

  pid = fork();
  if (pid == 0) exit(perfmap_state_flush() == 0 && perfmap_state_fini() == 0 ? 0 : 1);
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  path_of(pid, child);
  CHECK(size_of(child) == (size_t)-1);

  pid = fork();
  if (pid == 0) {
    if (fork() == 0) { /* a child's child */
      usleep(100000);
      exit(entry("grandchild"));
    }
    wait(&status);
    usleep(100000);
    exit(entry("child"));
  }
  CHECK(entry("after") == 0 && perfmap_state_flush() == 0);
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  path_of(pid, child);
  check_file(child, "1000 10 before\n1000 10 child\n");
  CHECK(perfmap_state_fini() == 0);
  check_file(parent, "1000 10 before\n1000 10 after\n");
}

static void scenario_inherit(void) {
  int mode;
  for (mode = PLAIN; mode < MODES; ++mode) in_child(inherit_late, mode);
}

static void scenario_inherit_without_room(void) {
  struct timespec begin, end;
  int i, status;
  double seconds;
  CHECK(mkdir("small", 0700) == 0);
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("tmpfs", "small", "tmpfs", 0, "size=12m") != 0) {
    skip("no mounts here");
  }
  CHECK(chdir("small") == 0);
  configure(PLAIN, PERFMAP_FORK_INHERIT);
  for (i = 0; i < 400000; ++i) CHECK(entry("abcdefghijk") == 0); /* 8 MB */
  if (fork() == 0) {
    CHECK(entry("child") == -1 && errno == ENOSPC);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (i = 0; i < 1000; ++i) CHECK(entry("child") == -1 && errno == ENOSPC);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    printf("1000 entries on a full disk: %.1f ms\n", 1000 * seconds);
    CHECK(seconds < 0.5); /* one copy of 8 MB takes some milliseconds */
    exit(0);
  }
  CHECK(wait(&status) > 0 && status == 0);
}

/* --- Two processes with one number --- */

static int has_attributes(void) {
  int fd = open("attributes", O_CREAT | O_RDWR, 0600);
  int yes = fd >= 0 && fsetxattr(fd, "user.perfmap.test", "x", 1, 0) == 0;
  close(fd);
  return yes;
}

static void exec_again(int unused) {
  (void)unused;
  configure(PLAIN, PERFMAP_FORK_FRESH);
  CHECK(entry("former image") == 0);
  execl("/proc/self/exe", "host_test", "image", (char*)NULL);
  CHECK(0);
}

static void scenario_image(void) { /* what exec_again() becomes */
  configure(PLAIN, PERFMAP_FORK_FRESH);
  CHECK(entry("this image") == 0);
  CHECK(perfmap_state_began_with() == PERFMAP_START_EMPTIED);
  CHECK(perfmap_state_fini() == 0);
  CHECK(entry("again") == 0);
  CHECK(perfmap_state_began_with() == PERFMAP_START_APPENDED);
}

static void scenario_exec(void) {
  char path[64];
  if (!has_attributes()) skip("no extended attributes on this file system");
  path_of(in_child(exec_again, 0), path);
  check_file(path, "1000 10 this image\n1000 10 again\n");
}

static int container(void* go) {
  const int* pipes = go;
  char byte = 0;
  int failed;
  configure(PLAIN, PERFMAP_FORK_FRESH);
  failed = entry(pipes[2] == 0 ? "one" : "two") == 0 ? 0 : errno;
  if (write(pipes[1], &byte, 1) != 1 || read(pipes[0], &byte, 1) < 0) return 99;
  return failed;
}

static void scenario_containers(void) {
  static char stacks[3][1 << 16];
  pid_t made[3];
  int pipes[3][2];
  int i, status[3];
  char byte;
  if (!has_attributes()) skip("no extended attributes on this file system");
  for (i = 0; i < 3; ++i) {
    int to[2], from[2];
    static int given[3][3];
    CHECK(pipe(to) == 0 && pipe(from) == 0);
    given[i][0] = to[0];
    given[i][1] = from[1];
    given[i][2] = i;
    pipes[i][0] = to[1];
    pipes[i][1] = from[0];
    if (i == 2) { /* the first two are gone: a container that is started again at once */
      CHECK(write(pipes[0][0], "x", 1) == 1 && write(pipes[1][0], "x", 1) == 1);
      CHECK(waitpid(made[0], &status[0], 0) == made[0]);
      CHECK(waitpid(made[1], &status[1], 0) == made[1]);
    }
    made[i] = clone(container, stacks[i] + sizeof stacks[i], CLONE_NEWPID | SIGCHLD, given[i]);
    if (made[i] < 0) skip("no pid namespaces here");
    CHECK(read(pipes[i][1], &byte, 1) == 1);
  }
  CHECK(write(pipes[2][0], "x", 1) == 1);
  CHECK(waitpid(made[2], &status[2], 0) == made[2]);
  CHECK(status[0] == 0);
  CHECK(WIFEXITED(status[1]) && WEXITSTATUS(status[1]) == EBUSY);
  CHECK(status[2] == 0);
  check_file("perf-1.map", "1000 10 two\n");
}

/* --- Calls that are wrong --- */

static volatile sig_atomic_t refused, written;

static void write_in_handler(int signal) {
  (void)signal;
  if (entry("handler") == 0) {
    ++written;
  } else if (errno == EDEADLK) {
    ++refused;
  }
}

static void scenario_signal_handler(void) {
  struct itimerval often;
  time_t end = time(NULL) + 2;
  configure(PLAIN, PERFMAP_FORK_FRESH);
  CHECK(entry("first") == 0);
  signal(SIGALRM, write_in_handler);
  memset(&often, 0, sizeof often);
  often.it_interval.tv_usec = often.it_value.tv_usec = 500;
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  while (time(NULL) <= end && refused < 100) CHECK(entry("main") == 0);
  signal(SIGALRM, SIG_IGN);
  printf("%d entries of the handler written, %d refused\n", (int)written, (int)refused);
  CHECK(refused > 0);
}

static void scenario_forgotten_size(void) {
  perfmap_state_options state;
  perfmap_writer_options writer;
  perfmap_jitdump_options dump;
  perfmap_jitlog_options log;
  perfmap_trampoline_options arena;
  perfmap_jitdump_function function;
  perfmap_code_description code;
  perfmap_error forgotten;
  void* out = NULL;
  memset(&state, 0, sizeof state);
  memset(&writer, 0, sizeof writer);
  memset(&dump, 0, sizeof dump);
  memset(&log, 0, sizeof log);
  memset(&arena, 0, sizeof arena);
  memset(&function, 0, sizeof function);
  memset(&code, 0, sizeof code);
  memset(&forgotten, 0, sizeof forgotten);
  CHECK(perfmap_state_configure(&state) == -1 && errno == EINVAL);
  CHECK(perfmap_writer_open("w", &writer, (perfmap_writer**)&out, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "struct_size") != NULL);
  CHECK(perfmap_jitdump_open("d", &dump, (perfmap_jitdump**)&out, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_jitlog_open("l", &log, (perfmap_jitlog**)&out, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_trampoline_arena_new(&arena, (perfmap_trampoline_arena**)&out, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_jitdump_load(NULL, &function, NULL, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_trampoline_new(NULL, &code, (perfmap_trampoline**)&out, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_writer_open("w", NULL, (perfmap_writer**)&out, &forgotten) ==
        PERFMAP_E_INVALID_ARGUMENT);
  function.struct_size = sizeof function - 1;
  CHECK(perfmap_jitdump_load(NULL, &function, NULL, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(out == NULL && size_of("w") == (size_t)-1);
  state.struct_size = sizeof state;
  state.directory = "";
  CHECK(perfmap_state_configure(&state) == -1 && errno == EINVAL);
  CHECK(perfmap_jitdump_open_own("", NULL, (perfmap_jitdump**)&out, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
}

static void refuse_function(perfmap_jitdump* dump, perfmap_jitdump_function function,
                            const char* why) {
  CHECK(perfmap_jitdump_load(dump, &function, NULL, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(error.sys_errno == EINVAL);
  if (strcmp(error.message, why) != 0) fprintf(stderr, "%s, not: %s\n", error.message, why);
  CHECK(strcmp(error.message, why) == 0);
}

/* What is wrong with a function is said by the name of the member. */
static void scenario_arguments(void) {
  static const perfmap_jitdump_line lines[] = {{0x1010, 1, 0, "f"}, {0x1000, 2, 0, "f"}};
  static const perfmap_jitdump_line outside[] = {{0x2000, 1, 0, "f"}};
  perfmap_jitdump_line bad_line = {0x1000, 1, 0, "f"};
  perfmap_jitdump* dump = NULL;
  perfmap_jitdump_options options;
  perfmap_state_options state;
  perfmap_writer_options writer;
  perfmap_jitlog_options log;
  perfmap_jitdump_function function;
  uint64_t index = 0;
  void* out = NULL;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  CHECK(perfmap_jitdump_open("d", NULL, &dump, &error) == PERFMAP_OK);
  function = function_abc();
  function.start = UINT64_MAX - 50;
  refuse_function(dump, function, "start: the function exceeds the address space");
  function = function_abc();
  function.code = NULL;
  function.size = (32 << 20) + 1;
  refuse_function(dump, function, "code: missing, and size is above 32 MiB");
  function = function_abc();
  function.name = NULL;
  refuse_function(dump, function, "name: NULL, but its size is not 0");
  function = function_abc();
  function.line_count = 2;
  refuse_function(dump, function, "lines: NULL, but line_count is not 0");
  function.lines = lines;
  refuse_function(dump, function, "lines: their addresses decrease, or lie outside the function");
  function.lines = outside;
  function.line_count = 1;
  refuse_function(dump, function, "lines: their addresses decrease, or lie outside the function");
  bad_line.file = NULL;
  function.lines = &bad_line;
  refuse_function(dump, function, "lines: a file is NULL");
  bad_line.file = "f";
  bad_line.line = -4;
  refuse_function(dump, function, "lines: a line or a column is negative");
  function = function_abc();
  function.mapped_size = UINT64_MAX;
  refuse_function(dump, function, "mapped_size: more than 4 GiB");
  function = function_abc();
  function.eh_frame_size = 8;
  refuse_function(dump, function, "eh_frame: NULL, but its size is not 0");
  function.eh_frame = "1234567";
  function.eh_frame_hdr_size = 8;
  refuse_function(dump, function, "eh_frame_hdr: NULL, but its size is not 0");
  function.eh_frame_hdr = "1234567";
  function.mapped_size = 15;
  refuse_function(dump, function, "mapped_size: less than the size of eh_frame and eh_frame_hdr");
  function = function_abc();
  CHECK(perfmap_jitdump_load(dump, &function, &index, &error) == PERFMAP_OK && index == 1);
  CHECK(perfmap_jitdump_move(dump, 2, 0x1000, 0x2000, 100, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strcmp(error.message, "code_index: no function has this number") == 0);
  CHECK(perfmap_jitdump_move(dump, 0, 0x1000, 0x2000, 100, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_jitdump_move(dump, 1, 0x1000, UINT64_MAX, 100, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strcmp(error.message, "to: the function exceeds the address space") == 0);
  CHECK(perfmap_jitdump_move(dump, 1, 0x1000, 0x2000, 100, &error) == PERFMAP_OK);
  perfmap_jitdump_free(dump);

  options.names = PERFMAP_NAMES_REFUSE;
  CHECK(perfmap_jitdump_open("e", &options, &dump, &error) == PERFMAP_OK);
  function.size = 0;
  refuse_function(dump, function, "size: 0");
  function = function_abc();
  function.start = 0;
  refuse_function(dump, function, "start: 0");
  perfmap_jitdump_free(dump);

  memset(&state, 0, sizeof state);
  memset(&writer, 0, sizeof writer);
  memset(&log, 0, sizeof log);
  state.struct_size = sizeof state;
  writer.struct_size = sizeof writer;
  log.struct_size = sizeof log;
  state.directory = "";
  CHECK(perfmap_state_configure(&state) == -1 && errno == EINVAL);
  CHECK(perfmap_state_last_error(&error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strcmp(error.message, "directory: empty") == 0);
  state.directory = ".";
  CHECK(perfmap_state_init() == 0);
  CHECK(perfmap_state_configure(&state) == -1 && errno == EBUSY);
  CHECK(perfmap_state_last_error(&error) == PERFMAP_E_IO && error.sys_errno == EBUSY);
  CHECK(strstr(error.message, "the map is open") != NULL);
  CHECK(perfmap_state_write_entry((const void*)-8, 16, "name") == -1 && errno == EINVAL);
  CHECK(perfmap_state_last_error(&error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strcmp(error.message, "start: the range exceeds the address space") == 0);
  CHECK(perfmap_state_fini() == 0);
  options.pid = -5;
  CHECK(perfmap_jitdump_open("f", &options, (perfmap_jitdump**)&out, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strcmp(error.message, "pid: negative") == 0);
  options.pid = 0;
  log.clock = 7;
  CHECK(perfmap_jitlog_open("f", &log, (perfmap_jitlog**)&out, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strcmp(error.message, "clock: no such clock") == 0);
  log.clock = 0;
  state.fork = log.fork = options.fork = 77;
  CHECK(perfmap_state_configure(&state) == -1 && errno == EINVAL);
  CHECK(perfmap_state_last_error(&error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "fork: no such policy") != NULL);
  CHECK(perfmap_jitdump_open("f", &options, (perfmap_jitdump**)&out, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strcmp(error.message, "fork: no such policy") == 0);
  CHECK(perfmap_jitlog_open("f", &log, (perfmap_jitlog**)&out, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  state.fork = log.fork = options.fork = 0;
  CHECK(perfmap_writer_open("g", &writer, (perfmap_writer**)&out, &error) == PERFMAP_OK);
  CHECK(perfmap_writer_write(out, 1, 1, NULL, 4, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_writer_write(out, UINT64_MAX, 2, "n", 1, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strcmp(error.message, "start: the range exceeds the address space") == 0);
  perfmap_writer_free(out);
  out = NULL;
  state.names = log.names = options.names = writer.names = -1;
  CHECK(perfmap_state_configure(&state) == -1 && errno == EINVAL);
  CHECK(perfmap_writer_open("f", &writer, (perfmap_writer**)&out, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strcmp(error.message, "names: no such policy") == 0);
  CHECK(perfmap_jitdump_open("f", &options, (perfmap_jitdump**)&out, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_jitlog_open("f", &log, (perfmap_jitlog**)&out, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(out == NULL && size_of("f") == (size_t)-1);
}

static void write_names(int32_t policy, perfmap_writer** writer) {
  perfmap_writer_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.names = policy;
  remove("names.map");
  CHECK(perfmap_writer_open("names.map", &options, writer, &error) == PERFMAP_OK);
}

static perfmap_status put(perfmap_writer* writer, uint64_t start, uint64_t size, const char* name) {
  return perfmap_writer_write(writer, start, size, name, strlen(name), &error);
}

static void scenario_names(void) {
  static char name[1 << 20];
  static char text[8192];
  perfmap_writer* writer = NULL;
  FILE* file;
  size_t size;
  write_names(PERFMAP_NAMES_ESCAPE, &writer);
  CHECK(put(writer, 1, 2, "a\nb") == PERFMAP_OK);
  CHECK(put(writer, 1, 2, "a\\x0ab") == PERFMAP_OK);
  CHECK(put(writer, 1, 2, "App\\xml\\Php") == PERFMAP_OK);
  CHECK(put(writer, UINT64_MAX, 2, "over the end") == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(put(writer, UINT64_MAX, 1, "the last byte") == PERFMAP_OK);
  perfmap_writer_free(writer);
  check_file("names.map",
             "1 2 a\\x0ab\n1 2 a\\x5cx0ab\n1 2 App\\xml\\Php\nffffffffffffffff 1 the last byte\n");

  write_names(PERFMAP_NAMES_ESCAPE, &writer);
  memset(name, 'n', sizeof name - 1);
  CHECK(put(writer, 1, 2, name) == PERFMAP_OK);
  name[4000] = '\0';
  CHECK(put(writer, 1, 2, name) == PERFMAP_OK);
  perfmap_writer_free(writer);
  file = fopen("names.map", "r");
  CHECK(file != NULL);
  size = fread(text, 1, sizeof text, file);
  fclose(file);
  CHECK(size == 4 + 4000 + 3 + 1 + 4 + 4000 + 1);
  CHECK(memcmp(text + 4004, "\xe2\x80\xa6\n", 4) == 0);

  write_names(PERFMAP_NAMES_REFUSE, &writer);
  name[4000] = 'n';
  CHECK(put(writer, 1, 2, name) == PERFMAP_E_INVALID_ARGUMENT && error.sys_errno == EILSEQ);
  CHECK(put(writer, 1, 2, "a\\x0ab") == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(put(writer, 0, 2, "name") == PERFMAP_E_INVALID_ARGUMENT && error.sys_errno == EINVAL);
  CHECK(put(writer, 1, 0, "name") == PERFMAP_E_INVALID_ARGUMENT && error.sys_errno == EINVAL);
  perfmap_writer_free(writer);
  check_file("names.map", "");
}

static void scenario_paths(void) {
  perfmap_writer* writer = NULL;
  perfmap_jitdump* dump = NULL;
  perfmap_jitlog* log = NULL;
  char path[4100];
  char expected[4100];
  CHECK(perfmap_state_last_error(&error) == PERFMAP_OK);
  sprintf(expected, "/tmp/perf-%d.map", (int)getpid());
  CHECK(perfmap_state_path(path, sizeof path) == strlen(expected) && strcmp(path, expected) == 0);
  configure(PLAIN, PERFMAP_FORK_FRESH);
  CHECK(getcwd(expected, sizeof expected - 20) != NULL);
  sprintf(expected + strlen(expected), "/perf-%d.map", (int)getpid());
  CHECK(perfmap_state_path(path, sizeof path) == strlen(expected) && strcmp(path, expected) == 0);
  CHECK(perfmap_state_init() == 0);
  CHECK(perfmap_state_path(path, sizeof path) == strlen(expected) && strcmp(path, expected) == 0);
  CHECK(perfmap_state_path(path, 5) == strlen(expected) && strlen(path) == 4);
  CHECK(perfmap_state_path(NULL, 0) == strlen(expected));
  CHECK(perfmap_writer_open("a.map", NULL, &writer, &error) == PERFMAP_OK);
  CHECK(perfmap_writer_path(writer, path, sizeof path) == 5 && strcmp(path, "a.map") == 0);
  perfmap_writer_free(writer);
  CHECK(perfmap_jitdump_open_own(".", NULL, &dump, &error) == PERFMAP_OK);
  sprintf(expected, "./jit-%d.dump", (int)getpid());
  CHECK(perfmap_jitdump_path(dump, path, sizeof path) > 0 && strcmp(path, expected) == 0);
  perfmap_jitdump_free(dump);
  CHECK(perfmap_jitlog_open("log-%d", NULL, &log, &error) == PERFMAP_OK);
  sprintf(expected, "log-%d", (int)getpid());
  CHECK(perfmap_jitlog_path(log, path, sizeof path) > 0 && strcmp(path, expected) == 0);
  perfmap_jitlog_free(log);
  CHECK(perfmap_state_copy_file("missing") == -1 && errno == ENOENT);
  CHECK(perfmap_state_last_error(&error) == PERFMAP_E_NOT_FOUND);
  CHECK(strncmp(error.message, "cannot copy missing to /", 24) == 0);
  CHECK(strstr(error.message, "No such file") != NULL);
  CHECK(entry(NULL) == -1 && perfmap_state_last_error(&error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "name: NULL") != NULL);
  CHECK(perfmap_state_set_fork(9) == -1);
  CHECK(perfmap_state_last_error(&error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "fork: no such policy") != NULL);
}

/* --- Storms: threads, forks of every kind, kills --- */

enum { THREADS = 3, FORKS = 150, ENTRIES = 20 };
static volatile int storm_ends;

static int tagged(pid_t writer, int thread, int number) {
  char name[64];
  sprintf(name, "by %d thread %d number %d", (int)writer, thread, number);
  return entry(name);
}

static void* write_on(void* argument) {
  int* thread = argument;
  int number = 0;
  while (!storm_ends) {
    CHECK(tagged(getpid(), *thread, number++) == 0);
    if (number % 64 == 0) usleep(200);
  }
  *thread = number;
  return NULL;
}

/* The numbers of that writer and thread in the file come once each, in order; returns how many. */
static int count_of(const char* path, pid_t writer, int thread) {
  char line[8192]; /* a line of filler has up to 2 KiB */
  int expected = 0;
  FILE* file = fopen(path, "r");
  CHECK(file != NULL);
  while (fgets(line, sizeof line, file) != NULL) {
    int by, in, number;
    char end = 0;
    if (strncmp(line, "0 0 .", 5) == 0) continue; /* a mapped writer's filler */
    CHECK(sscanf(line, "1000 10 by %d thread %d number %d%c", &by, &in, &number, &end) == 4);
    CHECK(end == '\n');
    if (by != (int)writer || in != thread) continue;
    CHECK(number == expected);
    ++expected;
  }
  fclose(file);
  return expected;
}

static pid_t bare_clone(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL); }

static void storm(int mode) {
  static pid_t children[FORKS];
  pthread_t threads[THREADS];
  int numbers[THREADS];
  char path[64];
  int i, status;
  pid_t self = getpid();
  configure((enum mode)(mode % MODES), mode < MODES ? PERFMAP_FORK_FRESH : PERFMAP_FORK_INHERIT);
  CHECK(perfmap_state_init() == 0);
  for (i = 0; i < THREADS; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, write_on, &numbers[i]) == 0);
  }
  for (i = 0; i < FORKS; ++i) {
    children[i] = i % 3 == 0 ? bare_clone() : fork();
    if (children[i] == 0) {
      int number;
      if (i % 5 == 4) execl("/bin/true", "true", (char*)NULL);
      if (i % 5 == 3) _exit(0);
      for (number = 0; number < ENTRIES; ++number) {
        if (tagged((pid_t)syscall(SYS_getpid), 0, number) != 0) _exit(1);
      }
      _exit(perfmap_state_flush() == 0 ? 0 : 2);
    }
    CHECK(children[i] > 0);
    if (i % 8 == 7) usleep(1000);
  }
  for (i = 0; i < FORKS; ++i) {
    CHECK(waitpid(children[i], &status, 0) == children[i]);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  storm_ends = 1;
  for (i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(perfmap_state_fini() == 0);
  path_of(self, path);
  for (i = 0; i < THREADS; ++i) CHECK(count_of(path, self, i) == numbers[i]);
  for (i = 0; i < FORKS; ++i) {
    path_of(children[i], path);
    if (i % 5 >= 3) {
      CHECK(size_of(path) == (size_t)-1);
    } else {
      CHECK(count_of(path, children[i], 0) == ENTRIES);
    }
  }
}

static void scenario_fork_storm(void) {
  int mode;
  for (mode = 0; mode < 2 * MODES; ++mode) in_child(storm, mode);
}

/* Writes until it is killed, and says through a pipe how many entries were answered. */
static void scenario_kills(void) {
  int round, whole = 0;
  for (round = 0; round < 120; ++round) {
    const int mode = round % 2 == 0 ? PLAIN : MAPPED;
    int said[2], status, told = -1, number;
    char path[64];
    char text[1 << 16];
    ssize_t size;
    pid_t child;
    FILE* file;
    CHECK(pipe(said) == 0 && fcntl(said[1], F_SETPIPE_SZ, 1 << 20) > 0);
    child = fork();
    if (child == 0) {
      configure((enum mode)mode, PERFMAP_FORK_FRESH);
      for (number = 0;; ++number) {
        if (tagged(getpid(), 0, number) != 0) _exit(1);
        if (write(said[1], &number, sizeof number) != sizeof number) _exit(2);
      }
    }
    close(said[1]);
    if (round % 3 != 0) { /* others may be killed before their first entry */
      struct pollfd first = {0};
      first.fd = said[0];
      first.events = POLLIN;
      CHECK(poll(&first, 1, -1) == 1);
    }
    usleep((useconds_t)(500 + round * 37));
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    while ((size = read(said[0], &number, sizeof number)) == sizeof number) told = number;
    close(said[0]);
    path_of(child, path);
    file = fopen(path, "r");
    if (file == NULL) {
      CHECK(told == -1);
      continue;
    }
    number = 0;
    while (fgets(text, sizeof text, file) != NULL) {
      int by, in, got;
      if (strncmp(text, "0 0 .", 5) == 0) continue;
      if (strchr(text, '\n') == NULL) break; /* half a line, of the entry that was not answered */
      if (sscanf(text, "1000 10 by %d thread %d number %d\n", &by, &in, &got) != 3) {
        /* Between the stores of an entry's head: still a symbol without size, named by dots. */
        CHECK(mode == MAPPED && strstr(text, " 0 .") != NULL && strstr(text, " 0 .") < text + 9);
        continue;
      }
      CHECK(got == number);
      ++number;
    }
    fclose(file);
    CHECK(number > told);
    ++whole;
    remove(path);
  }
  printf("%d files of killed processes have every entry that was answered\n", whole);
  CHECK(whole >= 80);
}

static void open_planted(int kind) {
  static const struct {
    int mode, expected;
  } kinds[] = {{0, ELOOP}, {1, EINVAL}, {2, EISDIR}, {3, EMLINK}, {4, ELOOP}};
  char path[64];
  FILE* victim = fopen("victim", "w");
  CHECK(victim != NULL && fputs("precious\n", victim) >= 0 && fclose(victim) == 0);
  path_of(getpid(), path);
  switch (kinds[kind].mode) {
    case 0: CHECK(symlink("victim", path) == 0); break;
    case 1: CHECK(mkfifo(path, 0666) == 0); break;
    case 2: CHECK(mkdir(path, 0777) == 0); break;
    case 3: CHECK(link("victim", path) == 0); break;
    default: CHECK(symlink("nobody", path) == 0); break;
  }
  configure(PLAIN, PERFMAP_FORK_FRESH);
  CHECK(entry("secret") == -1 && errno == kinds[kind].expected);
  check_file("victim", "precious\n");
  CHECK(size_of("nobody") == (size_t)-1);
}

static void scenario_planted(void) {
  int kind;
  for (kind = 0; kind < 5; ++kind) in_child(open_planted, kind);
}

static const struct {
  const char* name;
  void (*run)(void);
} scenarios[] = {{"size-limit", scenario_size_limit},
                 {"closed-descriptors", scenario_closed_descriptors},
                 {"foreign-file", scenario_foreign_file},
                 {"renamed", scenario_renamed},
                 {"truncated", scenario_truncated},
                 {"noexec", scenario_noexec},
                 {"inherit", scenario_inherit},
                 {"inherit-without-room", scenario_inherit_without_room},
                 {"exec", scenario_exec},
                 {"image", scenario_image},
                 {"containers", scenario_containers},
                 {"signal-handler", scenario_signal_handler},
                 {"forgotten-size", scenario_forgotten_size},
                 {"names", scenario_names},
                 {"arguments", scenario_arguments},
                 {"paths", scenario_paths},
                 {"fork-storm", scenario_fork_storm},
                 {"kills", scenario_kills},
                 {"planted", scenario_planted}};

int main(int count, char** arguments) {
  size_t i;
  for (i = 0; i < sizeof scenarios / sizeof *scenarios; ++i) {
    if (count != 2 || strcmp(arguments[1], scenarios[i].name) != 0) continue;
    alarm(120);
    scenarios[i].run();
    return 0;
  }
  fprintf(stderr, "no such scenario\n");
  return 2;
}
