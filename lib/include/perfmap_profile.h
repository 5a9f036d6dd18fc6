/* perfmap_profile.h - the C interface of libperfmap-profile.
 *
 * Knows what was mapped where, when, in which process: for profilers, which have addresses and want
 * names. The rules of perfmap.h hold here, too: handles, statuses, errors, struct_size, strings,
 * choices as int32_t, threads. NOT_FOUND is an answer, for which `error` is not written.
 */
#ifndef PERFMAP_PROFILE_H
#define PERFMAP_PROFILE_H

#include "perfmap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Tracker -------------------------------------------------------------------------------------
 *
 * Follows processes: by the events of a recording, by what /proc says of living ones, or both.
 * Times are nanoseconds of any one clock, events those of perf (Linux,
 * include/uapi/linux/perf_event.h), in the order of their times for each process. A process is
 * known by (pid, generation): exec, exit and reuse of the pid end a generation. Nothing of an ended
 * one is answered for a later one, but for the memory that a process has from its parent, or, after
 * exec and before it maps anything, from the former program.
 */

#define PERFMAP_NOW UINT64_MAX /* later than every event */

typedef struct perfmap_tracker perfmap_tracker;
typedef struct perfmap_module_cache perfmap_module_cache;

typedef struct perfmap_tracker_options {
  size_t struct_size; /* set by the caller to sizeof(perfmap_tracker_options) */
  const char* proc;   /* NUL-terminated; NULL is "/proc" */
  const char* tmp;    /* NULL is "/tmp": where perf maps and jitdumps are */
  int32_t any_owner;  /* not 0: maps and dumps are believed whoever owns them */
  /* Opens the ELF files, and must outlive the tracker. NULL: there are no modules. */
  perfmap_module_cache* modules;
} perfmap_tracker_options;

/* `options` may be NULL. End it with perfmap_tracker_end(); spaces may outlive it. */
PERFMAP_C_API perfmap_status perfmap_tracker_begin(const perfmap_tracker_options* options,
                                                   perfmap_tracker** out, perfmap_error* error);
PERFMAP_C_API void perfmap_tracker_end(perfmap_tracker* tracker);

typedef enum perfmap_process_begin {
  PERFMAP_BEGAN_SEEN = 0,     /* an event was about it */
  PERFMAP_BEGAN_FORKED = 1,   /* with its parent's memory */
  PERFMAP_BEGAN_EXECUTED = 2, /* with the former program's, until it maps something itself */
  PERFMAP_BEGAN_IMPORTED = 3  /* it was there when /proc was read */
} perfmap_process_begin;

typedef struct perfmap_process {
  size_t struct_size; /* set by the caller to sizeof(perfmap_process) */
  int32_t pid;
  uint32_t generation;  /* of that pid; from 1 */
  int32_t began;        /* a perfmap_process_begin */
  int32_t parent;       /* 0 where not known */
  uint64_t since;       /* time of its beginning */
  uint64_t until;       /* time of its end; PERFMAP_NOW: it goes on */
  uint64_t start_ticks; /* field 22 of /proc/PID/stat; 0 where that was not read */
  const char* comm;
  size_t comm_size;
} perfmap_process;

/* Who has the pid now. Where nobody does, `create` is called once (unless it is NULL), and may make
 * somebody known by perfmap_tracker_import() or by events; a status other than OK is passed on.
 * NOT_FOUND: still nobody. `out` lives until the next call with the tracker. */
typedef perfmap_status (*perfmap_create_process)(perfmap_tracker* tracker, int32_t pid,
                                                 void* context);
PERFMAP_C_API perfmap_status perfmap_tracker_find_pid(perfmap_tracker* tracker, int32_t pid,
                                                      perfmap_create_process create, void* context,
                                                      perfmap_process* out, perfmap_error* error);

typedef enum perfmap_imported {
  PERFMAP_IMPORTED_VANISHED = 0,  /* no such process any more, or none ever */
  PERFMAP_IMPORTED_UNCHANGED = 1, /* the same program, its memory as it was */
  PERFMAP_IMPORTED_CHANGED = 2,   /* the same program, other memory */
  PERFMAP_IMPORTED_BEGAN = 3      /* a process, or a program, that was not there before */
} perfmap_imported;

/* Reads /proc/PID, which counts from `time` on; PERFMAP_NOW: from CLOCK_MONOTONIC's time. That a
 * process is gone is an answer in `imported`, which may be NULL. Fails with IO, REFUSED or
 * BAD_FORMAT. */
PERFMAP_C_API perfmap_status perfmap_tracker_import(perfmap_tracker* tracker, int32_t pid,
                                                    uint64_t time, int32_t* imported,
                                                    perfmap_error* error);

/* --- Events --------------------------------------------------------------------------------------
 */

#define PERFMAP_ACCESS_READ 1
#define PERFMAP_ACCESS_WRITE 2
#define PERFMAP_ACCESS_EXECUTE 4 /* the three are PROT_READ, PROT_WRITE and PROT_EXEC */
#define PERFMAP_ACCESS_SHARED 8

/* PERF_RECORD_MMAP and MMAP2. MMAP tells no access: it is executable unless the record has
 * PERF_RECORD_MISC_MMAP_DATA. */
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
/* Nothing is mapped there any more. perf records none of these. */
PERFMAP_C_API perfmap_status perfmap_tracker_on_unmap(perfmap_tracker* tracker, int32_t pid,
                                                      uint64_t time, uint64_t begin, uint64_t size,
                                                      perfmap_error* error);
/* A process; where `pid` is `parent`, a thread. */
PERFMAP_C_API perfmap_status perfmap_tracker_on_fork(perfmap_tracker* tracker, int32_t pid,
                                                     int32_t tid, int32_t parent, uint64_t time,
                                                     perfmap_error* error);
/* `exec`: not 0 for PERF_RECORD_MISC_COMM_EXEC, when the process runs another program. */
PERFMAP_C_API perfmap_status perfmap_tracker_on_comm(perfmap_tracker* tracker, int32_t pid,
                                                     int32_t tid, uint64_t time, const char* comm,
                                                     size_t comm_size, int32_t exec,
                                                     perfmap_error* error);
/* The end of a thread, and with the last one of the process. */
PERFMAP_C_API perfmap_status perfmap_tracker_on_exit(perfmap_tracker* tracker, int32_t pid,
                                                     int32_t tid, uint64_t time,
                                                     perfmap_error* error);

/* --- Spaces --------------------------------------------------------------------------------------
 *
 * What was mapped where in one process, at one moment. Never changes: a space may be used by
 * several threads, and after perfmap_tracker_end(). Processes that forked share theirs.
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
  PERFMAP_JIT_NONE = 0,       /* not executable, or the kernel's */
  PERFMAP_JIT_UNLESS_ELF = 1, /* a file names it; if that is an ELF file, its symbols answer */
  PERFMAP_JIT_LIKELY = 2      /* executable, and no file names it */
} perfmap_jit_room;

typedef struct perfmap_region {
  size_t struct_size; /* set by the caller to sizeof(perfmap_region) */
  uint64_t begin;
  uint64_t size;
  uint64_t offset; /* of begin in the file */
  uint32_t access; /* PERFMAP_ACCESS_ bits */
  int32_t kind;    /* a perfmap_region_kind; later releases may know more */
  int32_t jit;     /* a perfmap_jit_room */
  uint32_t device_major;
  uint32_t device_minor;
  uint64_t inode;
  const char* name; /* of files without " (deleted)"; lives as long as the space */
  size_t name_size;
  const void* build_id; /* as an event told it */
  size_t build_id_size;
} perfmap_region;

/* The memory, at that time, of the process that had the pid then. NOT_FOUND: none had it. End it
 * with perfmap_space_end(). */
PERFMAP_C_API perfmap_status perfmap_space_begin_with_tracker(perfmap_tracker* tracker, int32_t pid,
                                                              uint64_t time, perfmap_space** out,
                                                              perfmap_error* error);
PERFMAP_C_API void perfmap_space_end(perfmap_space* space);
/* Whose it is, as the tracker knew it then; lives as long as the space. */
PERFMAP_C_API void perfmap_space_process(const perfmap_space* space, perfmap_process* out);
/* NOT_FOUND: nothing is mapped there. O(log n), allocates nothing. */
PERFMAP_C_API perfmap_status perfmap_space_find(const perfmap_space* space, uint64_t address,
                                                perfmap_region* out);
/* Ascending, without overlaps; `index` is less than the size. */
PERFMAP_C_API size_t perfmap_space_size(const perfmap_space* space);
PERFMAP_C_API void perfmap_space_region(const perfmap_space* space, size_t index,
                                        perfmap_region* out);

/* --- Code of JITs --------------------------------------------------------------------------------
 */

/* Reasons to doubt a name: bits, of which `doubts` may have several. Later releases may know more.
 */
typedef enum perfmap_doubt {
  PERFMAP_DOUBT_DAMAGED_RECORD = 1, /* the record or line that names the code contradicts itself */
  PERFMAP_DOUBT_CLAMPED_RANGE = 2,  /* the code's size was cut to what the file has */
  PERFMAP_DOUBT_REUSED_ADDRESS = 4, /* several entries of a map name it: the last one counts */
  PERFMAP_DOUBT_GUESSED_OWNER = 8,  /* the file's owner could not be compared with the process's */
  PERFMAP_DOUBT_REMAPPED_MEMORY = 128, /* a parent's name; the child may have mapped anew */
  PERFMAP_DOUBT_UNRECORDED_MEMORY =
      256 /* no executable mapping is known, and the name has no time */
} perfmap_doubt;

typedef struct perfmap_jit_code {
  size_t struct_size; /* set by the caller to sizeof(perfmap_jit_code) */
  uint64_t begin;
  uint64_t size;
  const char* name; /* until perfmap_tracker_refresh_jit() for the process, or the tracker's end */
  size_t name_size;
  int32_t room; /* a perfmap_jit_room; UNLESS_ELF: if the file is one, it is the answer instead */
  uint32_t doubts; /* PERFMAP_DOUBT_ bits */
} perfmap_jit_code;

/* The living process's own perf map and jitdumps: looked for at the first call, and taken in as far
 * as they have grown at later ones. NOT_FOUND: it has none. */
PERFMAP_C_API perfmap_status perfmap_tracker_refresh_jit(perfmap_tracker* tracker, int32_t pid,
                                                         perfmap_error* error);
/* The code at the address, where the region there, at `time`, has room for such, and `source_time`
 * is that of jitdumps (CLOCK_MONOTONIC). NOT_FOUND: nobody knows. */
PERFMAP_C_API perfmap_status perfmap_tracker_find_jit(perfmap_tracker* tracker, int32_t pid,
                                                      uint64_t address, uint64_t time,
                                                      uint64_t source_time, perfmap_jit_code* out,
                                                      perfmap_error* error);

/* --- Modules -------------------------------------------------------------------------------------
 *
 * ELF files, each opened once for however many processes, trackers and threads.
 */

typedef struct perfmap_module_cache_options {
  size_t struct_size;  /* set by the caller to sizeof(perfmap_module_cache_options) */
  uint64_t most_bytes; /* what was used longest ago goes beyond; 0 is 2 GiB */
  /* Where separate debug files are, such as "/usr/lib/debug": directories with ':' between them,
   * below a process's root and on the host. NULL: none is looked for. */
  const char* debug_directories;
} perfmap_module_cache_options;

/* `options` may be NULL. A cache may be used by several threads, and by several trackers. */
PERFMAP_C_API perfmap_status perfmap_module_cache_begin(const perfmap_module_cache_options* options,
                                                        perfmap_module_cache** out,
                                                        perfmap_error* error);
PERFMAP_C_API void perfmap_module_cache_end(perfmap_module_cache* cache);
/* Files that were read so far. */
PERFMAP_C_API uint64_t perfmap_module_cache_opened(const perfmap_module_cache* cache);

/* Never changes; may be used by several threads, and after its tracker and cache have ended. */
typedef struct perfmap_module perfmap_module;

typedef struct perfmap_module_facts {
  size_t struct_size; /* set by the caller to sizeof(perfmap_module_facts) */
  const char* path;   /* the views live as long as the module */
  size_t path_size;
  const void* build_id; /* its bytes; size 0 where there is none */
  size_t build_id_size;
  const void* bytes; /* the whole file, mapped */
  size_t bytes_size;
  uint32_t machine; /* EM_... */
  uint32_t type;    /* ET_... */
} perfmap_module_facts;

/* The ELF file that the process had mapped at the address at that time: what any other process has
 * loaded is used again. `vaddr`, which may be NULL, is the address in the file before relocation.
 * NOT_FOUND: nothing is mapped there, or no file; BAD_FORMAT: no ELF file; UNSUPPORTED: the tracker
 * has no cache; IO or REFUSED as opening says. End it with perfmap_module_end(). */
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
  const char* name; /* as the file has it; lives as long as the module */
  size_t name_size;
  const char* demangled; /* the same in the language of its source */
  size_t demangled_size;
} perfmap_symbol;

/* NOT_FOUND: no function is there. The first call builds the file's table. */
PERFMAP_C_API perfmap_status perfmap_module_find_symbol(const perfmap_module* module,
                                                        uint64_t vaddr, perfmap_symbol* out,
                                                        perfmap_error* error);

/* --- Names ---------------------------------------------------------------------------------------
 */

typedef enum perfmap_detail {
  PERFMAP_DETAIL_SYMBOLS = 0,
  PERFMAP_DETAIL_LINES = 1,  /* and one frame for the place in the source */
  PERFMAP_DETAIL_INLINES = 2 /* and a frame for each function that was inlined there */
} perfmap_detail;

typedef enum perfmap_no_name {
  PERFMAP_NO_NAME_GONE = 0,
  PERFMAP_NO_NAME_UNMAPPED = 1,
  PERFMAP_NO_NAME_NO_SOURCE = 2,   /* code of a JIT that wrote neither map nor dump */
  PERFMAP_NO_NAME_NOT_COVERED = 3, /* they have no code there */
  PERFMAP_NO_NAME_BEFORE_LOAD = 4, /* it came later */
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
  const char* name;   /* demangled; the views live until the next call with the tracker */
  size_t name_size;
  uint64_t begin; /* of the function, in the process; 0 where only debug information names it */
  uint64_t size;
  const char* source; /* the ELF file, map or dump that has the name, or would have it */
  size_t source_size;
  int32_t is_jit; /* not 0: the name is a map's or a dump's */
  int32_t why;    /* a perfmap_no_name, where there is none; later releases may know more */
  const perfmap_source_frame* frames; /* the innermost first; the last is the function itself */
  size_t frame_count;
  uint32_t doubts; /* PERFMAP_DOUBT_ bits */
} perfmap_address_name;

/* What the address is called: by the ELF file that the process had mapped there at `time`, or else
 * by what perfmap_tracker_refresh_jit() found, at `source_time`. NOT_FOUND: it has no name, and
 * `out` says why. `detail` is a perfmap_detail. */
PERFMAP_C_API perfmap_status perfmap_tracker_name(perfmap_tracker* tracker, int32_t pid,
                                                  uint64_t address, uint64_t time,
                                                  uint64_t source_time, int32_t detail,
                                                  perfmap_address_name* out, perfmap_error* error);

/* --- Registers -----------------------------------------------------------------------------------
 */

/* What perf_event_attr::sample_regs_user should be for stacks of that machine to be unwound, on
 * whatever host; `machine` is an e_machine of ELF: EM_X86_64, EM_386, EM_AARCH64, EM_ARM. 0 for any
 * other. */
PERFMAP_C_API uint64_t perfmap_preferred_regs_mask(uint32_t machine);

/* --- Stacks --------------------------------------------------------------------------------------
 *
 * From a thread's registers and a copy of its stack, such as perf's samples have, to its callers.
 */

/* A process made ready: what it had mapped at that moment, the files of its code, and its map and
 * dumps. Never changes; may be used by several threads, and after the tracker has ended. */
typedef struct perfmap_unwind_space perfmap_unwind_space;

/* Of the process that had the pid at `time`. Of a living one ask again when it has mapped
 * something, and after perfmap_tracker_refresh_jit(). NOT_FOUND: nobody had it. End it with
 * perfmap_unwind_detach(). */
PERFMAP_C_API perfmap_status perfmap_unwind_attach(perfmap_tracker* tracker, int32_t pid,
                                                   uint64_t time, perfmap_unwind_space** out,
                                                   perfmap_error* error);
PERFMAP_C_API void perfmap_unwind_detach(perfmap_unwind_space* space);

/* Remembers what it computed: one for each thread, and one thread at a time. */
typedef struct perfmap_unwinder perfmap_unwinder;

typedef struct perfmap_unwinder_options {
  size_t struct_size;    /* set by the caller to sizeof(perfmap_unwinder_options) */
  uint32_t most_frames;  /* 0 is 1024 */
  int32_t scan;          /* not 0: guesses where nothing is known */
  int32_t jit_cfi_first; /* not 0: for runtimes whose code keeps no frame pointers */
} perfmap_unwinder_options;

/* `options` may be NULL. End it with perfmap_unwinder_end(). */
PERFMAP_C_API perfmap_status perfmap_unwinder_begin(const perfmap_unwinder_options* options,
                                                    perfmap_unwinder** out, perfmap_error* error);
PERFMAP_C_API void perfmap_unwinder_end(perfmap_unwinder* unwinder);

typedef struct perfmap_sample {
  size_t struct_size;        /* set by the caller to sizeof(perfmap_sample) */
  uint32_t machine;          /* e_machine of ELF: EM_X86_64 or EM_AARCH64 */
  int32_t is_stack_full;     /* not 0: there was no room for more of the stack */
  uint64_t time;             /* for code of jitdumps: CLOCK_MONOTONIC, or PERFMAP_NOW */
  uint64_t register_mask;    /* bit n: register n of Linux, arch/.../include/uapi/asm/perf_regs.h */
  const uint64_t* registers; /* one a bit, ascending */
  size_t register_count;
  const void* stack; /* from the stack pointer on */
  size_t stack_size;
} perfmap_sample;

typedef enum perfmap_frame_source {
  PERFMAP_FRAME_INITIAL = 0, /* the sample's own registers */
  PERFMAP_FRAME_LEAF = 1,    /* by the code of a leaf */
  PERFMAP_FRAME_EH_CFI = 2,
  PERFMAP_FRAME_DEBUG_FRAME = 3,
  PERFMAP_FRAME_JIT_CFI = 4,
  PERFMAP_FRAME_FRAME_POINTER = 5,
  PERFMAP_FRAME_PLT = 6,
  PERFMAP_FRAME_SCAN = 7 /* a guess */
} perfmap_frame_source;

typedef struct perfmap_frame {
  size_t struct_size; /* of the library's struct */
  uint64_t pc;        /* a caller's is its return address */
  uint64_t sp;
  int32_t source;    /* a perfmap_frame_source; later releases may know more */
  int32_t is_return; /* not 0: names are those of pc - 1 */
} perfmap_frame;

typedef enum perfmap_stack_end {
  PERFMAP_STACK_ROOT = 0,      /* at the thread's first function */
  PERFMAP_STACK_TRUNCATED = 1, /* at the end of the copy, or a page that was not there */
  PERFMAP_STACK_NO_INFO = 2,   /* at code that nothing is known about */
  PERFMAP_STACK_BAD_MEMORY = 3,
  PERFMAP_STACK_LOOP = 4,
  PERFMAP_STACK_LIMIT = 5
} perfmap_stack_end;

/* Called for each frame, the leaf first; any answer but 0 ends the frames. */
typedef int (*perfmap_take_frame)(const perfmap_frame* frame, void* context);

/* `end`, which may be NULL, gets a perfmap_stack_end. Reads nothing but the sample and the files of
 * the code. Fails with INVALID_ARGUMENT for a machine that is not known. */
PERFMAP_C_API perfmap_status perfmap_unwind_sample(perfmap_unwinder* unwinder,
                                                   const perfmap_unwind_space* space,
                                                   const perfmap_sample* sample,
                                                   perfmap_take_frame take, void* context,
                                                   int32_t* end, perfmap_error* error);

#ifdef __cplusplus
}
#endif

#endif
