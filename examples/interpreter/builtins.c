/* What the language has of its own. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lisp.h"

static const char* const names[] = {"+", "-", "*", "/", "%", "<", "=", "print"};
#define BUILTINS ((int)(sizeof names / sizeof *names))

void define_builtins(scope* globals) {
  int i;
  for (i = 0; i < BUILTINS; ++i) {
    value made = {BUILTIN, 0, NULL};
    made.number = i;
    define(globals, intern(names[i], strlen(names[i])), made);
  }
}

static double compute(char which, double left, double right, int line) {
  switch (which) {
    case '+': return left + right;
    case '-': return left - right;
    case '*': return left * right;
    case '<': return left < right;
    case '=': return !(left < right || right < left);
    default: break;
  }
  if (!(left < 0 || left > 0 || right < 0 || right > 0)) fail(line, "0 divided by 0");
  return which == '/' ? left / right : fmod(left, right);
}

value call_builtin(int which, const value* arguments, int count, int line) {
  const int wanted = which == BUILTINS - 1 ? 1 : 2;
  value result = {NUMBER, 0, NULL};
  int i;
  if (count != wanted) fail(line, "wrong number of arguments");
  for (i = 0; i < count; ++i) {
    if (arguments[i].kind != NUMBER) fail(line, "a number is wanted");
  }
  if (wanted == 1) {
    printf("%g\n", arguments[0].number);
  } else {
    result.number = compute(names[which][0], arguments[0].number, arguments[1].number, line);
  }
  return result;
}
