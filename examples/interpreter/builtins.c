/* SPDX-License-Identifier: MIT */
/* The built-in functions. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lisp.h"

enum { PRINT = 7, FORK, WAIT };
static const char* const names[] = {"+", "-", "*", "/", "%", "<", "=", "print", "fork", "wait"};
#define BUILTINS ((int)(sizeof names / sizeof *names))

void define_builtins(scope* globals) {
  int i;
  for (i = 0; i < BUILTINS; ++i) {
    value made = {BUILTIN, 0, NULL};
    made.number = i;
    define(globals, intern(names[i], strlen(names[i])), made);
  }
}

static double compute(char which, double left, double right) {
  switch (which) {
    case '+': return left + right;
    case '-': return left - right;
    case '*': return left * right;
    case '/': return left / right;
    case '%': return fmod(left, right);
    case '<': return left < right;
    default: return !(left < right || right < left);
  }
}

/* Flushes first, or parent and child would both print what is buffered. */
static double fork_process(int line) {
  pid_t made;
  fflush(stdout);
  made = fork();
  if (made < 0) fail(line, "cannot fork");
  return made;
}

static double wait_for_child(int line) {
  int status;
  if (wait(&status) < 0) fail(line, "there is no child");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

value call_builtin(int which, const value* arguments, int count, int line) {
  const int wanted = which < PRINT ? 2 : which == PRINT ? 1 : 0;
  value result = {NUMBER, 0, NULL};
  int i;
  if (count != wanted) fail(line, "wrong number of arguments");
  for (i = 0; i < count; ++i) {
    if (arguments[i].kind != NUMBER) fail(line, "a number is wanted");
  }
  switch (which) {
    case PRINT: printf("%g\n", arguments[0].number); break;
    case FORK: result.number = fork_process(line); break;
    case WAIT: result.number = wait_for_child(line); break;
    default:
      result.number = compute(names[which][0], arguments[0].number, arguments[1].number);
      if (!isfinite(result.number)) fail(line, "%s has no finite result", names[which]);
  }
  return result;
}
