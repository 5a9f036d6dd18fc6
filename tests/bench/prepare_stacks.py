#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records the inputs of bench_stacks.cpp unless they exist: prepare_stacks.py DIR

Prints what cannot be recorded on this machine, and why.
"""
import functools
import pathlib
import shutil
import subprocess
import sys

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
sys.path[:0] = [str(SUPPORT), str(SUPPORT.parent), str(SUPPORT.parent / "foreign")]
import recorded  # noqa: E402
import foreign  # noqa: E402
from machines import MACHINES  # noqa: E402

place = pathlib.Path(sys.argv[1]).resolve()
place.mkdir(parents=True, exist_ok=True)


def native():
    program = recorded.compile_program(place, "tree", ["-O2"])
    recorded.record(place / "native.data", [program, "120"], frequency=4000)


def shallow():
    program = recorded.compile_program(place, "shallow", ["-O2", "-fomit-frame-pointer"])
    recorded.record(place / "shallow.data", [program, "6000"], frequency=4000)


def static():
    program = recorded.compile_program(place, "tree", ["-O2", "-static"], name="tree-static")
    recorded.record(place / "static.data", [program, "40"], frequency=1000)


def debug():
    """A program with much debug information, from prepare_lines.py."""
    work, units = place.parent / "lines", 40
    if not (work / "program").exists():
        print(f"compiling a program of {units} units, which takes some minutes", flush=True)
        make = [sys.executable, SUPPORT / "make_program.py", "--heavy", work, str(units)]
        subprocess.run(make, check=True)
    names = [f"unit_{unit}" for unit in range(units)]
    (work / "loop.cpp").write_text(
        "".join(f"long {name}(int);\n" for name in names) +
        "int main() {\n  long all = 0;\n  for (int i = 0; i < 8000; ++i) all += " +
        " + ".join(f"{name}(i)" for name in names) + ";\n  return all == 1;\n}\n")
    objects = [f"{name}.o" for name in names]
    subprocess.run(["g++", "-O2", "-g", "loop.cpp", *objects, "-o", "loop"], cwd=work, check=True)
    recorded.record(place / "debug.data", [work / "loop"], frequency=999, stack=8192)


def processes():
    source = SUPPORT / "recorded" / "tree.cpp"
    loop = f"for i in $(seq 12); do g++ -O1 -c {source} -o {place}/tree.o; done"
    recorded.record(place / "processes.data", ["sh", "-c", loop], frequency=500)


def node():
    work = place / "node"
    work.mkdir(exist_ok=True)
    flags = ["--perf-prof", "--interpreted-frames-native-stack"]
    script = SUPPORT / "recorded" / "load.js"
    recorded.record(place / "node.data", ["node", *flags, script, "5000"], frequency=999, cwd=work)


def small():
    """An interpreter with its libraries."""
    code = "import json, re, decimal, ssl\nfor i in range(7000): json.loads(json.dumps({str(j): [j] for j in range(60)}))"
    recorded.record(place / "small.data", ["python3", "-c", code], frequency=499)


def java():
    if not shutil.which("javac"):
        raise recorded.CannotRecord("there is no javac")
    work = place / "java"
    work.mkdir(exist_ok=True)
    subprocess.run(["javac", "-d", work, SUPPORT / "recorded" / "Work.java"], check=True)
    command = ["java", "-XX:+PreserveFramePointer", "-cp", work, "Work", "4000"]
    recorded.record(place / "java.data", command, frequency=499, stack=65528, cwd=work)


def of_machine(name):
    """Samples that a program of another machine takes of itself, with its files in NAME.root."""
    machine, work = MACHINES[name], place / name
    if reason := foreign.missing(machine):
        raise recorded.CannotRecord(reason)
    work.mkdir(exist_ok=True)
    made = foreign.record(machine, machine.variants[0], work)
    shutil.rmtree(place / f"{name}.root", ignore_errors=True)
    made.sysroot.rename(place / f"{name}.root")
    made.data.rename(place / f"{name}.data")


for name, make in [("native", native), ("shallow", shallow), ("static", static), ("debug", debug),
                   ("processes", processes), ("node", node), ("java", java),
                   ("small", small),
                   *((name, functools.partial(of_machine, name)) for name in ("x86", "aarch64"))]:
    if (place / f"{name}.data").exists():
        continue
    try:
        make()
    except recorded.CannotRecord as reason:
        print(f"no recording of {name}: {reason}")
