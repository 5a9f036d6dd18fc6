# SPDX-License-Identifier: MIT
"""Recordings of the small programs in tests/support/recorded, made by perf record."""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from perf_record import PERF_RECORD
from trying import try_again

SOURCES = pathlib.Path(__file__).resolve().parent / "recorded"


# The package with the link /usr/include/asm cannot be installed beside cross compilers.
FLAGS_OF_I386 = ("-m32", "-idirafter", "/usr/include/x86_64-linux-gnu")


class CannotRecord(Exception):
    """Has the reason as its message."""


def compile_program(place, source, flags, name=None, compiler="g++"):
    """Compiles recorded/SOURCE.cpp. Returns the path of the program."""
    program = pathlib.Path(place) / (name or source)
    if not shutil.which(compiler):
        raise CannotRecord(f"there is no {compiler}")
    command = [compiler, "-std=c++17", *flags, SOURCES / f"{source}.cpp", "-o", program, "-pthread"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode != 0:
        raise CannotRecord(f"{compiler} {' '.join(flags)}: {made.stderr.strip().splitlines()[-1]}")
    return program


def record(data, command, frequency=999, stack=16384, cwd=None, timeout=120, options=(), call_graph=None):
    """Writes `data` completely or not at all. User space only, because most machines allow no
    more."""
    for needed in ("perf", str(command[0])):
        if not shutil.which(needed):
            raise CannotRecord(f"there is no {needed}")
    partial = pathlib.Path(f"{data}.partial").resolve()
    perf = [*PERF_RECORD, "-k", "mono", "-e", "cpu-clock:u", "-F", str(frequency),
            "--call-graph", call_graph or f"dwarf,{stack}", "-o", str(partial), *options, "--", *map(str, command)]
    try:
        made = subprocess.run(perf, capture_output=True, text=True, cwd=cwd, timeout=timeout)
    except subprocess.TimeoutExpired:
        try_again(f"perf record {command[0]} takes more than {timeout} s")
    if made.returncode != 0 or not partial.exists():
        said = made.stderr.strip().splitlines() or ["it says nothing"]
        raise CannotRecord(f"perf record: {said[0]}")
    partial.rename(data)
    return data
