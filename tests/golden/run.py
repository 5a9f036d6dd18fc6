#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs golden cases: run.py [OPTION]... PROGRAM [CASE]...

A CASE is COMMAND/NAME, COMMAND for all cases of its folder, `usage` for usage.table, or usage:LINE for one
of its rows; by default all cases run. case_file.py describes the files. A new case needs only the line
'$ perfmap ...' and its inputs: with UPDATE_GOLDEN=1 in the environment, what the program does is written
into the cases instead of compared. Read the diff before you commit it.

The command runs in a folder that has only the inputs. It sees no other file of the machine (empty_root.c),
and few environment variables. The exit status and all bytes of the output and of each file that the command
writes or changes are compared. The URI of the documentation is compared as "file:///DOCS".
"""
import argparse
import concurrent.futures
import copy
import difflib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

GOLDEN = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(GOLDEN), str(GOLDEN.parent / "support")]
import decoded
import empty_root
from case_file import Case, CaseError, Table, cases_below, cases_in, quoted

HERE = b"this machine"  # in messages: the machine that runs the test
SECONDS = 300
MAX_LINES = 60
WIDTH = 160


def files_of(folder):
    """Files and links below FOLDER by their relative names; empty folders have a name that ends in "/"."""
    found = {}
    for parent, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        prefix = os.path.relpath(parent, folder) + "/" if parent != str(folder) else ""
        found |= {prefix + name: pathlib.Path(parent, name) for name in files + links}
        if not files and not folders and prefix:
            found[prefix] = pathlib.Path(parent)
    return found


def contents(path):
    """The bytes of a file, and the target of a link."""
    if path.is_symlink():
        return b"link to " + os.readlink(os.fsencode(path))
    return b"" if path.is_dir() else path.read_bytes()


class Scratch:
    """The folder that the command of a case sees."""

    def __init__(self, case, folder):
        self.folder = folder
        self.inputs = {}  # name: contents
        folder.mkdir(parents=True)
        for name in case.folders:
            if not (case.root / name).is_dir():
                raise CaseError(f"{case.name}: no folder {case.root / name}")
            for file, path in files_of(case.root / name).items():
                self.add(file, contents(path), path)
        for name, source in case.inputs.items():
            path = case.root / source
            if not path.is_file():
                raise CaseError(f"{case.name}: no file {path}")
            self.add(name, path.read_bytes(), path)
        for name, data in case.named("input").items():
            self.add(name, data)
        for name, target in case.links.items():
            self.place(name, b"link to " + os.fsencode(target)).symlink_to(target)

    def place(self, name, data):
        if name in self.inputs:
            raise CaseError(f"duplicate input {name}")
        if name.startswith("/") or ".." in name.split("/"):
            raise CaseError(f"an input is outside of the scratch folder: {name}")
        self.inputs[name] = data
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def add(self, name, data, source=None):
        path = self.place(name, data)
        if source is not None and source.is_symlink():
            path.symlink_to(os.readlink(source))
        elif name.endswith("/"):
            path.mkdir()
        else:
            path.write_bytes(data)
            # The umask of the checkout has no effect on commands.
            path.chmod(0o755 if source is not None and source.stat().st_mode & 0o100 else 0o644)

    def changes(self):
        """Files that are new or changed, by name, and the names of inputs that are gone."""
        files = {name: contents(path) for name, path in files_of(self.folder).items()}
        return ({name: data for name, data in files.items() if self.inputs.get(name) != data},
                [name for name in self.inputs if name not in files and not name.endswith("/")])


class Runner:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.program = pathlib.Path(options.program).resolve()
        self.nothing = work / "nothing"
        self.nothing.mkdir()

    def environment(self, case):
        return empty_root.environment(self.options.preload, self.nothing) | {"PERFMAP_TMPDIR": "."} | case.environment

    def run(self, case):
        """The results of the command: {name: bytes}, as in expectations()."""
        folder = self.work / re.sub("[/:]", ".", case.name)
        scratch = Scratch(case, folder / "scratch")
        stdin = folder / "stdin"
        stdin.write_bytes((case.root / case.stdin_path).read_bytes() if case.stdin_path else case.stream("stdin"))
        has_stdin = case.stdin_path or any(section.title == ("stdin",) for section in case.sections)
        with open(stdin if has_stdin else os.devnull, "rb") as source:
            done = subprocess.run([self.program, *case.command], cwd=scratch.folder, stdin=source,
                                  capture_output=True, env=self.environment(case), timeout=SECONDS,
                                  start_new_session=True)
        stdout, stderr = done.stdout, done.stderr
        if self.options.docs_uri:
            stdout = stdout.replace(self.options.docs_uri.encode(), b"file:///DOCS")
        if case.timed:
            stderr = re.sub(rb"\b\d+\.\d{3} s$", b"0.000 s", stderr, flags=re.M)
        got = {"exit": b"%d\n" % done.returncode, "stdout": stdout, "stderr": stderr}
        written, gone = scratch.changes()
        for name in case.outputs.keys() | case.named("output").keys():
            if name in scratch.inputs and name not in gone:
                written.setdefault(name, scratch.inputs[name])
        for name, data in written.items():
            kind = kind_of(case, name)
            if kind == "decoded":
                data = decoded.text_of(name, data).encode()
            got[f"{kind} {name}"] = b"" if kind == "leaves" else data
        got |= {f"removed {name}": b"" for name in gone}
        shutil.rmtree(folder)
        return got


def kind_of(case, name):
    """How the output file NAME is compared. A new file is decoded if that is easier to read."""
    if name in case.left:
        return "leaves"
    if name in case.named("decoded"):
        return "decoded"
    is_new = name not in case.outputs and name not in case.named("output")
    return "decoded" if is_new and name.endswith((".pb", ".html")) else "output"


def expectations(case):
    expected = {"exit": b"%d\n" % case.exit, "stdout": case.stream("stdout"), "stderr": case.stream("stderr")}
    expected |= {f"output {name}": (case.root / path).read_bytes() for name, path in case.outputs.items()}
    expected |= {f"{kind} {name}": data for kind in ("output", "decoded") for name, data in case.named(kind).items()}
    return expected | {f"leaves {name}": b"" for name in case.left}


def differences(expected, got):
    """The names of the expectations that differ."""
    return [name for name in {**expected, **got} if expected.get(name) != got.get(name)]


def shown(data):
    """Lines of text in which every byte is visible. Long lines are shortened."""
    lines = []
    for line in data.split(b"\n"):
        text = line.replace(b"\\", b"\\\\").decode(errors="backslashreplace")
        text = "".join(c if c.isprintable() or c == "\t" else f"\\x{ord(c):02x}" for c in text)
        lines += [text[i:i + WIDTH] for i in range(0, len(text), WIDTH)] or [""]
    if not data.endswith(b"\n") and data:
        lines.append("\\ no newline at the end")
    return lines


def describe(name, expected, got):
    """The text that describes the difference in NAME."""
    if name.startswith("removed "):
        return f"{name.removeprefix('removed ')} was removed"
    if name not in got:
        return f"{name.split(' ', 1)[1]} was not written"
    unexpected = [] if name in expected else [f"{name.split(' ', 1)[1]} was written, and the case has no '{name}'"]
    diff = list(difflib.unified_diff(shown(expected.get(name, b"")), shown(got[name]), f"expected {name}",
                                     f"got {name}", lineterm="", n=2))
    cut = [f"... {len(diff) - MAX_LINES} more lines"] if len(diff) > MAX_LINES else []
    return "\n".join([*(unexpected or [f"{name} differs"]), *diff[:MAX_LINES], *cut])


def problems(case, got):
    expected = expectations(case)
    found = [describe(name, expected, got) for name in differences(expected, got)]
    if HERE in got["stderr"]:
        found.append("stderr mentions this machine, so it differs on others (try --kallsyms /dev/null)")
    return found


def unnoticed_changes(case, got):
    """Expectations of a passing case in which a changed byte makes no difference."""
    unnoticed = []
    for name, data in expectations(case).items():
        if name.startswith("leaves "):
            continue
        altered = copy.deepcopy(case)
        if name == "exit":
            altered.exit += 1
        else:
            middle = len(data) // 2
            kind, _, file = name.partition(" ")
            altered.outputs.pop(file, None)
            altered.set((kind, file) if file else (kind,),
                        data[:middle] + bytes(b ^ 1 for b in data[middle:middle + 1] or b"\x00") + data[middle + 1:])
        if differences(expectations(altered), got) != [name]:
            unnoticed.append(f"{name}: a changed byte is not noticed")
    return unnoticed


def update(case, got):
    """Makes GOT the expectation of the case. Sections without a difference are not changed."""
    expected = expectations(case)
    for name in differences(expected, got):
        kind, _, file = name.partition(" ")
        if name == "exit":
            status = int(got[name])
            case.set_line(["exit"], f"exit {status}" if status else None)
        elif kind == "leaves":
            case.set_line(["leaves", file], None)
        elif kind != "removed":
            case.set_line([kind, file, "="], None)
            data = got.get(name)
            case.set((kind, file) if file else (kind,), data if data or file and data is not None else None)


class Cases:
    """The selected cases and their files."""

    def __init__(self, names, root=GOLDEN):
        self.root = root
        self.table = None
        self.chosen = []
        if not names:
            self.chosen = cases_below(root) + self.usage_rows("usage")
        for name in names:
            name = os.path.relpath(name, root) if os.path.isfile(name) else name  # as a shell completes it
            name = name.removesuffix(".case")
            folder, file = root / name, root / f"{name}.case"
            if name.partition(":")[0] == "usage":
                self.chosen += self.usage_rows(name)
            elif file.is_file():
                self.chosen.append(Case(name, file.read_bytes(), root))
            elif folder.is_dir():
                self.chosen += cases_in(folder)
            else:
                raise CaseError(f"no case {file}, and no folder {folder}")

    def usage_rows(self, name):
        self.table = self.table or Table("usage", (self.root / "usage.table").read_bytes(), self.root)
        rows = [row for _, row in self.table.rows if name in ("usage", row.name)]
        if not rows:
            raise CaseError(f"no row of usage.table begins at line {name.removeprefix('usage:')}")
        return rows

    def write(self, case, got):
        """The problems of an update."""
        if got["exit"].startswith(b"-"):
            return [f"the program ended with signal {-int(got['exit'])}"]
        if case.name.startswith("usage:"):
            if (got["exit"], got["stdout"], len(got)) != (b"2\n", b"", 3):
                return [f"status {got['exit'].decode().strip()}, {len(got['stdout'].splitlines())} lines of stdout, "
                        f"{len(got) - 3} files: not a message about wrong usage. Make it a case"]
            self.table.set_message(case, got["stderr"])
        else:
            update(case, got)
            (self.root / f"{case.name}.case").write_bytes(case.print())
        return [f"{name}: a case cannot expect this" for name in got if name.startswith("removed ")]

    def finish(self):
        if self.table:
            (self.root / "usage.table").write_bytes(self.table.print())


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-j", "--jobs", type=int, default=2, help="how many cases run at a time (default: 2)")
    parser.add_argument("--self-check", action="store_true",
                        help="also check that each case fails if a byte of an expectation changes")
    parser.add_argument("--preload", help="the library of empty_root.c; '' lets commands see the machine "
                        "(default: that of PROGRAM's build)")
    parser.add_argument("--docs-uri", help="the documentation's URI in PROGRAM (default: that of its build)")
    parser.add_argument("--golden", type=pathlib.Path, default=GOLDEN,
                        help="the folder of cases (default: %(default)s)")
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("cases", metavar="CASE", nargs="*")
    options = parser.parse_intermixed_args(arguments)
    options.updates = os.environ.get("UPDATE_GOLDEN") == "1"
    if options.updates and options.self_check:
        parser.error("--self-check cannot be used with UPDATE_GOLDEN=1")
    if not os.access(options.program, os.X_OK) or os.path.isdir(options.program):
        parser.error(f"no program {options.program}: the first argument is the perfmap to test")
    # tests/golden/CMakeLists.txt writes it.
    settings = pathlib.Path(options.program).resolve().parent.parent.parent / "tests/golden/settings.json"
    build = json.loads(settings.read_text()) if settings.is_file() else {}
    if options.preload is None:
        options.preload = build.get("preload", settings)
    if options.preload and not pathlib.Path(options.preload).is_file():
        parser.error(f"no file {options.preload}: build the target empty_root, or give --preload and --docs-uri")
    options.docs_uri = options.docs_uri or build.get("docs_uri")
    return options


def main():
    options = options_of(sys.argv[1:])
    os.umask(0o022)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # removes the scratch folder
    try:
        cases = Cases(options.cases, options.golden.resolve())
    except CaseError as error:
        sys.exit(f"run.py: {error}")
    with tempfile.TemporaryDirectory(prefix="golden-") as work, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runner = Runner(options, pathlib.Path(work).resolve())

        def outcome(case):
            try:
                got = runner.run(case)
                if options.updates:
                    return cases.write(case, got)
            except (CaseError, OSError, ValueError, AssertionError, subprocess.TimeoutExpired) as error:
                return [f"{type(error).__name__}: {error}"]
            return problems(case, got) or (unnoticed_changes(case, got) if options.self_check else [])

        failed = 0
        for case, found in zip(cases.chosen, pool.map(outcome, cases.chosen)):
            if found:
                failed += 1
                again = shlex.join([*(word for word in sys.argv if word not in options.cases), case.name])
                print(f"FAILED: {case.name}: perfmap {' '.join(map(quoted, case.command))}", *found,
                      f"To run it again: {again}", sep="\n\n", end="\n\n", flush=True)
    if options.updates:
        cases.finish()
    print(f"cases: {len(cases.chosen) - failed} {'written' if options.updates else 'passed'}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
