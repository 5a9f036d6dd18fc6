/* SPDX-License-Identifier: MIT */
/* Uses every perfmap_unwind_* function; compiled as strict C99. Run in a separate directory. */
#include <perfmap.h>
#include <stdint.h>

#include "check.h"

#define CODE 20
#define FRAME_AT 24 /* the first multiple of 8 */

static perfmap_jitdump_function new_function(uint64_t start) {
  perfmap_jitdump_function function;
  memset(&function, 0, sizeof function);
  function.struct_size = sizeof function;
  function.start = start;
  function.size = CODE;
  return function;
}

static int32_t number_at(const void* bytes, size_t at) {
  int32_t number;
  memcpy(&number, (const char*)bytes + at, sizeof number);
  return number;
}

/* The header leads to the frame and, in its only row, to code and FDE. */
static void check_sections(const perfmap_jitdump_function* function) {
  const char* frame = function->eh_frame;
  const char* header = function->eh_frame_hdr;
  int32_t cie = number_at(frame, 0);
  size_t fde = (size_t)cie + 4;
  int32_t header_at = (int32_t)function->eh_frame_size;
  CHECK(header == frame + function->eh_frame_size);
  CHECK(function->eh_frame_hdr_size == 20);
  CHECK(memcmp(header, "\1\x1b\3\x3b", 4) == 0);
  CHECK(header_at + 4 + number_at(header, 4) == 0);
  CHECK(number_at(header, 8) == 1);
  CHECK(header_at + number_at(header, 12) == -FRAME_AT);
  CHECK(header_at + number_at(header, 16) == (int32_t)fde);
  CHECK(number_at(frame, fde + 4) == (int32_t)fde + 4);
  CHECK((int32_t)fde + 8 + number_at(frame, fde + 8) == -FRAME_AT);
  CHECK(number_at(frame, fde + 12) == CODE);
  CHECK(number_at(frame, function->eh_frame_size - 4) == 0);
}

/* What was made is a section of its own: its FDE, or the section itself, gives the same again. */
static void check_round_trip(const perfmap_jitdump_function* made) {
  char room[256];
  const char* frame = made->eh_frame;
  size_t cie = (size_t)number_at(frame, 0) + 4;
  size_t fde = (size_t)number_at(frame, cie) + 4;
  size_t total = made->eh_frame_size + made->eh_frame_hdr_size;
  perfmap_jitdump_function again = new_function(made->start);
  CHECK(perfmap_unwind_from_fde(&again, frame, cie, frame + cie, fde, room, sizeof room) ==
        PERFMAP_OK);
  CHECK(again.eh_frame_size == made->eh_frame_size && memcmp(room, frame, total) == 0);
  CHECK(perfmap_unwind_from_fde(&again, frame, cie, frame + cie, fde, room, total - 1) ==
        PERFMAP_E_TOO_LARGE);
  CHECK(perfmap_unwind_from_fde(&again, frame, cie - 1, frame + cie, fde, room, sizeof room) ==
        PERFMAP_E_INVALID_ARGUMENT);
  memset(room, 0, sizeof room);
  CHECK(perfmap_unwind_from_eh_frame(&again, frame, made->eh_frame_size, made->start + FRAME_AT,
                                     room, sizeof room) == PERFMAP_OK);
  CHECK(memcmp(room, frame, total) == 0);
  CHECK(perfmap_unwind_from_eh_frame(&again, frame, made->eh_frame_size,
                                     made->start + FRAME_AT + CODE, room,
                                     sizeof room) == PERFMAP_E_NOT_FOUND);
}

/* A CIE with a personality and an LSDA, whose pointers are absolute, as a compiler may write it. */
static void use_other_pointers(void) {
  static const char rules[] = {0x41, 0x0e, 0x10}; /* after one byte of code, the CFA is 16 away */
  char cie[32] = {28, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'P', 'L', 'R', 0, 1, 0x78, 16, 7, 0x03};
  char fde[48] = {44, 0, 0, 0, 4, 0, 0, 0};
  char room[256];
  uint64_t start = 0x7000;
  uint64_t size = CODE;
  perfmap_jitdump_function function = new_function(start);
  cie[23] = 0x03; /* the encoding of the LSDA; then of the FDE: absolute, 8 bytes */
  cie[24] = 0x04;
  memcpy(fde + 8, &start, sizeof start);
  memcpy(fde + 16, &size, sizeof size);
  fde[24] = 4;
  memcpy(fde + 29, rules, sizeof rules);
  CHECK(perfmap_unwind_from_fde(&function, cie, sizeof cie, fde, sizeof fde, room, sizeof room) ==
        PERFMAP_OK);
  check_sections(&function);
  CHECK(memcmp(room + 4 + number_at(room, 0) + 4 + 13, rules, sizeof rules) == 0);
  cie[10] = 'X';
  CHECK(perfmap_unwind_from_fde(&function, cie, sizeof cie, fde, sizeof fde, room, sizeof room) ==
        PERFMAP_E_UNSUPPORTED);
}

int main(void) {
  char room[PERFMAP_UNWIND_ROOM];
  perfmap_jitdump_function function = new_function(0x1000);
  perfmap_jitdump_function forgotten;
  memset(&forgotten, 0, sizeof forgotten);
  use_other_pointers();
  CHECK(perfmap_unwind_frame_pointer(&forgotten, room, sizeof room) == PERFMAP_E_INVALID_ARGUMENT);
#if defined(__x86_64__) || defined(__aarch64__)
  CHECK(perfmap_unwind_frame_pointer(&function, room, sizeof room) == PERFMAP_OK);
  check_sections(&function);
  check_round_trip(&function);
  CHECK(perfmap_unwind_no_frame(&function, 1008, room, sizeof room) == PERFMAP_OK);
  check_sections(&function);
  check_round_trip(&function);
  CHECK(perfmap_unwind_no_frame(&function, 16, room, 10) == PERFMAP_E_TOO_LARGE);
  CHECK(perfmap_unwind_no_frame(&function, 3, room, sizeof room) == PERFMAP_E_INVALID_ARGUMENT);
  function.size = 0;
  CHECK(perfmap_unwind_no_frame(&function, 16, room, sizeof room) == PERFMAP_E_INVALID_ARGUMENT);
#else
  CHECK(perfmap_unwind_frame_pointer(&function, room, sizeof room) == PERFMAP_E_UNSUPPORTED);
  CHECK(perfmap_unwind_no_frame(&function, 8, room, sizeof room) == PERFMAP_E_UNSUPPORTED);
#endif
  return 0;
}
