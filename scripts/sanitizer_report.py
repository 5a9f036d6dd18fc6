#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Copies its input, with functions and lines in place of code addresses in the reports of ASan and TSan.

The sanitizers can do this themselves, but with a process of their own, whose pipes a child of fork shares with its
parent: each waits for the other's answers. run_tests.py uses this script, and sets OPTIONS.
"""
import functools
import re
import subprocess
import sys

OPTIONS = 'symbolize=0:stack_trace_format="    #%n (%m+%o)"'
FRAME = re.compile(r"^( *#\d+ )\((/.*)\+(0x[0-9a-f]+)\)$")


@functools.cache
def symbolizer(program):
    """Started with PROGRAM. Not addr2line: for some functions that clang compiled, it prints a wrong file."""
    return subprocess.Popen(["llvm-symbolizer-16", "--pretty-print", f"--obj={program}"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)


@functools.cache
def lines_of(program, address):
    """FUNCTION at FILE:LINE:COLUMN, first the inlined functions."""
    try:
        answers = symbolizer(program)
        answers.stdin.write(f"{address}\n")
        answers.stdin.flush()
    except (FileNotFoundError, BrokenPipeError):
        return []
    return [line.strip() for line in iter(answers.stdout.readline, "\n") if line]


def main():
    for line in sys.stdin:
        frame = FRAME.match(line)
        found = lines_of(frame[2], frame[3]) if frame else []
        if found and " at ??:" not in found[0]:
            line = frame[1] + "\n     ".join(found) + "\n"
        sys.stdout.write(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
