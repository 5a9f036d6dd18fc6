/* perfmap_writer.h - the C interface of libperfmap-writer.
 *
 * What a runtime needs: writes perf maps (the files /tmp/perf-PID.map in which JIT runtimes name
 * their code for profilers), jitdumps, which hold that code, its lines and its unwinding
 * information as well, and logs of the loops that a tracing JIT runs; gives the functions of an
 * interpreter frames of their own. libperfmap has the same functions, and more: see perfmap.h.
 *
 * Rules that hold for every function here:
 *  - Handles are opaque; X_free(NULL) does nothing. No other pointer may be NULL unless its
 *    function says so.
 *  - A function that can fail returns a perfmap_status and writes its result through `out`, which
 *    it leaves alone on failure. `error` may be NULL. perfmap_state_* return 0, -1 or -2 instead.
 *    The message about an argument begins with its name, or with that of the member.
 *  - A struct that you pass starts with struct_size: set it to sizeof, also in perfmap_error. The
 *    library reads and writes no further than that, so a program built against an older header
 * keeps working; an older library ignores members that it does not know. A size below that of
 *    release 0.1, such as a forgotten one, is INVALID_ARGUMENT (EINVAL from perfmap_state_*), and
 *    nothing happens.
 *  - Strings in results are (pointer, length), not NUL-terminated, need not be UTF-8, and live as
 *    long as the handle they came from, or until it is refreshed. Addresses are absolute virtual
 *    addresses; sizes are in bytes.
 *  - Choices are passed as int32_t, so that a number that this release does not know is refused
 *    instead of being undefined.
 *  - No function throws, prints or exits. One thread at a time may use a handle; two handles may be
 *    used by two threads. Writers are the exception: see there.
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

typedef struct perfmap_error {
  size_t struct_size; /* set by the caller to sizeof(perfmap_error) */
  int32_t sys_errno;  /* 0: no system call failed */
  uint64_t offset;    /* where in the input, in bytes from its start */
  char message[256];  /* NUL-terminated, truncated if longer */
} perfmap_error;

/* "0.1.0". */
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
  const char* record; /* "perfmap_error", NUL-terminated, static, as is `member` */
  const char*
      member;    /* "sys_errno"; "" in the first row of each struct, which is about all of it */
  size_t offset; /* in bytes, from the start of the struct */
  size_t size;   /* in bytes */
  int32_t kind;  /* a perfmap_layout_kind */
} perfmap_layout;

/* All structs of this header: member by member in their order, *count rows, static. */
PERFMAP_C_API const perfmap_layout* perfmap_writer_layouts(size_t* count);

/* --- The calling process's own map ---------------------------------------------------------------
 *
 * What CPython documents for PyUnstable_PerfMapState_Init, PyUnstable_WritePerfMapEntry,
 * PyUnstable_CopyPerfMapFile and PyUnstable_PerfMapState_Fini. There is one such map per process;
 * any thread may call any of these at any time, handlers of pthread_atfork() included (of those
 * that were registered before this library was loaded, only the child's), but not a signal handler,
 * and not the child of vfork(). They are not cancellation points. They return 0; -1 with errno if
 * the file cannot be opened or written; -2 if the lock or the fork handlers cannot be set up.
 *
 * Other code may close the map's descriptor, as daemons close all descriptors: the next call opens
 * the map again. If the number belongs to another open file by then, that file gets the entries
 * (never another file of this library).
 */

/* Entries that survive, after their call has returned 0:
 *
 *                         plain           buffered                mapped
 *   exit(), return        all             all                     all
 *   _exit()               all             except buffered ones    all
 *   exec()                all             except buffered ones    all
 *   SIGKILL, a crash      all             not what is buffered    all
 *   loss of power         what the system has written (no fsync), in all modes
 *   fork()                the parent writes its own entries, once, whether the child writes or not;
 *                         for the child's entries see perfmap_fork_policy
 *   a full disk           all: new ones   all: new ones get       all: new ones
 *                         get ENOSPC      ENOSPC once the         get ENOSPC
 *                                         buffer is full; a fini
 *                                         that fails loses it
 *   descriptors closed    all: the map is opened again, unless another file of the process has its
 *                         number now; so is a jitdump, if it is unchanged
 *
 * A runtime that buffers, and whose processes end by _exit() (as in CPython's multiprocessing) or
 * exec(), has to call perfmap_state_flush() before. A jitdump survives like "plain", a log of loops
 * like "buffered", for each thread. A SIGKILL during a write(2) may leave an incomplete line if the
 * line crosses a page of the file; this is more likely in buffered maps, because their writes are
 * longer. Readers ignore such a line, and the next writer that opens the file ends it. A mapped map
 * always has complete lines. A jitdump may end in an incomplete record, which is removed when the
 * dump is opened again. */

/* What happens to the map in a forked child. The child never writes to its parent's map. The parent
 * writes the entries that it has buffered, no matter how the child was created: by fork(), by
 * vfork() and exec, or by clone() without handlers. */
typedef enum perfmap_fork_policy {
  PERFMAP_FORK_FRESH =
      0, /* the child's map starts empty, at its first init or write: CPython's default */
  PERFMAP_FORK_INHERIT = 1, /* it starts with the parent's entries at the time of the fork. The
                             * child's first init, write or copy reads them from the parent's
                             * descriptor, and the new map appears complete. fork() itself copies
                             * nothing, and neither does a child that only flushes, finishes,
                             * execs or exits. If the copy fails, each call returns the reason and
                             * tries again; with a full disk, once a second */
  PERFMAP_FORK_OFF = 2      /* children of the process that set it write nothing and report success,
                             * until they call perfmap_state_configure() */
} perfmap_fork_policy;

/* The content of the map when it was opened. Opening a map removes entries of an earlier process
 * with the same pid, and of this process before exec(), unless a writer of this library has the map
 * open (writers hold a lock, F_OFD_SETLK). Start time, boot and pid namespace identify a process;
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
                                     * or because that is unknown */
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
  size_t struct_size;      /* set by the caller to sizeof(perfmap_state_options) */
  const char* directory;   /* NUL-terminated, copied; NULL is "/tmp", where readers look; "" is
                            * EINVAL; a relative one is resolved at each opening */
  int32_t fork;            /* a perfmap_fork_policy */
  int32_t names;           /* a perfmap_name_policy */
  size_t buffer_bytes;     /* 0: an entry whose write returned is in the file */
  uint64_t flush_after_ns; /* buffered: at most this old, checked at each write; 0: no limit */
  uint64_t most_bytes;     /* maximum size of the file, with copies: EFBIG; 0: no limit */
  int keep_stale;          /* not 0: keeps entries of an earlier process with this pid */
  /* Called when the file reaches most_bytes, in the thread whose entry does not fit, with no lock
   * held. Return a value other than 0 if there is room now, as after perfmap_state_fini() and
   * rename(): the entry is then tried once more. Entries of other threads fail meanwhile. After 0
   * it is not called until the map is opened again. */
  int (*on_full)(void* context);
  void* on_full_context;
  int mapped; /* not 0: as in perfmap_writer_options */
} perfmap_state_options;

/* To be called before the first init, or after fini; otherwise -1 and EBUSY. A forked child may
 * call it again, but a child that inherits already has its map open. `options` may be NULL: the
 * defaults. */
PERFMAP_C_API int perfmap_state_configure(const perfmap_state_options* options);
/* Changes the perfmap_fork_policy for later children, at any time. EINVAL for another number. */
PERFMAP_C_API int perfmap_state_set_fork(int32_t policy);
/* Opens DIRECTORY/perf-PID.map (append, 0600) unless it is open. If the file was unlinked or
 * renamed, a new one is created, here and at each flush (only if DIRECTORY is absolute). Refuses
 * links (ELOOP), files that are not regular (EINVAL), files of another user (EPERM), files with
 * several names (EMLINK), and the open map of another process with the same pid, as in containers
 * that share the directory (EBUSY). */
PERFMAP_C_API int perfmap_state_init(void);
PERFMAP_C_API perfmap_state_start perfmap_state_began_with(void);
/* Writes one entry, with one write(2) of one whole line unless buffered; calls init if needed.
 * `name` is NUL-terminated. NULL is refused with EINVAL, and so is a range that exceeds the address
 * space. Names of more than 4000 bytes are truncated and end in "…". A failed write leaves no
 * incomplete line. At the process's limit of file sizes the result is EFBIG, and SIGXFSZ is not
 * raised (a limit that is lowered later takes effect within 1 MiB). Signal handlers must not call
 * it: EDEADLK if the handler interrupted a call in its own thread. */
PERFMAP_C_API int perfmap_state_write_entry(const void* code, size_t size, const char* name);
/* Appends the current content of the map at `path`, which belongs to another process. -1 and EINVAL
 * for the process's own map, for files that are not regular and for NULL; EISDIR for a directory;
 * ELOOP for a link. If it fails halfway, whole lines may remain. */
PERFMAP_C_API int perfmap_state_copy_file(const char* path);
/* Writes buffered entries. Entries that cannot be written stay in the buffer, to be tried again.
 * Creates a new map if the file was removed or renamed. */
PERFMAP_C_API int perfmap_state_flush(void);
/* Writes the path of the map to `out`, also if the map is not open yet: NUL-terminated and
 * truncated to `size` bytes. Returns its length. */
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
 * The same on a path of your own. Several threads may use a writer at once, but not while one of
 * them frees it. A forked child continues to write to the same file, without the entries that its
 * parent has buffered: there is no fork policy here.
 */

typedef struct perfmap_writer perfmap_writer;

typedef struct perfmap_writer_options {
  size_t struct_size; /* set by the caller to sizeof(perfmap_writer_options) */
  int32_t names;      /* a perfmap_name_policy */
  int own_map;        /* not 0: refuses links, files that are not regular, and other users' files */
  size_t buffer_bytes; /* as in perfmap_state_options */
  uint64_t flush_after_ns;
  uint64_t most_bytes;
  /* As in perfmap_state_options, but it can make room only by truncating the file, because a
   * closed writer stays closed. */
  int (*on_full)(void* context);
  void* on_full_context;
  int mapped; /* not 0: entries are stored into a mapping of the file's end, see below */
} perfmap_writer_options;

/* A mapped writer's entries are in the file when the call returns, killed or not, without a system
 * call each. Until it is closed the file ends in at most 64 KiB of filler, lines of "0 0 " and
 * dots, which readers read as symbols without size; closing removes it. buffer_bytes counts as 0.
 *  - Only for a file that no other process writes to. Opening answers EBUSY if a process, as far as
 *    /proc shows, has it open for writing, or a writer of this library has locked it.
 *  - If the file is truncated, the next entry kills the writing process with SIGBUS, unless a
 *    perfmap_truncation_guard lives. Other users cannot: only a file of ours is mapped.
 *  - After fork() the writer is closed in the child (EBADF). A process's own map follows its fork
 *    policy, and where it is in use, as by a child that has not let go of it, it is written with
 *    write(2) instead.
 *  - A full disk is ENOSPC, never SIGBUS: room is reserved first. Where that cannot be had (what is
 *    no regular file; any file system but ext2 to ext4, XFS, tmpfs), write(2) is used instead. */

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
 * restores the former handler. Create the guard once, before threads and before other code changes
 * that signal, and free guards in the reverse order. */
typedef struct perfmap_truncation_guard perfmap_truncation_guard;

PERFMAP_C_API perfmap_status perfmap_truncation_guard_new(perfmap_truncation_guard** out,
                                                          perfmap_error* error);
PERFMAP_C_API void perfmap_truncation_guard_free(perfmap_truncation_guard* guard);

/* --- Writing a jitdump ---------------------------------------------------------------------------
 *
 * The file by which `perf inject --jit` names generated code, with lines and unwinding information;
 * record with `perf record -k mono`. A dump may be used by several threads at once. A call that
 * fails leaves no part of its records in the file. If only the entry of state_map fails,
 * *code_index is set. A child never writes to its parent's dump: with open_own the child gets a
 * dump of its own, any other dump fails with IO and EBADF there.
 */

typedef struct perfmap_jitdump perfmap_jitdump;

typedef struct perfmap_jitdump_options {
  size_t struct_size; /* set by the caller to sizeof(perfmap_jitdump_options) */
  int32_t pid;        /* whose code it is; 0: N of jit-N.dump, else the calling process */
  int32_t names;      /* a perfmap_name_policy */
  int own_dump;       /* not 0: refuses links, files that are not regular, and other users' files */
  int no_marker;      /* not 0: does not map the dump, so recordings do not refer to it */
  int no_close_record; /* not 0: the dump ends without a CLOSE record */
  int state_map;       /* not 0: each load also calls perfmap_state_write_entry() */
  uint64_t most_bytes; /* maximum size of the file: EFBIG; 0: no limit */
  int32_t fork;        /* a perfmap_fork_policy, for a child's dump of open_own */
} perfmap_jitdump_options;

/* Valid from `address` to the next line, or to the end of the function. This struct will not grow.
 */
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
  const void* code;                  /* `size` bytes; NULL: zeros, up to 32 MiB of them */
  const perfmap_jitdump_line* lines; /* by ascending address, within the function */
  size_t line_count;
  const void*
      eh_frame; /* see perfmap_unwind_*(), which make both. As perf lays them out: the frame */
  size_t
      eh_frame_size; /* at the first multiple of 8 after the code, the header directly after it */
  const void* eh_frame_hdr;
  size_t eh_frame_hdr_size;
  uint64_t
      mapped_size; /* bytes after the code that contain both, or are reserved for them; 0: none */
  uint64_t time;   /* CLOCK_MONOTONIC nanoseconds; 0: now */
} perfmap_jitdump_function;

/* Opens DIRECTORY/jit-PID.dump of the calling process, mode 0600, follows no link, and maps its
 * first page for execution, by which perf finds it. NULL is "/tmp"; `options` may be NULL. The dump
 * of an earlier process with that pid is replaced. A dump that this process began, also before
 * exec(), is continued. EBUSY if another writer has it open, in this process or another one.
 * Release with perfmap_jitdump_free(). */
PERFMAP_C_API perfmap_status perfmap_jitdump_open_own(const char* directory,
                                                      const perfmap_jitdump_options* options,
                                                      perfmap_jitdump** out, perfmap_error* error);
/* The same for any path. Appends to an existing dump of that pid; other content is BAD_FORMAT. */
PERFMAP_C_API perfmap_status perfmap_jitdump_open(const char* path,
                                                  const perfmap_jitdump_options* options,
                                                  perfmap_jitdump** out, perfmap_error* error);
/* Writes a function: its lines, its unwinding information and its code, with one writev(2).
 * *code_index, unless NULL, gets its number, for perfmap_jitdump_move(). INVALID_ARGUMENT for
 * values that the comments of the members exclude; the message begins with the member's name. */
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
 * What a profiler needs to find the callers of a function: an .eh_frame and an .eh_frame_hdr. These
 * make both for one function, at `room`, and set eh_frame, eh_frame_size, eh_frame_hdr and
 * eh_frame_hdr_size of `function`, whose `start` and `size` are set. `room` must live until
 * perfmap_jitdump_load() returns. They allocate nothing. They return INVALID_ARGUMENT if
 * struct_size was forgotten, size is 0 or the rules are damaged; TOO_LARGE if the room is too small
 * (PERFMAP_UNWIND_ROOM is enough for the first two); UNSUPPORTED on machines other than x86-64 and
 * aarch64 (the first two), for 64-bit DWARF and for augmentations that no compiler writes.
 *
 * `perfmap stacks` uses them as they are. `perf` needs more: a mapped_size, which says that so many
 * bytes after the code, from the first multiple of 8 on, are free in the process (at least
 * eh_frame_size + eh_frame_hdr_size; nothing has to be written there): perf lays a mapping over
 * code and frame, and would take the next function's samples for this one's. Set it where your
 * allocator leaves that room; with 0, perf finds no callers by --call-graph dwarf.
 * Without any unwinding information, code that does not keep a frame pointer loses its callers in
 * both.
 */

#define PERFMAP_UNWIND_ROOM 96

/* Code that keeps a frame pointer, except during its first and last instructions. */
PERFMAP_C_API perfmap_status perfmap_unwind_frame_pointer(perfmap_jitdump_function* function,
                                                          void* room, size_t room_size);
/* Code without a frame pointer, whose stack pointer does not change and which changes no register
 * that its caller expects back. `sp_offset` is the distance from its stack pointer to the value
 * before the call: on x86-64 a multiple of 8, at least 8 for the return address; on aarch64, where
 * the return address stays in x30, a multiple of 16. */
PERFMAP_C_API perfmap_status perfmap_unwind_no_frame(perfmap_jitdump_function* function,
                                                     uint32_t sp_offset, void* room,
                                                     size_t room_size);
/* Code whose compiler made an .eh_frame: a CIE and an FDE, each with its length, in this machine's
 * byte order. Personality and LSDA are left out. Room: both sizes and 64 bytes more. O(sizes). */
PERFMAP_C_API perfmap_status perfmap_unwind_from_fde(perfmap_jitdump_function* function,
                                                     const void* cie, size_t cie_size,
                                                     const void* fde, size_t fde_size, void* room,
                                                     size_t room_size);
/* The same, with the FDE of function->start out of a whole section of `size` bytes that is meant to
 * lie at `address`, as LLVM and libgcc have it. NOT_FOUND where it has none. O(size). */
PERFMAP_C_API perfmap_status perfmap_unwind_from_eh_frame(perfmap_jitdump_function* function,
                                                          const void* eh_frame, size_t size,
                                                          uint64_t address, void* room,
                                                          size_t room_size);

/* --- Writing a log of loops ----------------------------------------------------------------------
 *
 * A tracing JIT records which loop it is in, and readers of PyPy's logs (PYPYLOG) say which share
 * of the time went to which loop. A number is asked for once for each loop or bridge; an event is
 * one call:
 *
 *   perfmap_jitlog_loop(log, "loop1", 5, &loop, &error);    when it has been made
 *   perfmap_jitlog_enter(log, loop);                        whenever it is entered
 *   perfmap_jitlog_exit(log, loop);                         whenever it is left for no other one
 *
 * Entering a loop leaves the one that the thread was in. What is written, by thread 3 at tick 2b3c:
 *
 *   3# [2b3c] {jit-profile-enter
 *   3# loop1
 *   3# [2b3c] jit-profile-enter}
 *
 * An event has one time. Every line has the number of its thread, counted from 1 in the order of
 * their first events (unless one_thread is asked for), and the first section, jit-profile-clock,
 * says what the hexadecimal ticks are: "tsc", "cntvct N Hz", "CLOCK_MONOTONIC ns".
 *
 * An event takes no lock. It costs at most 25 ns with PERFMAP_JITLOG_COUNTER, and about 60 ns with
 * the writing, which the thread that fills its buffer does, in whole sections. A thread's events
 * are in order; those of several threads are interleaved in blocks. Buffers are also written when
 * their threads end, by flush and by close. A process that is killed loses at most buffer_events
 * events of each thread, the last ones, and may leave half a section at the end of the log.
 *
 * After fork() the child never writes into its parent's log, nor what the parent has buffered. It
 * has a log of its own where the path holds "%d", which stands for the pid: one that begins with
 * its first event, with PERFMAP_FORK_INHERIT one that begins with what the parent had recorded;
 * with PERFMAP_FORK_OFF, or without "%d", its events are dropped, successfully. It has the parent's
 * loops.
 *
 * Any thread may call any of these at any time, but for freeing; no signal handler may.
 */

typedef struct perfmap_jitlog perfmap_jitlog;

typedef enum perfmap_jitlog_clock {
  PERFMAP_JITLOG_COUNTER = 0,  /* rdtsc on x86, cntvct_el0 on aarch64; elsewhere UNSUPPORTED */
  PERFMAP_JITLOG_MONOTONIC = 1 /* CLOCK_MONOTONIC nanoseconds */
} perfmap_jitlog_clock;

typedef struct perfmap_jitlog_options {
  size_t struct_size;     /* set by the caller to sizeof(perfmap_jitlog_options) */
  int32_t clock;          /* a perfmap_jitlog_clock */
  int32_t names;          /* a perfmap_name_policy */
  int own_log;            /* not 0: links, all but regular files with one name, and others' files
                           * are refused */
  int one_thread;         /* not 0: no thread numbers; a second thread's events are REFUSED */
  uint32_t buffer_events; /* of each thread, 16 bytes each; 1: an event that was recorded is in the
                           * file; 0: 4096 */
  int32_t fork;           /* a perfmap_fork_policy */
} perfmap_jitlog_options;

/* Begins the log at `path`, mode 0600; each "%d" in the path stands for the pid. An existing log is
 * emptied, as in PyPy; any other content is BAD_FORMAT. A log that a writer of this library has
 * open is IO and EBUSY. `options` may be NULL. Release with perfmap_jitlog_free(). */
PERFMAP_C_API perfmap_status perfmap_jitlog_open(const char* path,
                                                 const perfmap_jitlog_options* options,
                                                 perfmap_jitlog** out, perfmap_error* error);
/* The number, from 1, of the loop or bridge of that name; the same number for the same name. Bytes
 * that readers would misread are escaped, or refused with PERFMAP_NAMES_REFUSE (INVALID_ARGUMENT,
 * EILSEQ). */
PERFMAP_C_API perfmap_status perfmap_jitlog_loop(perfmap_jitlog* log, const char* name,
                                                 size_t name_size, uint32_t* loop,
                                                 perfmap_error* error);
/* The calling thread has entered the loop, or has left it for the interpreter. INVALID_ARGUMENT for
 * an unknown number; REFUSED: see one_thread; IO if the log is closed, or if this call had to write
 * the buffer and failed: perfmap_jitlog_flush() returns the reason. */
PERFMAP_C_API perfmap_status perfmap_jitlog_enter(perfmap_jitlog* log, uint32_t loop);
PERFMAP_C_API perfmap_status perfmap_jitlog_exit(perfmap_jitlog* log, uint32_t loop);
/* Writes the events of all threads. Sections that cannot be written are lost; from then on this
 * function and close return the first error, and recording continues. Nothing is written that would
 * exceed the process's limit of file sizes (EFBIG). */
PERFMAP_C_API perfmap_status perfmap_jitlog_flush(perfmap_jitlog* log, perfmap_error* error);
/* Writes the events of all threads and ends the log. */
PERFMAP_C_API perfmap_status perfmap_jitlog_close(perfmap_jitlog* log, perfmap_error* error);
/* How many events could not be written. */
PERFMAP_C_API uint64_t perfmap_jitlog_lost(const perfmap_jitlog* log);
/* The path of the calling process's file, as perfmap_state_path(). */
PERFMAP_C_API size_t perfmap_jitlog_path(perfmap_jitlog* log, char* out, size_t size);
/* Also closes; failures are not reported. */
PERFMAP_C_API void perfmap_jitlog_free(perfmap_jitlog* log);

/* --- Trampolines ---------------------------------------------------------------------------------
 *
 * An interpreter has no native frames of its own for a profiler to see. With trampolines every code
 * object gets one: where the interpreter would call `evaluator(a, b, c)`, it calls
 *
 *   result = perfmap_trampoline_call(code->trampoline, a, b, c, evaluator);
 *
 * and `perf record -g` shows its functions, by name, in the order of their calls. perf goes from
 * frame to frame by frame pointers: compile the evaluator, and what it calls, with
 * -fno-omit-frame-pointer, or no function of the interpreter appears. Without, take the jitdump and
 * `perf record -k mono --call-graph dwarf`, then `perf inject --jit`.
 *
 * What the evaluator really takes may be any types that are passed like pointers, and fewer of
 * them. It may leave by longjmp(); by a C++ exception only where the options ask for that.
 *
 * A trampoline is made and named `prefix::qualified_name:file` at its first call while the arena is
 * active: once, whichever threads come together there. Where that cannot be done, for want of
 * memory or disk, the evaluator is called directly until the next perfmap_trampoline_activate() or
 * perfmap_trampoline_compile(), and perfmap_trampoline_state() counts it. Memory is never writable
 * and executable at once. x86-64 and aarch64 are known; elsewhere perfmap_trampoline_arena_new() is
 * UNSUPPORTED, and a call through NULL is a direct call.
 *
 * The place of a freed trampoline is used again, when the newest 64 KiB are full. A map then has
 * two lines for one address: perfmap and others take the later, perf may take either. A jitdump has
 * times, and both are right.
 *
 * After fork() the child goes on as its own map does: with PERFMAP_FORK_FRESH it makes the
 * trampolines that it calls anew, in memory of its own (perf looks for what was mapped before the
 * fork in the parent's map), with PERFMAP_FORK_INHERIT it keeps the parent's, whose names its map
 * and dump then have, with PERFMAP_FORK_OFF it keeps them and makes no more. What counts is the
 * policy that was in force at the fork.
 *
 * Any thread may call any of these at any time, also to free a trampoline that no thread uses while
 * others are called; an arena is freed when no thread uses anything of it. Not from a signal
 * handler, which may only call what is made. A process may have several arenas, of which only one
 * can write the jitdump.
 */

typedef struct perfmap_trampoline_arena perfmap_trampoline_arena;
typedef struct perfmap_trampoline perfmap_trampoline;

typedef void* (*perfmap_evaluator)(void* first, void* second, void* third);
typedef void* (*perfmap_trampoline_entry)(void* first, void* second, void* third,
                                          perfmap_evaluator evaluator);

/* Where names go. */
typedef enum perfmap_trampoline_backend {
  PERFMAP_TRAMPOLINES_MAP = 1,     /* the process's own map */
  PERFMAP_TRAMPOLINES_JITDUMP = 2, /* its own dump, with unwinding information and first lines */
  PERFMAP_TRAMPOLINES_BOTH = 3
} perfmap_trampoline_backend;

typedef struct perfmap_trampoline_options {
  size_t struct_size;            /* set by the caller to sizeof(perfmap_trampoline_options) */
  const char* prefix;            /* NUL-terminated; NULL or "": none, and no "::" */
  const char* jitdump_directory; /* NUL-terminated; NULL is "/tmp" */
  /* Not 0: C++ exceptions may pass through trampolines. With libgcc before 13 every throw, and
   * every new arena, then takes a lock, which a fork while another thread throws may leave taken in
   * the child for ever. */
  int exceptions;
} perfmap_trampoline_options;

/* The name of a code object. Read only during the call. */
typedef struct perfmap_code_description {
  size_t struct_size; /* set by the caller to sizeof(perfmap_code_description) */
  const char* qualified_name;
  size_t qualified_name_size;
  const char* file; /* if its size is 0, the name has no file and no colon */
  size_t file_size;
  int32_t first_line; /* 0: unknown; for the jitdump */
} perfmap_code_description;

typedef struct perfmap_trampoline_state_info {
  size_t struct_size;    /* set by the caller to sizeof(perfmap_trampoline_state_info) */
  int32_t active;        /* 0 or 1 */
  int32_t backend;       /* a perfmap_trampoline_backend; 0 if not active */
  uint64_t compiled;     /* trampolines made and named so far, including those of parents */
  uint64_t failed;       /* how often one could not be made or named */
  int32_t last_errno;    /* errno of the last such failure */
  uint64_t mapped_bytes; /* memory of trampolines, those of parents included */
} perfmap_trampoline_state_info;

/* Creates an arena, which is not active yet. `options` may be NULL. Release with
 * perfmap_trampoline_arena_free(), after its trampolines. */
PERFMAP_C_API perfmap_status perfmap_trampoline_arena_new(const perfmap_trampoline_options* options,
                                                          perfmap_trampoline_arena** out,
                                                          perfmap_error* error);
PERFMAP_C_API void perfmap_trampoline_arena_free(perfmap_trampoline_arena* arena);
/* From now on, calls use trampolines; `backend` is a perfmap_trampoline_backend. Opens the map and
 * creates the dump if needed. If it fails, calls continue as before, but the map stays open. With
 * another backend than before, each existing trampoline is named there at its next call; with the
 * same backend, failed trampolines are tried again. */
PERFMAP_C_API perfmap_status perfmap_trampoline_activate(perfmap_trampoline_arena* arena,
                                                         int32_t backend, perfmap_error* error);
/* From now on, evaluators are called directly. */
PERFMAP_C_API void perfmap_trampoline_deactivate(perfmap_trampoline_arena* arena);
PERFMAP_C_API void perfmap_trampoline_state(const perfmap_trampoline_arena* arena,
                                            perfmap_trampoline_state_info* out);

/* A trampoline for one code object. It is not compiled yet, whether the arena is active or not.
 * Release with perfmap_trampoline_free() when the code object is destroyed; no thread may be
 * running in it. */
PERFMAP_C_API perfmap_status perfmap_trampoline_new(perfmap_trampoline_arena* arena,
                                                    const perfmap_code_description* code,
                                                    perfmap_trampoline** out, perfmap_error* error);
PERFMAP_C_API void perfmap_trampoline_free(perfmap_trampoline* trampoline);
/* Compiles it now instead of at its first call, also after a failure; waits if another thread is
 * compiling it. Does nothing if the arena is not active. EDEADLK in callbacks that run meanwhile,
 * such as on_full. */
PERFMAP_C_API perfmap_status perfmap_trampoline_compile(perfmap_trampoline* trampoline,
                                                        perfmap_error* error);
/* The function to call, with the evaluator as fourth argument; NULL: call the evaluator itself.
 * Valid until the arena is activated or deactivated, or the process forks: ask before each call.
 * `trampoline` may be NULL. */
PERFMAP_C_API perfmap_trampoline_entry perfmap_trampoline_entry_of(perfmap_trampoline* trampoline);
/* Calls through the trampoline. `trampoline` may be NULL: a direct call. Costs at most 2.5 ns more
 * than a direct call once the trampoline is compiled. */
PERFMAP_C_API void* perfmap_trampoline_call(perfmap_trampoline* trampoline, void* first,
                                            void* second, void* third, perfmap_evaluator evaluator);

#ifdef __cplusplus
}
#endif

#endif
