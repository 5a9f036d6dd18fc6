#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds the functions and lines of a sanitizer's report: sanitizer_report.py FILE...

run_tests.py has ASan and TSan write their reports into files, with addresses only: a test may hide the output of its
processes, and the symbolizer that a sanitizer starts hangs in a child of fork, which shares it with its parent. After
the tests, this replaces the addresses in the files.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ADDRESS = re.compile(r"\((/[^()\n]*)\+(0x[0-9a-f]+)\)(?: \(BuildId: [0-9a-f]+\))?")
NEXT_LINE = "\n" + 6 * " "  # and one that llvm-symbolizer prints


def options(folder):
    """For ASAN_OPTIONS and TSAN_OPTIONS. A report in `folder` for each process."""
    return f'symbolize=0:stack_trace_format="    #%n (%m+%o)":log_path="{folder}/report"'


def symbolize(program, addresses):
    """{address: FUNCTION at FILE:LINE:COLUMN, first of the inlined functions}. Not by addr2line, which prints a wrong file
    for some functions that clang compiled."""
    try:
        ran = subprocess.run(["llvm-symbolizer-16", "--pretty-print", f"--obj={program}"], input="\n".join(addresses),
                             stdout=subprocess.PIPE, text=True, errors="surrogateescape")
    except FileNotFoundError:
        return {}
    answers = ran.stdout.rstrip("\n").split("\n\n")
    return dict(zip(addresses, answers)) if ran.returncode == 0 and len(answers) == len(addresses) else {}


def with_lines(text):
    wanted = {}
    for program, address in ADDRESS.findall(text):
        wanted.setdefault(program, {})[address] = None
    found = {program: symbolize(program, list(addresses)) for program, addresses in wanted.items()}

    def replaced(match):
        answer = found[match[1]].get(match[2], "??")
        if answer.startswith("??"):
            return f"({match[1]}+{match[2]})"
        return re.sub(r" at \?\?:0:0$", f" ({match[1]}+{match[2]})", answer, flags=re.M).replace("\n", NEXT_LINE)

    return ADDRESS.sub(replaced, text)


def start(folder):
    """Makes the folder of the reports, which is empty then. Tests also run programs as other users."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o1777)
    for report in reports(folder):
        report.unlink()


def reports(folder):
    return sorted(folder.glob("report.*"), key=os.path.getmtime)


def finish(folder):
    """Adds the lines to the reports."""
    if reports(folder) and not shutil.which("llvm-symbolizer-16"):
        print("no llvm-symbolizer-16: the reports have addresses")
    for report in reports(folder):
        text = with_lines(report.read_text(errors="surrogateescape"))
        report.write_text(text, errors="surrogateescape")


def main():
    sys.stdout.reconfigure(errors="surrogateescape")
    for path in sys.argv[1:]:
        sys.stdout.write(with_lines(pathlib.Path(path).read_text(errors="surrogateescape")))


if __name__ == "__main__":
    main()
