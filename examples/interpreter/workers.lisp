;; SPDX-License-Identifier: MIT
; A server that forks: workers return into functions that the parent called, and call others.

(define (spin n)
  (define sum 0)
  (while (< 0 n)
    (set! sum (+ sum (% n 7)))
    (set! n (- n 1)))
  sum)

(define (handle rounds)
  (while (< 0 rounds)
    (spin 2000)
    (set! rounds (- rounds 1))))

(define (worker depth)
  (if (= depth 0)
      (handle 150)
      (begin
        (if (= (fork) 0)
            (worker (- depth 1))
            (begin
              (handle 100)
              (wait))))))

(define (serve)
  (handle 50)
  (worker 3))

(serve)
