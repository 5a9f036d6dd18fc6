/* SPDX-License-Identifier: MIT
   see_outside FILE FOLDER [PROGRAM SOCKET PORT PID]: prints the calls that see these, one per line.
   tests/meta/check_golden.py runs it without empty_root.c, where it prints all, and with it, where
   it must print none. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/openat2.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

int __open_2(const char* path, int flags);
int __openat_2(int at, const char* path, int flags);
char* __realpath_chk(const char* path, char* to, size_t size);

#define SEES(name, condition)            \
  do {                                   \
    errno = 0;                           \
    if (condition) printf("%s\n", name); \
  } while (0)
#define OPENS(call) SEES(#call, (call) >= 0)
#define WORKS(call) SEES(#call, (call) == 0)
#define FINDS(call) SEES(#call, (call) != NULL)

static int binds(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int bound = bind(fd, (struct sockaddr*)&address, sizeof address) == 0;
  close(fd);
  return bound;
}

static int starts(const char* program, int which) {
  char* const arguments[] = {(char*)program, NULL};
  int status = -1;
  pid_t pid = -1;
  if (which == 4 || which == 5) {
    const int error = which == 4 ? posix_spawn(&pid, program, NULL, NULL, arguments, environ)
                                 : posix_spawnp(&pid, program, NULL, NULL, arguments, environ);
    if (error != 0) return 0;
  } else {
    pid = fork();
    if (pid == 0) {
      if (which == 0) execve(program, arguments, environ);
      if (which == 1) execv(program, arguments);
      if (which == 2) execvp(program, arguments);
      if (which == 3) execvpe(program, arguments, environ);
      if (which == 6) execl(program, program, NULL);
      if (which == 7) execlp(program, program, NULL);
      if (which == 8) execle(program, program, NULL, environ);
      _exit(99);
    }
  }
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) != 99;
}

static int connects(const struct sockaddr* address, socklen_t size) {
  const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int connected = connect(fd, address, size) == 0;
  close(fd);
  return connected;
}

static int opens_by_openat2(int at, const char* path, unsigned long long resolve) {
  struct open_how how = {.flags = O_RDONLY, .resolve = resolve};
  return (int)syscall(SYS_openat2, at, path, &how, sizeof how);
}

/* A name for a new file or folder, or a template of one. */
static const char* fresh(const char* folder, const char* name) {
  static char path[8][PATH_MAX];
  static int next;
  char* const to = path[next++ % 8];
  snprintf(to, PATH_MAX, "%s/%s", folder, name);
  return to;
}

static void look(const char* file, const char* folder) {
  struct stat facts;
  struct stat64 facts64;
  struct statx extended;
  struct statfs system;
  struct statvfs system_v;
  char text[PATH_MAX];
  OPENS(open(file, O_RDONLY));
  OPENS(open64(file, O_RDONLY));
  OPENS(open(folder, O_PATH));
  OPENS(openat(AT_FDCWD, file, O_RDONLY));
  OPENS(openat64(AT_FDCWD, file, O_RDONLY));
  OPENS(__open_2(file, O_RDONLY));
  OPENS(__openat_2(AT_FDCWD, file, O_RDONLY));
  OPENS(opens_by_openat2(AT_FDCWD, file, 0));
  FINDS(fopen(file, "r"));
  FINDS(fopen64(file, "r"));
  FINDS(opendir(folder));
  WORKS(stat(file, &facts));
  WORKS(stat64(file, &facts64));
  WORKS(stat(folder, &facts));
  WORKS(lstat(fresh(folder, "file"), &facts));
  WORKS(lstat64(fresh(folder, "file"), &facts64));
  WORKS(fstatat(AT_FDCWD, file, &facts, 0));
  WORKS(fstatat64(AT_FDCWD, file, &facts64, 0));
  WORKS(statx(AT_FDCWD, file, 0, STATX_BASIC_STATS, &extended));
  WORKS(statfs(file, &system));
  WORKS(statvfs(file, &system_v));
  WORKS(access(file, F_OK));
  WORKS(faccessat(AT_FDCWD, file, F_OK, 0));
  OPENS(readlink(fresh(folder, "link"), text, sizeof text));
  OPENS(readlinkat(AT_FDCWD, fresh(folder, "link"), text, sizeof text));
  FINDS(realpath(file, NULL));
  FINDS(__realpath_chk(file, text, sizeof text));
  FINDS(canonicalize_file_name(file));
  OPENS(inotify_add_watch(inotify_init(), file, IN_MODIFY));
}

static void change(const char* file, const char* folder) {
  char text[PATH_MAX];
  OPENS(open(fresh(folder, "open"), O_CREAT | O_WRONLY, 0600));
  OPENS(creat(fresh(folder, "creat"), 0600));
  FINDS(fopen(fresh(folder, "fopen"), "w"));
  WORKS(mkdir(fresh(folder, "mkdir"), 0700));
  WORKS(mkdirat(AT_FDCWD, fresh(folder, "mkdirat"), 0700));
  WORKS(mkfifo(fresh(folder, "mkfifo"), 0600));
  WORKS(symlink("target", fresh(folder, "symlink")));
  WORKS(symlinkat("target", AT_FDCWD, fresh(folder, "symlinkat")));
  WORKS(link(file, fresh(folder, "link1")));
  WORKS(link(file, "inside1"));
  WORKS(linkat(AT_FDCWD, file, AT_FDCWD, fresh(folder, "link2"), 0));
  WORKS(truncate(file, 1));
  WORKS(chmod(file, 0600));
  WORKS(fchmodat(AT_FDCWD, file, 0600, 0));
  WORKS(chown(file, (uid_t)-1, (gid_t)-1));
  WORKS(utimensat(AT_FDCWD, file, NULL, 0));
  strcpy(text, fresh(folder, "XXXXXX"));
  FINDS(mkdtemp(text));
  strcpy(text, fresh(folder, "XXXXXX"));
  OPENS(mkstemp(text));
  WORKS(rename(fresh(folder, "link1"), fresh(folder, "renamed1")));
  WORKS(renameat(AT_FDCWD, fresh(folder, "link2"), AT_FDCWD, fresh(folder, "renamed2")));
  WORKS(renameat2(AT_FDCWD, fresh(folder, "renamed2"), AT_FDCWD, fresh(folder, "renamed3"), 0));
  SEES("bind", binds(fresh(folder, "bound")));
  OPENS(open(folder, O_TMPFILE | O_WRONLY, 0600));
  WORKS(unlink(fresh(folder, "renamed1")));
  WORKS(unlinkat(AT_FDCWD, fresh(folder, "renamed3"), 0));
  WORKS(remove(fresh(folder, "symlink")));
  WORKS(rmdir(fresh(folder, "mkdir")));
}

static void look_further(const char* program, const char* path, int port, pid_t pid) {
  static const char* const names[] = {"execve",       "execv", "execvp", "execvpe", "posix_spawn",
                                      "posix_spawnp", "execl", "execlp", "execle"};
  for (int i = 0; i < 9; ++i) SEES(names[i], starts(program, i));
  SEES("execve of a script", starts("./script", 0));
  WORKS(system("exit 0"));
  FILE* const pipe = popen("exit 0", "r");
  SEES("popen", pipe != NULL && pclose(pipe) == 0);

  struct sockaddr_un local = {.sun_family = AF_UNIX};
  strncpy(local.sun_path, path, sizeof local.sun_path - 1);
  SEES("connect to a socket", connects((struct sockaddr*)&local, sizeof local));
  struct sockaddr_in internet = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  internet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  SEES("connect to a port", connects((struct sockaddr*)&internet, sizeof internet));
  struct addrinfo* found = NULL;
  WORKS(getaddrinfo("127.0.0.1", NULL, NULL, &found));

  WORKS(kill(pid, 0));
  OPENS(syscall(SYS_pidfd_open, pid, 0));
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
  OPENS(open(name, O_RDONLY));
  DIR* const processes = opendir("/proc");
  SEES("readdir of /proc", readdir(processes) && readdir(processes) && readdir(processes));
  OPENS(opens_by_openat2(open("/", O_PATH), "bin/sh", RESOLVE_IN_ROOT));

  char buffer[4096];
  struct passwd user;
  struct passwd* user_found = NULL;
  FINDS(getpwnam("root"));
  FINDS(getpwuid(0));
  FINDS(getgrnam("root"));
  FINDS(getgrgid(0));
  SEES("getpwuid_r",
       getpwuid_r(0, &user, buffer, sizeof buffer, &user_found) == 0 && user_found != NULL);
  struct utsname machine;
  SEES("gethostname", gethostname(name, sizeof name) == 0 && strcmp(name, "empty-root") != 0);
  SEES("uname", uname(&machine) == 0 && strcmp(machine.nodename, "empty-root") != 0);
}

int main(int count, char** words) {
  if (count < 3) return 2;
  look(words[1], words[2]);
  change(words[1], words[2]);
  if (count == 7) look_further(words[3], words[4], atoi(words[5]), atoi(words[6]));
  WORKS(chdir(words[2]));
  return 0;
}
