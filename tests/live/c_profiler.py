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
from chance import distributions_agree
from perf_record import PERF_RECORD
from trying import require, require_samples

perfmap, profiler, profiled = sys.argv[1:4]
SECONDS, HERTZ = "3", "499"
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


def hot_stacks(stacks):
    return {stack for stack in stacks if stack.split(";")[-1] == "hot"}


def by_hot_stack(stacks, hot):
    """All stacks but these count as one. A round of the program takes a tenth of a millisecond, so that the samples, one in
    two milliseconds, are independent."""
    return collections.Counter({stack: stacks[stack] for stack in hot}) + collections.Counter(
        {"others": sum(count for stack, count in stacks.items() if stack not in hot)})


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
        assert " records lost" in messages, messages
        require(", 0 records lost" in messages, messages)  # the profiler did not run for a while
        found = counted(found)
        expected = counted(subprocess.run([perfmap, "stacks", data], check=True, capture_output=True, text=True).stdout)
        print(f"{found.total()} samples, of perf {expected.total()}")
        require_samples(min(found.total(), expected.total()), LEAST, "profiled")
        assert len(hot_stacks(expected)) == 3, expected
        assert hot_stacks(found) == hot_stacks(expected), (hot_stacks(found), hot_stacks(expected))
        assert all(stack.startswith("profiled;") for stack in found), found
        hot = hot_stacks(expected)
        require(distributions_agree(by_hot_stack(found, hot), by_hot_stack(expected, hot)), (found, expected))

        if os.geteuid() == 0:
            everything = subprocess.run([profiler, "-a", "-k", "-F", HERTZ, "-d", "1"], check=True, capture_output=True,
                                        text=True)
            everything = counted(everything.stdout)
            require_samples(sum(everything[stack] for stack in hot), 40, "profiled, of all processes")
            assert hot_stacks(everything) >= hot_stacks(expected), everything
            assert any(stack.endswith("_[k]") for stack in everything), everything
        else:
            print("skipped in part: only root may sample all processes")
    finally:
        process.kill()
