# SPDX-License-Identifier: MIT
"""`perfmap report --baseline` finds what changed in a program, and nothing in recordings of the same program:
report_comparison.py PERFMAP

Exit status 77: perf or gcc is not installed, or perf may not record.
"""
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support import recorded  # noqa: E402
from support.chance import most  # noqa: E402
from support.trying import require  # noqa: E402
from support.json_schema import check, load  # noqa: E402

perfmap = os.path.abspath(sys.argv[1])
RUNS = 12
PROGRAM = r"""
#define OWN __attribute__((noinline, noipa))
static volatile unsigned long sink;
#define WORK(name, rounds) \
  OWN void name(void) { for (unsigned long i = 0; i < (rounds) * ALL; ++i) sink = sink * 31 + i; }
WORK(parse, 3000) WORK(render, RENDER) WORK(hash, 900) WORK(sort, 1500) WORK(rarely, 40)
#ifdef CACHE
WORK(cache, 2000)
#else
#define cache()  // not a function: an empty one may have a sample
#endif
int main(void) {
  for (unsigned i = 0; i < 30000; ++i) { parse(); render(); hash(); sort(); rarely(); cache(); }
  return sink == 1;
}
"""


def recordings(place, name, count=1, work=1, render=2000, flags=()):
    """Recordings of the program with this work. The file has the same name in all of them."""
    source = place / f"{name}.c"
    source.write_text(PROGRAM)
    program = place / name / "program"
    program.parent.mkdir()
    subprocess.run(["gcc", "-O1", f"-DALL={work}", f"-DRENDER={render}", *flags, source, "-o", program], check=True)
    return [recorded.record(program.parent / f"{number}.data", [program], frequency=1500, call_graph="fp")
            for number in range(count)]


def compare(new, old, *options):
    """The status, the comparison, and how each function changed."""
    done = subprocess.run([perfmap, "report", new, "--baseline", old, "--fail-above", "5%", "--format", "json",
                           *options], capture_output=True, text=True)
    assert done.returncode in (0, 1), done
    found = json.loads(done.stdout)
    schema = load("perfmap.report-comparison-1")
    check(found, schema, schema)
    return done.returncode, found, {one["name"]: one["change"] for one in found["functions"]}


def nanoseconds(recording):
    """From the first sample to the last, by perf."""
    times = subprocess.run(["perf", "script", "-i", recording, "--ns", "-F", "time"], capture_output=True, text=True,
                           check=True).stdout.replace(":", "").replace(".", "").split()
    return int(times[-1]) - int(times[0])


def main(place):
    plain = recordings(place, "plain", RUNS)
    pairs = list(itertools.combinations(plain, 2))
    found = {(old.name, new.name): compare(new, old) for old, new in pairs}
    # A single recording of each version assumes that processor times of one program vary by a tenth.
    samples = [compare(one, plain[0])[1]["new"]["samples"] for one in plain]
    noise = statistics.stdev(samples) / statistics.mean(samples)
    if noise > 0.1:
        print(f"skipped in part: totals: this machine's processor times vary by {100 * noise:.0f} %")
    alarms = [pair for pair, (status, _, changes) in found.items() if status and (changes or noise <= 0.1)]
    # One in twenty comparisons may be a false alarm, by design. An odd recording is in several pairs, so the comparisons are
    # not as independent as the bound assumes, but more recordings than that are rarely odd.
    require(len(alarms) <= most(len(pairs), 0.05), alarms)
    old = plain[0]

    [slower] = recordings(place, "slower", render=6000)
    code, found, changes = compare(slower, old)
    assert code == 1 and changes.get("render") == "grew", found
    assert compare(slower, old, "--normalize", "parse")[2].get("render") == "grew"
    assert compare(old, slower)[2].get("render") == "shrank"

    [cached] = recordings(place, "cached", flags=["-DCACHE"])
    found, changes = compare(cached, old)[1:]
    assert changes.get("cache") == "appeared", found
    assert compare(old, cached)[2].get("cache") == "vanished"

    [evenly] = recordings(place, "evenly", work=3)
    code, found, changes = compare(evenly, old)
    assert code == 1 and found["total"]["change"] == "grew", found
    require(noise > 0.1 or not changes, found)
    # The program is always busy. How many processors it had depends on what other programs did.
    by_time = compare(evenly, old, "--normalize", "time")[1]
    processors = [by_time[side]["period"] / nanoseconds(recording) for side, recording in (("old", old), ("new", evenly))]
    change = processors[1] / processors[0] - 1
    assert math.isclose(by_time["total"]["change_ppm"] / 1e6, change, rel_tol=0.001, abs_tol=0.001), (by_time, change)
    print(f"{len(alarms)} false alarms in {len(pairs)} comparisons of one program")


with tempfile.TemporaryDirectory() as folder:
    try:
        main(pathlib.Path(folder))
    except (recorded.CannotRecord, FileNotFoundError) as why:
        print(f"skipped: {why}")
        sys.exit(77)
