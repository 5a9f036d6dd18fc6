#!/bin/sh
# SPDX-License-Identifier: MIT
# Hostile programs for the example interpreter: interpreter_hostile.sh INTERPRETER
# Each must end within a minute of processor time, with the expected status and last line of output.
set -eu
interpreter=$(readlink -f "$1")
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # closures in reference cycles are never freed
export ASAN_OPTIONS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
deep='nesting or recursion is too deep'

# ends STATUS LAST_LINE [FILE]: runs FILE, by default p.lisp, and checks how it ends
ends() {
  status=0
  (ulimit -t 60 && exec timeout 600 "$interpreter" none "${3-p.lisp}") >out.txt 2>&1 || status=$?
  [ "$status" -eq "$1" ] && [ "$(tail -n 1 out.txt)" = "$2" ] && return
  echo "expected $1 and '$2', got $status and: $(tail -n 3 out.txt)"
  head -c 200 p.lisp || :
  exit 1
}

# ended STATUS PATTERN: checks $status and out.txt of the previous command
ended() {
  if [ "$status" -ne "$1" ] || ! grep -q "$2" out.txt; then
    echo "expected $1 and $2, got $status and: $(tail -n 3 out.txt)"
    exit 1
  fi
}

prints() { printf '%s' "$2" >p.lisp && ends 0 "$1"; }
refuses() { printf '%s' "$2" >p.lisp && ends 1 "p.lisp:$1"; }
repeat() { awk -v count="$1" -v text="$2" 'BEGIN { while (count-- > 0) printf "%s", text }'; }

# Empty, missing and binary input, and output that fails.
prints '' ''
prints '3' '(print 3) ; no line end'
ends 1 'missing.lisp: cannot be opened: No such file or directory' missing.lisp
ends 1 '.: cannot be read: Is a directory' .
ends 1 '/dev/zero: is too long' /dev/zero
printf '(print 1)\n(print \0 2)' >p.lisp && ends 1 'p.lisp:2: a NUL byte'
printf '(print 1)\n; \0\n(print 2)' >p.lisp && ends 1 'p.lisp:2: a NUL byte'
printf '(print 1)\n\0' >p.lisp && ends 1 'p.lisp:2: a NUL byte'
status=0
echo '(print 1)' >p.lisp
"$interpreter" none p.lisp 2>out.txt >/dev/full || status=$?
ended 1 '^p.lisp: cannot print$'
status=0
"$interpreter" p.lisp 2>out.txt || status=$?
ended 2 '^usage: '

# Syntax errors.
refuses '1: a parenthesis too many' ')'
refuses '2: a parenthesis is not closed' '
(print 1'
refuses '1: a name is missing' '(define'
refuses '1: a name is missing' '(define ('
refuses '1: a name is missing' '(define (f a'
refuses '1: a name is missing' '(define 5 6)'
refuses '1: lambda wants parameters' '(lambda'
refuses '1: if wants three parts' '(print (if 0 1))'
refuses '1: an empty list' '()'
refuses '1: too many parameters' '(define (f a b c d e g h i j) a)'
refuses '1: a name is too long' "$(repeat 5000 x)"
refuses '1: the name of a function is too long' \
  "$(repeat 50 "(define ($(repeat 100 x)) ")$(repeat 50 ')')"
prints '3' '(define;c
 x 3)(print x)'

# Numbers are decimal and finite.
prints '3' '(define inf 3)(print inf)'
prints '4' '(define nan 4)(print nan)'
prints '5' '(define 0x10 5)(print 0x10)'
prints '-1250' '(print (+ -1.25e3 (+ .5 (- 0 +5.E-1))))'
refuses '1: infinity is not defined' '(print infinity)'
refuses '1: a number is too large' '(print 1e999)'
refuses '1: * has no finite result' '(* 1e300 1e300)'
refuses '2: / has no finite result' '(print 1)
(print (/ 1 0))'
refuses '1: % has no finite result' '(% 1 0)'

# Errors at run time.
refuses '1: foo is not defined' '(foo 1)'
refuses '1: y is not defined' '(set! y 3)'
refuses '1: a number cannot be called' '(1 2)'
refuses '1: a number is wanted' '(+ 1 (lambda (x) x))'
refuses '1: a number is wanted' '(print print)'
refuses '1: wrong number of arguments' '(print (- 3))'
refuses '1: wrong number of arguments' '((lambda (x) x))'
refuses '1: too many arguments' '(print 1 2 3 4 5 6 7 8 9)'
prints '5' '(define (h) (set! h 3) 5)(print (h))'

# Deep nesting and recursion.
repeat 2000000 '(' >p.lisp
ends 1 "p.lisp:1: $deep"
{ repeat 200000 '(+ 1 ' && echo 1 && repeat 200000 ')'; } >p.lisp
ends 1 "p.lisp:1: $deep"
{ repeat 200000 '(if 1 (begin ' && repeat 200000 ') 0)'; } >p.lisp
ends 1 "p.lisp:1: $deep"
{ repeat 200000 '(lambda () ' && repeat 200000 ')'; } >p.lisp
status=0
(ulimit -t 60 && exec timeout 600 "$interpreter" none p.lisp) 2>out.txt || status=$?
ended 1 '^p.lisp:1: .* too \(deep\|long\)$'
{ echo '(define (f n) (if (< n 1) 0' && repeat 100 '(+ 1 ' && echo '(f (- n 1))' &&
  repeat 100 ')' && echo '))(print (f 3900))'; } >p.lisp
ends 1 "p.lisp:2: $deep"
refuses "1: $deep" '(define (f) (f)) (f)'
refuses "1: $deep" '(define (f g) (+ 1 (g g))) (f f)'

# Close to the stack limit, the result is correct or an error: searches the deepest recursion that
# works.
recurse() {
  echo "(define (f n) (if (< n 1) 0 (+ 1 (f (- n 1))))) (print (f $2))" >p.lisp
  (
    # shellcheck disable=SC3045 # dash, bash and busybox have it
    ulimit -s "$1"
    status=0
    "$interpreter" map p.lisp >out.txt 2>&1 &
    pid=$!
    wait "$pid" || status=$?
    rm -f "/tmp/perf-$pid.map"
    echo "$status:$(cat out.txt)"
  )
}
for stack in 512 4096; do
  right=10 refused=100000
  while [ $((refused - right)) -gt 1 ]; do
    middle=$(((right + refused) / 2))
    case $(recurse $stack $middle) in
      "0:$middle") right=$middle ;;
      "1:p.lisp:1: $deep") refused=$middle ;;
      *) echo "$stack KiB of stack, $middle calls: $(recurse $stack $middle)"; exit 1 ;;
    esac
  done
  echo "$stack KiB of stack are $right calls"
  [ "$right" -ge $((stack / 20)) ] || exit 1
done

# Large inputs: no quadratic time, and no level of C stack per element.
prints '299999' '(define (cons a b) (lambda (s) (if s a b)))
(define l 0) (define i 0)
(while (< i 300000) (set! l (cons i l)) (set! i (+ i 1)))
(print (l 1))'
names=200000
awk -v names=$names 'BEGIN { while (i++ < names) printf "(define v%d %d) v%d\n", i, i, i }' >p.lisp
echo "(print v$names)" >>p.lisp
ends 0 "$names"
{ echo '(define (f)' && cat p.lisp && echo ') (f)'; } >inner.lisp
ends 0 "$names" inner.lisp
