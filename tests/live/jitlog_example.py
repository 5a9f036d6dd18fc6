# SPDX-License-Identifier: MIT
"""Checks the log that examples/jitlog.c writes, with an independent reader in which entering a loop
leaves the previous one: jitlog_example.py JITLOG"""
import collections
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from trying import require

SECTION = re.compile(r"(\d+)# \[([0-9a-f]+)\] \{([\w-]+)\n\1# (.*)\n\1# \[\2\] \3\}\n")

with tempfile.TemporaryDirectory() as scratch:
    child = subprocess.Popen([sys.argv[1], os.path.join(scratch, "%d.log")])
    assert child.wait() == 0
    with open(os.path.join(scratch, f"{child.pid}.log"), encoding="utf-8") as file:
        text = file.read()

assert SECTION.sub("", text) == "", "something is no section"
sections = [(int(tick, 16), kind, name) for _, tick, kind, name in SECTION.findall(text)]
assert sections[0][1] == "jit-profile-clock", sections[0]

ticks = collections.defaultdict(list)
entered = collections.Counter()
inside, since = None, 0
for tick, kind, name in sections[1:]:
    assert tick >= since, "time ran backwards"
    if inside is not None:
        ticks[inside].append(tick - since)
    inside, since = (name if kind == "jit-profile-enter" else None), tick
    entered[name] += kind == "jit-profile-enter"

# The inner loop is compiled in the first iteration of the outer loop, the outer loop in its third.
# From then on, the end of each inner loop enters the outer loop again.
assert entered == {"inner loop": 100, "outer loop": 99}, entered
assert inside is None, "it ends in a loop"
# The median, because other programs on the machine lengthen some intervals.
median = {name: statistics.median(found) for name, found in ticks.items()}
require(median["inner loop"] > 5 * median["outer loop"] > 0, median)
print(f"{len(sections)} sections, {median} ticks in loops")
