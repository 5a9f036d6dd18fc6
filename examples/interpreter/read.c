/* SPDX-License-Identifier: MIT */
/* The parser. Each list becomes one node, whose form is determined here, once. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lisp.h"

#define MAX_NAME 4096 /* qualified names of nested functions must not take quadratic memory */
#define DIGITS "0123456789"

static const char* at;
static const char* text_end;
static int line;
static code* codes;
static void (*make)(code* made);

/* Whether a name or number ends before this character; true for the end of the text. */
static int is_end(char next) { return strchr(" \t\n\v\f\r();", next) != NULL; }

static void skip_blanks(void) {
  for (; isspace((unsigned char)*at) || *at == ';'; ++at) {
    if (*at == ';') at += strcspn(at, "\n");
    if (*at == '\n') ++line;
    if (*at == '\0') break;
  }
  if (*at == '\0' && at != text_end) fail(line, "a NUL byte");
}

static int next_is(char wanted) {
  skip_blanks();
  if (*at != wanted) return 0;
  ++at;
  return 1;
}

/* The size of the decimal number at `text`, or 0. strtod() would also accept inf, nan and 0x1p3. */
static size_t number_size(const char* text) {
  const char* end = text + (*text == '-' || *text == '+');
  size_t digits = strspn(end, DIGITS);
  end += digits;
  if (*end == '.') {
    const size_t fraction = strspn(++end, DIGITS);
    digits += fraction;
    end += fraction;
  }
  if (digits > 0 && (*end == 'e' || *end == 'E')) {
    ++end;
    end += *end == '-' || *end == '+';
    digits = strspn(end, DIGITS);
    end += digits;
  }
  return digits > 0 && is_end(*end) ? (size_t)(end - text) : 0;
}

static symbol read_symbol(void) {
  size_t size = 0;
  skip_blanks();
  while (!is_end(at[size])) ++size;
  if (size == 0 || number_size(at) > 0) fail(line, "a name is missing");
  if (size > MAX_NAME) fail(line, "a name is too long");
  at += size;
  return intern(at - size, size);
}

static node node_of(form form) {
  node made;
  memset(&made, 0, sizeof made);
  made.form = form;
  made.line = line;
  return made;
}

static node read_node(const char* inside);

/* The capacity doubles when the count is a power of two. */
static void add_part(node* whole, node part) {
  const int count = whole->part_count;
  if ((count & (count - 1)) == 0) {
    const size_t room = count == 0 ? 1 : 2 * (size_t)count;
    whole->parts = grow(whole->parts, room * sizeof(node));
  }
  whole->parts[whole->part_count++] = part;
}

/* Reads nodes up to the closing parenthesis. */
static void read_parts(node* whole, const char* inside) {
  while (!next_is(')')) {
    if (*at == '\0') fail(whole->line, "a parenthesis is not closed");
    add_part(whole, read_node(inside));
  }
}

static char* qualified(const char* inside, const char* name) {
  const size_t room = strlen(inside) + strlen(name) + 2;
  char* made;
  if (room > MAX_NAME) fail(line, "the name of a function is too long");
  made = allocate(room, 1);
  if (*inside != '\0') strcat(strcat(made, inside), ".");
  return strcat(made, name);
}

/* Reads the parameters and the body of a function, after its name. */
static node read_function(const char* inside, const char* name) {
  node made = node_of(LAMBDA);
  code* function = allocate(1, sizeof *function);
  made.code = function;
  function->name = qualified(inside, name);
  function->line = line;
  while (!next_is(')')) {
    if (function->parameter_count == MAX_ARGUMENTS) fail(line, "too many parameters");
    function->parameters[function->parameter_count++] = read_symbol();
  }
  function->body = allocate(1, sizeof(node));
  *function->body = node_of(BEGIN);
  function->next = codes;
  codes = function;
  read_parts(function->body, function->name);
  make(function);
  return made;
}

static node read_define(const char* inside) {
  node made = node_of(DEFINE);
  if (next_is('(')) {
    made.name = read_symbol();
    add_part(&made, read_function(inside, made.name));
    return made;
  }
  made.name = read_symbol();
  read_parts(&made, inside);
  return made;
}

static int is_form(const char* word, size_t size) {
  if (strncmp(at, word, size) != 0 || !is_end(at[size])) return 0;
  at += size;
  return 1;
}

static node read_list(const char* inside) {
  node made = node_of(CALL);
  skip_blanks();
  if (is_form("define", 6)) return read_define(inside);
  if (is_form("lambda", 6)) {
    if (!next_is('(')) fail(line, "lambda wants parameters");
    return read_function(inside, "<lambda>");
  }
  if (is_form("if", 2))
    made.form = IF;
  else if (is_form("while", 5))
    made.form = WHILE;
  else if (is_form("begin", 5))
    made.form = BEGIN;
  else if (is_form("set!", 4))
    made.form = SET, made.name = read_symbol();
  read_parts(&made, inside);
  if (made.form != BEGIN && made.part_count == 0) fail(made.line, "an empty list");
  if (made.form == IF && made.part_count != 3) fail(made.line, "if wants three parts");
  return made;
}

static node read_node(const char* inside) {
  node made;
  size_t size;
  check_stack(line);
  if (next_is('(')) return read_list(inside);
  if (*at == ')') fail(line, "a parenthesis too many");
  size = number_size(at);
  if (size > 0) {
    made = node_of(CONSTANT);
    made.constant.number = strtod(at, NULL);
    if (!isfinite(made.constant.number)) fail(line, "a number is too large");
    at += size;
    return made;
  }
  made = node_of(NAME);
  made.name = read_symbol();
  return made;
}

program read_program(const char* text, size_t size, void (*make_code)(code* made)) {
  program read;
  at = text;
  text_end = text + size;
  line = 1;
  codes = NULL;
  make = make_code;
  read.root = allocate(1, sizeof(node));
  *read.root = node_of(BEGIN);
  for (skip_blanks(); *at != '\0'; skip_blanks()) {
    add_part(read.root, read_node(""));
  }
  read.codes = codes;
  return read;
}

static void free_parts(node* whole) {
  while (whole->part_count > 0) free_parts(&whole->parts[--whole->part_count]);
  free(whole->parts);
}

void free_program(program* read) {
  free_parts(read->root);
  free(read->root);
  while (read->codes != NULL) {
    code* gone = read->codes;
    read->codes = gone->next;
    perfmap_trampoline_free(gone->trampoline);
    free_parts(gone->body);
    free(gone->body);
    free(gone->name);
    free(gone);
  }
}
