# SPDX-License-Identifier: MIT
"""The numbers of `perfmap report` are those of `go tool pprof -top` and of `perf report --children`, to the sample:
report.py PERFMAP

Exit status 77: perf, gcc or Go is not installed, or perf may not record.
"""
import collections
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support import recorded  # noqa: E402
from support.trying import require, require_samples  # noqa: E402

perfmap = os.path.abspath(sys.argv[1])
PROGRAM = r"""
#define OWN __attribute__((noinline, noipa))
static volatile unsigned long sink;
OWN void spin(unsigned long rounds) { for (unsigned long i = 0; i < rounds; ++i) sink = sink * 31 + i; }
OWN void once(void) { spin(3000); ++sink; }
OWN void twice(void) { once(); spin(2000); once(); ++sink; }
OWN void down(unsigned depth) {
  if (depth != 0) down(depth - 1); else twice();
  spin(700);
  ++sink;
}
OWN void up(unsigned depth);
OWN void across(unsigned depth) { if (depth != 0) up(depth - 1); spin(400); ++sink; }
OWN void up(unsigned depth) { across(depth); spin(500); ++sink; }
int main(void) {
  for (unsigned i = 0; i < 12000; ++i) {
    down(4);
    up(3);
    once();
  }
  return sink == 1;
}
"""
INLINED = r"""
#include <stdlib.h>
static inline unsigned long mix(unsigned long x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdUL;
  return x / 7 + x % 13; /* the hottest line */
}
static unsigned long work(unsigned long rounds) {
  unsigned long sum = 0;
  for (unsigned long i = 0; i < rounds; ++i) sum += mix(i + sum);
  return sum;
}
int main(int argc, char** argv) { return work(strtoul(argv[argc - 1], NULL, 10)) == 1; }
"""
JAVASCRIPT = """
function leaf(n) { let s = 0; for (let i = 0; i < n; ++i) s = (s * 31 + i) % 65521; return s; }
function recursive(n) { return n === 0 ? leaf(2000) : recursive(n - 1) + leaf(n); }
const end = Date.now() + 1200;
let sum = 0;
while (Date.now() < end) sum += recursive(5) + leaf(500);
console.log(sum > 0);
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace",
                          timeout=300, **more)
    assert done.returncode == 0, (command, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def event_of(*arguments):
    events = json.loads(run(perfmap, "report", *arguments, "--format", "json"))["events"]
    assert len(events) == 1
    return events[0]


def counts(event):
    """{name: (self, total)}; the functions of the test have one module each."""
    found = {}
    for row in event["rows"]:
        assert row["name"] not in found or not row["name"].startswith("["), row
        found[row["name"]] = (row["self"], row["total"])
    return found


def of_pprof(profile, *options):
    """The same, by `go tool pprof -top`, and the total."""
    with tempfile.TemporaryDirectory() as home:
        text = run("go", "tool", "pprof", "-symbolize=none", "-top", "-nodecount=100000", "-nodefraction=0",
                   "-edgefraction=0", "-sample_index=samples", *options, profile,
                   env={**os.environ, "HOME": home, "PPROF_TMPDIR": home})
    rows = re.findall(r"(?m)^ *(\d+) +[\d.e-]+% +[\d.]+% +(\d+) +[\d.e-]+%  (.*?)(?: \(inline\))?$", text)
    # A frame without a name is an address or <unknown>, where perfmap prints [unknown].
    named = {name: (int(flat), int(cum)) for flat, cum, name in rows if not re.match("0|<unknown>", name)}
    return named, int(re.search(r"of (\d+) total", text)[1])


def of_perf(data):
    """{name: [(self %, total %)]} by `perf report --children`. A function that was compiled again has two of them."""
    text = run("perf", "report", "--children", "--stdio", "--no-inline", "-g", "none", "-s", "sym", "-F",
               "overhead_children,overhead,sym", "--percent-limit", "0", "-i", data)
    found = collections.defaultdict(list)
    for total, own, name in re.findall(r"(?m)^ *([\d.]+)% +([\d.]+)%  \[.\] (.*?) *$", text):
        found[name].append((float(own), float(total)))
    return found


def check_perf(ours, all_samples, theirs, names):
    """perf rounds to hundredths of a percent, by less than half a sample of fewer than 10 000. Returns how many totals were compared:
    those of a function that was compiled again do not add up."""
    require(100 < all_samples < 9000, f"{all_samples} samples")
    compared = 0
    for name in names:
        own, total = ([round(share * all_samples / 100) for share in column] for column in zip(*theirs[name]))
        assert sum(own) == ours[name][0], (name, theirs[name], ours[name], all_samples)
        assert len(total) > 1 or total[0] == ours[name][1], (name, theirs[name], ours[name], all_samples)
        compared += len(total) == 1
    return compared


def check_trees(event, data, name):
    """The roots of both trees are the function's row; a node has the sum of its children, and what ends in it."""
    rows = counts(event)
    tree = event_of(data, "--callers", name, "--callees", name)
    for kind in ("callers", "callees"):
        nodes = tree[kind]
        assert nodes[0]["total"] == rows[name][1], (kind, nodes[0])
        children = [0] * len(nodes)
        for node in nodes[1:]:
            children[node["parent"]] += node["total"]
        for node, below in zip(nodes, children):
            assert node["total"] == node["self"] + below, (kind, node)
    own = sum(node["self"] for node in tree["callees"] if node["name"] == name)
    assert own == rows[name][0], (name, own)


def check_c(place):
    source = place / "calls.c"
    source.write_text(PROGRAM)
    program = place / "calls"
    # From -O1 on, leaf functions may have no frame, and then the kernel misses their callers.
    run("gcc", "-O0", "-g", "-fno-omit-frame-pointer", "-static", source, "-o", program)
    data = recorded.record(place / "perf.data", [program], frequency=1500, call_graph="fp")
    event = event_of(data, "--no-inlines")
    ours = counts(event)
    names = {"spin", "once", "twice", "down", "up", "across", "main"}
    require_samples(event["samples"], 200, "calls")
    assert names <= ours.keys() and ours["spin"][0] > 0, ours
    run(perfmap, "stacks", data, "-o", place / "profile.pb.gz")
    theirs, total = of_pprof(place / "profile.pb.gz")
    assert total == event["samples"] and theirs == {name: ours[name] for name in theirs}, (theirs, ours)
    assert theirs.keys() == ours.keys() - {"[unknown]"}
    again = event_of(place / "profile.pb.gz", "--no-inlines")
    assert counts(again) == ours, (again, ours)
    assert again["period"] == event["period"] and again["samples"] == event["samples"]
    run(perfmap, "inject", data, "-o", place / "injected.data")
    assert check_perf(ours, event["samples"], of_perf(place / "injected.data"), theirs) == len(theirs)
    for name in names:
        check_trees(event, data, name)
    rows = list(csv.DictReader(io.StringIO(run(perfmap, "report", data, "--no-inlines", "--format", "csv"), newline="")))
    assert {row["name"]: (int(row["self"]), int(row["total"])) for row in rows} == ours
    check_lines(data, place, event)
    return event["samples"]


def check_lines(data, place, event):
    """By line, as pprof counts them."""
    lines = event_of(data, "--no-inlines", "--by", "line")
    assert sum(row["self"] for row in lines["rows"]) == event["samples"]
    run(perfmap, "stacks", data, "--lines", "-o", place / "lines.pb.gz")
    theirs, _ = of_pprof(place / "lines.pb.gz", "-lines")
    ours = {}
    for row in lines["rows"]:
        where = f"{row['name']} {os.path.normpath(row['file'])}:{row['line']}" if "line" in row else row["name"]
        ours[where] = (row["self"], row["total"])
    shared = {name for name in theirs if "calls.c" in name}
    assert len(shared) > 5 and all(theirs[name] == ours[name] for name in shared), (theirs, ours)


def check_inlines(place):
    """Inlined functions, as pprof counts them, and the hottest line, without any option."""
    source = place / "inlined.c"
    source.write_text(INLINED)
    run("gcc", "-O2", "-g", "-fno-omit-frame-pointer", source, "-o", place / "inlined")
    data = recorded.record(place / "inlined.data", [place / "inlined", 60_000_000], frequency=1500, call_graph="fp")
    event = event_of(data)
    hottest = event["rows"][0]
    line = 1 + INLINED.split("\n").index("  return x / 7 + x % 13; /* the hottest line */")
    require_samples(event["samples"], 100, "inlined")
    assert (hottest["name"], hottest["file"]) == ("mix", str(source)), hottest
    require(hottest["line"] == line, hottest)
    run(perfmap, "stacks", data, "--inlines", "-o", place / "inlined.pb.gz")
    theirs, total = of_pprof(place / "inlined.pb.gz")
    ours = counts(event)
    assert total == event["samples"] and theirs == {name: ours[name] for name in theirs}, (theirs, ours)
    assert counts(event_of(place / "inlined.pb.gz")) == ours
    assert event_of(data, "--callers", "mix")["callers"][1]["name"] == "work"
    whole = event_of(data, "--no-inlines")
    assert whole["rows"][0]["name"] == "main", whole["rows"][0]
    assert counts(event_of(place / "inlined.pb.gz", "--no-inlines")) == counts(whole)
    # A profile without inlined functions is compared with a recording.
    run(perfmap, "stacks", data, "-o", place / "plain.pb.gz")
    compared = [json.loads(run(perfmap, "report", data, "--baseline", place / "plain.pb.gz", "--format", "json", *more))
                for more in ((), ("--inlines",))]
    assert compared[0]["functions"] == [] and compared[1]["functions"] != [], compared
    annotated = json.loads(run(perfmap, "annotate", data, "mix", "--source", "--format", "json"))
    (version,) = annotated["versions"]
    assert (version["inlined_into"], version["self"], version["total"]) == ("main", *ours["mix"]), version
    require(max(version["lines"], key=lambda one: one["self"])["line"] == line, version["lines"])
    return event["samples"]


def check_node(place):
    """JIT code, by name, after `perfmap inject`."""
    if not shutil.which("node"):
        return None
    (place / "app.js").write_text(JAVASCRIPT)
    command = ["node", "--perf-prof", "--interpreted-frames-native-stack", place / "app.js"]
    data = recorded.record(place / "node.data", command, frequency=999, call_graph="fp", cwd=place)
    run(perfmap, "inject", data, "-o", place / "node.injected")
    event = event_of(data, "--no-merge-tiers")
    ours = {}
    for row in event["rows"]:
        if row["kind"] == "jit" and "app.js" in row["name"]:
            ours[row["name"]] = (row["self"], row["total"])
    assert any("recursive" in name for name in ours), event["rows"][:9]
    assert check_perf(ours, event["samples"], of_perf(place / "node.injected"), ours) > 0
    return event["samples"]


for needed in ("perf", "gcc", "go"):
    if not shutil.which(needed):
        skip(f"there is no {needed}")
if subprocess.run(["go", "tool", "-n", "pprof"], capture_output=True).returncode:
    skip("there is no `go tool pprof`")
with tempfile.TemporaryDirectory() as folder:
    try:
        native = check_c(pathlib.Path(folder)) + check_inlines(pathlib.Path(folder))
        jit = check_node(pathlib.Path(folder))
    except recorded.CannotRecord as why:
        skip(why)
    print(f"{native} samples of C, {jit or 'no'} samples with JIT code: the numbers are the same")
