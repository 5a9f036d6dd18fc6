/* SPDX-License-Identifier: MIT */
/* The evaluator. A function's body runs in run_body(), which is called through the trampoline of
 * its code object. Profilers then see the function; an interpreter has to do no more. */
#include "lisp.h"

static value retain(value shared) {
  if (shared.kind == CLOSURE) ++shared.closure->references;
  return shared;
}

static value* look_up(scope* where, symbol name, int line) {
  value* const found = find(where, name);
  if (found == NULL) fail(line, "%s is not defined", name);
  return found;
}

static value number(double given) {
  value made = {NUMBER, 0, NULL};
  made.number = given;
  return made;
}

static value in_order(const node* parts, int count, scope* where) {
  value last = number(0);
  int i;
  for (i = 0; i < count; ++i) {
    release(last);
    last = evaluate(&parts[i], where);
  }
  return last;
}

/* Called by a trampoline, with three arguments of pointer size. */
static void* run_body(void* body, void* where, void* result) {
  const node* whole = body;
  *(value*)result = in_order(whole->parts, whole->part_count, where);
  return NULL;
}

static value call_closure(const closure* callee, value* arguments, int count, int line) {
  const code* function = callee->code;
  scope* inner;
  value result;
  int i;
  if (count != function->parameter_count) fail(line, "wrong number of arguments");
  inner = new_scope(callee->scope);
  for (i = 0; i < count; ++i) define(inner, function->parameters[i], arguments[i]);
  perfmap_trampoline_call(function->trampoline, function->body, inner, &result, run_body);
  release_scope(inner);
  return result;
}

static value call(const node* what, scope* where) {
  value arguments[MAX_ARGUMENTS];
  const value callee = evaluate(&what->parts[0], where);
  const int count = what->part_count - 1;
  value result;
  int i;
  if (count > MAX_ARGUMENTS) fail(what->line, "too many arguments");
  for (i = 0; i < count; ++i) arguments[i] = evaluate(&what->parts[i + 1], where);
  if (callee.kind == CLOSURE) {
    result = call_closure(callee.closure, arguments, count, what->line);
  } else if (callee.kind == BUILTIN) {
    result = call_builtin((int)callee.number, arguments, count, what->line);
    for (i = 0; i < count; ++i) release(arguments[i]);
  } else {
    fail(what->line, "a number cannot be called");
    result = number(0);
  }
  release(callee);
  return result;
}

static int is_true(const node* what, scope* where) {
  const value found = evaluate(what, where);
  const int truth = found.kind != NUMBER || found.number != 0;
  release(found);
  return truth;
}

static value make_closure(const code* function, scope* where) {
  value made = {CLOSURE, 0, NULL};
  made.closure = allocate(1, sizeof(closure));
  made.closure->references = 1;
  made.closure->code = function;
  made.closure->scope = where;
  ++where->references;
  return made;
}

static value assign(const node* what, scope* where) {
  const value given = in_order(what->parts, what->part_count, where);
  if (what->form == DEFINE) {
    define(where, what->name, given);
  } else {
    set(look_up(where, what->name, what->line), given);
  }
  return number(0);
}

value evaluate(const node* what, scope* where) {
  check_stack(what->line);
  switch (what->form) {
    case CONSTANT: return what->constant;
    case NAME: return retain(*look_up(where, what->name, what->line));
    case CALL: return call(what, where);
    case IF: return evaluate(&what->parts[is_true(&what->parts[0], where) ? 1 : 2], where);
    case WHILE:
      while (is_true(&what->parts[0], where)) {
        release(in_order(what->parts + 1, what->part_count - 1, where));
      }
      return number(0);
    case BEGIN: return in_order(what->parts, what->part_count, where);
    case DEFINE:
    case SET: return assign(what, where);
    case LAMBDA: return make_closure(what->code, where);
  }
  return number(0);
}
