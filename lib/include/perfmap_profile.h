/* SPDX-License-Identifier: MIT */
/* perfmap_profile.h - the C interface of libperfmap-profile.
 *
 * For profilers that need names for addresses: tracks what each process has mapped, where and when.
 * The rules of perfmap_writer.h also apply here: handles, statuses, errors, struct_size, strings,
 * enums as int32_t, threads. NOT_FOUND is a normal result; `error` may be unchanged then.
 */
#ifndef PERFMAP_PROFILE_H
#define PERFMAP_PROFILE_H

#include "perfmap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Like perfmap_layouts(), for the structs of this header. */
PERFMAP_C_API const perfmap_layout* perfmap_profile_layouts(size_t* count);

/* --- Tracker -------------------------------------------------------------------------------------
 *
 * Tracks processes by the events of a recording, by /proc for living processes, or both. Times are
 * nanoseconds of any one clock. Events are those of perf (Linux, include/uapi/linux/perf_event.h),
 * in the order of their times for each process. (pid, generation) identifies a process: exec, exit
 * and reuse of the pid end a generation. Data of an ended generation is never returned for a later
 * generation. There are two exceptions: after a fork, a process has the memory of its parent, and
 * after an exec, it has the memory of the previous program until it maps something.
 */

#define PERFMAP_NOW UINT64_MAX /* later than every event */

typedef struct perfmap_kernel perfmap_kernel;
typedef struct perfmap_tracker perfmap_tracker;
typedef struct perfmap_module_cache perfmap_module_cache;
typedef struct perfmap_module perfmap_module;
struct perfmap_region;

/* Supplies the ELF file of a region; called once for all processes with the same file. `pid` is a
 * process that has it mapped; 0: the process has ended. On PERFMAP_OK, `*out` is a handle, as from
 * perfmap_module_open(), and the tracker takes it over. NOT_FOUND: the tracker looks for the file
 * itself. Any other status is passed on. The callback must not call the tracker. */
typedef perfmap_status (*perfmap_open_module)(int32_t pid, const struct perfmap_region* region,
                                              perfmap_module** out, void* context);

typedef struct perfmap_tracker_options {
  size_t struct_size; /* set by the caller to sizeof(perfmap_tracker_options) */
  const char* proc;   /* NUL-terminated; NULL is "/proc" */
  const char* tmp;    /* NULL is "/tmp": where perf maps and jitdumps are */
  int32_t any_owner;  /* not 0: maps and dumps of any owner are used */
  /* Opens the ELF files, and must outlive the tracker. NULL: only `open` supplies files.
   *
   * The file of a living process is opened through the process. If the process has ended, the file
   * at the path is used: if the event had a build ID, the file must have it; otherwise, if the
   * event had an inode, the file must have that inode; otherwise any file is used. */
  perfmap_module_cache* modules;
  /* Directory that has the files of another machine at their original paths; NUL-terminated. Build
   * IDs are compared, inodes are not. No link leads out of the directory. NULL: none. */
  const char* symfs;
  perfmap_open_module open; /* called first; NULL: none */
  void* open_context;
} perfmap_tracker_options;

/* `options` may be NULL. Release with perfmap_tracker_end(); spaces may outlive the tracker. */
PERFMAP_C_API perfmap_status perfmap_tracker_begin(const perfmap_tracker_options* options,
                                                   perfmap_tracker** out, perfmap_error* error);
PERFMAP_C_API void perfmap_tracker_end(perfmap_tracker* tracker);

typedef enum perfmap_process_begin {
  PERFMAP_BEGAN_SEEN = 0,     /* first named by an event */
  PERFMAP_BEGAN_FORKED = 1,   /* forked, with the memory of its parent */
  PERFMAP_BEGAN_EXECUTED = 2, /* exec, with the previous program's memory until it maps something */
  PERFMAP_BEGAN_IMPORTED = 3  /* found in /proc */
} perfmap_process_begin;

typedef struct perfmap_process {
  size_t struct_size; /* set by the caller to sizeof(perfmap_process) */
  int32_t pid;
  /* Number of this process among the processes and programs with that pid. The first is 1, or
   * higher after perfmap_tracker_forget_before(). */
  uint32_t generation;
  int32_t began;        /* a perfmap_process_begin */
  int32_t parent;       /* 0: unknown */
  uint64_t since;       /* start time */
  uint64_t until;       /* end time; PERFMAP_NOW: it has not ended */
  uint64_t start_ticks; /* field 22 of /proc/PID/stat; 0 if it was not read */
  const char* comm;
  size_t comm_size;
} perfmap_process;

/* The process that has the pid now. If the tracker knows none, `create` is called once (unless it
 * is NULL). It may add the process with perfmap_tracker_import() or with events; a status other
 * than OK is passed on. NOT_FOUND: the process is still unknown. `out` is valid until the next call
 * with the tracker. */
typedef perfmap_status (*perfmap_create_process)(perfmap_tracker* tracker, int32_t pid,
                                                 void* context);
PERFMAP_C_API perfmap_status perfmap_tracker_find_pid(perfmap_tracker* tracker, int32_t pid,
                                                      perfmap_create_process create, void* context,
                                                      perfmap_process* out, perfmap_error* error);

typedef enum perfmap_imported {
  PERFMAP_IMPORTED_VANISHED = 0,  /* the process does not exist */
  PERFMAP_IMPORTED_UNCHANGED = 1, /* the same program, the same memory */
  PERFMAP_IMPORTED_CHANGED = 2,   /* the same program, other memory */
  PERFMAP_IMPORTED_BEGAN = 3      /* a new process or a new program */
} perfmap_imported;

/* Reads /proc/PID. The result is valid from `time` on, or, with PERFMAP_NOW, from the current
 * CLOCK_MONOTONIC time. If the process does not exist, the call succeeds and `imported` reports
 * that; `imported` may be NULL. Fails with IO, REFUSED or BAD_FORMAT. */
PERFMAP_C_API perfmap_status perfmap_tracker_import(perfmap_tracker* tracker, int32_t pid,
                                                    uint64_t time, int32_t* imported,
                                                    perfmap_error* error);

/* Forgets processes that ended before `time`, and earlier mappings of the other processes: for
 * times before `time`, the mappings at `time` are returned. If called about once a second, memory
 * stays proportional to the number of living processes. O(processes), plus their events since the
 * last call. */
PERFMAP_C_API perfmap_status perfmap_tracker_forget_before(perfmap_tracker* tracker, uint64_t time,
                                                           perfmap_error* error);

/* --- Events --------------------------------------------------------------------------------------
 */

#define PERFMAP_ACCESS_READ 1
#define PERFMAP_ACCESS_WRITE 2
#define PERFMAP_ACCESS_EXECUTE 4 /* the three are PROT_READ, PROT_WRITE and PROT_EXEC */
#define PERFMAP_ACCESS_SHARED 8

/* PERF_RECORD_MMAP and MMAP2. MMAP has no access bits: the memory is executable unless the record
 * has PERF_RECORD_MISC_MMAP_DATA. */
typedef struct perfmap_mmap_event {
  size_t struct_size; /* set by the caller to sizeof(perfmap_mmap_event) */
  int32_t pid;
  uint32_t access; /* PERFMAP_ACCESS_ bits */
  uint64_t time;
  uint64_t begin;
  uint64_t size;
  uint64_t offset;
  const char* name; /* as the kernel writes it */
  size_t name_size;
  uint32_t device_major;
  uint32_t device_minor;
  uint64_t inode;
  uint64_t inode_generation;
  const void* build_id; /* its bytes, or NULL */
  size_t build_id_size;
} perfmap_mmap_event;

PERFMAP_C_API perfmap_status perfmap_tracker_on_mmap(perfmap_tracker* tracker,
                                                     const perfmap_mmap_event* event,
                                                     perfmap_error* error);
/* The memory is unmapped. perf does not record this event. */
PERFMAP_C_API perfmap_status perfmap_tracker_on_unmap(perfmap_tracker* tracker, int32_t pid,
                                                      uint64_t time, uint64_t begin, uint64_t size,
                                                      perfmap_error* error);
/* A new process, or, if `pid` equals `parent`, a new thread of it. */
PERFMAP_C_API perfmap_status perfmap_tracker_on_fork(perfmap_tracker* tracker, int32_t pid,
                                                     int32_t tid, int32_t parent, uint64_t time,
                                                     perfmap_error* error);
/* `exec`: not 0 for PERF_RECORD_MISC_COMM_EXEC, that is, when the process executes another program.
 */
PERFMAP_C_API perfmap_status perfmap_tracker_on_comm(perfmap_tracker* tracker, int32_t pid,
                                                     int32_t tid, uint64_t time, const char* comm,
                                                     size_t comm_size, int32_t exec,
                                                     perfmap_error* error);
/* The end of a thread. The end of the last thread ends the process. */
PERFMAP_C_API perfmap_status perfmap_tracker_on_exit(perfmap_tracker* tracker, int32_t pid,
                                                     int32_t tid, uint64_t time,
                                                     perfmap_error* error);

/* --- Spaces --------------------------------------------------------------------------------------
 *
 * A space has the mappings of one process at one time. It never changes: several threads may use
 * it, also after perfmap_tracker_end(). Forked processes share their spaces.
 */

typedef struct perfmap_space perfmap_space;

typedef enum perfmap_region_kind {
  PERFMAP_REGION_ANONYMOUS = 0,       /* no name, or "//anon" */
  PERFMAP_REGION_NAMED_ANONYMOUS = 1, /* "[anon:NAME]" */
  PERFMAP_REGION_HEAP = 2,
  PERFMAP_REGION_STACK = 3,
  PERFMAP_REGION_FILE = 4,
  PERFMAP_REGION_DELETED_FILE = 5,
  PERFMAP_REGION_MEMFD = 6,
  PERFMAP_REGION_HUGE_PAGES = 7,
  PERFMAP_REGION_SHARED_MEMORY = 8, /* "/dev/zero", System V */
  PERFMAP_REGION_DEVICE = 9,
  PERFMAP_REGION_VDSO = 10,
  PERFMAP_REGION_SPECIAL = 11, /* "[vsyscall]", "[vvar]" */
  PERFMAP_REGION_INODE = 12    /* "anon_inode:[io_uring]" */
} perfmap_region_kind;

typedef enum perfmap_jit_room {
  PERFMAP_JIT_NONE = 0,       /* not executable, or memory of the kernel */
  PERFMAP_JIT_UNLESS_ELF = 1, /* maps a file; if it is an ELF file, its symbols are used */
  PERFMAP_JIT_LIKELY = 2      /* executable, without a file */
} perfmap_jit_room;

typedef struct perfmap_region {
  size_t struct_size; /* set by the caller to sizeof(perfmap_region) */
  uint64_t begin;
  uint64_t size;
  uint64_t offset; /* of begin in the file */
  uint32_t access; /* PERFMAP_ACCESS_ bits */
  int32_t kind;    /* a perfmap_region_kind; later releases may add more */
  int32_t jit;     /* a perfmap_jit_room */
  uint32_t device_major;
  uint32_t device_minor;
  uint64_t inode;
  const char* name; /* of files without " (deleted)"; valid as long as the space */
  size_t name_size;
  const void* build_id; /* from the event */
  size_t build_id_size;
} perfmap_region;

/* The memory of a process at `time`: the process that had the pid then. NOT_FOUND: no process had
 * the pid. Release with perfmap_space_end(). If `time` is after the last event, this is O(1), and
 * the tracker's next event copies O(log n) blocks of 128 bytes. For an earlier time, the events
 * since a saved state are applied again. */
PERFMAP_C_API perfmap_status perfmap_space_begin_with_tracker(perfmap_tracker* tracker, int32_t pid,
                                                              uint64_t time, perfmap_space** out,
                                                              perfmap_error* error);
PERFMAP_C_API void perfmap_space_end(perfmap_space* space);
/* The process of the space, as it was then; valid as long as the space. */
PERFMAP_C_API void perfmap_space_process(const perfmap_space* space, perfmap_process* out);
/* NOT_FOUND: nothing is mapped there. O(log n), allocates nothing. */
PERFMAP_C_API perfmap_status perfmap_space_find(const perfmap_space* space, uint64_t address,
                                                perfmap_region* out);
/* The number of regions, and the region at `index`, which must be less than that number. Regions
 * are sorted by address and do not overlap. O(log n). */
PERFMAP_C_API size_t perfmap_space_size(const perfmap_space* space);
PERFMAP_C_API void perfmap_space_region(const perfmap_space* space, size_t index,
                                        perfmap_region* out);

/* --- Code of JITs --------------------------------------------------------------------------------
 */

/* Reasons why a name is doubtful. `doubts` may have several of these bits. Later releases may add
 * more. */
typedef enum perfmap_doubt {
  PERFMAP_DOUBT_DAMAGED_RECORD = 1, /* the record or line of the code is inconsistent */
  /* The size of the code was reduced, because it exceeds the file or the address space. */
  PERFMAP_DOUBT_CLAMPED_RANGE = 2,
  /* Several entries of a map name the address; the last entry is used. */
  PERFMAP_DOUBT_REUSED_ADDRESS = 4,
  /* The process has ended, and its file belongs to another user or is newer than the process. */
  PERFMAP_DOUBT_GUESSED_OWNER = 8,
  /* The code before the return address is unknown; the name may be that of the next function. */
  PERFMAP_DOUBT_GUESSED_CALL = 16,
  PERFMAP_DOUBT_SCANNED_FRAME = 32,  /* the frame was found by a scan of the stack */
  PERFMAP_DOUBT_STITCHED_FRAME = 64, /* the frame comes from another sample of the thread */
  /* The name is that of the parent process; the child may have mapped the memory again. */
  PERFMAP_DOUBT_REMAPPED_MEMORY = 128,
  /* No executable mapping at the address is known, and the name has no time. */
  PERFMAP_DOUBT_UNRECORDED_MEMORY = 256
} perfmap_doubt;

typedef struct perfmap_jit_code {
  size_t struct_size; /* set by the caller to sizeof(perfmap_jit_code) */
  uint64_t begin;
  uint64_t size;
  /* Valid until perfmap_tracker_refresh_jit() of the process, or the end of the tracker. */
  const char* name;
  size_t name_size;
  /* A perfmap_jit_room. If it is PERFMAP_JIT_UNLESS_ELF and the mapped file is an ELF file, use the
   * symbols of that file instead of this name. */
  int32_t room;
  uint32_t doubts; /* PERFMAP_DOUBT_ bits */
} perfmap_jit_code;

/* Reads the perf map and jitdumps of a living process: the first call looks for them, later calls
 * read what was appended. NOT_FOUND: the process has none. */
PERFMAP_C_API perfmap_status perfmap_tracker_refresh_jit(perfmap_tracker* tracker, int32_t pid,
                                                         perfmap_error* error);
/* The JIT code at the address, if the region at that address may contain JIT code at `time`.
 * `source_time` is a time of jitdumps (CLOCK_MONOTONIC). NOT_FOUND: the address has no name. */
PERFMAP_C_API perfmap_status perfmap_tracker_find_jit(perfmap_tracker* tracker, int32_t pid,
                                                      uint64_t address, uint64_t time,
                                                      uint64_t source_time, perfmap_jit_code* out,
                                                      perfmap_error* error);

/* --- Modules -------------------------------------------------------------------------------------
 *
 * ELF files. Each is opened once for all processes, trackers and threads.
 */

typedef struct perfmap_module_cache_options {
  size_t struct_size; /* set by the caller to sizeof(perfmap_module_cache_options) */
  /* If the cache exceeds this size, it drops the least recently used modules. 0 is 2 GiB. */
  uint64_t most_bytes;
  /* Directories with separate debug files, such as "/usr/lib/debug", separated by ':'. They are
   * used below the root directory of a process and on the host. NULL: debug files are not looked
   * for. */
  const char* debug_directories;
} perfmap_module_cache_options;

/* `options` may be NULL. Several threads and several trackers may use one cache. */
PERFMAP_C_API perfmap_status perfmap_module_cache_begin(const perfmap_module_cache_options* options,
                                                        perfmap_module_cache** out,
                                                        perfmap_error* error);
PERFMAP_C_API void perfmap_module_cache_end(perfmap_module_cache* cache);
/* The number of files that were read so far. */
PERFMAP_C_API uint64_t perfmap_module_cache_opened(const perfmap_module_cache* cache);

/* A perfmap_module never changes. Several threads may use it, also after its tracker and its cache
 * have ended.
 *
 * Identity: a cache has one module for all paths, processes and trackers that lead to the same
 * file: the same build ID and bytes, or, without a build ID, the same device, inode, time and size.
 * Each call that finds a module returns a new handle; handles of one module have the same
 * perfmap_module_id(). */

typedef struct perfmap_module_facts {
  size_t struct_size; /* set by the caller to sizeof(perfmap_module_facts) */
  const char* path;   /* the views are valid as long as the module */
  size_t path_size;
  const void* build_id; /* its bytes; size 0 if there is none */
  size_t build_id_size;
  const void* bytes; /* the whole file, mapped */
  size_t bytes_size;
  uint32_t machine; /* EM_... */
  uint32_t type;    /* ET_... */
} perfmap_module_facts;

/* The number of a module: not 0, and different from that of any other module that has a handle. */
PERFMAP_C_API uint64_t perfmap_module_id(const perfmap_module* module);
/* Another handle of the same module. */
PERFMAP_C_API perfmap_status perfmap_module_copy(const perfmap_module* module, perfmap_module** out,
                                                 perfmap_error* error);

/* Open modules from files that the caller supplies: by path, by descriptor, which the caller keeps,
 * or from memory, which is copied. A file that the cache has is not read again. `name`, which may
 * be NULL, is the path of the module. Fail with IO, NOT_FOUND, REFUSED (not a regular file),
 * TOO_LARGE or BAD_FORMAT (not an ELF file). */
PERFMAP_C_API perfmap_status perfmap_module_open(perfmap_module_cache* cache, const char* path,
                                                 perfmap_module** out, perfmap_error* error);
PERFMAP_C_API perfmap_status perfmap_module_open_descriptor(perfmap_module_cache* cache, int fd,
                                                            const char* name, perfmap_module** out,
                                                            perfmap_error* error);
PERFMAP_C_API perfmap_status perfmap_module_from_memory(perfmap_module_cache* cache,
                                                        const void* bytes, size_t size,
                                                        const char* name, perfmap_module** out,
                                                        perfmap_error* error);
/* A module that is in the cache. NOT_FOUND: no module in the cache has that build ID. Opens no
 * file. */
PERFMAP_C_API perfmap_status perfmap_module_find_build_id(perfmap_module_cache* cache,
                                                          const void* build_id, size_t size,
                                                          perfmap_module** out,
                                                          perfmap_error* error);

/* The ELF file that the process had mapped at the address at that time; files that were loaded for
 * other processes are reused. `vaddr`, which may be NULL, is the address in the file before
 * relocation. NOT_FOUND: nothing is mapped there, or the file does not exist any more. UNSUPPORTED:
 * the memory belongs to no file with an absolute path ("//anon", "[heap]", a memfd), or the tracker
 * has no cache. REFUSED: not a regular file, or the file at the path has another inode or build ID
 * than the event. IO, TOO_LARGE or BAD_FORMAT: as for perfmap_module_open(). Release with
 * perfmap_module_end(). */
PERFMAP_C_API perfmap_status perfmap_tracker_find_elf(perfmap_tracker* tracker, int32_t pid,
                                                      uint64_t address, uint64_t time,
                                                      perfmap_module** out, uint64_t* vaddr,
                                                      perfmap_error* error);
PERFMAP_C_API void perfmap_module_end(perfmap_module* module);
PERFMAP_C_API void perfmap_module_get_facts(const perfmap_module* module,
                                            perfmap_module_facts* out);

typedef struct perfmap_symbol {
  size_t struct_size; /* set by the caller to sizeof(perfmap_symbol) */
  uint64_t begin;     /* before relocation */
  uint64_t size;
  const char* name; /* as in the file; valid as long as the module */
  size_t name_size;
  const char* demangled; /* the demangled name */
  size_t demangled_size;
} perfmap_symbol;

/* The function at an address. NOT_FOUND: no function is there. The first call builds the file's
 * table. */
PERFMAP_C_API perfmap_status perfmap_module_find_symbol(const perfmap_module* module,
                                                        uint64_t vaddr, perfmap_symbol* out,
                                                        perfmap_error* error);

/* --- Names ---------------------------------------------------------------------------------------
 */

typedef enum perfmap_detail {
  PERFMAP_DETAIL_SYMBOLS = 0,
  PERFMAP_DETAIL_LINES = 1,    /* also one frame with the source line */
  PERFMAP_DETAIL_INLINES = 2,  /* also a frame for each inlined function */
  PERFMAP_DETAIL_ADDRESSES = 3 /* no names: for perfmap_stacks_options only */
} perfmap_detail;

typedef enum perfmap_no_name {
  PERFMAP_NO_NAME_GONE = 0,
  PERFMAP_NO_NAME_UNMAPPED = 1,
  PERFMAP_NO_NAME_NO_SOURCE = 2,   /* JIT code without a map or dump */
  PERFMAP_NO_NAME_NOT_COVERED = 3, /* the map or dump has no code there */
  PERFMAP_NO_NAME_BEFORE_LOAD = 4, /* the code was loaded later */
  PERFMAP_NO_NAME_NO_SYMBOL = 5,   /* the ELF file has no function there */
  PERFMAP_NO_NAME_UNREADABLE = 6
} perfmap_no_name;

typedef struct perfmap_source_frame {
  const char* function;
  size_t function_size;
  const char* file;
  size_t file_size;
  uint32_t line;   /* 0: not known */
  uint32_t column; /* 0: not known */
} perfmap_source_frame;

typedef struct perfmap_address_name {
  size_t struct_size; /* set by the caller to sizeof(perfmap_address_name) */
  const char* name;   /* demangled; the views are valid until the next call with the tracker */
  size_t name_size;
  /* Of the function, in the process. 0 if only debug information contains the function. */
  uint64_t begin;
  uint64_t size;
  /* The ELF file, map or dump that has the name; without a name, the file that is mapped there. */
  const char* source;
  size_t source_size;
  int32_t is_jit; /* not 0: the name comes from a map or a dump */
  int32_t why;    /* a perfmap_no_name if there is no name; later releases may add more */
  const perfmap_source_frame* frames; /* the innermost first; the last is the function itself */
  size_t frame_count;
  uint32_t doubts; /* PERFMAP_DOUBT_ bits */
} perfmap_address_name;

/* The name of an address: from the ELF file that the process had mapped there at `time`, or else
 * from the sources that perfmap_tracker_refresh_jit() found, at `source_time`. NOT_FOUND: the
 * address has no name, and `out` has the reason. `detail` is a perfmap_detail. */
PERFMAP_C_API perfmap_status perfmap_tracker_name(perfmap_tracker* tracker, int32_t pid,
                                                  uint64_t address, uint64_t time,
                                                  uint64_t source_time, int32_t detail,
                                                  perfmap_address_name* out, perfmap_error* error);

/* Names kernel code, for frames with PERFMAP_FRAME_KERNEL. Several threads may use a handle.
 * `kallsyms` is a copy of /proc/kallsyms. NULL: /proc/kallsyms of this machine, with the kernel
 * modules that are loaded now; its addresses are valid only for samples since the last boot. Reads
 * the file once: O(n log n), about 20 MB for 200 000 symbols. REFUSED: the addresses are hidden
 * from this user (kernel.kptr_restrict), or were hidden from the user who made the copy. IO or
 * BAD_FORMAT: the file cannot be read, or has another format. */
PERFMAP_C_API perfmap_status perfmap_kernel_begin(const char* kallsyms, perfmap_kernel** out,
                                                  perfmap_error* error);
/* The function at the address, O(log n). `source` is its module, such as "[kernel.kallsyms]" or
 * "[nf_tables]"; the views are valid as long as the handle. kallsyms has no sizes: `size` is 0.
 * NOT_FOUND: the address is below all functions. */
PERFMAP_C_API perfmap_status perfmap_kernel_name(const perfmap_kernel* kernel, uint64_t address,
                                                 perfmap_address_name* out, perfmap_error* error);
PERFMAP_C_API void perfmap_kernel_end(perfmap_kernel* kernel);

/* --- Machines ------------------------------------------------------------------------------------
 *
 * Machines are identified by e_machine of ELF, on any host. perfmap_machine.is_unwound is not 0 if
 * stacks of the machine can be unwound. Registers have the numbers of Linux,
 * arch/.../include/uapi/asm/perf_regs.h, unless a comment says DWARF.
 */

/* The value of perf_event_attr::sample_regs_user that is needed to unwind stacks of that machine,
 * with this library or another program. 0 if perf cannot sample registers of the machine, or if the
 * machine is unknown. */
PERFMAP_C_API uint64_t perfmap_preferred_regs_mask(uint32_t machine);

typedef struct perfmap_machine {
  size_t struct_size;      /* set by the caller to sizeof(perfmap_machine) */
  uint32_t machine;        /* EM_... */
  uint32_t compat;         /* machine of 32-bit processes (PERF_SAMPLE_REGS_ABI_32); 0: none */
  int32_t is_unwound;      /* not 0: perfmap_unwind_sample() can unwind its stacks */
  uint32_t register_count; /* registers in register_mask; 0: the sampled registers are not known */
  uint64_t register_mask;  /* perfmap_preferred_regs_mask() */
  int32_t sp_register;     /* -1: not known */
  int32_t pc_register;
  int32_t sp_dwarf_register;
} perfmap_machine;

/* NOT_FOUND: not a machine that runs Linux. */
PERFMAP_C_API perfmap_status perfmap_machine_get(uint32_t machine, perfmap_machine* out);
/* The machine with this name in uname(2): "x86_64", "i686", "aarch64". 0: unknown. */
PERFMAP_C_API uint32_t perfmap_machine_from_uname(const char* name);
/* The position, from 0, of a register number in a sample's registers; -1: the mask does not have
 * it. */
PERFMAP_C_API int32_t perfmap_register_place(uint64_t register_mask, int32_t number);

/* --- Stacks --------------------------------------------------------------------------------------
 *
 * Finds the callers from a thread's registers and a copy of its stack, as in perf's samples.
 */

/* A process prepared for unwinding: its mappings at that time, the files of its code, and its map
 * and dumps. Never changes; may be used by several threads, and after the tracker has ended. */
typedef struct perfmap_unwind_space perfmap_unwind_space;

/* Prepares the process that had the pid at `time`. For a living process, call this function again
 * after the process has mapped memory, and after perfmap_tracker_refresh_jit(). NOT_FOUND: no
 * process had the pid. Release with perfmap_unwind_detach(). */
PERFMAP_C_API perfmap_status perfmap_unwind_attach(perfmap_tracker* tracker, int32_t pid,
                                                   uint64_t time, perfmap_unwind_space** out,
                                                   perfmap_error* error);
PERFMAP_C_API void perfmap_unwind_detach(perfmap_unwind_space* space);

/* Caches computed rules. Use one for each thread; only one thread at a time may use it. */
typedef struct perfmap_unwinder perfmap_unwinder;

typedef struct perfmap_unwinder_options {
  size_t struct_size;     /* set by the caller to sizeof(perfmap_unwinder_options) */
  uint32_t most_frames;   /* 0 is 1024 */
  int32_t scan;           /* not 0: guesses callers if there is no other way */
  int32_t jit_cfi_first;  /* not 0: for runtimes whose code keeps no frame pointers */
  int32_t with_registers; /* not 0: frames have registers */
} perfmap_unwinder_options;

/* `options` may be NULL. End it with perfmap_unwinder_end(). */
PERFMAP_C_API perfmap_status perfmap_unwinder_begin(const perfmap_unwinder_options* options,
                                                    perfmap_unwinder** out, perfmap_error* error);
PERFMAP_C_API void perfmap_unwinder_end(perfmap_unwinder* unwinder);

typedef struct perfmap_sample {
  size_t struct_size;        /* set by the caller to sizeof(perfmap_sample) */
  uint32_t machine;          /* e_machine of ELF: EM_X86_64 and so on */
  int32_t is_stack_full;     /* not 0: the copy of the stack is full */
  uint64_t time;             /* for code of jitdumps: CLOCK_MONOTONIC, or PERFMAP_NOW */
  uint64_t register_mask;    /* bit n: register n of Linux, arch/.../include/uapi/asm/perf_regs.h */
  const uint64_t* registers; /* one for each bit, ascending */
  size_t register_count;
  const void* stack; /* from the stack pointer on */
  size_t stack_size;
  /* For registers in another order: the DWARF number of each register; a register with a negative
   * number is ignored. The pc is 16 for x86-64, 32 for aarch64. NULL: the order of register_mask.
   */
  const int32_t* dwarf_numbers;
  /* The kernel's callchain (PERF_SAMPLE_CALLCHAIN), with its PERF_CONTEXT_ markers. Kernel frames
   * come first. User frames of the callchain are used only if the sample has no registers, or if
   * its stack cannot be unwound. */
  const uint64_t* callchain;
  size_t callchain_size;
} perfmap_sample;

typedef enum perfmap_frame_source {
  PERFMAP_FRAME_INITIAL = 0, /* the sample's own registers */
  PERFMAP_FRAME_LEAF = 1, /* the caller of a leaf, or of a small frame, from what its code does */
  PERFMAP_FRAME_EH_CFI = 2,
  PERFMAP_FRAME_DEBUG_FRAME = 3,
  PERFMAP_FRAME_JIT_CFI = 4,
  PERFMAP_FRAME_FRAME_POINTER = 5,
  PERFMAP_FRAME_PLT = 6,
  PERFMAP_FRAME_SCAN = 7,      /* a guess */
  PERFMAP_FRAME_STITCHED = 8,  /* a guess: from another sample of the thread */
  PERFMAP_FRAME_CALLCHAIN = 9, /* a user frame of the callchain that the kernel recorded */
  PERFMAP_FRAME_KERNEL = 10,   /* a kernel frame of that callchain */
  PERFMAP_FRAME_REPAIRED = 11, /* a guess, because the rules are wrong */
  PERFMAP_FRAME_SIGNAL = 12    /* by the registers saved for a signal handler */
} perfmap_frame_source;

/* The word that `perfmap stacks` prints for a perfmap_frame_source, such as "eh-cfi"; "sampled"
 * for PERFMAP_FRAME_INITIAL. "unknown" for any other number. Static. */
PERFMAP_C_API const char* perfmap_frame_source_name(int32_t source);

typedef struct perfmap_frame {
  size_t struct_size; /* of the library's struct */
  uint64_t pc;        /* for a caller, its return address */
  uint64_t sp;
  int32_t source;    /* a perfmap_frame_source; later releases may add more */
  int32_t is_return; /* not 0: pc is a return address, so look up pc - 1 */
  /* With perfmap_unwinder_options.with_registers: by DWARF number; bit n of the mask is set if
   * registers[n] is known. A caller has the registers that its callee preserved, without the pc.
   * Valid until the callback returns; NULL for kernel frames. */
  uint64_t register_mask;
  const uint64_t* registers;
} perfmap_frame;

typedef enum perfmap_stack_end {
  PERFMAP_STACK_ROOT = 0,      /* at the thread's first function */
  PERFMAP_STACK_TRUNCATED = 1, /* at the end of the copy, or at a missing page */
  PERFMAP_STACK_NO_INFO = 2,   /* at code without unwinding information */
  PERFMAP_STACK_BAD_MEMORY = 3,
  PERFMAP_STACK_LOOP = 4,
  PERFMAP_STACK_LIMIT = 5,
  PERFMAP_STACK_CALLCHAIN = 6, /* at the end of the kernel's callchain */
  PERFMAP_STACK_OTHER = 7      /* at a frame on another stack, which was not copied */
} perfmap_stack_end;

/* The word for a perfmap_stack_end, such as "truncated"; "unknown" for any other number. Static. */
PERFMAP_C_API const char* perfmap_stack_end_name(int32_t end);

/* Called for each frame, the leaf first. If it returns a value other than 0, it is not called for
 * the other frames. */
typedef int (*perfmap_take_frame)(const perfmap_frame* frame, void* context);

/* Unwinds a sample. `end`, which may be NULL, gets a perfmap_stack_end. Reads only the sample and
 * the files of the code. A frame costs 20 to 60 ns if its code was seen before. Machine 0 means the
 * machine of the process's ELF files. A sample without registers needs no machine.
 *
 * UNSUPPORTED: stacks of the machine or process cannot be unwound (is_unwound is 0, or the process
 * is riscv32 or big-endian arm or aarch64), or the machine is 0 and the ELF files do not show it.
 * `take` is then called for the frames of the callchain. If there is no callchain, `take` is called
 * for the frame of the pc, if the register of the pc is known. INVALID_ARGUMENT: Linux does not run
 * on the machine. */
PERFMAP_C_API perfmap_status perfmap_unwind_sample(perfmap_unwinder* unwinder,
                                                   const perfmap_unwind_space* space,
                                                   const perfmap_sample* sample,
                                                   perfmap_take_frame take, void* context,
                                                   int32_t* end, perfmap_error* error);

typedef struct perfmap_unwinder_statistics {
  size_t struct_size; /* set by the caller to sizeof(perfmap_unwinder_statistics) */
  uint64_t samples;
  uint64_t frames;
  uint64_t rules;       /* computed, not found in the cache */
  const uint64_t* ends; /* stacks by perfmap_stack_end; views are valid as long as the unwinder */
  size_t end_count;
  const uint64_t* sources; /* frames by perfmap_frame_source */
  size_t source_count;
} perfmap_unwinder_statistics;

/* Statistics of all samples so far. */
PERFMAP_C_API void perfmap_unwinder_get_statistics(const perfmap_unwinder* unwinder,
                                                   perfmap_unwinder_statistics* out);

/* Completes truncated stacks with frames from other samples of the same thread. A frame with the
 * same return address at the same stack address, in a sample shortly before or after, most likely
 * has the same callers. Stores 48 bytes for each distinct frame of a thread, at most 4 million
 * frames. */
typedef struct perfmap_stitcher perfmap_stitcher;

typedef struct perfmap_stitcher_options {
  size_t struct_size;    /* set by the caller to sizeof(perfmap_stitcher_options) */
  uint64_t max_distance; /* in time to the other sample, nanoseconds; 0 is 5 seconds */
  uint32_t max_frames;   /* of a stack; 0 is 1024 */
} perfmap_stitcher_options;

/* `options` may be NULL. End it with perfmap_stitcher_end(). */
PERFMAP_C_API perfmap_status perfmap_stitcher_begin(const perfmap_stitcher_options* options,
                                                    perfmap_stitcher** out, perfmap_error* error);
PERFMAP_C_API void perfmap_stitcher_end(perfmap_stitcher* stitcher);
/* Adds the frames of a stack, as perfmap_unwind_sample() returned them, and the end of the stack.
 * `process` is any number that is unique for the program, such as pid and generation combined.
 * O(frames). Fails with INVALID_ARGUMENT for an unknown source of a frame or an unknown end. */
PERFMAP_C_API perfmap_status perfmap_stitcher_learn(perfmap_stitcher* stitcher, uint64_t process,
                                                    int32_t tid, uint64_t time,
                                                    const perfmap_frame* frames, size_t count,
                                                    int32_t end, perfmap_error* error);
/* Appends PERFMAP_FRAME_STITCHED frames to a truncated stack, up to `room` frames in total. `end`,
 * which may be NULL, gets the new end of the stack. */
PERFMAP_C_API perfmap_status perfmap_stitcher_repair(perfmap_stitcher* stitcher, uint64_t process,
                                                     int32_t tid, uint64_t time,
                                                     perfmap_frame* frames, size_t* count,
                                                     size_t room, int32_t* end,
                                                     perfmap_error* error);
/* Stacks before that time are no longer used. */
PERFMAP_C_API void perfmap_stitcher_forget_before(perfmap_stitcher* stitcher, uint64_t time);

/* --- Recordings ----------------------------------------------------------------------------------
 *
 * perf.data files, as `perf record` writes them to a file or a pipe: in either byte order,
 * compressed, truncated or damaged. Records are returned in the order of their times.
 */

typedef struct perfmap_recording perfmap_recording;

/* `path` may name a compressed file (gzip, xz, zstd) or a directory of `perfmap record`; "-" is
 * standard input. Fails with IO, NOT_FOUND, BAD_FORMAT, UNSUPPORTED (directories of `perf record
 * --threads`) or TOO_LARGE. End it with
 * perfmap_recording_end(). */
PERFMAP_C_API perfmap_status perfmap_recording_open(const char* path, perfmap_recording** out,
                                                    perfmap_error* error);
PERFMAP_C_API void perfmap_recording_end(perfmap_recording* recording);

/* Facts about a recording. Empty or 0: unknown. The views are valid as long as the recording. */
typedef struct perfmap_recording_facts {
  size_t struct_size; /* set by the caller to sizeof(perfmap_recording_facts) */
  int32_t is_pipe;    /* not 0: written to a pipe */
  int32_t was_killed; /* not 0: perf was killed, and facts are missing */
  int32_t is_swapped; /* not 0: from a machine with the other byte order */
  uint32_t cpus;      /* online at the time */
  const char* hostname;
  size_t hostname_size;
  const char* os_release;
  size_t os_release_size;
  const char* arch; /* for perfmap_machine_from_uname() */
  size_t arch_size;
  uint64_t wall_ns; /* the same moment by CLOCK_REALTIME and by the recording's clock */
  uint64_t clock_ns;
  uint64_t first_sample; /* time of the first sample */
  uint64_t last_sample;  /* time of the last sample */
  size_t event_count;    /* may grow while a recording from a pipe is read */
} perfmap_recording_facts;

PERFMAP_C_API void perfmap_recording_get_facts(const perfmap_recording* recording,
                                               perfmap_recording_facts* out);

/* An event of the recording; the members are those of perf_event_attr. */
typedef struct perfmap_recorded_event {
  size_t struct_size; /* set by the caller to sizeof(perfmap_recorded_event) */
  const char* name;   /* "cpu-clock:u" */
  size_t name_size;
  uint32_t type;
  int32_t is_frequency; /* not 0: `period` is samples a second */
  uint64_t config;
  uint64_t period;
  uint64_t sample_type;
  uint64_t user_registers; /* mask */
  uint32_t user_stack;     /* bytes of each copy of the stack */
  int32_t clock;           /* CLOCK_...; -1: perf's own */
} perfmap_recorded_event;

/* NOT_FOUND: there are no more. */
PERFMAP_C_API perfmap_status perfmap_recording_get_event(const perfmap_recording* recording,
                                                         size_t index, perfmap_recorded_event* out);

typedef struct perfmap_record {
  size_t struct_size; /* sizeof(perfmap_record) of the code that filled the struct */
  uint32_t type;      /* PERF_RECORD_... */
  uint32_t misc;
  uint64_t time;   /* if the record has none: the time of the previous record */
  uint64_t offset; /* in the file */
  uint32_t event;  /* for perfmap_recording_get_event() */
  int32_t is_swapped;
  const void* bytes; /* including the 8 bytes of its header */
  size_t size;
} perfmap_record;

/* Called for each record; the record is valid until the callback returns. If it returns a value
 * other than 0, the reading ends. */
typedef int (*perfmap_take_record)(const perfmap_record* record, void* context);

/* Reads all records from the beginning and skips malformed records. Holds two rounds of records
 * (see PERF_RECORD_FINISHED_ROUND), at most 8 million. */
PERFMAP_C_API perfmap_status perfmap_recording_read(perfmap_recording* recording,
                                                    perfmap_take_record take, void* context,
                                                    perfmap_error* error);

typedef enum perfmap_cpu_mode {
  PERFMAP_CPU_UNKNOWN = 0,
  PERFMAP_CPU_KERNEL = 1,
  PERFMAP_CPU_USER = 2,
  PERFMAP_CPU_HYPERVISOR = 3,
  PERFMAP_CPU_GUEST_KERNEL = 4,
  PERFMAP_CPU_GUEST_USER = 5
} perfmap_cpu_mode;

typedef struct perfmap_recorded_sample {
  size_t struct_size; /* set by the caller to sizeof(perfmap_recorded_sample) */
  uint64_t time;
  uint64_t ip;
  int32_t pid;
  int32_t tid;
  uint32_t cpu; /* UINT32_MAX: not recorded */
  uint32_t event;
  uint64_t period;
  uint64_t address;  /* PERF_SAMPLE_ADDR */
  int32_t mode;      /* a perfmap_cpu_mode */
  uint32_t user_abi; /* PERF_SAMPLE_REGS_ABI_... */
} perfmap_recorded_sample;

/* Decodes a PERF_RECORD_SAMPLE while the recording is read. `sample`, which may be NULL, is
 * prepared for perfmap_unwind_sample(). It is valid until the next call, and only as long as the
 * record. Its machine is 0 if the machine is unknown. Its time is the time of the record. It has no
 * registers if the recording has no registers or no stack. NOT_FOUND: another kind of record. */
PERFMAP_C_API perfmap_status perfmap_recording_get_sample(perfmap_recording* recording,
                                                          const perfmap_record* record,
                                                          perfmap_recorded_sample* out,
                                                          perfmap_sample* sample,
                                                          perfmap_error* error);

/* Applies a PERF_RECORD_MMAP, MMAP2, COMM, FORK or EXIT to the tracker; other records have no
 * effect. The record may come from a recording, or from the kernel directly; in the second case the
 * caller sets `time`. */
PERFMAP_C_API perfmap_status perfmap_tracker_on_record(perfmap_tracker* tracker,
                                                       const perfmap_record* record,
                                                       perfmap_error* error);

/* --- Stacks of recordings ------------------------------------------------------------------------
 *
 * The stack of each sample of a recording, with names, as from `perfmap stacks`. Stacks that perf
 * copied are unwound; otherwise the kernel's callchains are used.
 */

typedef struct perfmap_stacks perfmap_stacks;

typedef struct perfmap_stacks_options {
  size_t struct_size;   /* set by the caller to sizeof(perfmap_stacks_options) */
  int32_t detail;       /* a perfmap_detail */
  int32_t mangled;      /* not 0: names are not demangled */
  uint32_t threads;     /* number of threads; 0 is 1. The result is the same. */
  uint32_t most_frames; /* 0 is 1024 */
  int32_t scan;         /* not 0: guesses callers if there is no other way */
  int32_t jit_cfi_first;
  int32_t stitch;    /* not 0: completes truncated stacks from other samples */
  int32_t no_kernel; /* not 0: leaves out kernel frames */
  int32_t any_owner; /* not 0: also uses maps and dumps that belong to another user */
  const char* symfs; /* directory with ELF files at their original paths; or NULL */
  /* Directory, or snapshot, with perf maps and jitdumps. NULL: of a recording directory, that
   * directory; else the recording's own paths. */
  const char* map_dir;
  const char* tmp; /* NULL is "/tmp" */
  /* Copy of /proc/kallsyms. NULL: /proc/kallsyms of this machine, if the recorded kernel is still
   * running. */
  const char* kallsyms;
  perfmap_module_cache* modules; /* must outlive the stacks; NULL: a new one */
  perfmap_open_module open;      /* called first for each file, by several threads; or NULL */
  void* open_context;
  /* Select samples. An empty list selects all. */
  const int32_t* pids;
  size_t pid_count;
  const int32_t* tids;
  size_t tid_count;
  const char* const* comms; /* of threads */
  size_t comm_count;
  const char* const* events; /* "cycles" also selects "cycles:u" */
  size_t event_count;
  uint64_t from; /* times; both are included */
  uint64_t to;   /* 0: to the end */
} perfmap_stacks_options;

/* The recording must outlive the stacks. `options` may be NULL. Fails with INVALID_ARGUMENT. If the
 * snapshot or the kallsyms file cannot be opened, fails with the error of the open. Release with
 * perfmap_stacks_end(). */
PERFMAP_C_API perfmap_status perfmap_stacks_begin(const perfmap_recording* recording,
                                                  const perfmap_stacks_options* options,
                                                  perfmap_stacks** out, perfmap_error* error);
PERFMAP_C_API void perfmap_stacks_end(perfmap_stacks* stacks);

typedef struct perfmap_stack {
  size_t struct_size; /* of the library's struct */
  uint64_t time;
  int32_t pid;
  int32_t tid;
  uint32_t cpu; /* UINT32_MAX: not recorded */
  uint32_t event;
  uint64_t period;
  const char* comm; /* of the thread; the views are valid until the callback returns */
  size_t comm_size;
  const char* process_comm;
  size_t process_comm_size;
  int32_t end; /* a perfmap_stack_end; later releases may add more */
  int32_t was_stitched;
  size_t frame_count; /* for perfmap_stacks_frame() */
} perfmap_stack;

/* Called for each sample, in the order of their times, on the caller's thread. If it returns a
 * value other than 0, the reading ends. */
typedef int (*perfmap_take_stack)(const perfmap_stack* stack, void* context);

/* Call either this function or perfmap_stacks_write(), and only once; a second call is
 * INVALID_ARGUMENT. */
PERFMAP_C_API perfmap_status perfmap_stacks_read(perfmap_stacks* stacks, perfmap_take_stack take,
                                                 void* context, perfmap_error* error);

typedef enum perfmap_frame_kind {
  PERFMAP_KIND_UNKNOWN = 0, /* nothing is mapped there, or a file that cannot be read */
  PERFMAP_KIND_NATIVE = 1,  /* code of an ELF file */
  PERFMAP_KIND_INLINED = 2, /* a function that was inlined into the next frame */
  PERFMAP_KIND_JIT = 3,
  PERFMAP_KIND_KERNEL = 4
} perfmap_frame_kind;

typedef struct perfmap_stack_frame {
  size_t struct_size; /* set by the caller to sizeof(perfmap_stack_frame) */
  uint64_t ip;        /* for a caller, its return address */
  const char* name;   /* size 0: not known. These views are valid as long as the stacks. */
  size_t name_size;
  /* The name in the ELF file; for JIT code, the name that the runtime wrote. */
  const char* system_name;
  size_t system_name_size;
  const char* module; /* path of the ELF file, map or dump; "[kernel.kallsyms]", "//anon" */
  size_t module_size;
  const char* file; /* of the source */
  size_t file_size;
  uint32_t line; /* 0: not known */
  uint32_t column;
  uint64_t offset;   /* from the beginning of the function */
  uint64_t vaddr;    /* in the ELF file, before relocation */
  uint32_t place;    /* equal for frames that differ only in ip and source */
  uint32_t function; /* equal for frames of the same function */
  int32_t kind;      /* a perfmap_frame_kind; later releases may add more */
  int32_t source;    /* a perfmap_frame_source; later releases may add more */
  int32_t is_return; /* not 0: ip is a return address, so the names are those of ip - 1 */
  uint32_t doubts;   /* PERFMAP_DOUBT_ bits */
} perfmap_stack_frame;

/* A frame of the stack that was passed to a perfmap_take_stack, the leaf first; inlined functions
 * come before the function that contains them. NOT_FOUND: there are no more frames. O(1). */
PERFMAP_C_API perfmap_status perfmap_stacks_frame(const perfmap_stacks* stacks, size_t index,
                                                  perfmap_stack_frame* out);

typedef struct perfmap_stacks_writing {
  size_t struct_size;  /* set by the caller to sizeof(perfmap_stacks_writing) */
  int32_t merge_tiers; /* not 0: one frame for all tiers of a function */
  int32_t no_marks;    /* not 0: folded stacks have no _[k], _[i], _[j] */
  int32_t with_pid;    /* not 0: folded stacks begin with "comm-PID/TID" */
} perfmap_stacks_writing;

/* Writes a file like `perfmap stacks --format FORMAT -o PATH`: "folded", "perf-script",
 * "speedscope", "firefox", "pprof", "html", "jsonl", "chrome", "otlp" or "otlp-json". The file
 * changes atomically or not at all; "-" is standard output (descriptor 1). `options` may be NULL.
 * REFUSED: the path is the recording.
 */
PERFMAP_C_API perfmap_status perfmap_stacks_write(perfmap_stacks* stacks, const char* format,
                                                  const char* path,
                                                  const perfmap_stacks_writing* options,
                                                  perfmap_error* error);

typedef struct perfmap_stack_counts {
  size_t struct_size;   /* set by the caller to sizeof(perfmap_stack_counts) */
  int32_t pid;          /* 0: the sum of all processes */
  int32_t worst_source; /* the least reliable perfmap_frame_source of its frames */
  const char* comm;     /* the views are valid until the stacks are read or ended */
  size_t comm_size;
  uint64_t samples;
  uint64_t frames;
  uint64_t full_copies; /* samples whose copy of the stack is full */
  uint64_t stitched;    /* stacks that were completed from other samples */
  uint64_t not_unwound; /* samples of a machine whose stacks cannot be unwound */
  uint64_t unnamed;     /* frames without a name */
  uint64_t unnamed_jit; /* of these, in memory of a runtime */
  uint64_t doubtful;    /* frames with any PERFMAP_DOUBT_ bit */
  const uint64_t* ends; /* stacks by perfmap_stack_end */
  size_t end_count;
  const uint64_t* sources; /* frames by perfmap_frame_source */
  size_t source_count;
} perfmap_stack_counts;

/* The number of processes that have samples in the part that was read so far. */
PERFMAP_C_API size_t perfmap_stacks_processes(const perfmap_stacks* stacks);
/* The counts of one process; processes are sorted by pid. The index perfmap_stacks_processes() is
 * the sum of all. NOT_FOUND for a larger index. */
PERFMAP_C_API perfmap_status perfmap_stacks_get_counts(const perfmap_stacks* stacks, size_t index,
                                                       perfmap_stack_counts* out);

typedef struct perfmap_stack_losses {
  size_t struct_size;    /* set by the caller to sizeof(perfmap_stack_losses) */
  uint64_t filtered;     /* samples that were not selected */
  uint64_t lost;         /* events that perf reports as lost */
  uint64_t out_of_order; /* records that were not in the order of time */
  uint64_t lost_bytes;   /* malformed bytes of the recording that were left out */
} perfmap_stack_losses;

PERFMAP_C_API void perfmap_stacks_get_losses(const perfmap_stacks* stacks,
                                             perfmap_stack_losses* out);
/* Files that could not be used, each once; `out` gets the reason. NOT_FOUND: there are no more
 * files. */
PERFMAP_C_API perfmap_status perfmap_stacks_get_failure(const perfmap_stacks* stacks, size_t index,
                                                        perfmap_error* out);

#ifdef __cplusplus
}
#endif

#endif
