#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Changes single lines of the library and lists the changes that no test notices.

mutants.py [--build DIR] [--count N] [--seed S] [--at LINE] [--list] [--fresh] [PATH...]

PATHs are .cpp files or folders of lib/core, lib/profile, lib/base and lib/writer, by default all.
The seed selects N of their mutants (default 50; 0: all); the choice for one line does not depend on
other lines. The build in DIR (default build/release) must be complete, and its tests must pass. For a mutant, one
object is compiled from a changed copy of its source, and the tests are linked with it in
build/mutants: neither the checkout nor DIR is changed, and several runs may share them.

A mutant runs against tests of the first tier: the unit and property tests that may reach it, first those of its folder
and of its header and the quick ones; then the golden cases, with the mutant in the program; then tests of the C
interfaces, with the mutant in the shared libraries. Mutants that do not compile are not counted. Mutants that run too long or use
more than 3 GB are counted as found.

The journal build/mutants/journal.jsonl keeps results, so that a run can be interrupted and
repeated. Found mutants count while their file is unchanged, survivors only while the tests are
unchanged, too. scripts/mutants-accepted.txt lists survivors that change nothing that a test can
notice, with the reason. The exit status is 1 if any other mutant survives.
"""
import argparse
import collections
import concurrent.futures
import fcntl
import hashlib
import json
import os
import pathlib
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import mutations
import unit_cases

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build/mutants"
ACCEPTED = ROOT / "scripts/mutants-accepted.txt"
MOST_MEMORY = 3 << 30
CHEAP = ["-O0", "-g0", "-w", "-U_FORTIFY_SOURCE"]  # after the build's own flags: the last one wins
LEVELS = ("quick", "unit", "all")
# Tests of the first tier that use the shared libraries: for all folders, and for some.
WITH_LIBRARIES = r"capi\..*|cpython\..*|writer\..*\..*|writer\.out-of-memory"
WITH_LIBRARIES_OF = {
    "lib/writer": r"writer\.(engine|jitlog|mapped-threads|first-call|fork-fallback|cut-short)",
    "lib/core/writer": r"writer\.(engine|jitlog|mapped-threads)",
    "lib/profile/process": r"process\.(tracker|rights|threads)",
    "lib/profile/unwind": r"process\.threads",
}


class Failed(Exception):
    """Mutants cannot be tested."""


def digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def tests_digest():
    """A digest of all files that decide whether a survivor still survives."""
    files = sorted(path for folder in ("lib", "apps", "tests")
                   for path in (ROOT / folder).rglob("*")
                   if path.is_file() and path.suffix not in (".pyc", ".dump", ".data"))
    return digest(*(f"{path}\0{hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files))


def sources(paths):
    found = set()
    for path in paths or ["lib/base", "lib/core", "lib/profile", "lib/writer"]:
        full = (pathlib.Path.cwd() / path).resolve()
        if not full.exists():
            full = ROOT / path
        if not full.exists():
            raise Failed(f"there is no {path}")
        inside = full.rglob("*.cpp") if full.is_dir() else [full]
        found.update(str(file.resolve().relative_to(ROOT)) for file in inside)
    return sorted(found)


def accepted():
    """The accepted changes, each with a reason; a change without one is an error."""
    found = set()
    for entry in re.split(r"\n\s*\n", ACCEPTED.read_text() if ACCEPTED.exists() else ""):
        lines = [line for line in entry.splitlines() if line and not line.startswith("#")]
        if not lines:
            continue
        if len(lines) < 4 or lines[1][:2] != "- " or lines[2][:2] != "+ ":
            raise Failed(f"{ACCEPTED.name}: an entry is a path, '- line', '+ line' and a reason: {lines[0]}")
        found.add("\n".join(lines[:3]) + "\n")
    return found


def memory_of(pid):
    try:
        pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def run(command, seconds, **options):
    """(exit status or a word, output). Kills all processes that it started."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT,
                                 stdin=subprocess.DEVNULL, start_new_session=True, **options)
        status, end, nap = None, time.monotonic() + seconds, 0.005
        try:
            while status is None:
                try:
                    status = child.wait(nap)
                except subprocess.TimeoutExpired:
                    nap = min(2 * nap, 0.2)
                    if time.monotonic() > end:
                        status = "timeout"
                    elif memory_of(child.pid) > MOST_MEMORY:
                        status = "memory"
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
        output.seek(0)
        return status, output.read()


class Build:
    """A complete build, and the commands that made it."""

    def __init__(self, folder):
        self.folder = folder
        self.compiled = json.loads((folder / "compile_commands.json").read_text())
        linker = next((name for name in ("mold", "lld", "gold") if shutil.which(f"ld.{name}")), None)
        self.linker = [f"-fuse-ld={linker}"] if linker else []
        self.links = {}

    def compiler(self, source):
        """The command, as words, and its directory that compile the source for the unit tests. Other targets may
        compile it, too."""
        for entry in self.compiled:
            if entry["file"] == str(ROOT / source):
                command = shlex.split(entry["command"])
                if command[command.index("-o") + 1] in self.link_command("tests/unit_tests"):
                    return command, entry["directory"]
        raise Failed(f"{source} is not a part of the unit tests in {self.folder}")

    def compile(self, source, text, place):
        """Compiles `text` in place of `source`. Returns the object, or None."""
        command, directory = self.compiler(source)
        if os.path.basename(command[0]) == "ccache":  # compiled only once
            command = command[1:]
        changed = place / pathlib.Path(source).name
        changed.write_text(text)
        made = place / "mutant.o"
        at = command.index("-o")
        self.replaced = command[at + 1]
        command[at + 1] = str(made)
        command = [str(changed) if word == str(ROOT / source) else word for word in command]
        command += CHEAP + ["-iquote", str((ROOT / source).parent)]
        status, _ = run(command, 120, cwd=directory)
        return made if status == 0 else None

    def link_command(self, target):
        if target not in self.links:
            done = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", target],
                                  capture_output=True, text=True, check=True)
            line = done.stdout.splitlines()[-1].removeprefix(": && ")
            self.links[target] = shlex.split(line.split(" && :")[0])
        return self.links[target]

    def link(self, target, made, out):
        command = self.link_command(target)
        if os.path.basename(command[0]) == "ccache":
            command = command[1:]
        command = [str(made) if word == self.replaced else word for word in command]
        command[command.index("-o") + 1] = str(out)
        status, said = run([*command, *self.linker], 300, cwd=self.folder)
        if status != 0:
            raise Failed(f"{target} cannot be linked: {said[-2000:]}")


def near_tests(source):
    """Stems of the test files of this source."""
    path = pathlib.Path(source)
    header = "/".join(path.with_suffix(".hpp").parts[2:])
    public = f"perfmap/{path.stem}.hpp"
    found = set()
    for folder in ("unit", "property"):
        for test in sorted((ROOT / "tests" / folder).rglob("*.cpp")):
            text = test.read_text()
            if (test.parent.name == path.parent.name or f'"{header}"' in text or
                    f"<{public}>" in text or f'"{public}"' in text):
                found.add(test.stem)
    return found


class Judge:
    """Runs tests against mutants, and each test once without a mutant, to measure its time."""

    learning = threading.Lock()

    def __init__(self, build, place, level):
        self.build, self.place, self.level = build, place, level
        self.times = {}
        self.environment = {**os.environ, "TMPDIR": str(place / "tmp")}
        self.options = {"cwd": place, "env": self.environment}
        self.cases, self.reach = None, None

    def patience(self, key, command):
        if key not in self.times:
            begin = time.monotonic()
            status, said = run(command, 1800)
            if status != 0:
                raise Failed(f"tests fail without any change: {' '.join(command)}\n{said[-3000:]}")
            self.times[key] = time.monotonic() - begin
        return 4 * self.times[key] + 20

    def unit_command(self, program, cases):
        titles = self.place / "titles"
        unit_cases.write(titles, cases)
        return [str(program), "--abort", *(["--input-file", str(titles)] if cases else [])]

    def learn(self):
        """The cases of the unit tests, which must pass without a mutant."""
        original = str(self.build.folder / "tests/unit_tests")
        made = hashlib.sha256(pathlib.Path(original).read_bytes()).hexdigest()
        known = WORK / f"cases-{made[:16]}.xml"
        if not known.exists():
            status, said = run([original, "-r", "xml", "-d", "yes"], 1800, **self.options)
            if status != 0:
                raise Failed(f"tests fail without any change: {original}\n{unit_cases.failures(said)}")
            for old in WORK.glob("cases-*.xml"):
                old.unlink()
            known.write_text(said)
        self.cases = unit_cases.parse(known.read_text())
        listed = [*self.unit_command(original, self.cases), "--list-test-names-only"]
        if self.cases and run(listed, 60, **self.options)[1].count("\n") != len(self.cases):
            raise Failed("tests cannot be chosen by their titles")
        self.reach = unit_cases.Reach(self.build.folder, self.build.link_command("tests/unit_tests"))

    def unit(self, source, program, passed):
        """The test that notices the mutant: among the quick ones, unless they are known to pass, or
        the slow ones."""
        with Judge.learning:
            if self.reach is None:
                self.learn()
        groups = unit_cases.groups(self.cases, near_tests(source), self.reach.files(self.build.replaced))
        for slow, group in groups if self.cases else [(False, [])]:
            if self.level == "quick" if slow else passed == "quick":
                continue
            seconds = 4 * sum(case.seconds for case in group) + 20
            status, said = run(self.unit_command(program, group), seconds, **self.options)
            if status != 0:
                title = re.search(r"^-{20,}\n(\S[^\n]*)\n", said, re.M)
                return f"unit: {title[1] if title else status}"
        return None

    def golden(self, made):
        """The golden case that notices the mutant in the program."""
        program, runner = self.place / "perfmap", ROOT / "tests/golden/run.py"
        self.build.link("apps/perfmap/perfmap", made, program)
        settings = json.loads((self.build.folder / "tests/golden/settings.json").read_text())
        original = [runner, self.build.folder / "apps/perfmap/perfmap"]
        command = [runner, "--jobs", "1", "--preload", settings["preload"], "--docs-uri", settings["docs_uri"], program]
        status, said = run([str(word) for word in command], self.patience("golden", [str(word) for word in original]),
                           **self.options)
        if status == 0:
            return None
        case = re.search(r"^FAILED: (\S+):", said, re.M)
        return f"golden: {case[1] if case else status}"

    def shared(self, source, made):
        """The test that notices the mutant in the shared libraries."""
        name = "libperfmap-profile.so" if source.startswith("lib/profile") else "libperfmap.so"
        library = next(self.build.folder.glob(f"lib/**/{name}.*.*.*"))
        command = self.build.link_command(str(library.relative_to(self.build.folder)))
        soname = next(word for word in command if word.startswith("-Wl,-soname,")).split(",")[2]
        (self.place / "lib").mkdir(exist_ok=True)
        self.build.link(str(library.relative_to(self.build.folder)), made, self.place / "lib" / soname)
        more = WITH_LIBRARIES_OF.get(str(pathlib.Path(source).parent), "")
        return self.ctest(f"^({WITH_LIBRARIES})$") or (self.ctest(f"^{more}$") if more else None)

    def ctest(self, pattern):
        """The test matching the pattern that fails."""
        command = ["ctest", "--test-dir", str(self.build.folder), "-j", str(os.cpu_count()),
                   "--timeout", "120", "--stop-on-failure", "-R", pattern]
        with open(self.build.folder / "Testing.lock", "w") as lock:  # tests write there
            fcntl.flock(lock, fcntl.LOCK_EX)
            seconds = self.patience(pattern, command)
            status, said = run(command, seconds, env={**self.environment, "LD_LIBRARY_PATH": str(self.place / "lib")})
        if status == 0:
            return None
        failed = re.search(r"Test\s+#\d+: (\S+) \.*\s*\*\*\*", said)
        return failed[1] if failed else str(status)

    def __call__(self, mutant, text, passed):
        """(result, by what). passed: the level of tests that are known not to notice the mutant, or
        None."""
        lines = text.split("\n")
        lines[mutant.line - 1] = mutant.after
        shutil.rmtree(self.place / "tmp", ignore_errors=True)
        (self.place / "tmp").mkdir()
        made = self.build.compile(mutant.path, "\n".join(lines), self.place)
        if made is None:
            return "does not compile", ""
        by = None
        if passed != "unit":
            program = self.place / "unit_tests"
            self.build.link("tests/unit_tests", made, program)
            by = self.unit(mutant.path, program, passed)
        if by is None and self.level == "all":
            by = self.golden(made) or self.shared(mutant.path, made)
        return ("found", by) if by else ("survived", "")


class Journal:
    def __init__(self, fresh):
        self.path = WORK / "journal.jsonl"
        self.tests = tests_digest()
        self.known = {}
        if fresh:
            self.path.unlink(missing_ok=True)
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:  # incomplete because a run was killed
                    continue
                self.known[entry["key"]] = entry

    @staticmethod
    def key(mutant, text):
        return digest(mutant.path, str(mutant.line), mutant.after, text)

    def find(self, mutant, text, level):
        """(result, by what) if it is known for tests of this level."""
        entry = self.known.get(self.key(mutant, text))
        passed = self.passed(mutant, text)
        if not entry or (entry["result"] == "survived" and
                         (passed is None or LEVELS.index(passed) < LEVELS.index(level))):
            return None
        return entry["result"], entry["by"]

    def passed(self, mutant, text):
        """The level of tests that the mutant is known to survive, or None."""
        entry = self.known.get(self.key(mutant, text), {"result": None})
        return entry["level"] if entry["result"] == "survived" and entry["tests"] == self.tests else None

    def add(self, mutant, text, level, result, by):
        entry = {"key": self.key(mutant, text), "at": f"{mutant.path}:{mutant.line}",
                 "before": mutant.before.strip(), "after": mutant.after.strip(),
                 "result": result, "by": by, "level": level, "tests": self.tests}
        with open(self.path, "a") as file:
            file.write(json.dumps(entry) + "\n")


def choose(paths, seed, line):
    """All mutants in the order of the seed, and the texts of their files."""
    texts = {path: (ROOT / path).read_text() for path in sources(paths)}
    found = {(mutant.path, mutant.line, mutant.after): mutant for path, text in texts.items()
             for mutant in mutations.mutants(path, text) if line in (None, mutant.line)}
    order = sorted(found.values(), key=lambda mutant: digest(seed, mutant.change()))
    return order, texts


def judged_in_order(arguments, order, texts, place):
    """(mutant, known, result, by, seconds) of each mutant. Several are tested in parallel."""
    level = arguments.tests
    journal = Journal(arguments.fresh)
    judges = queue.SimpleQueue()
    for number in range(arguments.jobs):
        own = place / str(number)
        own.mkdir()
        judges.put(Judge(Build(arguments.build.resolve()), own, level))

    def judge(mutant):
        text = texts[mutant.path]
        known = journal.find(mutant, text, level)
        if known:
            return mutant, True, *known, 0.0
        own = judges.get()
        try:
            begin = time.monotonic()
            result, by = own(mutant, text, journal.passed(mutant, text))
            journal.add(mutant, text, level, result, by)
            return mutant, False, result, by, time.monotonic() - begin
        finally:
            judges.put(own)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = collections.deque()
        try:
            for mutant in order:
                running.append(pool.submit(judge, mutant))
                if len(running) == 8 * arguments.jobs:  # slow ones must not delay others
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def judge_all(arguments, place):
    order, texts = choose(arguments.paths, arguments.seed, arguments.at)
    most = arguments.count or len(order)
    if arguments.list:
        for mutant in order[:most]:
            print(f"{mutant.path}:{mutant.line}\n{mutant.change()}")
        return 0
    reasons = accepted()
    counts = {"found": 0, "survived": 0, "accepted": 0, "does not compile": 0}
    survivors = []
    for mutant, known, result, by, seconds in judged_in_order(arguments, order, texts, place):
        if result == "survived" and mutant.change() in reasons:
            result = "accepted"
        counts[result] += 1
        if result == "survived":
            survivors.append(mutant)
        judged = sum(counts.values()) - counts["does not compile"]
        if result != "does not compile":
            spent = "before" if known else f"{seconds:.1f} s"
            print(f"[{judged}/{most}] {result:9} {mutant.path}:{mutant.line} ({spent}) {by}", flush=True)
        if judged == most:
            break
    print()
    for mutant in survivors:
        print(f"{mutant.path}:{mutant.line}: survived\n{mutant.change()}")
    judged = sum(counts.values()) - counts["does not compile"]
    print(f"{judged} mutants: {counts['found']} found, {counts['survived']} survived, {counts['accepted']} "
          f"accepted with a reason ({counts['does not compile']} more do not compile)")
    return 1 if survivors else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", metavar="DIR")
    parser.add_argument("--count", type=int, default=50, metavar="N", help="how many (0: all)")
    parser.add_argument("--seed", default="1", metavar="S")
    parser.add_argument("--at", type=int, metavar="LINE", help="those of this line")
    parser.add_argument("--tests", choices=LEVELS, default="all",
                        help="unit: neither golden cases nor C interfaces; quick: of those no slow ones")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many at a time")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--fresh", action="store_true", help="forget the results of earlier runs")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WORK, prefix="run-") as place:
        os.chmod(place, 0o755)  # tests open files in it as other users
        try:
            return judge_all(arguments, pathlib.Path(place))
        except Failed as why:
            print(f"mutants: {why}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("mutants: interrupted; the same command goes on from here", file=sys.stderr)
            return 130


if __name__ == "__main__":
    sys.exit(main())
