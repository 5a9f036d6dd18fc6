#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of a tier many times on a busy machine: soak.py [TIER] [N] [CTEST-ARGUMENT...]

Three busy loops for each processor slow down the N runs (default: 5) of the tier (default: first). Each run of a test is
a line of build/soak/TIER.tsv: the commit, the number of the run, the test, its outcome and its seconds. A later soak
adds lines. At the end, soak.py prints each test of the table that failed, that passed only when it was run again, or
that took more than ten times its median. build/soak/ has the outputs of failed runs, too. The exit status is 1 if a test
failed with the present commit.

  soak.py first 50 -R '^writer'    run some tests fifty times
  soak.py first 0                  print the results that the table has
"""
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys

import run_tests

ROOT = run_tests.ROOT
LOOPS_PER_PROCESSOR = 3
SLOW = 10  # times the median
SHORT = 1.0  # seconds: a run that took less is not reported as slow
ROW = re.compile(r"([^\t\n]+)\t(\d+)\t([^\t\n]+)\t(\w+)\t(\d+\.\d+)\n")
# setpriv: the kernel kills a loop when soak.py ends, even if a signal ends it.
LOOP = ["setpriv", "--pdeathsig", "KILL", "/bin/sh", "-c", "while :; do :; done"]


class BusyLoops:
    def __enter__(self):
        self.processes = [subprocess.Popen(LOOP) for _ in range(LOOPS_PER_PROCESSOR * len(os.sched_getaffinity(0)))]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def commit():
    if not shutil.which("git"):
        return "unknown"
    described = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return described.stdout.strip() or "unknown"


def rows(path):
    """The complete lines: a full disk leaves an incomplete one."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [row.groups() for row in map(ROW.fullmatch, lines) if row]


def append(path, tier, version, number):
    new = [(version, str(number), name, run_tests.outcome(runs), f"{runs[-1].seconds:.2f}")
           for name, runs in run_tests.attempts_of(tier).items()]
    table = path.with_suffix(".new")
    table.write_text("".join("\t".join(row) + "\n" for row in rows(path) + new))
    table.replace(path)


def save_output(folder, tier, number):
    """Saves the outputs of failed runs, because the next run replaces the results."""
    for name, runs in run_tests.attempts_of(tier).items():
        for attempt, test in enumerate(runs, 1):
            if test.status == "failed":
                (folder / f"{tier}-{number}-{name}-{attempt}.log").write_text(test.output)


def report(path, version):
    by_test, failed = {}, False
    for made_at, number, name, status, seconds in rows(path):
        by_test.setdefault(name, []).append((int(number), status, float(seconds)))
        failed |= status == "failed" and made_at == version
    for name, runs in sorted(by_test.items()):
        times = [seconds for _, status, seconds in runs if status != "skipped"]
        for word in ("failed", "unstable"):
            numbers = [number for number, status, _ in runs if status == word]
            if numbers:
                print(f"{name}: {word} in {len(numbers)} of {len(runs)} runs: {' '.join(map(str, numbers))}")
        if times and max(times) > max(SHORT, SLOW * statistics.median(times)):
            print(f"{name}: took {max(times):.1f} s once, {statistics.median(times):.1f} s in the median")
    print(f"{len(by_test)} tests, {sum(map(len, by_test.values()))} runs of tests: {path}")
    return 1 if failed else 0


def main():
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # subprocess.run() then kills ctest
    words = sys.argv[1:]
    tier = words.pop(0) if words and words[0] in run_tests.TIERS else "first"
    count = int(words.pop(0)) if words and words[0].isdigit() else 5
    if words and not words[0].startswith("-"):
        sys.exit(f"not a tier, a number or an option of ctest: {words[0]}")
    path = ROOT / "build/soak" / f"{tier}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    version, done = commit(), max((int(row[1]) for row in rows(path)), default=0)
    for number in range(done + 1, done + count + 1):
        with BusyLoops():
            run_tests.run(tier, ["-j", str(len(os.sched_getaffinity(0))), *words])
        if not run_tests.attempts_of(tier):
            sys.exit("no test ran")
        append(path, tier, version, number)
        save_output(path.parent, tier, number)
    return report(path, version)


if __name__ == "__main__":
    sys.exit(main())
