/* SPDX-License-Identifier: MIT */
/* Uses every function of perfmap.h; compiled as strict C99. Run in a separate directory. */
#include <errno.h>
#include <perfmap.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "check.h"

static perfmap_error error = {.struct_size = sizeof(perfmap_error)};

/* A caller whose perfmap_error ends before `reason`. */
static void use_former_error(void) {
  perfmap_error former = {.struct_size = offsetof(perfmap_error, reason)};
  perfmap_timeline* timeline = NULL;
  perfmap_writer* writer = NULL;
  former.reason = -7;
  CHECK(perfmap_writer_open("no/such/directory.map", NULL, &writer, &former) ==
        PERFMAP_E_NOT_FOUND);
  CHECK(strstr(former.message, "no/such/directory.map") != NULL);
  former.message[0] = '\0';
  CHECK(perfmap_timeline_open("no/such/file", &timeline, &former) == PERFMAP_E_NOT_FOUND);
  CHECK(strstr(former.message, "no/such/file") != NULL);
  CHECK(former.reason == -7 && former.path[0] == '\0');
  CHECK(former.struct_size == offsetof(perfmap_error, reason));
  former.struct_size -= 1;
  CHECK(perfmap_timeline_open("no/such/file", &timeline, &former) == PERFMAP_E_INVALID_ARGUMENT);
}

static void use_mapped_writer(void) {
  perfmap_writer* writer = NULL;
  perfmap_writer* other = NULL;
  perfmap_writer_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.mapped = 1;
  remove("mapped.map");
  CHECK(perfmap_writer_open("mapped.map", &options, &writer, &error) == PERFMAP_OK);
  CHECK(perfmap_writer_write(writer, 0x1000, 0x10, "foo", 3, &error) == PERFMAP_OK);
  CHECK(perfmap_writer_open("mapped.map", &options, &other, &error) == PERFMAP_E_IO);
  CHECK(error.sys_errno == EBUSY);
  CHECK(perfmap_writer_close(writer, &error) == PERFMAP_OK);
  check_file("mapped.map", "1000 10 foo\n");
  perfmap_writer_free(writer);
  remove("mapped.map");
}

static void use_writer(void) {
  perfmap_writer* writer = NULL;
  perfmap_writer_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.names = PERFMAP_NAMES_REFUSE;
  options.buffer_bytes = 4096;
  CHECK(perfmap_writer_open("no/such/directory.map", NULL, &writer, &error) == PERFMAP_E_NOT_FOUND);
  CHECK(error.sys_errno == ENOENT && strstr(error.message, "no/such/directory.map") != NULL);
  CHECK(error.reason == PERFMAP_REASON_SYSTEM && strcmp(error.path, "no/such/directory.map") == 0);
  remove("written.map");
  CHECK(perfmap_writer_open("written.map", &options, &writer, &error) == PERFMAP_OK);
  CHECK(perfmap_writer_write(writer, 0x1000, 0x10, "foo", 3, &error) == PERFMAP_OK);
  CHECK(perfmap_writer_write(writer, 0x1000, 0x10, "a\nb", 3, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(error.sys_errno == EILSEQ);
  check_file("written.map", "");
  CHECK(perfmap_writer_flush(writer, &error) == PERFMAP_OK);
  check_file("written.map", "1000 10 foo\n");
  CHECK(perfmap_writer_copy(writer, "written.map", &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_writer_close(writer, &error) == PERFMAP_OK);
  perfmap_writer_free(writer);
  perfmap_writer_free(NULL);
}

/* The bytes of records are tested in C++; this tests that all fields are passed through. */
static void use_timeline(const char* path) {
  perfmap_timeline* timeline = NULL;
  perfmap_code code;
  const char* file = NULL;
  size_t file_size = 0;
  int32_t line = 0;
  int changed = -1;
  code.struct_size = sizeof code;
  CHECK(perfmap_timeline_open("no/such/file", &timeline, &error) == PERFMAP_E_NOT_FOUND);
  CHECK(error.reason == PERFMAP_REASON_SYSTEM && strcmp(error.path, "no/such/file") == 0);
  CHECK(perfmap_timeline_open(NULL, &timeline, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_timeline_open("written.map", &timeline, &error) == PERFMAP_E_UNSUPPORTED);
  CHECK(perfmap_timeline_open(path, &timeline, &error) == PERFMAP_OK);
  CHECK(perfmap_timeline_find(timeline, 0x2002, PERFMAP_TIME_END, &code) == PERFMAP_OK);
  CHECK(code.start == 0x2000 && code.size == 4 && code.index == 1);
  CHECK(code.until == PERFMAP_TIME_END && code.bytes != NULL && code.bytes[0] == (char)0xc3);
  CHECK(code.name_size == 8 && memcmp(code.name, "function", 8) == 0);
  CHECK(perfmap_timeline_line(timeline, &code, 0x2002, &file, &file_size, &line, &error) ==
        PERFMAP_OK);
  CHECK(line == 7 && file_size == 8 && memcmp(file, "source.c", 8) == 0);
  CHECK(perfmap_timeline_find(timeline, 0x1002, PERFMAP_TIME_END, &code) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_timeline_find(timeline, 0x2002, code.since - 1, &code) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_timeline_refresh(timeline, &changed, &error) == PERFMAP_OK && changed == 0);
  perfmap_timeline_free(timeline);
  perfmap_timeline_free(NULL);
}

static void use_jitdump(void) {
  static const char code[] = {(char)0xc3, 0, 0, 0};
  perfmap_jitdump* dump = NULL;
  perfmap_jitdump_options options;
  perfmap_jitdump_function function;
  perfmap_jitdump_line line = {0x1000, 7, 3, "source.c"};
  unsigned char bytes[1024];
  uint64_t index = 0;
  size_t size;
  char own[64];
  FILE* file;
  sprintf(own, "./jit-%ld.dump", (long)getpid());
  CHECK(perfmap_jitdump_open_own("no/such/directory", NULL, &dump, &error) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_jitdump_open_own(".", NULL, &dump, &error) == PERFMAP_OK);
  memset(&function, 0, sizeof function);
  function.struct_size = sizeof function;
  function.start = 0x1000;
  function.size = sizeof code;
  function.name = "function";
  function.name_size = 8;
  function.code = code;
  function.lines = &line;
  function.line_count = 1;
  function.eh_frame = "frame";
  function.eh_frame_size = 5;
  function.eh_frame_hdr = "header";
  function.eh_frame_hdr_size = 6;
  function.mapped_size = 16;
  CHECK(perfmap_jitdump_load(dump, &function, &index, &error) == PERFMAP_OK && index == 1);
  line.address = 0x2000;
  CHECK(perfmap_jitdump_load(dump, &function, NULL, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_jitdump_move(dump, index, 0x1000, 0x2000, 4, &error) == PERFMAP_OK);
  CHECK(perfmap_jitdump_close(dump, &error) == PERFMAP_OK);
  CHECK(perfmap_jitdump_move(dump, index, 0x1000, 0x2000, 4, &error) == PERFMAP_E_IO);
  CHECK(error.sys_errno == EBADF);
  perfmap_jitdump_free(dump);
  perfmap_jitdump_free(NULL);
  file = fopen(own, "rb");
  CHECK(file != NULL);
  size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  /* Header, one line padded from 57 bytes, 11 bytes padded to 16, the function, its move, CLOSE. */
  CHECK(size == 40 + 64 + 56 + (56 + 9 + 4) + 64 + 16);
  CHECK(memcmp(bytes + 40 + 32 + 16, "source.c", 9) == 0);
  CHECK(memcmp(bytes + 40 + 64 + 40, "frameheader", 11) == 0);
  CHECK(memcmp(bytes + 40 + 64 + 56 + 56, "function\0\xc3", 10) == 0);
  use_timeline(own);
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.pid = 1 << 30;
  CHECK(perfmap_jitdump_open(own, &options, &dump, &error) == PERFMAP_E_BAD_FORMAT);
  options.pid = 0;
  options.no_marker = 1;
  CHECK(perfmap_jitdump_open(own, &options, &dump, &error) == PERFMAP_OK);
  function.line_count = 0;
  CHECK(perfmap_jitdump_load(dump, &function, &index, &error) == PERFMAP_OK && index == 2);
  perfmap_jitdump_free(dump);
  remove(own);
}

/* Truncates a mapped file: the next access does not crash, and reports an error. */
static void use_guard(void) {
  perfmap_truncation_guard* guard = NULL;
  perfmap_map* map = NULL;
  perfmap_entry entry = {sizeof entry, 0, 0, NULL, 0, 0, 0};
  uint64_t offset = 0;
  FILE* const file = fopen("truncated.map", "w");
  int i;
  CHECK(file != NULL);
  for (i = 0; i < 2000; ++i) fprintf(file, "%x 10 entry\n", 0x1000 + i * 16);
  CHECK(fclose(file) == 0);
  CHECK(perfmap_truncation_guard_new(&guard, &error) == PERFMAP_OK);
  CHECK(perfmap_map_open("truncated.map", &map, &error) == PERFMAP_OK);
  CHECK(perfmap_map_was_truncated(map) == 0);
  CHECK(truncate("truncated.map", 0) == 0);
  CHECK(perfmap_map_next(map, &offset, &entry) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_map_was_truncated(map) == 1);
  perfmap_map_free(map);
  perfmap_truncation_guard_free(guard);
  perfmap_truncation_guard_free(NULL);
  remove("truncated.map");
}

static int count_finding(const perfmap_finding* finding, void* context) {
  CHECK(strncmp(finding->rule, "PM", 2) == 0);
  ++*(int*)context;
  return 0;
}

static perfmap_map* map_of(const char* text) {
  perfmap_map* map = NULL;
  CHECK(perfmap_map_from_memory(text, strlen(text), &map, &error) == PERFMAP_OK);
  return map;
}

static void use_map(void) {
  perfmap_map* map = NULL;
  perfmap_entry entry = {sizeof entry, 0, 0, NULL, 0, 0, 0};
  perfmap_entry found[2] = {{sizeof entry, 0, 0, NULL, 0, 0, 0},
                            {sizeof entry, 0, 0, NULL, 0, 0, 0}};
  const uint64_t addresses[2] = {0x1004, 0x9999};
  uint64_t offset = 0;
  size_t hits = 0;
  int findings = 0;
  CHECK(perfmap_map_open("missing.map", &map, &error) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_map_open(NULL, &map, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_map_from_memory(NULL, 1, &map, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_map_open_pid(1 << 30, &map, &error) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_map_open_pid(-5, &map, &error) == PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_map_from_memory("\x1f\x8b\x08", 3, &map, &error) == PERFMAP_E_UNSUPPORTED);
  CHECK(strstr(error.message, "gzip") != NULL);
  CHECK(perfmap_map_open("written.map", &map, &error) == PERFMAP_OK);
  CHECK(perfmap_map_next(map, &offset, &entry) == PERFMAP_OK);
  CHECK(entry.start == 0x1000 && entry.size == 0x10 && entry.name_size == 3);
  CHECK(memcmp(entry.name, "foo", 3) == 0);
  CHECK(perfmap_map_line_number(map, entry.offset) == 1);
  CHECK(perfmap_map_next(map, &offset, &entry) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_map_find_batch(map, PERFMAP_OVERLAP_LAST, addresses, 2, found, &hits, &error) ==
        PERFMAP_OK);
  CHECK(hits == 1 && found[0].name_size == 3 && found[1].name == NULL);
  perfmap_map_free(map);
  map = map_of("1000 100 outer\n2000 10 next\n");
  offset = 3; /* inside a line, whose rest is not an entry */
  CHECK(perfmap_map_next(map, &offset, &entry) == PERFMAP_OK);
  CHECK(entry.start == 0x2000 && entry.offset == 15);
  perfmap_map_free(map);
  map = map_of("bad line\n");
  CHECK(perfmap_map_lint(map, 0, count_finding, &findings, &error) == PERFMAP_OK);
  CHECK(findings == 1);
  perfmap_map_free(map);
  perfmap_map_free(NULL);
}

static void use_index(void) {
  perfmap_map* maps[2];
  perfmap_index* index = NULL;
  perfmap_entry entry = {sizeof entry, 0, 0, NULL, 0, 0, 0};
  perfmap_entry found[2] = {{sizeof entry, 0, 0, NULL, 0, 0, 0},
                            {sizeof entry, 0, 0, NULL, 0, 0, 0}};
  const uint64_t addresses[2] = {0x1004, 0x100c};
  int changed = -1;
  maps[0] = map_of("1000 10 outer\n");
  maps[1] = map_of("1008 8 later\n");
  CHECK(perfmap_index_new((const perfmap_map* const*)maps, 2, 9, &index, &error) ==
        PERFMAP_E_INVALID_ARGUMENT);
  CHECK(perfmap_index_new((const perfmap_map* const*)maps, 2, PERFMAP_OVERLAP_LAST, &index,
                          &error) == PERFMAP_OK);
  perfmap_map_free(maps[0]);
  perfmap_map_free(maps[1]);
  CHECK(perfmap_index_find(index, 0x100f, &entry) == PERFMAP_OK);
  CHECK(entry.map == 1 && memcmp(entry.name, "later", 5) == 0);
  CHECK(perfmap_index_find(index, 0x1010, &entry) == PERFMAP_E_NOT_FOUND);
  CHECK(perfmap_index_find_batch(index, addresses, 2, found) == 2);
  CHECK(found[0].map == 0 && found[1].map == 1);
  CHECK(perfmap_index_refresh(index, &changed, &error) == PERFMAP_OK && changed == 0);
  CHECK(perfmap_index_write(index, "merged.map", &error) == PERFMAP_OK);
  CHECK(perfmap_index_write(index, NULL, &error) == PERFMAP_E_INVALID_ARGUMENT);
  check_file("merged.map", "1000 8 outer\n1008 8 later\n");
  perfmap_index_free(index);
  perfmap_index_free(NULL);
}

static void use_names(void) {
  const char* raw = "JS:*foo /a.js:1:13";
  perfmap_name name;
  name.struct_size = sizeof name;
  perfmap_name_decode(raw, strlen(raw), &name);
  CHECK(strcmp(name.runtime, "v8") == 0 && strcmp(name.tier, "turbofan") == 0);
  CHECK(name.function_size == 3 && memcmp(name.function, "foo", 3) == 0);
  CHECK(name.file_size == 5 && name.line == 1 && name.column == 13);

  const char* chain = "La/B;::outer->Lc/D;::inner";
  perfmap_name_part parts[2];
  parts[1].text = NULL;
  CHECK(perfmap_name_inline_chain(chain, strlen(chain), parts, 1) == 2);
  CHECK(parts[0].text == chain && parts[0].size == 12 && parts[1].text == NULL);
  CHECK(perfmap_name_inline_chain(chain, strlen(chain), parts, 2) == 2);
  CHECK(parts[1].size == 12 && memcmp(parts[1].text, "Lc/D;::inner", 12) == 0);
  CHECK(perfmap_name_inline_chain(raw, strlen(raw), parts, 2) == 0);
}

int main(void) {
  CHECK(strcmp(perfmap_version(), PERFMAP_EXPECTED_VERSION) == 0);
  use_former_error();
  for (int status = PERFMAP_OK; status <= PERFMAP_E_INTERNAL; ++status) {
    const char* const text = perfmap_status_text((perfmap_status)status);
    CHECK(text != NULL && strlen(text) != 0);
    for (int other = PERFMAP_OK; other < status; ++other) {
      CHECK(strcmp(text, perfmap_status_text((perfmap_status)other)) != 0);
    }
  }
  use_state();
  use_mapped_writer();
  use_writer();
  use_mapped_writer();
  use_jitdump();
  use_guard();
  use_map();
  use_index();
  use_names();
  return 0;
}
