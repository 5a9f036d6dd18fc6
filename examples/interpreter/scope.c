/* SPDX-License-Identifier: MIT */
/* Scopes: reference-counted hash tables from names to values, with open addressing. */
#include <stdint.h>
#include <stdlib.h>

#include "lisp.h"

scope* new_scope(scope* parent) {
  scope* made = allocate(1, sizeof *made);
  made->references = 1;
  made->parent = parent;
  if (parent != NULL) ++parent->references;
  return made;
}

/* A program can create chains of scopes and closures of any length, and freeing one by recursion
 * could overflow the C stack. So dead scopes go into a list, linked by `parent`. */
static void leave_scope(scope* unused, scope** dead) {
  while (unused != NULL && --unused->references == 0) {
    scope* const parent = unused->parent;
    unused->parent = *dead;
    *dead = unused;
    unused = parent;
  }
}

static void leave_value(value unused, scope** dead) {
  if (unused.kind != CLOSURE || --unused.closure->references > 0) return;
  leave_scope(unused.closure->scope, dead);
  free(unused.closure);
}

static void clear(scope* full, scope** dead) {
  int i;
  for (i = 0; i < full->capacity; ++i) {
    if (full->bindings[i].name != NULL) leave_value(full->bindings[i].value, dead);
  }
  free(full->bindings);
  full->bindings = NULL;
  full->count = full->capacity = 0;
}

static void free_scopes(scope* dead) {
  while (dead != NULL) {
    scope* const gone = dead;
    dead = gone->parent;
    clear(gone, &dead);
    free(gone);
  }
}

void release(value unused) {
  scope* dead = NULL;
  leave_value(unused, &dead);
  free_scopes(dead);
}

void release_scope(scope* unused) {
  scope* dead = NULL;
  leave_scope(unused, &dead);
  free_scopes(dead);
}

void clear_scope(scope* full) {
  scope* dead = NULL;
  clear(full, &dead);
  free_scopes(dead);
}

/* The slot of the name, or the free slot where it belongs. */
static binding* slot_of(const scope* where, symbol name) {
  const uint64_t hash = (uint64_t)(uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15);
  const int mask = where->capacity - 1;
  int slot = (int)(hash >> 33) & mask;
  while (where->bindings[slot].name != NULL && where->bindings[slot].name != name) {
    slot = (slot + 1) & mask;
  }
  return &where->bindings[slot];
}

static void widen(scope* full) {
  scope wide = *full;
  int i;
  wide.capacity = full->capacity == 0 ? 2 : 2 * full->capacity;
  wide.bindings = allocate((size_t)wide.capacity, sizeof *wide.bindings);
  for (i = 0; i < full->capacity; ++i) {
    if (full->bindings[i].name != NULL) {
      *slot_of(&wide, full->bindings[i].name) = full->bindings[i];
    }
  }
  free(full->bindings);
  *full = wide;
}

value* find(scope* where, symbol name) {
  for (; where != NULL; where = where->parent) {
    binding* found;
    if (where->count == 0) continue;
    found = slot_of(where, name);
    if (found->name != NULL) return &found->value;
  }
  return NULL;
}

void set(value* place, value given) {
  const value old = *place;
  *place = given;
  release(old);
}

void define(scope* where, symbol name, value given) {
  binding* place;
  if (4 * (where->count + 1) > 3 * where->capacity) widen(where);
  place = slot_of(where, name);
  if (place->name == NULL) ++where->count;
  place->name = name;
  set(&place->value, given);
}
