#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records a program that PyPy runs, with its log: pypylog.py PERFMAP

Every sample in the machine code of a loop or bridge must have the name and line of the log: in
`perfmap resolve`, in `perfmap stacks`, and, with a map, in perf.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from chance import is_at_most
from perf_record import PERF_RECORD
import pypylog
from trying import require_samples

PERFMAP = sys.argv[1]
PROGRAM = """
class Point:
    def __init__(self, x):
        self.x = x

def arithmetic(n):
    total = 0
    for i in range(n):
        total += i * 3 % 7
    return total

def branches(n):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            total ^= i
        elif i % 5:
            total += Point(i).x
        else:
            total -= len(str(i))
    return total

def nested(n):
    return sum(i * j & 3 for i in range(n) for j in range(100))

for _ in range(60):
    print(arithmetic(4000000), branches(300000), nested(4000))
"""


class CannotRecord(Exception):
    """The reason why nothing can be recorded."""


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True,
                          errors="surrogateescape", timeout=200, **options).stdout


def record(place):
    for needed in ("perf", "pypy3"):
        if not shutil.which(needed):
            raise CannotRecord(f"there is no {needed}")
    program, log, data = place / "program.py", place / "run.pypylog", place / "perf.data"
    program.write_text(PROGRAM)
    made = subprocess.run(
        [*PERF_RECORD, "-k", "mono", "-e", "cpu-clock", "-F", "499", "-g", "-o", data, "pypy3", program],
        env={**os.environ, "PYPYLOG": f"jit-log-opt,jit-backend,jit-summary:{log}"}, capture_output=True, text=True,
        timeout=200)
    if made.returncode != 0 or not data.exists():
        raise CannotRecord(f"perf record: {(made.stderr.strip().splitlines() or ['it says nothing'])[0]}")
    return log, data


def samples_by_perf(data):
    """(pid, ip, name) of each sample, by perf script."""
    samples = []
    for line in run("perf", "script", "-i", data, "-G", "-F", "pid,ip,sym").splitlines():
        found = re.match(r" *(\d+) +([0-9a-f]+) (.*)", line)
        if found:
            samples.append((int(found[1]), int(found[2], 16), found[3]))
    return samples


def check_resolve(samples, loops, *source):
    """Checks names, and lines if the source is the log."""
    ips = sorted({ip for _, ip, _ in samples})
    answers = run(PERFMAP, "resolve", "-", "--format", "jsonl", "--lines", *source,
                  input="".join(f"{ip:x}\n" for ip in ips)).splitlines()
    assert len(answers) == len(ips), source
    lines = 0
    for ip, answer in zip(ips, map(json.loads, answers)):
        loop = pypylog.loop_at(loops, ip)
        assert answer["name"] == loop.name, (source, answer, loop.name)
        assert answer["offset"] == ip - loop.begin, (source, answer)
        lines += check_line(answer.get("file"), answer.get("source_line"), loop, ip) if source[0] == "-s" else 0
    return lines


def check_line(file, line, loop, ip):
    wanted = loop.line_at(ip) or (None, None)
    assert (file, line) == wanted, (file, line, wanted, loop.name, hex(ip))
    return 1


def check_stacks(data, log, loops, wanted):
    """Checks the leaf of every sample in a loop or bridge."""
    named = 0
    for text in run(PERFMAP, "stacks", data, "--map", log, "--lines", "--format", "jsonl").splitlines():
        sample = json.loads(text)
        leaf = sample.get("frames", [{}])[0]
        loop = pypylog.loop_at(loops, int(leaf["ip"], 16)) if leaf else None
        if loop:
            assert leaf["name"] == loop.name, (leaf, loop.name)
            named += 1
            # Without a known line, "file" is "" and "line" is 0.
            check_line(leaf["file"] or None, leaf["line"] or None, loop, int(leaf["ip"], 16))
    assert named == wanted, (named, wanted)


def check_perf(data, pid, map_text, loops, wanted):
    """Checks the names of perf itself, with a map at the path where it looks for one."""
    path = pathlib.Path(f"/tmp/perf-{pid}.map")
    with open(path, "x") as out:
        out.write(map_text)
    try:
        samples = samples_by_perf(data)
    finally:
        path.unlink()
    named = 0
    for _, ip, name in samples:
        if loop := pypylog.loop_at(loops, ip):
            assert name == loop.name, (hex(ip), name, loop.name)
            named += 1
    assert named == wanted, (named, wanted)


def check_code(place, log, samples):
    """The log has the code that ran: an instruction begins at each sampled address."""
    if not shutil.which("objdump"):
        return print("skipped in part: no objdump here")
    run(PERFMAP, "convert", log, "--to", "elf", "-o", place / "code.elf")
    code = run("objdump", "-d", place / "code.elf")
    begins = {int(at, 16) for at in re.findall(r"^ *([0-9a-f]+):\t", code, re.M)}
    within = [hex(ip) for _, ip, _ in samples if ip not in begins]
    # After constants between instructions, objdump may be out of step for some bytes.
    assert is_at_most(len(within), len(samples), 0.02), within


def check(place):
    log, data = record(place)
    loops = pypylog.loops_of(log)
    samples = [one for one in samples_by_perf(data) if pypylog.loop_at(loops, one[1])]
    assert len(loops) >= 5, len(loops)
    require_samples(len(samples), 50, "loops and bridges")
    made = place / "made.map"
    run(PERFMAP, "pypylog", log, "--to", "perf-map", "-o", made)
    lines = check_resolve(samples, loops, "-s", log)
    check_resolve(samples, loops, "-s", log, "--kind", "pypylog")
    check_resolve(samples, loops, "--map", made)
    dump = place / f"jit-{samples[0][0]}.dump"
    run(PERFMAP, "pypylog", log, "--to", "jitdump", "--perf-data", data, "-o", dump)
    check_resolve(samples, loops, "--jitdump", dump)
    check_stacks(data, log, loops, len(samples))
    check_code(place, log, samples)
    check_perf(data, samples[0][0], made.read_text(), loops, len(samples))
    print(f"{len(samples)} samples in {len(loops)} loops and bridges are named as the log does, by perf and by us; "
          f"they have lines at {lines} addresses")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        try:
            check(pathlib.Path(scratch))
        except CannotRecord as why:
            print(f"skipped: {why}")
            return 77
    return 0


sys.exit(main())
