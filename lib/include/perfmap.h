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

/* All structs of this header, as perfmap_writer_layouts() has those of perfmap_writer.h. */
PERFMAP_C_API const perfmap_layout* perfmap_layouts(size_t* count);

/* --- Reading -------------------------------------------------------------------------------------
 *
 * A map is a file seen as lines; lines that make no sense are skipped, perfmap_map_lint() lists
 * them. Every dialect in use is read: 0x prefixes, upper case, tabs, CRLF, no final newline.
 */

typedef struct perfmap_map perfmap_map;

typedef struct perfmap_entry {
  size_t struct_size; /* set by the caller to sizeof(perfmap_entry) */
  uint64_t start;
  uint64_t size; /* 0: extent unknown, the first byte counts */
  const char* name;
  size_t name_size;
  uint64_t offset; /* of its line in its map, in bytes */
  size_t map;      /* which of an index's maps, from 0 */
} perfmap_entry;

/* Opens the map at `path` as typed: links are followed. Release with perfmap_map_free().
 *
 * A regular file is mapped, so O(1); what is no file is read to its end. Data of another kind, such
 * as a jitdump or what a packer made, is UNSUPPORTED. A mapped file that another process truncates
 * raises SIGBUS in whoever reads it next, through any function that takes the map or an index of
 * it: see perfmap_truncation_guard_new(). */
PERFMAP_C_API perfmap_status perfmap_map_open(const char* path, perfmap_map** out,
                                              perfmap_error* error);
/* The map of a process, container aware; nothing about the path is trusted. Of a process that lives
 * a last line without newline is not there yet. INVALID_ARGUMENT for pid <= 0. */
PERFMAP_C_API perfmap_status perfmap_map_open_pid(int32_t pid, perfmap_map** out,
                                                  perfmap_error* error);
/* A map in memory, which is copied. */
PERFMAP_C_API perfmap_status perfmap_map_from_memory(const char* text, size_t size,
                                                     perfmap_map** out, perfmap_error* error);
PERFMAP_C_API void perfmap_map_free(perfmap_map* map);

/* The next entry in file order of those whose lines start at or after *offset; *offset is then
 * behind its line. Start with 0. NOT_FOUND at the end. O(bytes passed over). */
PERFMAP_C_API perfmap_status perfmap_map_next(const perfmap_map* map, uint64_t* offset,
                                              perfmap_entry* out);
/* The number, from 1, of the line that starts at `offset`. */
PERFMAP_C_API uint64_t perfmap_map_line_number(const perfmap_map* map, uint64_t offset);

/* 1 if the map's file was truncated by another process, so that a guard had to stand in for bytes
 * of it: what was answered since may be too little. Else 0. */
PERFMAP_C_API int perfmap_map_was_truncated(const perfmap_map* map);

/* --- Looking up addresses ------------------------------------------------------------------------
 */

typedef struct perfmap_index perfmap_index;

typedef enum perfmap_overlap {
  PERFMAP_OVERLAP_LAST = 0, /* the later line wins, and the later map */
  PERFMAP_OVERLAP_FIRST = 1,
  PERFMAP_OVERLAP_INNER = 2, /* the shortest entry; among equals the later */
  PERFMAP_OVERLAP_PERF = 3   /* what perf 6 answers */
} perfmap_overlap;

/* An index over maps, oldest first. The maps may be freed afterwards: the index shares their bytes.
 * O(n log n). Release with perfmap_index_free(). */
PERFMAP_C_API perfmap_status perfmap_index_new(const perfmap_map* const* maps, size_t count,
                                               int32_t overlap, perfmap_index** out,
                                               perfmap_error* error);
PERFMAP_C_API void perfmap_index_free(perfmap_index* index);
/* Who answers for `address`. O(log n), allocates nothing. NOT_FOUND where nobody does. */
PERFMAP_C_API perfmap_status perfmap_index_find(const perfmap_index* index, uint64_t address,
                                                perfmap_entry* out);
/* The same for many: out[i] answers addresses[i], with name NULL where nobody does; each out[i] has
 * its struct_size set. Returns how many were found. Fastest where addresses ascend. */
PERFMAP_C_API size_t perfmap_index_find_batch(const perfmap_index* index, const uint64_t* addresses,
                                              size_t count, perfmap_entry* out);
/* Takes in what was appended to the files; *changed is 0, 1 (appended) or 2 (replaced: all was read
 * again). Entries taken before are invalid unless it is 0. */
PERFMAP_C_API perfmap_status perfmap_index_refresh(perfmap_index* index, int* changed,
                                                   perfmap_error* error);
/* Answers a few addresses in one pass over a map, without an index. As perfmap_index_find_batch();
 * the policy is not PERF. */
PERFMAP_C_API perfmap_status perfmap_map_find_batch(const perfmap_map* map, int32_t overlap,
                                                    const uint64_t* addresses, size_t count,
                                                    perfmap_entry* out, size_t* found,
                                                    perfmap_error* error);
/* Writes what the index answers as a portable map, sorted and without overlaps, replacing `path` at
 * once or not at all. This is merge and tidy. */
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
  uint64_t start;     /* of all the code, where it lay then */
  uint64_t size;
  const char* name; /* in the dump: valid until the timeline is freed or refreshed */
  size_t name_size;
  uint64_t since;    /* the address belonged to it from this time on */
  uint64_t until;    /* and no longer at this one; PERFMAP_TIME_END: to the end */
  uint64_t offset;   /* of its LOAD record in the dump */
  uint64_t index;    /* its code_index */
  const char* bytes; /* of the code, `size` of them, as it was loaded; NULL: not in the dump */
} perfmap_code;

/* Reads the jitdump at `path`, opened as typed; an empty file is an empty dump, what is damaged is
 * passed over, and a last record that is not whole is not there yet. O(n log n). UNSUPPORTED where
 * it is of another kind. Release with perfmap_timeline_free(). */
PERFMAP_C_API perfmap_status perfmap_timeline_open(const char* path, perfmap_timeline** out,
                                                   perfmap_error* error);
PERFMAP_C_API void perfmap_timeline_free(perfmap_timeline* timeline);
/* Whose code was at `address` at `time`. O(log n) mostly, allocates nothing. NOT_FOUND where nobody
 * had any. Several threads may ask at once. */
PERFMAP_C_API perfmap_status perfmap_timeline_find(const perfmap_timeline* timeline,
                                                   uint64_t address, uint64_t time,
                                                   perfmap_code* out);
/* The source line of an address that perfmap_timeline_find() has answered for with `code`: *file,
 * which is not NUL-terminated, and *line. NOT_FOUND where the dump has none. One thread at a time;
 * fastest where questions about one function come together. */
PERFMAP_C_API perfmap_status perfmap_timeline_line(perfmap_timeline* timeline,
                                                   const perfmap_code* code, uint64_t address,
                                                   const char** file, size_t* file_size,
                                                   int32_t* line, perfmap_error* error);
/* Takes in what was appended to the file; *changed as for perfmap_index_refresh(). */
PERFMAP_C_API perfmap_status perfmap_timeline_refresh(perfmap_timeline* timeline, int* changed,
                                                      perfmap_error* error);

/* --- Lint ----------------------------------------------------------------------------------------
 */

typedef struct perfmap_finding {
  size_t struct_size; /* sizeof(perfmap_finding) as the library knows it */
  const char* rule;   /* "PM003", NUL-terminated, static */
  int32_t severity;   /* 0 info, 1 warning, 2 error */
  int32_t fixable;    /* not 0: perfmap_index_write() mends it */
  uint64_t line;      /* from 1 */
  uint64_t column;    /* in bytes from 1 */
  uint64_t offset;
  const char* message; /* NUL-terminated; valid during the call */
} perfmap_finding;

/* Calls `visit` for every finding, in the order of the lines, at most `most_per_rule` of each rule
 * (0: all), until it answers something other than 0. */
PERFMAP_C_API perfmap_status perfmap_map_lint(const perfmap_map* map, size_t most_per_rule,
                                              int (*visit)(const perfmap_finding* finding,
                                                           void* context),
                                              void* context, perfmap_error* error);

/* --- Names ---------------------------------------------------------------------------------------
 */

typedef struct perfmap_name {
  size_t struct_size;   /* set by the caller to sizeof(perfmap_name) */
  const char* runtime;  /* "v8", "hotspot", …, NUL-terminated, static; "" where unknown */
  const char* tier;     /* "turbofan", …, NUL-terminated, static; "" where unknown */
  const char* function; /* a part of the raw name, as is `file`; empty: an anonymous function */
  size_t function_size;
  const char* file; /* NULL where the name has none */
  size_t file_size;
  uint64_t line;   /* 0 where the name has none */
  uint64_t column; /* 0 where the name has none */
} perfmap_name;

/* What a raw name says. The parts are views into `name`. Never fails: at worst the function is the
 * whole name. */
PERFMAP_C_API void perfmap_name_decode(const char* name, size_t size, perfmap_name* out);

/* A part of a raw name. This struct will not grow. */
typedef struct perfmap_name_part {
  const char* text; /* not NUL-terminated */
  size_t size;
} perfmap_name_part;

/* The functions inlined into each other, outermost first, where a name is such a chain
 * ("Lfoo;::outer->Lbar;::inner", "Lbar;::inner in Lfoo;::outer"); its last is perfmap_name's
 * `function`. Fills at most `most` parts, views into `name`, and answers how many there are: 0
 * where the name is no chain, or memory is exhausted. */
PERFMAP_C_API size_t perfmap_name_inline_chain(const char* name, size_t size,
                                               perfmap_name_part* parts, size_t most);

#ifdef __cplusplus
}
#endif

#endif
