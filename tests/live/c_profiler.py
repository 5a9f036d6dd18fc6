# SPDX-License-Identifier: MIT
"""examples/profiler.c, a profiler in C, finds the stacks that `perf record` and `perfmap stacks` find in the same
process at the same time: c_profiler.py PERFMAP PROFILER PROFILED"""
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from perf_record import PERF_RECORD

perfmap, profiler, profiled = sys.argv[1:4]
SECONDS, HERTZ = "4", "499"
# The share of samples that may be at other stacks: both sample the same seconds, but at other moments. Chance takes a
# share of fewer samples, as on a busy machine, that is as much larger as the root of their number is smaller.
TOLERANCE, MANY = 0.1, 300
LEAST = 100  # samples


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def counted(text):
    """{stack: samples}"""
    stacks = collections.Counter()
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks[stack] += int(count)
    return stacks


def distance(a, b):
    """Half of the sum of the differences of shares: 0 for equal distributions, 1 for disjoint ones."""
    return sum(abs(a[stack] / a.total() - b[stack] / b.total()) for stack in a | b) / 2


def hot_stacks(stacks):
    return {stack for stack in stacks if stack.split(";")[-1] == "hot"}


refused = subprocess.run([profiler, "-p", str(os.getpid()), "-F", "0"], capture_output=True, text=True)
assert refused.returncode == 2 and "-F" in refused.stderr, refused
if shutil.which("perf") is None:
    skip("perf is not installed")
with tempfile.TemporaryDirectory() as work, subprocess.Popen([profiled]) as process:
    try:
        data = f"{work}/perf.data"
        target = ["-p", str(process.pid)]
        ours = subprocess.Popen([profiler, *target, "-F", HERTZ, "-d", SECONDS], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        perf = subprocess.run([*PERF_RECORD, "-e", "cpu-clock:u", "-F", HERTZ, "-k", "mono", "--call-graph",
                               "dwarf,16384", "-o", data, *target, "--", "sleep", SECONDS], text=True,
                              capture_output=True)
        found, messages = ours.communicate()
        if perf.returncode != 0 and "ermission" in perf.stderr:
            skip("perf may not record here")
        assert perf.returncode == 0, perf.stderr
        assert ours.returncode == 0, messages
        assert ", 0 records lost" in messages, messages
        found = counted(found)
        expected = counted(subprocess.run([perfmap, "stacks", data], check=True, capture_output=True, text=True).stdout)
        print(f"{found.total()} samples, of perf {expected.total()}; distance {distance(found, expected):.3f}")
        samples = min(found.total(), expected.total())
        assert samples >= LEAST, (found, expected)
        assert len(hot_stacks(expected)) == 3, expected
        assert hot_stacks(found) == hot_stacks(expected), (hot_stacks(found), hot_stacks(expected))
        assert all(stack.startswith("profiled;") for stack in found), found
        assert distance(found, expected) <= TOLERANCE * max(1, MANY / samples) ** 0.5, (found, expected)

        if os.geteuid() == 0:
            everything = subprocess.run([profiler, "-a", "-k", "-F", HERTZ, "-d", "1"], check=True, capture_output=True,
                                        text=True)
            everything = counted(everything.stdout)
            assert hot_stacks(everything) >= hot_stacks(expected), everything
            assert any(stack.endswith("_[k]") for stack in everything), everything
        else:
            print("skipped in part: only root may sample all processes")
    finally:
        process.kill()
