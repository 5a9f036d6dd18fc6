# SPDX-License-Identifier: MIT
"""Runs the examples of all help texts: check_examples.py PERFMAP

Each runs in a folder that has the files that examples name; /tmp is that folder, and process 4242
one that the test starts. Exit status 2, and a command that is not found, are failures.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
MAP = "7f3529fcf759 b py::bar:/run/t.py\n7f3529fd0000 40 LazyCompile:*foo app.js:1\n"
SECONDS = 200
PROCESS = "4242"
FUNCTION, MODULE = "malloc", "tally"  # without its ELF file, all names of the recording are that of the module
# These change a shell, or a home directory.
NOT_RUN = ("source <(", "perfmap completions fish >")


def text_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def examples(perfmap):
    """Pairs of a command's name and one of its examples."""
    commands = re.findall(r"(?m)^  ([a-z-]+) {2,}[A-Z]", text_of(perfmap, "help"))
    for command in commands:
        section = text_of(perfmap, command, "--help").split("\nExamples:\n")[1].split("\nExit status:")[0]
        found = re.findall(r"(?m)^    (.*)", section)
        if not 2 <= len(found) <= 4:
            yield command, None
        for example in found:
            yield command, example


def make_files(folder, perfmap, pid):
    for name in ("perf-42.map", "old.map", "new.map", "parent.map", "child.map", f"perf-{pid}.map"):
        (folder / name).write_text(MAP)
    (folder / "bar.bin").write_bytes(bytes(11))
    for name in ("perf.data", "old.data"):
        shutil.copy(TESTS / "wild/tally/perf.data", folder / name)
    shutil.copy(TESTS / "wild/pypy/profile/pypylog", folder / "app.pypylog")
    for name in ("jit-42.dump", "app.dump"):
        subprocess.run([perfmap, "write", "-o", name, "--jitdump", "--code", "bar.bin", "7f3529fcf759", "b",
                        "py::bar"], cwd=folder, check=True, capture_output=True)
    tools = folder / "bin"
    tools.mkdir()
    (tools / "perfmap").symlink_to(perfmap)
    # perf script prints nothing; perf record makes a recording for the option -o.
    (tools / "perf").write_text("#!/bin/sh\nwhile [ $# -gt 0 ]; do\n"
                                f"  [ \"$1\" = -o ] && cp {shlex.quote(str(folder))}/perf.data \"$2\"\n"
                                "  shift\ndone\nexit 0\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    for program in ("node", "java"):  # a test runs where they are not installed
        (tools / program).write_text("#!/bin/sh\n")
    (tools / "jq").write_text("#!/bin/sh\nexec cat\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)


def make_recording(folder):
    """A recording of Node.js. It names its dump by a path that gets the same length, so that records keep their
    sizes."""
    recorded = b"/tmp/corpus-work/out/node/"
    place = folder / ("d" * (len(recorded) - len(f"{folder}/") - 1))
    place.mkdir()
    shutil.copy(TESTS / "wild/node/jit-683-samples.dump", place / "jit-683.dump")
    data = (TESTS / "wild/node/perf-683.data").read_bytes().replace(recorded, f"{place}/".encode())
    (folder / "perf.data").write_bytes(data)


def failure(example, perfmap):
    """Why the example fails, or nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        process = subprocess.Popen(["sleep", str(SECONDS)])
        try:
            make_files(folder, perfmap, process.pid)
            if "perfmap annotate" in example:
                make_recording(folder)
            line = example.replace("/tmp/", "./").replace(PROCESS, str(process.pid)).replace(FUNCTION, MODULE)
            if "perfmap watch" in example:  # it runs until the process ends
                line = f"sleep 1 & {line.replace(str(process.pid), '$!')}"
            done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, timeout=SECONDS,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                                  env=os.environ | {"PERFMAP_TMPDIR": ".",
                                                    "PATH": f"{folder}/bin:{os.environ['PATH']}"})
        finally:
            process.kill()
            process.wait()
        return done.stderr if done.returncode not in (0, 1) else None


def main():
    perfmap = str(pathlib.Path(sys.argv[1]).resolve())
    problems = []
    count = 0
    for command, example in examples(perfmap):
        if example is None:
            problems.append(f"perfmap {command} --help has not two to four examples")
        elif not example.startswith(NOT_RUN):
            count += 1
            why = failure(example, perfmap)
            if why is not None:
                problems.append(f"$ {example}\n{why}")
    print("\n".join(problems) or f"{count} examples work")
    return 1 if problems or count < 40 else 0


sys.exit(main())
