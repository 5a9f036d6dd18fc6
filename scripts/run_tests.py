#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of a tier and counts them: run_tests.py run TIER [-j N] [CTEST-ARGUMENT...]
                                          run_tests.py summary TIER...
                                          run_tests.py tiers [BUILD]
                                          run_tests.py programs TIER

tests/tiers.txt lists the tests of a tier. `run` runs them with ctest, and exits with status 1 if a test failed. A test
of the tier `live` that had too few samples or missed a state prints "try again: REASON"; it is run again, alone, at
most twice. If its last line is a different one, the failure is a defect, and the test is not run again.

`summary` prints what the last runs of these tiers skipped, with reasons, and which tests passed only when they were
run again; its last line counts the tests that passed, failed and were skipped. A test reports that it, or one of its
cases, cannot run here by a line that begins with "skipped:" or "skipped in part:", followed by the reason. A test with
many cases prints "cases: N passed, M failed". It counts as N + M tests, and fails if M is not 0.

`tiers` prints the tiers of each test of a build. It exits with status 1 if a test has no row in tests/tiers.txt, or a
row for this build has no test.

`programs` prints what has to be built for the tests of a tier: the files in their commands that the build makes.

Tests use the system's Python: apt installs the modules that they import, and a version manager's python3 is a script
that starts slowly.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree
from typing import NamedTuple

import sanitizer_report

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIERS = {"first": "release", "live": "release", "asan": "asan", "tsan": "tsan"}  # and their builds
MAX_RUNS = 3
MAX_REPORTS = 10  # printed
MAX_OUTPUT = "100000000"  # bytes: ctest drops the end of a longer output, with the counts
SKIPPED = re.compile(r"^\s*skipped(?: in part)?: (.*)$", re.M)
TRY_AGAIN = re.compile(r"^try again: .*\s*\Z", re.M)  # the last line: what comes after it is another failure
ADDED = re.compile(r"^add_test\((?:\[=*\[)?([^\s\]]+)(?:\]=*\])? (.*)\)$", re.M)
QUOTED = re.compile(r'"([^"]*)"')
CASES = re.compile(r"^cases: (\d+) passed, (\d+) failed$", re.M)


class Test(NamedTuple):
    """One run of a test."""
    name: str
    status: str  # passed, failed or skipped
    seconds: float
    output: str


def build_directory(tier):
    return ROOT / "build" / TIERS[tier]


def results_path(tier, run):
    return build_directory(tier) / f"tests-{tier}{f'-{run}' if run > 1 else ''}.xml"


def table():
    """{prefix of a test's name: its tiers}."""
    rows = {}
    for line in (ROOT / "tests/tiers.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            prefix, *tiers = words
            if not tiers or not set(tiers) <= set(TIERS):
                sys.exit(f"tests/tiers.txt: '{line}' is not a name and tiers")
            rows[prefix] = set(tiers)
    return rows


def row_of(test, rows):
    """The longest prefix of whole parts between dots that has a row; None if no prefix has one."""
    parts = test.split(".")
    names = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in names if name in rows), None)


def tests_of_build(build):
    if not (build / "CTestTestfile.cmake").exists():
        tiers = " or ".join(f"./dev test {tier}" for tier, name in TIERS.items() if name == build.name)
        sys.exit(f"{build} has no tests: run {tiers or 'cmake with -DBUILD_TESTING=ON'}")
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return [test["name"] for test in json.loads(listed.stdout)["tests"]]


def tests_of_tier(tier):
    rows = table()
    return [test for test in tests_of_build(build_directory(tier)) if tier in rows.get(row_of(test, rows), ())]


def programs_of_tier(tier):
    """Paths in the build directory. From the files that CMake writes for ctest, because ctest prints no command of a
    test whose program does not exist yet."""
    build, tests = build_directory(tier), set(tests_of_tier(tier))
    listed = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], capture_output=True, text=True, check=True)
    built = {line.rpartition(": ")[0] for line in listed.stdout.splitlines()}
    words = set()
    for path in build.rglob("CTestTestfile.cmake"):
        for name, command in ADDED.findall(path.read_text()):
            if name in tests:
                words.update(QUOTED.findall(command))
    return sorted(built & {word.removeprefix(f"{build}/") for word in words})


def with_system_python(path, folder):
    """PATH, preceded by a folder in which python3 is the system's."""
    python = pathlib.Path("/usr/bin/python3")
    if not python.exists() or os.path.samefile(shutil.which("python3", path=path) or python, python):
        return path
    folder.mkdir(exist_ok=True)
    link = folder / "python3"
    link.unlink(missing_ok=True)
    link.symlink_to(python)
    return f"{folder}:{path}"


def report_folder(tier):
    """Of the sanitizers' reports."""
    return build_directory(tier) / "sanitizer"


def sanitizer_options(tier):
    """A report ends a process by SIGABRT, so that no test takes its status for an answer. Undefined behaviour is reported
    with the stack; see cmake/flags.cmake. Keeping stack frames after their return takes a quarter of the time; gcc's
    default is off, too."""
    options = sanitizer_report.options(report_folder(tier))
    own = {"ASAN_OPTIONS": f"{options}:abort_on_error=1:handle_sigill=1:detect_stack_use_after_return=0",
           "TSAN_OPTIONS": options}
    return {name: f"{os.environ[name]}:{value}" if name in os.environ else value for name, value in own.items()}


def test_environment(tier):
    # With UPDATE_GOLDEN and similar variables, a test writes its expectations and passes.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UPDATE_")}
    if TIERS[tier] != "release":
        environment |= sanitizer_options(tier)
    environment["PATH"] = with_system_python(environment["PATH"], build_directory(tier) / "python")
    return environment


def run_ctest(tier, tests, results, arguments):
    """The exit status. Three tests run at a time for two processors, because tests wait for a third of their time: for
    recordings, and for processes to start and to end."""
    build = build_directory(tier)
    results.unlink(missing_ok=True)
    names = "|".join(re.escape(test) for test in tests)
    command = ["ctest", "--test-dir", build, "--output-on-failure", "--timeout", "900", "--no-tests=error",
               "--test-output-size-passed", MAX_OUTPUT, "--test-output-size-failed", MAX_OUTPUT,
               "--output-junit", results, "-R", f"^({names})$", *arguments]
    if TIERS[tier] != "release":
        sanitizer_report.start(report_folder(tier))
    status = subprocess.run([shutil.which("ctest"), *command[1:]], env=test_environment(tier)).returncode
    if TIERS[tier] != "release":
        sanitizer_report.finish(report_folder(tier))
    return status


def read_results(path):
    """{name: Test}; None if there was no run."""
    if not path.exists():
        return None
    tests = {}
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        skip = case.find("skipped")
        # ctest also reports a test as skipped if its program does not exist.
        skipped = skip is not None and skip.get("message", "").startswith("SKIP_RETURN_CODE")
        output = case.findtext("system-out") or ""
        passed = case.get("status") == "run" and not any(int(failed) for _, failed in CASES.findall(output))
        status = "skipped" if skipped else "passed" if passed else "failed"
        tests[case.get("name")] = Test(case.get("name"), status, float(case.get("time") or 0), output)
    return tests


def may_run_again(test):
    return test.status == "failed" and TRY_AGAIN.search(test.output)


def with_more_jobs(arguments):
    words = list(arguments)
    if "-j" in words[:-1]:
        at = words.index("-j") + 1
        words[at] = str((int(words[at]) * 3 + 1) // 2)
    return words


def chosen(tests, arguments):
    """The tests of the tier that -R selects, and the other arguments."""
    words = list(arguments)
    while "-R" in words[:-1]:
        at = words.index("-R")
        tests = [test for test in tests if re.search(words[at + 1], test)]
        del words[at:at + 2]
    return tests, words


def outcome(runs):
    """passed, unstable, skipped or failed. A test that failed in one of the runs does not count as skipped."""
    if len(runs) == 1:
        return runs[0].status
    return "unstable" if runs[-1].status == "passed" else "failed"


def run(tier, arguments):
    for number in range(1, MAX_RUNS + 1):
        results_path(tier, number).unlink(missing_ok=True)
    tests, arguments = chosen(tests_of_tier(tier), arguments)
    if not tests:
        sys.exit(f"{tier}: no such test in {build_directory(tier)}")
    status = run_ctest(tier, tests, results_path(tier, 1), with_more_jobs(arguments))
    for number in range(2, MAX_RUNS + 1):
        again = [test.name for test in (read_results(results_path(tier, number - 1)) or {}).values() if may_run_again(test)]
        if tier != "live" or not again:
            break
        print(f"\nrun again, alone: {' '.join(again)}", flush=True)
        run_ctest(tier, again, results_path(tier, number), [])
    for report in sanitizer_report.reports(report_folder(tier))[:MAX_REPORTS]:
        print(f"\n{report}:\n{sanitizer_report.read(report).encode(errors='replace').decode(errors='replace').rstrip()}")
    attempts = attempts_of(tier)
    if sanitizer_report.reports(report_folder(tier)) or any(outcome(runs) == "failed" for runs in attempts.values()):
        return 1
    # After runs that were repeated, the status of the first run is outdated. Otherwise ctest itself may have failed.
    return 0 if any(len(runs) > 1 for runs in attempts.values()) else status


def attempts_of(tier):
    """{name: the runs of the test}; empty if the tests did not run."""
    attempts = {}
    for number in range(1, MAX_RUNS + 1):
        for name, test in (read_results(results_path(tier, number)) or {}).items():
            attempts.setdefault(name, []).append(test)
    return attempts


def count(test):
    """(passed, failed, skipped)"""
    skipped = len(set(SKIPPED.findall(test.output)))
    if test.status == "skipped":
        return 0, 0, max(skipped, 1)
    cases = CASES.findall(test.output)
    passed, failed = (sum(int(pair[i]) for pair in cases) for i in (0, 1))
    if not cases:
        passed, failed = int(test.status == "passed"), int(test.status == "failed")
    return passed, max(failed, int(test.status == "failed")), skipped


def counted(number, what):
    return f"{number} {what}{'' if number == 1 else 's'}"


def failed_run(runs):
    return next(test for test in reversed(runs) if test.status == "failed")


def summary(tiers):
    total, failed, reasons, unstable = [0, 0, 0], [], {}, []
    for tier in tiers:
        attempts = attempts_of(tier)
        reports = sanitizer_report.reports(report_folder(tier))
        if reports:
            total[1] += 1
            failed.append(f"{counted(len(reports), 'report')} of a sanitizer: {report_folder(tier)}")
        if not attempts:
            total[1] += 1
            print(f"{tier}: the tests did not run")
        for name, runs in attempts.items():
            total = [a + b for a, b in zip(total, count(runs[-1] if outcome(runs) != "failed" else failed_run(runs)))]
            if outcome(runs) == "failed":
                failed.append(f"{name} ({tier})")
            if outcome(runs) == "unstable":
                unstable.append((name, runs[:-1]))
            printed = list(dict.fromkeys(SKIPPED.findall(runs[-1].output)))
            if runs[-1].status == "skipped" and not printed:
                printed = ["no reason was printed"]
            for reason in printed:
                reasons.setdefault(f"{name}: {reason}", []).append(tier)
    for name, runs in unstable:
        for test in runs:
            print(f"\nunstable: {name} failed before it passed:\n{test.output.rstrip()}")
    print()
    for reason, where in reasons.items():
        print(f"skipped: {reason} ({', '.join(dict.fromkeys(where))})")
    for what in failed:
        print(f"failed: {what}")
    print(f"unstable: {len(unstable)}{''.join(f' {name}' for name, _ in unstable)}")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] else 0


def print_tiers(build):
    rows, used, status = table(), set(), 0
    for test in tests_of_build(build):
        row = row_of(test, rows)
        used.add(row)
        if row is None:
            status = 1
        print(f"{test}: {' '.join(sorted(rows[row])) if row else 'no row in tests/tiers.txt'}")
    for prefix, tiers in rows.items():
        # Some tests exist only in some builds.
        if prefix not in used and any(TIERS[tier] == build.name for tier in tiers):
            status = 1
            print(f"tests/tiers.txt: no test is named {prefix} or {prefix}.*")
    return status


def main():
    command, *words = sys.argv[1:] or [""]
    if command == "run" and words and words[0] in TIERS:
        return run(words[0], words[1:])
    if command == "summary" and words and set(words) <= set(TIERS):
        return summary(words)
    if command == "tiers" and len(words) < 2:
        return print_tiers(pathlib.Path(*words).resolve() if words else build_directory("first"))
    if command == "programs" and len(words) == 1 and words[0] in TIERS:
        print(*programs_of_tier(words[0]))
        return 0
    return __doc__


if __name__ == "__main__":
    sys.exit(main())
