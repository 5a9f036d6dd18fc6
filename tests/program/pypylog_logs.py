#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Converts all real logs of PyPy in the tree to maps: pypylog_logs.py PERFMAP

Each loop and bridge with an address must have its name in the map.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
import pypylog

PERFMAP = sys.argv[1]
SECTION = re.compile(rb"^(?:\x1b\[[0-9;]*m)*\[[0-9a-f]+\] \{", re.M)


def is_log(path):
    with open(path, "rb") as file:
        return SECTION.search(file.read(4096)) is not None


def entries_of(log):
    made = subprocess.run([PERFMAP, "convert", log, "--to", "perf-map"], capture_output=True, text=True,
                          errors="surrogateescape", check=True)
    for line in made.stdout.splitlines():
        begin, size, name = line.split(" ", 2)
        yield int(begin, 16), int(begin, 16) + int(size, 16), name


def check(log):
    entries = list(entries_of(log))
    loops = pypylog.loops_of(log)
    if not all(loop.is_whole for loop in loops[:-1]):
        # Several processes wrote to it at once, so parts cannot be assigned to loops.
        assert {loop.name for loop in loops} == {name for _, _, name in entries}, log.name
        print(f"{log.relative_to(ROOT)}: mixed, {len(entries)} entries")
        return len(loops)
    named = 0
    for loop in loops:
        for address in (loop.begin, (loop.begin + loop.end) // 2, loop.end - 1):
            wanted = pypylog.loop_at(loops, address).name
            found = [name for begin, end, name in entries if begin <= address < end]
            assert found == [wanted], (log.name, hex(address), found, wanted)
        named += 1
    assert all(pypylog.loop_at(loops, begin) for begin, _, _ in entries), log.name
    print(f"{log.relative_to(ROOT)}: {named} loops and bridges, {len(entries)} entries")
    return named


logs = [path for path in sorted((ROOT / "tests/wild/pypy").rglob("*")) if path.is_file() and is_log(path)]
assert logs, "there is no log"
assert sum(map(check, logs)) > 0
