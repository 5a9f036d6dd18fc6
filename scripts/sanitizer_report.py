#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds the functions and lines of a sanitizer's report: sanitizer_report.py FILE...

run_tests.py has ASan and TSan write their reports into files, with addresses only: a test may hide the output of its
processes, and the symbolizer that a sanitizer starts hangs in a child of fork, which shares it with its parent. After
the tests, this replaces the addresses in the files.
"""
import os
import re
import shutil
import stat
import subprocess
import sys

ADDRESS = re.compile(r"\((/[^()\n]*)\+(0x[0-9a-f]+)\)(?: \(BuildId: [0-9a-f]+\))?")
MAX_SIZE = 1 << 20  # bytes of a report
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


def with_lines(texts):
    """The texts of reports, with lines. Each program is read once."""
    wanted = {}
    for program, address in (found for text in texts for found in ADDRESS.findall(text)):
        wanted.setdefault(program, {})[address] = None
    found = {program: symbolize(program, list(addresses)) for program, addresses in wanted.items()}

    def replaced(match):
        answer = found[match[1]].get(match[2], "??")
        if answer.startswith("??"):
            return f"({match[1]}+{match[2]})"
        return re.sub(r" at \?\?:0:0$", f" ({match[1]}+{match[2]})", answer, flags=re.M).replace("\n", NEXT_LINE)

    return [ADDRESS.sub(replaced, text) for text in texts]


def renew(folder, mode):
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    folder.chmod(mode)


def start(folder):
    """Makes the empty folder of the reports. Until finish(), all users may write into it, because tests run programs as
    other users."""
    renew(folder, 0o1777)


def reports(folder):
    return sorted(folder.glob("report.*"))


def read(report):
    """The text of a file that another user may have made: no link is followed, and nothing waits for a pipe."""
    try:
        with open(os.open(report, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read(MAX_SIZE).decode(errors="surrogateescape")
    except OSError:
        pass
    return "not a file that can be read\n"


def finish(folder):
    """Replaces the reports by files of ours, with lines."""
    found = reports(folder)
    if found and not shutil.which("llvm-symbolizer-16"):
        print("no llvm-symbolizer-16: the reports have addresses")
    texts = with_lines([read(report) for report in found])
    renew(folder, 0o755)
    for report, text in zip(found, texts):
        report.write_text(text, errors="surrogateescape")


def main():
    sys.stdout.reconfigure(errors="surrogateescape")
    sys.stdout.writelines(with_lines([read(path) for path in sys.argv[1:]]))


if __name__ == "__main__":
    main()
