# SPDX-License-Identifier: MIT
"""`perfmap stacks --baseline` has the samples that each recording has alone: stack_comparison.py PERFMAP

The oracle is the folded output of each recording, which is written separately.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from support.json_schema import check, load  # noqa: E402

perfmap = os.path.abspath(sys.argv[1])
WILD = ROOT / "tests/wild"
GOLDEN = ROOT / "tests/golden/inputs"
# Pairs of one event. The first pair shares no process and no address.
PAIRS = [(WILD / "node/perf-603.data", WILD / "node/perf-683.data"),
         (WILD / "node/perf-683.data", WILD / "node/perf-603.data"),
         (GOLDEN / "old.pb", GOLDEN / "new.pb"),
         (WILD / "tally/perf.data", WILD / "tally/perf.data")]


def run(*arguments):
    return subprocess.run([perfmap, "stacks", *map(str, arguments)], capture_output=True, check=True).stdout.decode()


def folded(path):
    """The samples of each stack, by the names that a comparison has."""
    counts = collections.Counter()
    if path.suffix == ".pb":
        # Stacks of a pprof profile are read only by comparisons: those with itself have them twice.
        for line in run(path, "--baseline", path).splitlines():
            stack, _, count = line.rsplit(" ", 2)
            counts[stack] += int(count)
        return counts
    for line in run(path, "--merge-tiers").splitlines():
        stack, count = line.rsplit(" ", 1)
        counts[stack.replace("_[i]", "")] += int(count)
    return counts


def compare(old, new):
    before, after = folded(old), folded(new)
    totals = before.total(), after.total()
    assert min(totals) > 0, (old, new)
    compared = [line.rsplit(" ", 2) for line in run(new, "--baseline", old).splitlines()]
    stacks = [stack for stack, _, _ in compared]
    assert len(set(stacks)) == len(stacks) and stacks == sorted(stacks, key=str.encode)
    for stack, scaled, count in compared:
        assert int(count) == after[stack], (stack, count, after[stack])
        assert abs(int(scaled) - before[stack] * totals[1] / totals[0]) <= 0.5001, (stack, scaled, before[stack])
    small = {stack for stack, count in before.items() if count * totals[1] / totals[0] < 0.5001}
    assert set(before) | set(after) == set(stacks) | (small - set(after)), (set(before) | set(after)) ^ set(stacks)

    schema = load("perfmap.stack-comparison-1")
    sums = [0, 0]
    for line in run(new, "--baseline", old, "--format", "jsonl").splitlines():
        one = json.loads(line)
        check(one, schema, schema)
        sums[0] += one["old_samples"]
        sums[1] += one["new_samples"]
        change = 1e6 * (one["new_samples"] * totals[0] / totals[1] - one["old_samples"]) / totals[0]
        assert abs(one["change_ppm"] - change) <= 1, one
    assert tuple(sums) == totals, (sums, totals)
    return len(set(before) & set(after))


common = [compare(old, new) for old, new in PAIRS]
assert all(common), common
with tempfile.TemporaryDirectory() as folder:
    page = pathlib.Path(folder) / "difference.html"
    run(PAIRS[0][1], "--baseline", PAIRS[0][0], "-o", page)
    text = page.read_text()
    data = json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])
    sides = [sum(count for count, event in zip(data["counts"], data["events_of"]) if event == side) for side in (0, 1)]
    assert sides == [data["baseline"]["samples"], data["baseline"]["new_samples"]] == \
        [folded(PAIRS[0][0]).total(), folded(PAIRS[0][1]).total()], sides
print(f"stacks in both recordings: {common}")
