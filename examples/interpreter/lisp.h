/* SPDX-License-Identifier: MIT */
/* A small Lisp: numbers, functions, closures. The interesting part is in eval.c and main.c: each
 * function's body is called through its own trampoline, so that profilers see its name.
 *
 *   (define x 3)  (define (f a b) ...)  (lambda (a) ...)  (if c then else)  (while c ...)
 *   (begin ...)  (set! x 4)  (f 1 2)  and the functions + - * / % < = print
 *   (fork)  forks the process and returns 0 in the child;  (wait)  returns a child's exit status
 *
 * Values are reference-counted; functions that reference themselves through their scope are never
 * freed.
 */
#ifndef LISP_H
#define LISP_H

#include <perfmap_writer.h>
#include <stddef.h>

#define MAX_ARGUMENTS 8

typedef const char* symbol; /* interned: the same name is the same pointer */

typedef struct closure closure;
typedef struct scope scope;
typedef struct node node;

typedef enum kind { NUMBER, CLOSURE, BUILTIN } kind;
typedef struct value {
  kind kind;
  double number; /* the value of a NUMBER, the index of a BUILTIN */
  closure* closure;
} value;

/* The code object of a function in the source. */
typedef struct code {
  char* name; /* qualified, such as outer.inner */
  int line;
  symbol parameters[MAX_ARGUMENTS];
  int parameter_count;
  node* body;
  perfmap_trampoline* trampoline; /* NULL: calls are direct */
  struct code* next;              /* list of all code objects, to free them */
} code;

/* A function at run time: its code and the scope in which it was created. */
struct closure {
  long references;
  const code* code;
  scope* scope;
};

typedef enum form { CONSTANT, NAME, CALL, IF, WHILE, BEGIN, DEFINE, SET, LAMBDA } form;
struct node {
  form form;
  int line;
  value constant;
  symbol name;
  code* code;
  node* parts; /* operands, in order */
  int part_count;
};

/* read.c. The program becomes one BEGIN node; `make_code` is called once for each function. */
typedef struct program {
  node* root;
  code* codes;
} program;
program read_program(const char* text, size_t size, void (*make_code)(code* made));
void free_program(program* read);

/* symbols.c */
symbol intern(const char* name, size_t size);
void forget_symbols(void);

/* scope.c */
typedef struct binding {
  symbol name; /* NULL: unused slot */
  value value;
} binding;
struct scope {
  long references;
  scope* parent;
  binding* bindings;
  int count;
  int capacity; /* a power of two, or 0 */
};
scope* new_scope(scope* parent);
void release_scope(scope* unused);
void clear_scope(scope* full); /* breaks reference cycles through its values */
void release(value unused);
value* find(scope* where, symbol name);              /* also in outer scopes; NULL: not found */
void set(value* place, value given);                 /* takes ownership of the reference */
void define(scope* where, symbol name, value given); /* takes ownership of the reference */

/* eval.c */
value evaluate(const node* what, scope* where); /* the caller owns the reference */

/* builtins.c */
void define_builtins(scope* globals);
value call_builtin(int which, const value* arguments, int count, int line);

/* support.c */
extern const char* program_path;
void fail(int line, const char* format, ...); /* prints an error and exits; line 0: unknown */
void* allocate(size_t count, size_t size);
void* grow(void* old, size_t size);
void bound_stack(void);                          /* call it once, in main() */
void check_stack(int line);                      /* call it in all recursive functions */
char* read_file(const char* path, size_t* size); /* NUL-terminated */

#endif
