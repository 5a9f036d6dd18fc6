/* SPDX-License-Identifier: MIT */
/* perfmap_writer.h - the C interface of libperfmap-writer.
 *
 * For runtimes. Writes perf maps (the files /tmp/perf-PID.map in which JIT runtimes name their code
 * for profilers); jitdumps, which also contain the code, its source lines and its unwinding
 * information; and logs of the loops that a tracing JIT runs. Gives each function of an interpreter
 * a native frame, so that profilers can name it. libperfmap has these functions, too, and more: see
 * perfmap.h.
 *
 * Rules for every function in this file:
 *  - Handles are opaque; X_free(NULL) does nothing. No other pointer may be NULL unless the comment
 *    of the function says so.
 *  - A function that can fail returns a perfmap_status and writes its result through `out`; on
 *    failure it does not change the result. `error` may be NULL. perfmap_state_* return 0, -1 or -2
 *    instead. The error message about an argument usually begins with the name of the argument or
 *    of the struct member.
 *  - A struct that you pass starts with struct_size: set it to sizeof the struct, also in
 *    perfmap_error. The library reads and writes only that many bytes, so a program that was built
 *    against an older header keeps working. An older library ignores members that it does not know.
 *    If struct_size is smaller than in release 0.1, for example 0 because it was not set, the call
 *    fails with INVALID_ARGUMENT (EINVAL from perfmap_state_*) and does nothing.
 *  - Strings in results are a pointer and a length. They are not NUL-terminated and may contain any
 *    bytes, not only UTF-8. They are valid as long as the handle that they came from, or until it
 *    is refreshed. Addresses are absolute virtual addresses; sizes are in bytes.
 *  - Values of enums are passed as int32_t, so that the library can refuse a number that it does
 *    not know.
 *  - No function throws, prints or exits. One thread at a time may use a handle; two threads may
 *    use two handles. Several threads may use one writer, jitdump, log or trampoline arena at once;
 *    see their sections.
 */
#ifndef PERFMAP_WRITER_H
#define PERFMAP_WRITER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PERFMAP_C_API __attribute__((visibility("default")))

typedef enum perfmap_status {
  PERFMAP_OK = 0,
  PERFMAP_E_IO = 1,               /* a system call failed; see sys_errno */
  PERFMAP_E_NOT_FOUND = 2,        /* no such file or process, or nothing at that address */
  PERFMAP_E_BAD_FORMAT = 3,       /* the input is malformed */
  PERFMAP_E_UNSUPPORTED = 4,      /* this kind of input is not supported */
  PERFMAP_E_INVALID_ARGUMENT = 5, /* an argument is invalid */
  PERFMAP_E_REFUSED = 6,          /* the file is not trusted */
  PERFMAP_E_TOO_LARGE = 7,        /* the input exceeds a limit */
  PERFMAP_E_NO_MEMORY = 8,
  PERFMAP_E_INTERNAL = 9 /* a bug in perfmap */
} perfmap_status;

/* What exactly failed, for callers that distinguish it. A later release may add numbers. */
typedef enum perfmap_reason {
  PERFMAP_REASON_OTHER = 0,         /* the message says it */
  PERFMAP_REASON_SYSTEM = 1,        /* a system call failed; see sys_errno */
  PERFMAP_REASON_NOT_REGULAR = 2,   /* the file is not a regular file */
  PERFMAP_REASON_SYMBOLIC_LINK = 3, /* the path is a symbolic link */
  PERFMAP_REASON_KERNEL_FILE = 4,   /* the file is on a file system of the kernel, such as /proc */
  PERFMAP_REASON_HARD_LINKS = 5,    /* the file has several names */
  PERFMAP_REASON_FOREIGN_OWNER = 6, /* the file belongs to another user */
  PERFMAP_REASON_OLDER_THAN_PROCESS = 7, /* the file is of an earlier process with the same pid */
  PERFMAP_REASON_OTHER_PROCESS = 8,      /* the process is not the one that was recorded */
  PERFMAP_REASON_OTHER_FILE = 9,         /* the file is not the one that is mapped */
  PERFMAP_REASON_OTHER_BUILD = 10,       /* the file has another build ID */
  PERFMAP_REASON_DELETED = 11,           /* the file was deleted */
  PERFMAP_REASON_PRIVATE = 12,           /* other users cannot read the file */
  PERFMAP_REASON_REPLACED = 13,          /* another file was put at the path meanwhile */
  PERFMAP_REASON_TRUNCATED = 14,         /* the file was truncated while it was read */
  PERFMAP_REASON_CHANGED = 15,           /* the file changed while it was read */
  PERFMAP_REASON_TOO_LARGE = 16,         /* the file is too large */
  PERFMAP_REASON_TOO_MANY = 17,          /* the input has too many parts */
  PERFMAP_REASON_EXISTS = 18,            /* the file to create exists */
  PERFMAP_REASON_IS_INPUT = 19,          /* the file to write is also read */
  PERFMAP_REASON_NO_PROCESS = 20,        /* there is no such process */
  PERFMAP_REASON_PROCESS_ENDED = 21,     /* the process has ended */
  PERFMAP_REASON_OTHER_KIND = 22,    /* the data is of a kind that this function does not read */
  PERFMAP_REASON_NOT_OF_KIND = 23,   /* the data is not of the kind that was asked for */
  PERFMAP_REASON_NOT_INSTALLED = 24, /* a library is not installed */
  PERFMAP_REASON_FORBIDDEN = 25,     /* the process whose rights are used may not read the file */
  PERFMAP_REASON_HIDDEN_ADDRESSES = 26, /* the kernel hides its addresses */
  PERFMAP_REASON_UNREACHABLE = 27,      /* the path leads nowhere in the process's root directory */
  PERFMAP_REASON_UNSUITABLE = 28        /* the file is refused for a reason that the message has */
} perfmap_reason;

typedef struct perfmap_error {
  size_t struct_size; /* set by the caller to sizeof(perfmap_error) */
  int32_t sys_errno;  /* an errno value; 0: none */
  uint64_t offset;    /* position in the input, in bytes from its start */
  char message[256];  /* NUL-terminated, truncated if longer */
  int32_t reason;     /* a perfmap_reason */
  /* The file, or "process 42", that the error is about; "" if none. As `message`. */
  char path[256];
} perfmap_error;

/* The version, such as "0.1.0". NUL-terminated, static. */
PERFMAP_C_API const char* perfmap_version(void);
/* A short description of a status, NUL-terminated, static. */
PERFMAP_C_API const char* perfmap_status_text(perfmap_status status);

/* --- Layouts -------------------------------------------------------------------------------------
 *
 * For bindings of languages that do not read this header: where the members of its structs are, in
 * this build of the library.
 */

typedef enum perfmap_layout_kind {
  PERFMAP_LAYOUT_STRUCT = 0, /* the row of the struct itself */
  PERFMAP_LAYOUT_SIGNED = 1,
  PERFMAP_LAYOUT_UNSIGNED = 2,
  PERFMAP_LAYOUT_POINTER = 3, /* to data or to a function */
  PERFMAP_LAYOUT_BYTES = 4    /* an array of char */
} perfmap_layout_kind;

/* This struct will not grow. */
typedef struct perfmap_layout {
  const char* record; /* such as "perfmap_error"; NUL-terminated and static, as is `member` */
  /* Such as "sys_errno"; "" in the first row of each struct, which describes the whole struct. */
  const char* member;
  size_t offset; /* in bytes, from the start of the struct */
  size_t size;   /* in bytes */
  int32_t kind;  /* a perfmap_layout_kind */
} perfmap_layout;

/* All structs of this header, with a row for each member in order. *count is the number of rows.
 * Static. */
PERFMAP_C_API const perfmap_layout* perfmap_writer_layouts(size_t* count);

/* --- The calling process's own map ---------------------------------------------------------------
 *
 * These functions do what CPython documents for PyUnstable_PerfMapState_Init,
 * PyUnstable_WritePerfMapEntry, PyUnstable_CopyPerfMapFile and PyUnstable_PerfMapState_Fini. A
 * process has one such map. They return 0; -1 with errno if the file cannot be opened or written;
 * -2 if the lock or the fork handlers cannot be set up.
 *
 * Any thread may call them at any time. Handlers of pthread_atfork() may call them, too; of the
 * handlers that were registered before this library was loaded, only child handlers may. Signal
 * handlers and children of vfork() must not call them. They are not cancellation points.
 *
 * Other code may close the map's descriptor, as daemons do when they close all descriptors. The
 * next call opens the map again. If the program has opened another file meanwhile, and this file
 * got the same descriptor number, entries are written to that file (but never to another file of
 * this library).
 */

/* Entries that survive, after their call has returned 0:
 *
 *                         plain           buffered                mapped
 *   exit(), return        all             all                     all
 *   _exit()               all             all except buffered     all
 *   exec()                all             all except buffered     all
 *   SIGKILL, a crash      all             all except buffered     all
 *   loss of power         what the system has written (no fsync), in all modes
 *   fork()                the parent writes its own entries, once, whether the child writes or not;
 *                         for the child's entries see perfmap_fork_policy
 *   a full disk           all             all; if fini fails,     all
 *                                         all except buffered
 *     new entries         fail with       fail with ENOSPC when   fail with
 *                         ENOSPC          the buffer is full      ENOSPC
 *   descriptors closed    all: the map is opened again, unless its descriptor number now belongs to
 *                         another file; an unchanged jitdump is opened again, too
 *
 * If a runtime buffers entries and its processes end by _exit() (as in CPython's multiprocessing)
 * or exec(), it has to call perfmap_state_flush() before that. A jitdump behaves like "plain"; logs
 * of loops have their own section below. A SIGKILL during a write(2) may leave an incomplete line
 * if the line crosses a page of the file. This is more likely in buffered maps, because their
 * writes are longer. Readers ignore such a line, and the next writer that opens the file ends it. A
 * mapped map always has complete lines. A jitdump may end in an incomplete record, which is removed
 * when the dump is opened again. */

/* What happens to the map in a forked child. The child never writes to its parent's map. The parent
 * writes the entries that it has buffered, whether the child was created by fork(), by vfork() and
 * exec, or by clone() without handlers. */
typedef enum perfmap_fork_policy {
  /* The child's map starts empty. It is created at the child's first init or write. CPython's
   * default. */
  PERFMAP_FORK_FRESH = 0,
  /* The child's map starts with the parent's entries at the time of the fork. The child's first
   * init, write or copy reads them from the parent's descriptor, and the new map appears complete.
   * fork() itself copies nothing, and a child that only flushes, finishes, execs or exits copies
   * nothing. If the copy fails, each call returns the reason and tries again; if the disk is full,
   * at most once a second. */
  PERFMAP_FORK_INHERIT = 1,
  /* Children of the process that set this policy write nothing, and their calls succeed, until they
   * call perfmap_state_configure(). */
  PERFMAP_FORK_OFF = 2
} perfmap_fork_policy;

/* The content of the map when it was opened. Opening a map removes entries of an earlier process
 * with the same pid, and of this process before exec(), unless a writer of this library has the map
 * open (writers hold a lock, F_OFD_SETLK). Start time, boot and PID namespace identify a process;
 * the addresses that exec() chose identify its program. The extended attribute user.perfmap.owner
 * of the file stores them. On file systems without such attributes, and for files of other writers,
 * entries are removed if the file was last written more than a second before this process began. */
typedef enum perfmap_state_start {
  PERFMAP_START_NONE = 0,           /* no map is open */
  PERFMAP_START_MADE = 1,           /* nothing: there was no file, or an empty one */
  PERFMAP_START_EMPTIED = 2,        /* nothing: entries of an earlier process were removed */
  PERFMAP_START_INHERITED = 3,      /* the parent's entries */
  PERFMAP_START_APPENDED = 4,       /* entries that this process may have written; they stay */
  PERFMAP_START_APPENDED_KEPT = 5,  /* entries of an earlier process, kept because of keep_stale */
  PERFMAP_START_APPENDED_IN_USE = 6 /* the same, kept because another writer has the file open,
                                     * or because it is unknown whether one has */
} perfmap_state_start;

typedef enum perfmap_name_policy {
  PERFMAP_NAMES_ESCAPE = 0, /* bytes that readers misread become \xNN; a backslash before xNN
                             * becomes \x5c, so that the name can be decoded; names of 1 and 2
                             * bytes get brackets, an empty one becomes [?]; names over 4000 bytes
                             * are truncated */
  PERFMAP_NAMES_REFUSE = 1  /* such a name is refused with EILSEQ, an address or a size of 0 with
                             * EINVAL, and nothing is written */
} perfmap_name_policy;

typedef struct perfmap_state_options {
  size_t struct_size; /* set by the caller to sizeof(perfmap_state_options) */
  /* NUL-terminated, copied. NULL is "/tmp", where readers look; "" is EINVAL. A relative directory
   * is resolved each time the map is opened. */
  const char* directory;
  int32_t fork;        /* a perfmap_fork_policy */
  int32_t names;       /* a perfmap_name_policy */
  size_t buffer_bytes; /* size of the buffer; 0: a write puts its entry into the file at once */
  /* If buffered: an entry stays in the buffer for at most this time, which is checked at each
   * write. 0: no limit. */
  uint64_t flush_after_ns;
  /* Maximum size of the file, including copied entries. Calls that would exceed it fail with EFBIG.
   * 0: no limit. */
  uint64_t most_bytes;
  int keep_stale; /* not 0: keeps entries of an earlier process with this pid */
  /* Called when the file reaches most_bytes, in the thread whose entry does not fit, with no lock
   * held. Return a value other than 0 if there is room now, for example after perfmap_state_fini()
   * and rename(). The entry is then tried once more. Entries of other threads fail meanwhile. If
   * the callback returns 0, it is not called again until the map is opened anew. */
  int (*on_full)(void* context);
  void* on_full_context;
  int mapped; /* not 0: as in perfmap_writer_options */
} perfmap_state_options;

/* Call it before the first init, or after fini; otherwise it fails with -1 and EBUSY. A forked
 * child may call it again, but a child that inherits already has its map open. If `options` is
 * NULL, the defaults are used. */
PERFMAP_C_API int perfmap_state_configure(const perfmap_state_options* options);
/* Changes the perfmap_fork_policy for children that are forked later. May be called at any time.
 * EINVAL for any other number. */
PERFMAP_C_API int perfmap_state_set_fork(int32_t policy);
/* Opens DIRECTORY/perf-PID.map for appending, with mode 0600, unless it is open. If the file was
 * unlinked or renamed, a new one is created, here and at each flush (only if DIRECTORY is
 * absolute). Refuses links (ELOOP), files that are not regular (EINVAL), files of another user
 * (EPERM), files with several names (EMLINK), and the open map of another process with the same
 * pid, as in containers that share the directory (EBUSY). */
PERFMAP_C_API int perfmap_state_init(void);
PERFMAP_C_API perfmap_state_start perfmap_state_began_with(void);
/* Writes one entry: one whole line with one write(2), unless buffered or mapped. Calls init if
 * needed. `name` is NUL-terminated. EINVAL if it is NULL, or if the range exceeds the address
 * space. Names of more than 4000 bytes are truncated and end in "…". A failed write leaves no
 * incomplete line. At the process's file size limit, the result is EFBIG and SIGXFSZ is not raised
 * (a limit that is lowered later takes effect within 1 MiB). Signal handlers must not call it;
 * EDEADLK if the handler interrupted a call in its own thread. */
PERFMAP_C_API int perfmap_state_write_entry(const void* code, size_t size, const char* name);
/* Appends the current content of the map at `path`, which belongs to another process. -1 and EINVAL
 * for the process's own map, for files that are not regular and for NULL; EISDIR for a directory;
 * ELOOP for a link. If it fails halfway, whole lines may remain. */
PERFMAP_C_API int perfmap_state_copy_file(const char* path);
/* Writes buffered entries. Entries that cannot be written stay in the buffer, and the next flush
 * tries again. Creates a new map if the file was removed or renamed. */
PERFMAP_C_API int perfmap_state_flush(void);
/* Writes the path of the map to `out`, also if the map is not open yet: NUL-terminated and
 * truncated to `size` bytes. Returns the length of the whole path. */
PERFMAP_C_API size_t perfmap_state_path(char* out, size_t size);
/* The error of the last failed call of perfmap_state_*() in this thread, in one line with the path.
 * OK if no call has failed; `out` is then unchanged. */
PERFMAP_C_API perfmap_status perfmap_state_last_error(perfmap_error* out);
/* Waits for running writes, writes buffered entries and closes the map; a later write opens it
 * again. May be called any number of times. If writing fails, the map is closed anyway and the
 * unwritten entries are lost. Called at exit. */
PERFMAP_C_API int perfmap_state_fini(void);

/* --- Writing any map -----------------------------------------------------------------------------
 *
 * The same functions for a path of your own. Several threads may use a writer at once, but not
 * while one of them frees it. A forked child continues to write to the same file, without the
 * entries that its parent has buffered; there is no fork policy.
 */

typedef struct perfmap_writer perfmap_writer;

typedef struct perfmap_writer_options {
  size_t struct_size; /* set by the caller to sizeof(perfmap_writer_options) */
  int32_t names;      /* a perfmap_name_policy */
  /* Not 0: refuses links, files that are not regular, files with several names, and files of other
   * users. */
  int own_map;
  size_t buffer_bytes; /* as in perfmap_state_options */
  uint64_t flush_after_ns;
  uint64_t most_bytes;
  /* As in perfmap_state_options, but the callback can make room only by truncating the file,
   * because a closed writer is not opened again. */
  int (*on_full)(void* context);
  void* on_full_context;
  int mapped; /* not 0: stores entries into a mapping of the file's end; see below */
} perfmap_writer_options;

/* When a call of a mapped writer returns, its entry is in the file, even if the process is killed
 * afterwards. A mapped writer needs no system call for each entry. Until the writer is closed, the
 * file ends in at most 64 KiB of filler: lines of "0 0 " and dots, which readers read as symbols of
 * size 0. Closing the writer removes the filler. buffer_bytes counts as 0.
 *  - Use it only for a file that no other process writes to. Opening fails with EBUSY if, according
 *    to /proc, a process has the file open for writing, or if a writer of this library has locked
 *    the file.
 *  - If the file is truncated, the next entry kills the writing process with SIGBUS, unless a
 *    perfmap_truncation_guard exists. own_map refuses files of other users, who could truncate
 *    them.
 *  - After fork(), the writer is closed in the child (EBADF). The process's own map follows its
 *    fork policy. If the map is in use, for example because a child still has it open, entries are
 *    written with write(2) instead.
 *  - If the disk is full, the call fails with ENOSPC and SIGBUS is never raised, because disk space
 *    is reserved in advance. If disk space cannot be reserved, entries are written with write(2):
 *    for files that are not regular, and on all file systems except ext2 to ext4, XFS and tmpfs. */

/* Opens `path` for appending; `options` may be NULL. Release with perfmap_writer_free(). */
PERFMAP_C_API perfmap_status perfmap_writer_open(const char* path,
                                                 const perfmap_writer_options* options,
                                                 perfmap_writer** out, perfmap_error* error);
PERFMAP_C_API perfmap_status perfmap_writer_write(perfmap_writer* writer, uint64_t start,
                                                  uint64_t size, const char* name, size_t name_size,
                                                  perfmap_error* error);
PERFMAP_C_API perfmap_status perfmap_writer_copy(perfmap_writer* writer, const char* path,
                                                 perfmap_error* error);
PERFMAP_C_API perfmap_status perfmap_writer_flush(perfmap_writer* writer, perfmap_error* error);
PERFMAP_C_API perfmap_status perfmap_writer_close(perfmap_writer* writer, perfmap_error* error);
/* The path of the calling process's file, as perfmap_state_path(). */
PERFMAP_C_API size_t perfmap_writer_path(perfmap_writer* writer, char* out, size_t size);
/* Also closes; failures are not reported. */
PERFMAP_C_API void perfmap_writer_free(perfmap_writer* writer);

/* While a guard exists, a mapped file that another process truncates does not raise SIGBUS in this
 * process: a mapped writer fails once with IO and EIO, and continues with write(2); missing bytes
 * of a reader's file (see perfmap.h) read as zeros. The guard installs a signal handler for the
 * whole process. The handler passes on each SIGBUS for other memory. Freeing the last guard
 * restores the former handler. Create the guard once, before threads start and before other code
 * changes the handler of SIGBUS, and free guards in the reverse order. */
typedef struct perfmap_truncation_guard perfmap_truncation_guard;

PERFMAP_C_API perfmap_status perfmap_truncation_guard_new(perfmap_truncation_guard** out,
                                                          perfmap_error* error);
PERFMAP_C_API void perfmap_truncation_guard_free(perfmap_truncation_guard* guard);

/* --- Writing a jitdump ---------------------------------------------------------------------------
 *
 * `perf inject --jit` names generated code with this file. It contains source lines and unwinding
 * information. Record with `perf record -k mono`.
 *
 * Several threads may use a dump at once. A call that fails leaves no part of its records in the
 * file. If only the entry of state_map fails, *code_index is set. A child never writes to its
 * parent's dump. A dump of perfmap_jitdump_open_own() follows its fork policy in the child. With
 * any other dump, calls in the child fail with IO and EBADF.
 */

typedef struct perfmap_jitdump perfmap_jitdump;

typedef struct perfmap_jitdump_options {
  size_t struct_size; /* set by the caller to sizeof(perfmap_jitdump_options) */
  /* The process that the code belongs to. 0: the pid in the header of an existing dump, else N if
   * the file is named jit-N.dump, else the calling process. perfmap_jitdump_open_own() always uses
   * the calling process. */
  int32_t pid;
  int32_t names; /* a perfmap_name_policy */
  int own_dump;  /* not 0: refuses links, files that are not regular, and files of other users */
  int no_marker; /* not 0: does not map the dump, so recordings do not refer to it */
  int no_close_record; /* not 0: the dump ends without a CLOSE record */
  int state_map;       /* not 0: each load also calls perfmap_state_write_entry() */
  uint64_t most_bytes; /* maximum size of the file; beyond it, calls fail with EFBIG; 0: no limit */
  int32_t fork;        /* a perfmap_fork_policy, for dumps of perfmap_jitdump_open_own() */
} perfmap_jitdump_options;

/* Applies from `address` to the address of the next line, or to the end of the function. This
 * struct will not grow. */
typedef struct perfmap_jitdump_line {
  uint64_t address;
  int32_t line;
  int32_t column;   /* 0: unknown */
  const char* file; /* NUL-terminated */
} perfmap_jitdump_line;

typedef struct perfmap_jitdump_function {
  size_t struct_size; /* set by the caller to sizeof(perfmap_jitdump_function) */
  uint64_t start;
  uint64_t size;
  const char* name;
  size_t name_size;
  const void* code;                  /* `size` bytes; NULL: writes zeros, at most 32 MiB */
  const perfmap_jitdump_line* lines; /* by ascending address, within the function */
  size_t line_count;
  /* Unwinding information, for example from perfmap_unwind_*(). Its relative pointers must match
   * the layout of perf: eh_frame is at the first multiple of 8 after the code, and eh_frame_hdr
   * directly after eh_frame. */
  const void* eh_frame;
  size_t eh_frame_size;
  const void* eh_frame_hdr;
  size_t eh_frame_hdr_size;
  /* The number of bytes, from the first multiple of 8 after the code on, that contain eh_frame and
   * eh_frame_hdr, or are reserved for them. 0: none. */
  uint64_t mapped_size;
  uint64_t time; /* CLOCK_MONOTONIC nanoseconds; 0: now */
} perfmap_jitdump_function;

/* Opens DIRECTORY/jit-PID.dump of the calling process with mode 0600. Refuses links. Maps the first
 * page of the file for execution, because perf finds the dump by this mapping. If `directory` is
 * NULL, it is "/tmp". `options` may be NULL. The dump of an earlier process with that pid is
 * replaced. A dump that this process began, also before exec(), is continued. EBUSY if another
 * writer has it open, in this process or another one. Release with perfmap_jitdump_free(). */
PERFMAP_C_API perfmap_status perfmap_jitdump_open_own(const char* directory,
                                                      const perfmap_jitdump_options* options,
                                                      perfmap_jitdump** out, perfmap_error* error);
/* The same for any path. Appends to an existing dump of that pid; other content is BAD_FORMAT. */
PERFMAP_C_API perfmap_status perfmap_jitdump_open(const char* path,
                                                  const perfmap_jitdump_options* options,
                                                  perfmap_jitdump** out, perfmap_error* error);
/* Writes a function: its lines, its unwinding information and its code, with one writev(2). If
 * `code_index` is not NULL, *code_index is the index of the code, for perfmap_jitdump_move().
 * INVALID_ARGUMENT for values that the comments of the members exclude; the message begins with the
 * name of the member. */
PERFMAP_C_API perfmap_status perfmap_jitdump_load(perfmap_jitdump* dump,
                                                  const perfmap_jitdump_function* function,
                                                  uint64_t* code_index, perfmap_error* error);
/* The code of `code_index` moved from one address to another, now. INVALID_ARGUMENT for an index
 * that this dump does not have, such as an index of the parent in the new dump of a child. */
PERFMAP_C_API perfmap_status perfmap_jitdump_move(perfmap_jitdump* dump, uint64_t code_index,
                                                  uint64_t from, uint64_t to, uint64_t size,
                                                  perfmap_error* error);
/* Ends the dump and removes the mapping. Later calls fail with IO and EBADF. */
PERFMAP_C_API perfmap_status perfmap_jitdump_close(perfmap_jitdump* dump, perfmap_error* error);
/* The path of the calling process's file, as perfmap_state_path(). */
PERFMAP_C_API size_t perfmap_jitdump_path(perfmap_jitdump* dump, char* out, size_t size);
/* Also closes; failures are not reported. */
PERFMAP_C_API void perfmap_jitdump_free(perfmap_jitdump* dump);

/* --- Unwinding information -----------------------------------------------------------------------
 *
 * A profiler needs an .eh_frame and an .eh_frame_hdr to find the callers of a function. These
 * functions write both for one function into the buffer `room`. They set eh_frame, eh_frame_size,
 * eh_frame_hdr and eh_frame_hdr_size of `function`. The caller must have set `start` and `size`.
 * `room` must live until perfmap_jitdump_load() returns. They allocate nothing.
 *
 * INVALID_ARGUMENT: struct_size is not set, `size` is 0, `sp_offset` is impossible, or the CIE or
 * FDE is malformed or in 64-bit DWARF. TOO_LARGE: `room` is too small (PERFMAP_UNWIND_ROOM is
 * enough for the first two functions). UNSUPPORTED: the first two functions, on machines other than
 * x86-64 and aarch64; the others, for augmentations that no compiler writes.
 *
 * `perfmap stacks` uses them without further information. `perf` also needs mapped_size: the number
 * of bytes after the code, from the first multiple of 8 on, that no other function uses (at least
 * eh_frame_size + eh_frame_hdr_size; nothing has to be written there). perf creates a mapping that
 * covers the code and the unwinding information. If the next function were inside this mapping, its
 * samples would get the name of this function. Set mapped_size if your allocator leaves this space
 * free. If it is 0, perf finds no callers with --call-graph dwarf.
 *
 * Without unwinding information, neither perf nor perfmap finds the callers of code that keeps no
 * frame pointer.
 */

#define PERFMAP_UNWIND_ROOM 96

/* Code that keeps a frame pointer, except during its first and last instructions. */
PERFMAP_C_API perfmap_status perfmap_unwind_frame_pointer(perfmap_jitdump_function* function,
                                                          void* room, size_t room_size);
/* Code that keeps no frame pointer, does not change the stack pointer, and changes no callee-saved
 * register. `sp_offset` is the distance from its stack pointer to the value before the call: on
 * x86-64 a multiple of 8, at least 8 for the return address; on aarch64, where the return address
 * stays in x30, a multiple of 16. */
PERFMAP_C_API perfmap_status perfmap_unwind_no_frame(perfmap_jitdump_function* function,
                                                     uint32_t sp_offset, void* room,
                                                     size_t room_size);
/* Code with an .eh_frame of its compiler: a CIE and an FDE, each with its length, in this machine's
 * byte order. Personality and LSDA are left out. `room` needs cie_size + fde_size + 64 bytes.
 * O(cie_size + fde_size). */
PERFMAP_C_API perfmap_status perfmap_unwind_from_fde(perfmap_jitdump_function* function,
                                                     const void* cie, size_t cie_size,
                                                     const void* fde, size_t fde_size, void* room,
                                                     size_t room_size);
/* The same, from a whole .eh_frame section of `size` bytes whose address in the process is
 * `address`, as in the interfaces of LLVM and libgcc. Uses the FDE for function->start. NOT_FOUND
 * if the section has no such FDE. O(size). */
PERFMAP_C_API perfmap_status perfmap_unwind_from_eh_frame(perfmap_jitdump_function* function,
                                                          const void* eh_frame, size_t size,
                                                          uint64_t address, void* room,
                                                          size_t room_size);

/* --- Writing a log of loops ----------------------------------------------------------------------
 *
 * A tracing JIT records when it enters and leaves a loop. Readers of PyPy logs (PYPYLOG) report how
 * much time each loop took. Call perfmap_jitlog_loop() once for each loop or bridge to get its
 * number. Each event is one call:
 *
 *   perfmap_jitlog_loop(log, "loop1", 5, &loop, &error);  after the loop was compiled
 *   perfmap_jitlog_enter(log, loop);                      each time the loop is entered
 *   perfmap_jitlog_exit(log, loop);                       each time it is left for the interpreter
 *
 * If a thread enters a loop, it leaves the loop that it was in. Thread 3 writes this at tick 2b3c:
 *
 *   3# [2b3c] {jit-profile-enter
 *   3# loop1
 *   3# [2b3c] jit-profile-enter}
 *
 * Both lines of an event have the same time. Each line begins with the number of its thread, unless
 * one_thread is set; threads are numbered from 1 in the order of their first events. The first
 * section, jit-profile-clock, contains the unit of the hexadecimal ticks: "tsc", "cntvct N Hz" or
 * "CLOCK_MONOTONIC ns".
 *
 * Recording an event takes no lock and at most 25 ns with PERFMAP_JITLOG_COUNTER. Including the
 * write, an event takes about 60 ns. A thread that has filled its buffer writes it, in whole
 * sections. The events of one thread are in order; the events of several threads are interleaved in
 * blocks. A buffer is also written when its thread ends, by flush and by close. exit() writes the
 * buffer of its own thread. A process that is killed loses at most the last buffer_events events of
 * each thread, and may leave an incomplete section at the end of the log.
 *
 * After fork(), the child never writes to its parent's log, and never writes the events that the
 * parent has buffered. If the path contains "%d", which stands for the pid, the child has its own
 * log. With PERFMAP_FORK_FRESH, this log begins with the child's first event. With
 * PERFMAP_FORK_INHERIT, it begins with the events that the parent had recorded. With
 * PERFMAP_FORK_OFF, or if the path has no "%d", the child's events are dropped and the calls
 * succeed. The child has the loops of its parent.
 *
 * Any thread may call these functions at any time, except perfmap_jitlog_free(). A signal handler
 * must not call them.
 */

typedef struct perfmap_jitlog perfmap_jitlog;

typedef enum perfmap_jitlog_clock {
  PERFMAP_JITLOG_COUNTER = 0,  /* rdtsc on x86, cntvct_el0 on aarch64; elsewhere UNSUPPORTED */
  PERFMAP_JITLOG_MONOTONIC = 1 /* CLOCK_MONOTONIC nanoseconds */
} perfmap_jitlog_clock;

typedef struct perfmap_jitlog_options {
  size_t struct_size; /* set by the caller to sizeof(perfmap_jitlog_options) */
  int32_t clock;      /* a perfmap_jitlog_clock */
  int32_t names;      /* a perfmap_name_policy */
  /* Not 0: refuses links, files that are not regular, files with several names, and files of other
   * users. */
  int own_log;
  int one_thread; /* not 0: no thread numbers; a second thread's events are REFUSED */
  /* Size of each thread's buffer, in events of 16 bytes. 1: an event is in the file when its call
   * returns. 0: 4096. */
  uint32_t buffer_events;
  int32_t fork; /* a perfmap_fork_policy */
} perfmap_jitlog_options;

/* Creates the log at `path` with mode 0600. Each "%d" in the path stands for the pid. An existing
 * log is emptied, as in PyPy; any other content is BAD_FORMAT. If a writer of this library has the
 * log open, the call fails with IO and EBUSY. `options` may be NULL. Release with
 * perfmap_jitlog_free(). */
PERFMAP_C_API perfmap_status perfmap_jitlog_open(const char* path,
                                                 const perfmap_jitlog_options* options,
                                                 perfmap_jitlog** out, perfmap_error* error);
/* Sets *loop to the number, from 1, of the loop or bridge with that name; the same name gets the
 * same number. Bytes that readers would misread are escaped, or refused with PERFMAP_NAMES_REFUSE
 * (INVALID_ARGUMENT, EILSEQ). */
PERFMAP_C_API perfmap_status perfmap_jitlog_loop(perfmap_jitlog* log, const char* name,
                                                 size_t name_size, uint32_t* loop,
                                                 perfmap_error* error);
/* The calling thread has entered the loop, or has left it for the interpreter. INVALID_ARGUMENT for
 * an unknown number. REFUSED: see one_thread. IO if the log is closed, or if this call had to write
 * the buffer and the write failed (perfmap_jitlog_flush() returns the reason). */
PERFMAP_C_API perfmap_status perfmap_jitlog_enter(perfmap_jitlog* log, uint32_t loop);
PERFMAP_C_API perfmap_status perfmap_jitlog_exit(perfmap_jitlog* log, uint32_t loop);
/* Writes the events of all threads. Sections that cannot be written are lost. Recording continues,
 * but from then on this function and close return the first error. If a write would exceed the
 * process's file size limit, nothing is written (EFBIG). */
PERFMAP_C_API perfmap_status perfmap_jitlog_flush(perfmap_jitlog* log, perfmap_error* error);
/* Writes the events of all threads and ends the log. */
PERFMAP_C_API perfmap_status perfmap_jitlog_close(perfmap_jitlog* log, perfmap_error* error);
/* The number of events that could not be written. */
PERFMAP_C_API uint64_t perfmap_jitlog_lost(const perfmap_jitlog* log);
/* The path of the calling process's file, as perfmap_state_path(). */
PERFMAP_C_API size_t perfmap_jitlog_path(perfmap_jitlog* log, char* out, size_t size);
/* Also closes; failures are not reported. */
PERFMAP_C_API void perfmap_jitlog_free(perfmap_jitlog* log);

/* --- Trampolines ---------------------------------------------------------------------------------
 *
 * A profiler sees only the native frames of an interpreter, not the functions of the interpreted
 * program. A trampoline gives each code object a native frame. Instead of `evaluator(a, b, c)`, the
 * interpreter calls
 *
 *   result = perfmap_trampoline_call(code->trampoline, a, b, c, evaluator);
 *
 * and `perf record -g` shows the functions of the program, by name, in the order of their calls.
 * perf walks stacks by frame pointers, so compile the evaluator, and the functions that it calls,
 * with -fno-omit-frame-pointer. Otherwise no function of the program appears. If you cannot keep
 * frame pointers, use PERFMAP_TRAMPOLINES_JITDUMP, `perf record -k mono --call-graph dwarf` and
 * then `perf inject --jit`.
 *
 * The parameters and the result of the evaluator may have any types that are passed like pointers,
 * and the evaluator may have fewer parameters. The evaluator may leave by longjmp(). It may leave
 * by a C++ exception only if `exceptions` is set.
 *
 * A trampoline is compiled and named `prefix::qualified_name:file` at its first call while the
 * arena is active. It is compiled only once; other threads that call it meanwhile call the
 * evaluator directly. If it cannot be compiled or named, for lack of memory or disk space, the
 * evaluator is called directly until the next perfmap_trampoline_activate() or
 * perfmap_trampoline_compile(). perfmap_trampoline_state() counts these failures. Memory is never
 * writable and executable at the same time. Supported machines are x86-64 and aarch64. On other
 * machines, perfmap_trampoline_arena_new() returns UNSUPPORTED, and perfmap_trampoline_call() with
 * NULL calls the evaluator directly.
 *
 * The memory of a freed trampoline is reused when the newest 64 KiB are full. A map then has two
 * lines for one address. perfmap and other readers use the later line; perf may use either line. A
 * jitdump has times, so both names are correct.
 *
 * After fork(), the child follows the fork policy that the map had at the time of the fork. With
 * PERFMAP_FORK_FRESH, the child compiles the trampolines that it calls again, in its own memory,
 * because perf looks up code that was mapped before the fork in the parent's map. With
 * PERFMAP_FORK_INHERIT, the child keeps its parent's trampolines, and its map and dump contain
 * their names. With PERFMAP_FORK_OFF, the child keeps its parent's trampolines and compiles no new
 * ones. A dump keeps the policy that was set when the dump was created.
 *
 * Any thread may call these functions at any time. A trampoline that no thread uses may be freed
 * while other trampolines are called. An arena may be freed only if no thread uses any of its
 * trampolines. A signal handler may call compiled trampolines, but no other function. A process may
 * have several arenas, but only one of them can write the jitdump.
 */

typedef struct perfmap_trampoline_arena perfmap_trampoline_arena;
typedef struct perfmap_trampoline perfmap_trampoline;

typedef void* (*perfmap_evaluator)(void* first, void* second, void* third);
typedef void* (*perfmap_trampoline_entry)(void* first, void* second, void* third,
                                          perfmap_evaluator evaluator);

/* The file that names are written to. */
typedef enum perfmap_trampoline_backend {
  PERFMAP_TRAMPOLINES_MAP = 1,     /* the process's own map */
  PERFMAP_TRAMPOLINES_JITDUMP = 2, /* its own dump, with unwinding information and first lines */
  PERFMAP_TRAMPOLINES_BOTH = 3
} perfmap_trampoline_backend;

typedef struct perfmap_trampoline_options {
  size_t struct_size;            /* set by the caller to sizeof(perfmap_trampoline_options) */
  const char* prefix;            /* NUL-terminated; NULL or "": no prefix and no "::" */
  const char* jitdump_directory; /* NUL-terminated; NULL is "/tmp" */
  /* Not 0: C++ exceptions may pass through trampolines. With libgcc before version 13, each throw
   * and each new arena then takes a lock. If another thread throws during a fork, this lock may
   * stay locked in the child for ever. */
  int exceptions;
} perfmap_trampoline_options;

/* The name of a code object. Read only during the call. */
typedef struct perfmap_code_description {
  size_t struct_size; /* set by the caller to sizeof(perfmap_code_description) */
  const char* qualified_name;
  size_t qualified_name_size;
  const char* file; /* if file_size is 0, the name has no file and no colon */
  size_t file_size;
  int32_t first_line; /* 0: unknown; for the jitdump */
} perfmap_code_description;

typedef struct perfmap_trampoline_state_info {
  size_t struct_size;    /* set by the caller to sizeof(perfmap_trampoline_state_info) */
  int32_t active;        /* 0 or 1 */
  int32_t backend;       /* a perfmap_trampoline_backend; 0 if not active */
  uint64_t compiled;     /* trampolines compiled and named so far, including those of parents */
  uint64_t failed;       /* how many times compiling or naming a trampoline failed */
  int32_t last_errno;    /* errno of the last such failure */
  uint64_t mapped_bytes; /* memory of trampolines, including those of parents */
} perfmap_trampoline_state_info;

/* Creates an arena, which is not active yet. `options` may be NULL. Release with
 * perfmap_trampoline_arena_free(), after its trampolines. */
PERFMAP_C_API perfmap_status perfmap_trampoline_arena_new(const perfmap_trampoline_options* options,
                                                          perfmap_trampoline_arena** out,
                                                          perfmap_error* error);
PERFMAP_C_API void perfmap_trampoline_arena_free(perfmap_trampoline_arena* arena);
/* From now on, calls use trampolines. `backend` is a perfmap_trampoline_backend. Opens the map and
 * creates the dump if needed. If this function fails, calls continue as before, but the map stays
 * open. If `backend` differs from the previous one, each existing trampoline is also named in the
 * new backend at its next call. Trampolines that failed are tried again. */
PERFMAP_C_API perfmap_status perfmap_trampoline_activate(perfmap_trampoline_arena* arena,
                                                         int32_t backend, perfmap_error* error);
/* From now on, evaluators are called directly. */
PERFMAP_C_API void perfmap_trampoline_deactivate(perfmap_trampoline_arena* arena);
PERFMAP_C_API void perfmap_trampoline_state(const perfmap_trampoline_arena* arena,
                                            perfmap_trampoline_state_info* out);

/* A trampoline for one code object. It is not compiled yet, whether the arena is active or not.
 * Release it with perfmap_trampoline_free() when the code object is destroyed; no thread may be
 * running in it then. */
PERFMAP_C_API perfmap_status perfmap_trampoline_new(perfmap_trampoline_arena* arena,
                                                    const perfmap_code_description* code,
                                                    perfmap_trampoline** out, perfmap_error* error);
PERFMAP_C_API void perfmap_trampoline_free(perfmap_trampoline* trampoline);
/* Compiles the trampoline now instead of at its first call, also after a failure. If another thread
 * is compiling it, waits for that thread. Does nothing if the arena is not active. If a callback
 * that runs during the compilation calls it, such as on_full, it fails with IO and EDEADLK. */
PERFMAP_C_API perfmap_status perfmap_trampoline_compile(perfmap_trampoline* trampoline,
                                                        perfmap_error* error);
/* The function to call, with the evaluator as the fourth argument; NULL: call the evaluator itself.
 * The result is valid until the arena is activated or deactivated, or the process forks, so get it
 * before each call. `trampoline` may be NULL. */
PERFMAP_C_API perfmap_trampoline_entry perfmap_trampoline_entry_of(perfmap_trampoline* trampoline);
/* Calls the evaluator through the trampoline; directly if `trampoline` is NULL. Costs at most 2.5
 * ns more than a direct call once the trampoline is compiled. */
PERFMAP_C_API void* perfmap_trampoline_call(perfmap_trampoline* trampoline, void* first,
                                            void* second, void* third, perfmap_evaluator evaluator);

#ifdef __cplusplus
}
#endif

#endif
