/* Text to a tree. Each list becomes one node, whose form is settled here, once. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lisp.h"

static const char* at;
static int line;
static code* codes;
static void (*make)(code* made);

static char** symbols;
static int symbol_count;

symbol intern(const char* name, size_t size) {
  char* made;
  int i;
  for (i = 0; i < symbol_count; ++i) {
    if (strlen(symbols[i]) == size && memcmp(symbols[i], name, size) == 0) return symbols[i];
  }
  made = allocate(size + 1, 1);
  memcpy(made, name, size);
  symbols = grow(symbols, (size_t)(symbol_count + 1) * sizeof *symbols);
  symbols[symbol_count++] = made;
  return made;
}

void forget_symbols(void) {
  while (symbol_count > 0) free(symbols[--symbol_count]);
  free(symbols);
  symbols = NULL;
}

static void skip_blanks(void) {
  for (; isspace((unsigned char)*at) || *at == ';'; ++at) {
    if (*at == ';') at += strcspn(at, "\n");
    if (*at == '\n') ++line;
    if (*at == '\0') return;
  }
}

static int next_is(char wanted) {
  skip_blanks();
  if (*at != wanted) return 0;
  ++at;
  return 1;
}

static symbol read_symbol(void) {
  size_t size;
  skip_blanks();
  size = strcspn(at, " \t\r\n();");
  if (size == 0) fail(line, "a name is missing");
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

/* Nodes up to the closing parenthesis. */
static void read_parts(node* whole, const char* inside) {
  while (!next_is(')')) {
    if (*at == '\0') fail(whole->line, "a parenthesis is not closed");
    whole->parts = grow(whole->parts, (size_t)(whole->part_count + 1) * sizeof(node));
    whole->parts[whole->part_count] = read_node(inside);
    ++whole->part_count;
  }
}

static char* qualified(const char* inside, const char* name) {
  const size_t room = strlen(inside) + strlen(name) + 2;
  char* made = allocate(room, 1);
  if (*inside != '\0') strcat(strcat(made, inside), ".");
  return strcat(made, name);
}

/* Parameters and body of a function, from behind its name on. */
static node read_function(const char* inside, const char* name) {
  node made = node_of(LAMBDA);
  code* function = allocate(1, sizeof *function);
  made.code = function;
  function->name = qualified(inside, name);
  function->line = line;
  while (!next_is(')')) {
    function->parameters =
        grow(function->parameters, (size_t)(function->parameter_count + 1) * sizeof(symbol));
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
    made.parts = allocate(1, sizeof(node));
    made.parts[0] = read_function(inside, made.name);
    made.part_count = 1;
    return made;
  }
  made.name = read_symbol();
  read_parts(&made, inside);
  return made;
}

static int is_form(const char* word, size_t size) {
  const int end = strchr(" \t\r\n()", at[size]) != NULL;
  if (strncmp(at, word, size) != 0 || !end) return 0;
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
  char* end;
  double number;
  if (next_is('(')) return read_list(inside);
  if (*at == ')') fail(line, "a parenthesis too many");
  number = strtod(at, &end);
  if (end != at && strchr(" \t\r\n();", *end) != NULL) {
    at = end;
    made = node_of(CONSTANT);
    made.constant.number = number;
    return made;
  }
  made = node_of(NAME);
  made.name = read_symbol();
  return made;
}

program read_program(const char* text, void (*make_code)(code* made)) {
  program read;
  at = text;
  line = 1;
  codes = NULL;
  make = make_code;
  read.root = allocate(1, sizeof(node));
  *read.root = node_of(BEGIN);
  for (skip_blanks(); *at != '\0'; skip_blanks()) {
    node* root = read.root;
    root->parts = grow(root->parts, (size_t)(root->part_count + 1) * sizeof(node));
    root->parts[root->part_count] = read_node("");
    ++root->part_count;
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
    free(gone->parameters);
    free(gone->name);
    free(gone);
  }
}
