;; SPDX-License-Identifier: MIT
; Three functions that call each other, a recursive one and a closure.

(define (leaf n)
  (define sum 0)
  (while (< 0 n)
    (set! sum (+ sum (% n 7)))
    (set! n (- n 1)))
  sum)

(define (middle n)
  (leaf n))

(define (outer rounds)
  (define total 0)
  (while (< 0 rounds)
    (set! total (+ total (middle 2000)))
    (set! rounds (- rounds 1)))
  total)

(define (fib n)
  (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))

(define (make-counter step)
  (define count 0)
  (define (next)
    (set! count (+ count step))
    count)
  next)

(print (outer 400))
(print (fib 22))

(define tick (make-counter 3))
(define times 100000)
(while (< 0 times)
  (tick)
  (set! times (- times 1)))
(print (tick))
(print ((lambda (x) (* x x)) 12))
