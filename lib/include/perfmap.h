/* SPDX-License-Identifier: MIT */
/* perfmap.h - the C interface of libperfmap.
 *
 * Reads, checks, merges, queries and writes perf maps: the files /tmp/perf-PID.map in which JIT
 * runtimes name their code for profilers. The writers, and the rules that hold for every function,
 * are in perfmap_writer.h, which this header includes.
 */
#ifndef PERFMAP_H
#define PERFMAP_H

#include <perfmap_writer.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All structs of this header, like perfmap_writer_layouts() for perfmap_writer.h. */
PERFMAP_C_API const perfmap_layout* perfmap_layouts(size_t* count);

/* --- Reading -------------------------------------------------------------------------------------
 *
 * A map is read line by line. Malformed lines are skipped; perfmap_map_lint() lists them. All
 * dialects in use are supported: 0x prefixes, upper case, tabs, CRLF, no final newline.
 */

typedef struct perfmap_map perfmap_map;

typedef struct perfmap_entry {
  size_t struct_size; /* set by the caller to sizeof(perfmap_entry) */
  uint64_t start;
  uint64_t size; /* 0: unknown; the entry names only its first byte */
  const char* name;
  size_t name_size;
  uint64_t offset; /* of its line in its map, in bytes */
  size_t map;      /* position of the map in the index, from 0 */
} perfmap_entry;

/* Opens the map at `path`; links are followed. Release with perfmap_map_free(). A regular file is
 * mapped, so this is O(1); any other file is read to its end. Data of another kind, such as a
 * jitdump or compressed data, is UNSUPPORTED. If another process truncates a mapped file, the next
 * function that reads the map or an index of it raises SIGBUS: see perfmap_truncation_guard_new().
 */
PERFMAP_C_API perfmap_status perfmap_map_open(const char* path, perfmap_map** out,
                                              perfmap_error* error);
/* Opens the map of a process, also of a process in a container. Links are not followed. The file
 * must be a regular file with one name, and must belong to the process's user, to root or to the
 * caller's user. If the process is alive, a last line without a newline is not read yet.
 * INVALID_ARGUMENT for pid <= 0. */
PERFMAP_C_API perfmap_status perfmap_map_open_pid(int32_t pid, perfmap_map** out,
                                                  perfmap_error* error);
/* A map from memory. The text is copied. */
PERFMAP_C_API perfmap_status perfmap_map_from_memory(const char* text, size_t size,
                                                     perfmap_map** out, perfmap_error* error);
PERFMAP_C_API void perfmap_map_free(perfmap_map* map);

/* The next entry, in file order, whose line starts at or after *offset. Then sets *offset to the
 * end of that line. Start with 0. NOT_FOUND at the end. O(bytes skipped). */
PERFMAP_C_API perfmap_status perfmap_map_next(const perfmap_map* map, uint64_t* offset,
                                              perfmap_entry* out);
/* The number, from 1, of the line that starts at `offset`. */
PERFMAP_C_API uint64_t perfmap_map_line_number(const perfmap_map* map, uint64_t offset);

/* 1 if another process truncated the map's file, so that a guard replaced some of its bytes:
 * results since then may be incomplete. Otherwise 0. */
PERFMAP_C_API int perfmap_map_was_truncated(const perfmap_map* map);

/* --- Looking up addresses ------------------------------------------------------------------------
 */

typedef struct perfmap_index perfmap_index;

/* Which entry wins where entries overlap. */
typedef enum perfmap_overlap {
  PERFMAP_OVERLAP_LAST = 0,  /* the later line, and the later map */
  PERFMAP_OVERLAP_FIRST = 1, /* the earlier line, and the earlier map */
  PERFMAP_OVERLAP_INNER = 2, /* the shortest entry; among equals the later one */
  PERFMAP_OVERLAP_PERF = 3   /* the entry that perf 6 finds */
} perfmap_overlap;

/* An index of maps, oldest first. The maps may be freed afterwards: the index shares their bytes.
 * O(n log n). Release with perfmap_index_free(). */
PERFMAP_C_API perfmap_status perfmap_index_new(const perfmap_map* const* maps, size_t count,
                                               int32_t overlap, perfmap_index** out,
                                               perfmap_error* error);
PERFMAP_C_API void perfmap_index_free(perfmap_index* index);
/* The entry that wins at `address`. O(log n), allocates nothing. NOT_FOUND if no entry covers it.
 */
PERFMAP_C_API perfmap_status perfmap_index_find(const perfmap_index* index, uint64_t address,
                                                perfmap_entry* out);
/* The same for many addresses: out[i] is the entry for addresses[i]; its name is NULL if no entry
 * covers the address. The caller sets the struct_size of each out[i]. Returns the number of
 * addresses that have an entry. Fastest if addresses ascend. */
PERFMAP_C_API size_t perfmap_index_find_batch(const perfmap_index* index, const uint64_t* addresses,
                                              size_t count, perfmap_entry* out);
/* Reads what was appended to the files. *changed is 0 (unchanged), 1 (appended) or 2 (replaced: all
 * was read again). Entries that were returned earlier stay valid only if *changed is 0. */
PERFMAP_C_API perfmap_status perfmap_index_refresh(perfmap_index* index, int* changed,
                                                   perfmap_error* error);
/* Looks up a few addresses in one pass over a map, without an index. Works like
 * perfmap_index_find_batch(), but does not support PERFMAP_OVERLAP_PERF. */
PERFMAP_C_API perfmap_status perfmap_map_find_batch(const perfmap_map* map, int32_t overlap,
                                                    const uint64_t* addresses, size_t count,
                                                    perfmap_entry* out, size_t* found,
                                                    perfmap_error* error);
/* Writes the entries of the index as a portable map, sorted and without overlaps, as `perfmap
 * merge` and `perfmap tidy` do. Replaces `path` atomically or leaves it unchanged. */
PERFMAP_C_API perfmap_status perfmap_index_write(perfmap_index* index, const char* path,
                                                 perfmap_error* error);

/* --- Jitdumps: what was at an address at a time --------------------------------------------------
 *
 * Times are those of the dump: CLOCK_MONOTONIC nanoseconds, or ticks of the processor.
 */

typedef struct perfmap_timeline perfmap_timeline;

#define PERFMAP_TIME_END UINT64_MAX

typedef struct perfmap_code {
  size_t struct_size; /* set by the caller to sizeof(perfmap_code) */
  uint64_t start;     /* of the code at that time */
  uint64_t size;
  const char* name; /* in the dump: valid until the timeline is freed or refreshed */
  size_t name_size;
  uint64_t since;    /* the code was at the address from this time on */
  uint64_t until;    /* and before this time; PERFMAP_TIME_END: to the end */
  uint64_t offset;   /* of its LOAD record in the dump */
  uint64_t index;    /* its code_index */
  const char* bytes; /* the code as it was loaded, `size` bytes; NULL: not in the dump */
} perfmap_code;

/* Reads the jitdump at `path`; links are followed. An empty file is an empty dump, malformed
 * records are skipped, and an incomplete last record is not read yet. O(n log n). UNSUPPORTED if
 * the file is of another kind. Release with perfmap_timeline_free(). */
PERFMAP_C_API perfmap_status perfmap_timeline_open(const char* path, perfmap_timeline** out,
                                                   perfmap_error* error);
PERFMAP_C_API void perfmap_timeline_free(perfmap_timeline* timeline);
/* The function that was at `address` at `time`. Usually O(log n), allocates nothing. NOT_FOUND if
 * no function was there. May be called by several threads at once. */
PERFMAP_C_API perfmap_status perfmap_timeline_find(const perfmap_timeline* timeline,
                                                   uint64_t address, uint64_t time,
                                                   perfmap_code* out);
/* The source line of an address for which perfmap_timeline_find() returned `code`: *file, which is
 * not NUL-terminated, and *line. The file is "[inlined from another file]" for lines of V8 that
 * the file, if it can be read, does not have. NOT_FOUND if the dump has no line for it. One thread
 * at a time; fastest if addresses of one function are looked up together. */
PERFMAP_C_API perfmap_status perfmap_timeline_line(perfmap_timeline* timeline,
                                                   const perfmap_code* code, uint64_t address,
                                                   const char** file, size_t* file_size,
                                                   int32_t* line, perfmap_error* error);
/* Reads what was appended to the file. *changed is as for perfmap_index_refresh(). */
PERFMAP_C_API perfmap_status perfmap_timeline_refresh(perfmap_timeline* timeline, int* changed,
                                                      perfmap_error* error);

/* --- Lint ----------------------------------------------------------------------------------------
 */

typedef struct perfmap_finding {
  size_t struct_size; /* sizeof(perfmap_finding) as the library knows it */
  const char* rule;   /* "PM003", NUL-terminated, static */
  int32_t severity;   /* 0 info, 1 warning, 2 error */
  int32_t fixable;    /* not 0: perfmap_index_write() fixes it */
  uint64_t line;      /* from 1 */
  uint64_t column;    /* in bytes from 1 */
  uint64_t offset;
  const char* message; /* NUL-terminated; valid during the call */
} perfmap_finding;

/* Calls `visit` for each finding, in the order of the lines, until it returns a value other than 0.
 * Reports at most `most_per_rule` findings of each rule; 0: all. */
PERFMAP_C_API perfmap_status perfmap_map_lint(const perfmap_map* map, size_t most_per_rule,
                                              int (*visit)(const perfmap_finding* finding,
                                                           void* context),
                                              void* context, perfmap_error* error);

/* --- Names ---------------------------------------------------------------------------------------
 */

typedef struct perfmap_name {
  size_t struct_size;   /* set by the caller to sizeof(perfmap_name) */
  const char* runtime;  /* "v8", "hotspot", …, NUL-terminated, static; "" if unknown */
  const char* tier;     /* "turbofan", …, NUL-terminated, static; "" if unknown */
  const char* function; /* a part of the raw name, like `file`; empty: an anonymous function */
  size_t function_size;
  const char* file; /* NULL if the name has none */
  size_t file_size;
  uint64_t line;   /* 0 if the name has none */
  uint64_t column; /* 0 if the name has none */
} perfmap_name;

/* Decodes a raw name. The parts are views into `name`. Never fails: if nothing is recognised, the
 * function is the whole name. */
PERFMAP_C_API void perfmap_name_decode(const char* name, size_t size, perfmap_name* out);

/* A part of a raw name. This struct will not grow. */
typedef struct perfmap_name_part {
  const char* text; /* not NUL-terminated */
  size_t size;
} perfmap_name_part;

/* The functions inlined into each other, outermost first, if a name is such a chain
 * ("Lfoo;::outer->Lbar;::inner", "Lbar;::inner in Lfoo;::outer"); the last one is perfmap_name's
 * `function`. Fills at most `most` parts, which are views into `name`, and returns the number of
 * functions: 0 if the name is not a chain, or memory is exhausted. */
PERFMAP_C_API size_t perfmap_name_inline_chain(const char* name, size_t size,
                                               perfmap_name_part* parts, size_t most);

#ifdef __cplusplus
}
#endif

#endif
