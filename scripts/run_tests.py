#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of builds and counts them: run_tests.py run BUILD [CTEST-ARGUMENT...]
                                         run_tests.py summary BUILD...

`run` runs ctest and has the same exit status. For `-j N`, half as many more tests than N run at the same
time: for a third of their time they wait, for recordings and for processes to start and to end.

`summary` prints the tests that the last run of each build skipped, with reasons, and as its last line
how many tests passed, failed and were skipped in all builds. A test reports that it, or one of its
cases, cannot run here by a line that begins with "skipped:" or "skipped in part:", followed by the
reason. Such lines count, too.

Tests use the system's Python, for which apt has installed what they import. They start it two thousand
times, and the python3 of a version manager is a script that starts slowly.

With PERFMAP_LIVE=off in the environment, tests find no real runtime and no browser in their PATH.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNTIMES = re.compile(
    r"(node|nodejs|java|javac|jcmd|pypy3?|go|gofmt|chromium|chromium-browser|google-chrome"
    r"|ruby|irb|erlc?|escript|elixir|psql|postgres|pg_ctl|initdb|ghc|luajit|php|dotnet"
    r"|deno|bun|guile|sbcl|racket)([\d.]*)")
REASON = re.compile(r"^\s*skipped(?: in part)?: (.*)$", re.M)


def path_without_runtimes(folder):
    """A PATH of one folder with links to all programs of the current one except the runtimes."""
    for place in os.environ["PATH"].split(":"):
        try:
            programs = os.listdir(place or ".")
        except OSError:
            continue
        for name in programs:
            link, program = pathlib.Path(folder, name), pathlib.Path(place, name).absolute()
            # ccache's compiler links search the real compiler in the rest of PATH.
            hidden = RUNTIMES.fullmatch(name) or (name != "ccache" and program.resolve().name == "ccache")
            if not hidden and not link.is_symlink():
                link.symlink_to(program)
    return folder


def with_system_python(path, folder):
    """The PATH with a folder before it in which python3 is the system's."""
    python = pathlib.Path("/usr/bin/python3")
    if not python.exists() or os.path.samefile(shutil.which("python3", path=path) or python, python):
        return path
    folder.mkdir(exist_ok=True)
    link = folder / "python3"
    link.unlink(missing_ok=True)
    link.symlink_to(python)
    return f"{folder}:{path}"


def with_more_jobs(arguments):
    words = list(arguments)
    if "-j" in words[:-1]:
        at = words.index("-j") + 1
        words[at] = str((int(words[at]) * 3 + 1) // 2)
    return words


def run(build, arguments):
    results = ROOT / "build" / build / "tests.xml"
    results.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", ROOT / "build" / build, "--output-on-failure", "--timeout", "900",
               "--test-output-size-passed", "100000", "--output-junit", results, *with_more_jobs(arguments)]
    # Undefined behaviour is reported with the stack; see cmake/flags.cmake.
    environment = {"ASAN_OPTIONS": "handle_sigill=1", **os.environ}
    with tempfile.TemporaryDirectory() as folder:
        if environment.get("PERFMAP_LIVE") == "off":
            os.chmod(folder, 0o755)  # tests that temporarily act as another user search there, too
            environment["PATH"] = path_without_runtimes(folder)
        environment["PATH"] = with_system_python(environment["PATH"], ROOT / "build" / build / "python")
        return subprocess.run([shutil.which("ctest"), *command[1:]], env=environment).returncode


def results_of(build):
    """(passed, failed, skipped) and the reasons, each with the name of its test."""
    counts, reasons = [0, 0, 0], []
    results = ROOT / "build" / build / "tests.xml"
    if not results.exists():
        return None, []
    for test in xml.etree.ElementTree.parse(results).getroot().iter("testcase"):
        name = test.get("name")
        said = list(dict.fromkeys(REASON.findall(test.findtext("system-out") or "")))
        whole = test.find("skipped") is not None
        if test.find("failure") is not None or test.get("status") == "fail":
            counts[1] += 1
        elif not whole:
            counts[0] += 1
        if whole and not said:
            said = ["it does not say why"]
        counts[2] += len(said)
        reasons += [f"{name}: {reason}" for reason in said]
    return counts, reasons


def summary(builds):
    total, where = [0, 0, 0], {}
    for build in builds:
        counts, reasons = results_of(build)
        if counts is None:
            total[1] += 1
            print(f"{build}: the tests did not run")
            continue
        total = [a + b for a, b in zip(total, counts)]
        for reason in reasons:
            where.setdefault(reason, []).append(build)
    print()
    for reason, runs in where.items():
        print(f"skipped: {reason} ({', '.join(dict.fromkeys(runs))})")
    if os.environ.get("PERFMAP_LIVE") == "off":
        print("PERFMAP_LIVE=off: real runtimes and the browser were left out")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] else 0


if sys.argv[1:2] == ["run"] and len(sys.argv) > 2:
    sys.exit(run(sys.argv[2], sys.argv[3:]))
if sys.argv[1:2] == ["summary"] and len(sys.argv) > 2:
    sys.exit(summary(sys.argv[2:]))
sys.exit(__doc__)
