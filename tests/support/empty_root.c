/* SPDX-License-Identifier: MIT
   Loaded with LD_PRELOAD, it lets a process see the file system as in an empty root that has only
   the folder the process starts in, at the same path. Elsewhere no file, program, user, process or
   network exists. golden/run.py and unit/run.py use it, so that the result of a case does not
   depend on the machine.

   EMPTY_ROOT_FOLDER is an empty folder. EMPTY_ROOT_INPUTS may have more files and folders, with ":"
   between them, which can be read and not changed.

   What remains visible is what the process itself needs: /dev/null and a few more devices, and the
   part of /proc of the processes of its session, which the runner begins. A file in /tmp is visible
   if its name has the number of such a process, as in perf-42.map. "/", /proc, /dev, /tmp and the
   folders above what is visible exist, and are empty. Only calls of this process's code are
   changed: what the dynamic loader and the C library open inside is not.

   see_outside.c tries each function. A function that the program begins to use, and that takes a
   path, belongs here and there. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <netdb.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
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
#include <sys/xattr.h>
#include <unistd.h>

enum { kMax = 4096, kMaxLinks = 40 };

static char scratch[kMax];      /* the folder that is visible */
static char empty_folder[kMax]; /* what the folders above look like */
static pid_t session;
static char inputs[kMax]; /* absolute paths, each with a NUL at its end, and one more */

__attribute__((constructor)) static void start(void) {
  const char* const folder = getenv("EMPTY_ROOT_FOLDER");
  if (syscall(SYS_getcwd, scratch, sizeof scratch) <= 0 || folder == NULL ||
      strlen(folder) >= kMax) {
    static const char message[] = "empty_root: no EMPTY_ROOT_FOLDER, or no working directory\n";
    (void)!write(STDERR_FILENO, message, sizeof message - 1);
    _exit(125);
  }
  strcpy(empty_folder, folder);
  session = getsid(0);
  const char* const more = getenv("EMPTY_ROOT_INPUTS");
  if (more == NULL || strlen(more) >= kMax - 1) return;
  strcpy(inputs, more);
  for (char* end = inputs; (end = strchr(end, ':')) != NULL;) *end++ = 0;
}

/* Processes: those of the session at the start, and children that left it. */
static int is_own(pid_t pid) {
  siginfo_t state;
  const int error = errno;
  const int result =
      pid > 0 && (getsid(pid) == session ||
                  waitid(P_PID, (id_t)pid, &state, WEXITED | WNOHANG | WNOWAIT) == 0);
  errno = error;
  return result;
}

/* Paths. */

static int is_below(const char* path, const char* folder) {
  const size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* Whether PATH is an input or below one, or, with ABOVE, a folder above one. */
static int is_input(const char* path, int above) {
  for (const char* input = inputs; *input != 0; input += strlen(input) + 1)
    if (above ? is_below(input, path) && strcmp(input, path) != 0 : is_below(path, input)) return 1;
  return 0;
}

/* A folder that exists, and is empty. */
static int is_empty_folder(const char* path) {
  return path[1] == 0 || strcmp(path, "/proc") == 0 || strcmp(path, "/dev") == 0 ||
         strcmp(path, "/tmp") == 0 || (is_below(scratch, path) && strcmp(scratch, path) != 0) ||
         (is_below(empty_folder, path) && strcmp(empty_folder, path) != 0) || is_input(path, 1);
}

/* The part after /proc/self or /proc/PID of an own process, or NULL. */
static const char* in_own_proc(const char* path) {
  static const char* const names[] = {"/proc/self", "/proc/thread-self"};
  if (strncmp(path, "/proc/", 6) != 0) return NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (is_below(path, names[i])) return path + strlen(names[i]);
  char* end;
  const long pid = path[6] >= '1' && path[6] <= '9' ? strtol(path + 6, &end, 10) : 0;
  return pid > 0 && (*end == '/' || *end == 0) && is_own((pid_t)pid) ? end : NULL;
}

/* A file in /tmp that belongs to an own process by its name. */
static int is_named_after_own(const char* path) {
  if (strncmp(path, "/tmp/", 5) != 0 || strchr(path + 5, '/') != NULL) return 0;
  for (const char* at = path + 5; *at != 0; ++at) {
    if (*at < '1' || *at > '9') continue;
    char* end;
    if (is_own((pid_t)strtol(at, &end, 10))) return 1;
    at = end - 1;
  }
  return 0;
}

static int is_device(const char* path) {
  static const char* const names[] = {"/dev/null",  "/dev/zero",    "/dev/full",   "/dev/random",
                                      "/dev/stdin", "/dev/urandom", "/dev/stdout", "/dev/stderr"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (strcmp(path, names[i]) == 0) return 1;
  return is_below(path, "/dev/fd");
}

static int is_visible(const char* path) {
  return is_below(path, scratch) || is_below(path, empty_folder) || in_own_proc(path) != NULL ||
         is_input(path, 0) || is_named_after_own(path);
}

static int append(char* path, size_t* length, const char* name, size_t size) {
  if (*length + 1 + size >= kMax) return 0;
  path[(*length)++] = '/';
  memcpy(path + *length, name, size);
  *length += size;
  path[*length] = 0;
  return 1;
}

/* The target of the link at PATH, before REST, in TO. 1 if there is one, 0 if PATH is no link. */
static int expand(const char* path, const char* rest, char* to) {
  const long size = syscall(SYS_readlinkat, AT_FDCWD, path, to, kMax - 1);
  if (size <= 0) return 0;
  to[size] = 0;
  if (*rest != 0) {
    const size_t more = strlen(rest);
    if ((size_t)size + 1 + more >= kMax) return 0;
    to[size] = '/';
    memcpy(to + size + 1, rest, more + 1);
  }
  return 1;
}

/* Resolves PATH, as seen from the directory AT, to an absolute path without links. 0 if it leads to
   what is not visible. A last component that is a link is resolved only with FOLLOW. */
static int resolve(int at, const char* path, int follow, char* found) {
  char rest[kMax];
  char expanded[kMax];
  size_t length = 0;
  int links = 0;
  if (strlen(path) >= kMax) return 0;
  strcpy(rest, path);
  found[0] = 0;
  if (path[0] != '/') {
    long size = 0;
    if (at == AT_FDCWD) {
      size = syscall(SYS_getcwd, found, kMax) - 1; /* counts the final NUL */
    } else {
      char name[64];
      snprintf(name, sizeof name, "/proc/self/fd/%d", at);
      size = syscall(SYS_readlinkat, AT_FDCWD, name, found, kMax - 1);
    }
    if (size <= 0 || found[0] != '/') return 0;
    length = size == 1 ? 0 : (size_t)size;
    found[length] = 0;
  }
  for (char* next = rest; *next != 0;) {
    while (*next == '/') ++next;
    const size_t size = strcspn(next, "/");
    const char* after = next + size;
    const int has_slash = *after == '/';
    while (*after == '/') ++after;
    if (size == 0 || (size == 1 && next[0] == '.')) {
      next += size;
      continue;
    }
    if (size == 2 && next[0] == '.' && next[1] == '.') {
      while (length > 0 && found[--length] != '/') {
      }
      found[length] = 0;
      next += size;
      continue;
    }
    const size_t before = length;
    if (!append(found, &length, next, size)) return 0;
    if (*after != 0 && !is_visible(found) && !is_empty_folder(found) && !is_device(found)) return 0;
    const char* const own = in_own_proc(found);
    const int is_descriptor = own != NULL && strncmp(own, "/fd/", 4) == 0 && *after == 0;
    if ((follow || *after != 0 || has_slash) && is_visible(found) && !is_descriptor &&
        (own == NULL || *own != 0) && expand(found, after, expanded)) {
      if (++links > kMaxLinks) return 0;
      length = expanded[0] == '/' ? 0 : before;
      found[length] = 0;
      strcpy(rest, expanded);
      next = rest;
      continue;
    }
    next += size;
  }
  if (length == 0) strcpy(found, "/");
  return is_visible(found) || is_device(found) || is_empty_folder(found);
}

enum { kReads, kOpensPath, kWrites, kChanges };

/* The path to use instead of PATH: itself, the empty folder, or NULL with errno if it does not
 * exist, or cannot be changed. */
static const char* usable(int at, const char* path, int follow, int how) {
  char found[kMax];
  if (path == NULL) errno = EFAULT;
  if (path == NULL || path[0] == 0) return path;
  if (!resolve(at, path, follow, found)) {
    errno = ENOENT;
    return NULL;
  }
  const int is_empty = !is_visible(found) && is_empty_folder(found);
  const int is_fixed = is_input(found, 0) && !is_below(found, scratch);
  if ((how == kChanges && is_empty) || (how >= kWrites && is_fixed)) {
    errno = EROFS;
    return NULL;
  }
  /* A descriptor of a path shows nothing of the folder, and its place is needed to go on. */
  return is_empty && how != kOpensPath ? empty_folder : path;
}

static const char* seen(int at, const char* path, int follow) {
  return usable(at, path, follow, kReads);
}

/* The same for calls that change the file: what is above the scratch folder cannot be changed. */
static const char* changed(int at, const char* path, int follow) {
  return usable(at, path, follow, kChanges);
}

/* The same for open() with these flags. */
static const char* opened(int at, const char* path, int flags) {
  const int writes = (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
  if ((flags & O_TMPFILE) == O_TMPFILE) return changed(at, path, 1);
  return usable(at, path, (flags & O_NOFOLLOW) == 0,
                flags & O_PATH ? kOpensPath
                : writes       ? kWrites
                               : kReads);
}

/* Functions. */

#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

/* TYPE NAME PARAMETERS, which fails with FAILURE if there is no PATH, and else is called with what
 * follows. */
#define HOOK(type, name, parameters, failure, look, at, path, follow, ...) \
  type name parameters {                                                   \
    path = look(at, path, follow);                                         \
    if (path == NULL) return failure;                                      \
    return NEXT(name)(__VA_ARGS__);                                        \
  }
#define LOOK(type, name, parameters, failure, at, follow, ...) \
  HOOK(type, name, parameters, failure, seen, at, path, follow, __VA_ARGS__)
#define CHANGE(name, parameters, at, follow, ...) \
  HOOK(int, name, parameters, -1, changed, at, path, follow, __VA_ARGS__)

#define FOLLOWS(flags) (((flags)&AT_SYMLINK_NOFOLLOW) == 0)

/* open() and its kin have a mode only with some flags. */
#define OPEN(name, parameters, at, ...)                                              \
  int name parameters {                                                              \
    va_list more;                                                                    \
    va_start(more, flags);                                                           \
    const int has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; \
    const mode_t mode = has_mode ? va_arg(more, mode_t) : 0;                         \
    va_end(more);                                                                    \
    path = opened(at, path, flags);                                                  \
    if (path == NULL) return -1;                                                     \
    return NEXT(name)(__VA_ARGS__, mode);                                            \
  }
OPEN(open, (const char* path, int flags, ...), AT_FDCWD, path, flags)
OPEN(open64, (const char* path, int flags, ...), AT_FDCWD, path, flags)
OPEN(openat, (int at, const char* path, int flags, ...), at, at, path, flags)
OPEN(openat64, (int at, const char* path, int flags, ...), at, at, path, flags)

/* What the headers use with _FORTIFY_SOURCE. */
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int at, const char* path, int flags);
int __openat64_2(int at, const char* path, int flags);
char* __realpath_chk(const char* path, char* to, size_t size);
ssize_t __readlink_chk(const char* path, char* to, size_t size, size_t room);
ssize_t __readlinkat_chk(int at, const char* path, char* to, size_t size, size_t room);
int __open_2(const char* path, int flags) { return open(path, flags); }
int __open64_2(const char* path, int flags) { return open64(path, flags); }
int __openat_2(int at, const char* path, int flags) { return openat(at, path, flags); }
int __openat64_2(int at, const char* path, int flags) { return openat64(at, path, flags); }
LOOK(char*, __realpath_chk, (const char* path, char* to, size_t size), NULL, AT_FDCWD, 1, path, to,
     size)
LOOK(ssize_t, __readlink_chk, (const char* path, char* to, size_t size, size_t room), -1, AT_FDCWD,
     0, path, to, size, room)
LOOK(ssize_t, __readlinkat_chk, (int at, const char* path, char* to, size_t size, size_t room), -1,
     at, 0, at, path, to, size, room)

CHANGE(creat, (const char* path, mode_t mode), AT_FDCWD, 1, path, mode)
CHANGE(creat64, (const char* path, mode_t mode), AT_FDCWD, 1, path, mode)
#define FOPEN(name, parameters, ...)                                                   \
  FILE* name parameters {                                                              \
    path = usable(AT_FDCWD, path, 1, strpbrk(mode, "wa+") != NULL ? kWrites : kReads); \
    return path == NULL ? NULL : NEXT(name)(__VA_ARGS__);                              \
  }
FOPEN(fopen, (const char* path, const char* mode), path, mode)
FOPEN(fopen64, (const char* path, const char* mode), path, mode)
FOPEN(freopen, (const char* path, const char* mode, FILE* file), path, mode, file)
FOPEN(freopen64, (const char* path, const char* mode, FILE* file), path, mode, file)
LOOK(DIR*, opendir, (const char* path), NULL, AT_FDCWD, 1, path)
LOOK(int, chdir, (const char* path), -1, AT_FDCWD, 1, path)

LOOK(int, stat, (const char* path, struct stat* facts), -1, AT_FDCWD, 1, path, facts)
LOOK(int, stat64, (const char* path, struct stat64* facts), -1, AT_FDCWD, 1, path, facts)
LOOK(int, lstat, (const char* path, struct stat* facts), -1, AT_FDCWD, 0, path, facts)
LOOK(int, lstat64, (const char* path, struct stat64* facts), -1, AT_FDCWD, 0, path, facts)
LOOK(int, fstatat, (int at, const char* path, struct stat* facts, int flags), -1, at,
     FOLLOWS(flags), at, path, facts, flags)
LOOK(int, fstatat64, (int at, const char* path, struct stat64* facts, int flags), -1, at,
     FOLLOWS(flags), at, path, facts, flags)
LOOK(int, statx, (int at, const char* path, int flags, unsigned mask, struct statx* facts), -1, at,
     FOLLOWS(flags), at, path, flags, mask, facts)
LOOK(ssize_t, readlink, (const char* path, char* to, size_t size), -1, AT_FDCWD, 0, path, to, size)
LOOK(ssize_t, readlinkat, (int at, const char* path, char* to, size_t size), -1, at, 0, at, path,
     to, size)
LOOK(char*, realpath, (const char* path, char* to), NULL, AT_FDCWD, 1, path, to)
LOOK(char*, canonicalize_file_name, (const char* path), NULL, AT_FDCWD, 1, path)
LOOK(ssize_t, getxattr, (const char* path, const char* name, void* to, size_t size), -1, AT_FDCWD,
     1, path, name, to, size)
LOOK(ssize_t, lgetxattr, (const char* path, const char* name, void* to, size_t size), -1, AT_FDCWD,
     0, path, name, to, size)
LOOK(int, inotify_add_watch, (int fd, const char* path, uint32_t mask), -1, AT_FDCWD, 1, fd, path,
     mask)

/* Folders that are shown as empty can only be read. */
int access(const char* path, int mode) { return faccessat(AT_FDCWD, path, mode, 0); }
int faccessat(int at, const char* path, int mode, int flags) {
  path = usable(at, path, FOLLOWS(flags), mode & W_OK ? kChanges : kReads);
  return path == NULL ? -1 : NEXT(faccessat)(at, path, mode, flags);
}
/* Their file system is that of the machine. */
CHANGE(statfs, (const char* path, struct statfs* facts), AT_FDCWD, 1, path, facts)
CHANGE(statfs64, (const char* path, struct statfs64* facts), AT_FDCWD, 1, path, facts)
CHANGE(statvfs, (const char* path, struct statvfs* facts), AT_FDCWD, 1, path, facts)
CHANGE(statvfs64, (const char* path, struct statvfs64* facts), AT_FDCWD, 1, path, facts)

CHANGE(mkdir, (const char* path, mode_t mode), AT_FDCWD, 0, path, mode)
CHANGE(mkdirat, (int at, const char* path, mode_t mode), at, 0, at, path, mode)
CHANGE(mkfifo, (const char* path, mode_t mode), AT_FDCWD, 0, path, mode)
CHANGE(rmdir, (const char* path), AT_FDCWD, 0, path)
CHANGE(unlink, (const char* path), AT_FDCWD, 0, path)
CHANGE(unlinkat, (int at, const char* path, int flags), at, 0, at, path, flags)
CHANGE(remove, (const char* path), AT_FDCWD, 0, path)
CHANGE(truncate, (const char* path, off_t size), AT_FDCWD, 1, path, size)
CHANGE(truncate64, (const char* path, off64_t size), AT_FDCWD, 1, path, size)
CHANGE(chmod, (const char* path, mode_t mode), AT_FDCWD, 1, path, mode)
CHANGE(fchmodat, (int at, const char* path, mode_t mode, int flags), at, FOLLOWS(flags), at, path,
       mode, flags)
CHANGE(chown, (const char* path, uid_t user, gid_t group), AT_FDCWD, 1, path, user, group)
CHANGE(lchown, (const char* path, uid_t user, gid_t group), AT_FDCWD, 0, path, user, group)
CHANGE(fchownat, (int at, const char* path, uid_t user, gid_t group, int flags), at, FOLLOWS(flags),
       at, path, user, group, flags)
CHANGE(utimensat, (int at, const char* path, const struct timespec times[2], int flags), at,
       FOLLOWS(flags), at, path, times, flags)
CHANGE(symlink, (const char* target, const char* path), AT_FDCWD, 0, target, path)
CHANGE(symlinkat, (const char* target, int at, const char* path), at, 0, target, at, path)

#define MOVE(name, parameters, from, to, ...)                                        \
  int name parameters {                                                              \
    if (changed(from, path, 0) == NULL || changed(to, target, 0) == NULL) return -1; \
    return NEXT(name)(__VA_ARGS__);                                                  \
  }
MOVE(rename, (const char* path, const char* target), AT_FDCWD, AT_FDCWD, path, target)
MOVE(renameat, (int from, const char* path, int to, const char* target), from, to, from, path, to,
     target)
MOVE(renameat2, (int from, const char* path, int to, const char* target, unsigned flags), from, to,
     from, path, to, target, flags)
MOVE(link, (const char* path, const char* target), AT_FDCWD, AT_FDCWD, path, target)
MOVE(linkat, (int from, const char* path, int to, const char* target, int flags), from, to, from,
     path, to, target, flags)

/* The template is changed by the call. */
#define TEMPORARY(type, name, failure, parameters, ...)     \
  type name parameters {                                    \
    if (changed(AT_FDCWD, path, 0) == NULL) return failure; \
    return NEXT(name)(__VA_ARGS__);                         \
  }
TEMPORARY(char*, mkdtemp, NULL, (char* path), path)
TEMPORARY(int, mkstemp, -1, (char* path), path)
TEMPORARY(int, mkstemp64, -1, (char* path), path)
TEMPORARY(int, mkostemp, -1, (char* path, int flags), path, flags)
TEMPORARY(int, mkostemp64, -1, (char* path, int flags), path, flags)

/* Programs. A name without a slash is looked for in PATH, where an empty root has nothing. */

/* The kernel would look for the interpreter of a script outside. */
static int is_script(const char* file) {
  char begin[2] = "";
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const int is_one = fd >= 0 && read(fd, begin, 2) == 2 && begin[0] == '#' && begin[1] == '!';
  if (fd >= 0) close(fd);
  return is_one;
}

static int runs(const char* file) {
  if (strchr(file, '/') != NULL && seen(AT_FDCWD, file, 1) == NULL) return 0;
  if (strchr(file, '/') != NULL && !is_script(file)) return 1;
  errno = ENOENT;
  return 0;
}

int execve(const char* file, char* const* arguments, char* const* environment) {
  return runs(file) ? NEXT(execve)(file, arguments, environment) : -1;
}
int execv(const char* file, char* const* arguments) { return execve(file, arguments, environ); }
int execvp(const char* file, char* const* arguments) { return execve(file, arguments, environ); }
int execvpe(const char* file, char* const* arguments, char* const* environment) {
  return execve(file, arguments, environment);
}
/* The arguments of execl() and its kin, and what follows them, after FIRST. */
#define LISTED(name, environment_of)                            \
  int name(const char* file, const char* first, ...) {          \
    char* arguments[64] = {(char*)first};                       \
    va_list more;                                               \
    va_start(more, first);                                      \
    for (size_t i = 1; i < 63 && arguments[i - 1] != NULL; ++i) \
      arguments[i] = va_arg(more, char*);                       \
    char* const* const environment = environment_of;            \
    va_end(more);                                               \
    return execve(file, arguments, environment);                \
  }
LISTED(execl, environ)
LISTED(execlp, environ)
LISTED(execle, va_arg(more, char* const*))

#define SPAWN(name)                                                                 \
  int name(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions, \
           const posix_spawnattr_t* attributes, char* const* arguments,             \
           char* const* environment) {                                              \
    if (!runs(file)) return ENOENT;                                                 \
    return NEXT(name)(pid, file, actions, attributes, arguments, environment);      \
  }
SPAWN(posix_spawn)
SPAWN(posix_spawnp)
int system(const char* command) { return command == NULL ? 0 : 127 << 8; }
FILE* popen(const char* command, const char* mode) {
  (void)command;
  (void)mode;
  errno = ENOENT;
  return NULL;
}

/* Libraries. The disassemblers are parts of the program; what others would change depends on the
 * machine. */

void* dlopen(const char* file, int flags) {
  static const char arm[] = "libcapstone.so.";
  static const char x86[] = "libZydis.so.";
  const int is_loaded = file == NULL || strncmp(file, arm, sizeof arm - 1) == 0 ||
                        strncmp(file, x86, sizeof x86 - 1) == 0;
  return is_loaded ? NEXT(dlopen)(file, flags) : NEXT(dlopen)("/nonexistent", flags);
}

int kill(pid_t pid, int signal) {
  if (pid > 0 && !is_own(pid)) {
    errno = ESRCH;
    return -1;
  }
  return (int)NEXT(syscall)(SYS_kill, pid, signal);
}

/* System calls that have no function in the C library. */
long syscall(long number, ...) {
  long a[6];
  va_list more;
  va_start(more, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(more, long);
  va_end(more);
  if (number == SYS_openat2) {
    /* Inside a directory that is visible, the kernel stays in it. */
    const struct open_how* const how = (const struct open_how*)a[2];
    const char* path = (const char*)a[1];
    char place[kMax];
    char at_root[kMax];
    if ((how->resolve & (RESOLVE_IN_ROOT | RESOLVE_BENEATH)) == 0) {
      path = opened((int)a[0], path, (int)how->flags);
      a[1] = (long)path;
    } else if (!resolve((int)a[0], ".", 1, place)) {
      errno = ENOENT;
      path = NULL;
    } else if (!is_visible(place)) {
      const int size = snprintf(at_root, sizeof at_root, "%s/%s", place, path);
      const int is_usable = size < kMax;
      path = is_usable ? opened(AT_FDCWD, at_root, (int)how->flags) : NULL;
      if (!is_usable) errno = ENOENT;
    }
    if (path == NULL) return -1;
  } else if (number == SYS_pidfd_open && !is_own((pid_t)a[0])) {
    errno = ESRCH;
    return -1;
  } else if (number == SYS_perf_event_open) {
    errno = ENOSYS;
    return -1;
  }
  return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* The network. */

static int reaches(const struct sockaddr* address) {
  if (address == NULL || address->sa_family == AF_NETLINK) return 1;
  if (address->sa_family == AF_UNIX) {
    const char* const path = ((const struct sockaddr_un*)address)->sun_path;
    if (path[0] != 0) return seen(AT_FDCWD, path, 1) != NULL;
    errno = ECONNREFUSED; /* an abstract name */
    return 0;
  }
  errno = ENETUNREACH;
  return 0;
}

int connect(int fd, const struct sockaddr* address, socklen_t size) {
  return reaches(address) ? NEXT(connect)(fd, address, size) : -1;
}
int bind(int fd, const struct sockaddr* address, socklen_t size) {
  const char* const path = ((const struct sockaddr_un*)address)->sun_path;
  if (address->sa_family == AF_UNIX && path[0] != 0 && changed(AT_FDCWD, path, 0) == NULL)
    return -1;
  return NEXT(bind)(fd, address, size);
}
ssize_t sendto(int fd, const void* data, size_t length, int flags, const struct sockaddr* address,
               socklen_t size) {
  return reaches(address) ? NEXT(sendto)(fd, data, length, flags, address, size) : -1;
}
int getaddrinfo(const char* node, const char* service, const struct addrinfo* hints,
                struct addrinfo** found) {
  (void)node;
  (void)service;
  (void)hints;
  (void)found;
  return EAI_AGAIN;
}

/* Users and the machine. */

#define NO_USER(type, name, key)                                                            \
  struct type* name(key what) {                                                             \
    (void)what;                                                                             \
    errno = 0;                                                                              \
    return NULL;                                                                            \
  }                                                                                         \
  int name##_r(key what, struct type* to, char* buffer, size_t size, struct type** found) { \
    (void)what;                                                                             \
    (void)to;                                                                               \
    (void)buffer;                                                                           \
    (void)size;                                                                             \
    *found = NULL;                                                                          \
    return 0;                                                                               \
  }
NO_USER(passwd, getpwnam, const char*)
NO_USER(passwd, getpwuid, uid_t)
NO_USER(group, getgrnam, const char*)
NO_USER(group, getgrgid, gid_t)

static const char host[] = "empty-root";

int gethostname(char* name, size_t size) {
  snprintf(name, size, "%s", host);
  return 0;
}
int uname(struct utsname* facts) {
  const int result = NEXT(uname)(facts);
  strcpy(facts->nodename, host);
  strcpy(facts->release, "0.0.0");
  strcpy(facts->version, "0");
  return result;
}
