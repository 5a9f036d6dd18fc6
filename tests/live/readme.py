# SPDX-License-Identifier: MIT
"""Runs the three commands of README.md with a real Node.js: readme.py PERFMAP

The commands must succeed, and print what README.md shows but for numbers, the order of the functions and notes on
standard error. The first function must be the same. With UPDATE_README=1 in the environment, README.md shows what this
run printed. Exit status 77: no perf, or no Node.js.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from console_blocks import console_blocks, with_blocks

sys.path.insert(0, str(ROOT / "tests/support"))
from perf_record import PERF_RECORD

README = ROOT / "README.md"
LEAST_SAMPLES = 100  # the program runs for a second, with 499 samples a second
ROW = re.compile(r" *\d+ +[\d.]+% +\d+ +[\d.]+%  \S.*")


def run(words, directory):
    """What the command prints; of a report and a page, without notes."""
    done = subprocess.run(words, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT if words[1] == "record" else subprocess.DEVNULL,
                          env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, (words, done.returncode, done.stdout)
    return done.stdout.replace(str(directory), "/srv")


def shape(line):
    """The line without numbers, plurals and the event, which depends on the machine."""
    line = re.sub(r"^(\d+ samples? of) [^,]+,", r"\1 EVENT,", line)
    return re.sub(r"\b(sample|process|function)(es|s)?\b", r"\1", " ".join(re.sub(r"\d[\d.]*", "N", line).split()))


def shape_of(text):
    """The lines, with one in place of all rows of functions."""
    shapes = ["row" if ROW.fullmatch(line) else shape(line) for line in text.splitlines()]
    return [line for i, line in enumerate(shapes) if line != "row" or shapes[i - 1] != "row"]


def first_function(text):
    return next((line.split(maxsplit=4)[4].split(" [")[0] for line in text.splitlines() if ROW.fullmatch(line)), None)


def main():
    perfmap = pathlib.Path(sys.argv[1]).resolve()
    for program in ("node", "perf"):
        if not shutil.which(program):
            print(f"skipped: no {program}")
            return 77
    (_, _, shown), = console_blocks(README.read_text())
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch).resolve() / "srv"
        directory.mkdir()
        probe = subprocess.run([*PERF_RECORD, "-o", f"{scratch}/probe", "true"], capture_output=True, text=True)
        if probe.returncode != 0:
            print(f"skipped: perf cannot record here: {probe.stderr.strip()[:200]}")
            return 77
        shutil.copytree(ROOT / "examples/node", directory / "examples/node")
        fresh = [run([perfmap, *shlex.split(line)[1:]], directory) for _, line, _ in shown]
        page = (directory / "flame.html").read_text()
    if int(re.search(r"recorded (\d+) sample", fresh[0])[1]) < LEAST_SAMPLES:
        print(f"try again: too few samples: {fresh[0]}")
        return 1
    if os.environ.get("UPDATE_README"):
        block = "".join(f"$ {line}\n{printed}" for (_, line, _), printed in zip(shown, fresh))
        README.write_text(with_blocks(README.read_text(), [block]))
        return 0
    for (_, line, expected), printed in zip(shown, fresh):
        assert shape_of(printed) == shape_of(expected), f"{line}\nREADME.md shows:\n{expected}\nprinted:\n{printed}"
        assert first_function(printed) == first_function(expected), (line, printed)
    assert first_function(fresh[1]).split()[0] in page
    print(f"{len(fresh)} commands print what README.md shows")
    return 0


sys.exit(main())
