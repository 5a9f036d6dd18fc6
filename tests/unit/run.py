# SPDX-License-Identifier: MIT
"""Runs the unit and property tests in parallel, and counts them: run.py UNIT_TESTS [JOBS]

The program runs for a batch of cases at a time: batches are small, so that no process is left with all slow cases.
The time limit of a batch is shorter than ctest's, after which nothing would be printed.
One case alone: UNIT_TESTS "title of the case".
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

BATCH = 24
SECONDS = 300
CATCH_2, CATCH_3 = ["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]
PASSED = re.compile(r"All tests passed \(.* in (\d+) test cases?\)")
COUNTS = re.compile(r"^test cases: +(\d+) ", re.M)
FAILED = re.compile(r"^test cases:.* (\d+) failed", re.M)


def titles(program):
    """Catch2 2 ends with the number of cases as its status, 3 does not know the option."""
    for options in (CATCH_2, CATCH_3):
        listed = subprocess.run([program, *options], capture_output=True, text=True)
        if listed.returncode < 0:
            sys.exit(f"{program} ended with signal {-listed.returncode} while it listed its cases")
        if listed.stdout.strip() and "Unrecognised token" not in listed.stdout + listed.stderr:
            return [line for line in listed.stdout.splitlines() if line]
    sys.exit(f"{program} lists no test cases")


def run_batch(program, batch):
    """(number of passed cases, of failed ones, output)"""
    with tempfile.NamedTemporaryFile("w", suffix=".titles") as file, tempfile.TemporaryFile() as printed:
        # Without the escapes, a title with one of these characters is a pattern.
        file.write("".join('"' + re.sub(r'([\\",\[\]])', r"\\\1", title) + '"\n' for title in batch))
        file.flush()
        # Catch2 prints the case that SIGTERM ends. A file: a child of the case may keep a pipe open.
        ran = subprocess.run(["timeout", "--foreground", "--verbose", "--kill-after=10", str(SECONDS), program,
                              "--input-file", file.name], stdout=printed, stderr=subprocess.STDOUT)
        printed.seek(0)
        output = printed.read().decode(errors="replace")
    # Without a summary the program ended early, with whatever status.
    found = PASSED.search(output) or COUNTS.search(output)
    ran_cases = int(found[1]) if found else 0
    failed = int(found[1]) if (found := FAILED.search(output)) else 0
    if ran_cases != len(batch) or ran.returncode < 0:
        output += f"\n{ran_cases} of {len(batch)} cases ran, status {ran.returncode}:\n" + "".join(f"  {title}\n" for title in batch)
        failed = max(failed, len(batch) - ran_cases, 1)
    if ran.returncode:
        failed = max(failed, 1)
    return len(batch) - failed, failed, output if failed else ""


def main():
    program = os.path.abspath(sys.argv[1])
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else len(os.sched_getaffinity(0))
    cases = titles(program)
    passed = failed = 0
    # Cases of one file are next to each other, and so are slow ones: each batch gets cases of all files.
    count = (len(cases) + BATCH - 1) // BATCH
    batches = [cases[start::count] for start in range(count)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for good, bad, output in pool.map(lambda batch: run_batch(program, batch), batches):
            passed, failed = passed + good, failed + bad
            print(output, end="", flush=True)
    print(f"cases: {passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
