/* A small Lisp: numbers, functions, closures. What is of interest here is in eval.c and main.c:
 * each function's body runs through a trampoline of its own, so that profilers see it by name.
 *
 *   (define x 3)  (define (f a b) ...)  (lambda (a) ...)  (if c then else)  (while c ...)
 *   (begin ...)  (set! x 4)  (f 1 2)  and the functions + - * / % < = print
 *   (fork)  makes a copy of the process and gives 0 there;  (wait)  gives a child's exit status
 *
 * Values count references; functions that hold themselves through their scope are never freed.
 */
#ifndef LISP_H
#define LISP_H

#include <perfmap.h>
#include <stddef.h>

#define MOST_ARGUMENTS 8

typedef const char* symbol; /* interned: the same name is the same pointer */

typedef struct closure closure;
typedef struct scope scope;
typedef struct node node;

typedef enum kind { NUMBER, CLOSURE, BUILTIN } kind;
typedef struct value {
  kind kind;
  double number; /* of BUILTIN: which one */
  closure* closure;
} value;

/* A function as it is written: its code object. */
typedef struct code {
  char* name; /* qualified: outer.inner */
  int line;
  symbol parameters[MOST_ARGUMENTS];
  int parameter_count;
  node* body;
  perfmap_trampoline* trampoline; /* may be NULL: calls are direct then */
  struct code* next;              /* all of them, for the end */
} code;

/* A function at run time: its code and the scope that it was made in. */
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

/* read.c. A program as one BEGIN; `make_code` is called for each function in it, once. */
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
  symbol name; /* NULL: free */
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
void clear_scope(scope* full); /* for one that is held by what it holds */
void release(value unused);
value* find(scope* where, symbol name);              /* there or further out; NULL: nowhere */
void set(value* place, value given);                 /* takes the reference */
void define(scope* where, symbol name, value given); /* takes the reference */

/* eval.c */
value evaluate(const node* what, scope* where); /* gives a reference */

/* builtins.c */
void define_builtins(scope* globals);
value call_builtin(int which, const value* arguments, int count, int line);

/* support.c */
extern const char* program_path;
void fail(int line, const char* format, ...); /* prints it and ends the program; line 0: unknown */
void* allocate(size_t count, size_t size);
void* grow(void* old, size_t size);
void bound_stack(void);                          /* once, in main() */
void check_stack(int line);                      /* in whatever recurs, at each level */
char* read_file(const char* path, size_t* size); /* with a NUL behind it */

#endif
