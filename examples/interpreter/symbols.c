/* SPDX-License-Identifier: MIT */
/* Interned names: a hash table with open addressing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lisp.h"

static char** table;
static size_t room; /* a power of two, or 0 */
static size_t used; /* at most three quarters of room */

static size_t hash_of(const char* name, size_t size) { /* FNV-1a */
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (; size > 0; --size) hash = (hash ^ (unsigned char)*name++) * UINT64_C(0x100000001b3);
  return (size_t)(hash ^ hash >> 32);
}

static int is_named(const char* known, const char* name, size_t size) {
  return strncmp(known, name, size) == 0 && known[size] == '\0';
}

/* The slot of the name, or the free slot where it belongs. */
static char** slot_of(const char* name, size_t size) {
  size_t slot = hash_of(name, size) & (room - 1);
  while (table[slot] != NULL && !is_named(table[slot], name, size)) slot = (slot + 1) & (room - 1);
  return &table[slot];
}

static void widen(void) {
  char** const old = table;
  const size_t old_room = room;
  size_t i;
  room = room == 0 ? 64 : 2 * room;
  table = allocate(room, sizeof *table);
  for (i = 0; i < old_room; ++i) {
    if (old[i] != NULL) *slot_of(old[i], strlen(old[i])) = old[i];
  }
  free(old);
}

symbol intern(const char* name, size_t size) {
  char** slot;
  if (4 * (used + 1) > 3 * room) widen();
  slot = slot_of(name, size);
  if (*slot == NULL) {
    *slot = allocate(size + 1, 1);
    memcpy(*slot, name, size);
    ++used;
  }
  return *slot;
}

void forget_symbols(void) {
  while (room > 0) free(table[--room]);
  free(table);
  table = NULL;
  used = 0;
}
