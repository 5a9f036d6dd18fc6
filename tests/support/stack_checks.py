# SPDX-License-Identifier: MIT
"""Checks that each format contains what perf's text of the same samples contains: with a separate
reader for each format, and JSON Schemas for JSON. Set `written(what, format, *options)` to a
function that returns the bytes in a format."""
import base64
import bisect
import collections
import hashlib
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
from json_schema import check, fits
from otlp import Profiles, decode, from_json
from pprof import Profile

FRAME = re.compile(r"\t *([0-9a-f]+) (.*?)(?:\+0x([0-9a-f]+))? \(([^()]*)\)(?:\t\(\?[a-z,-]*\))?")
JIT_MODULE = re.compile(r"/jitted-|(^|/)(perf-\d+\.map|jit-\d+(-\w+)?\.dump)$|^//anon")
HEADER = re.compile(r"(.*?) +(\d+)/(\d+) +(?:\[\d+\] +)?(\d+\.\d{9}): +(\d+) +(\S+): ")
written = None


def read_script(text):
    samples = []
    for line in text.split("\n"):
        if header := HEADER.fullmatch(line):
            comm, pid, tid, time, period, event = header.groups()
            samples.append({"comm": comm, "pid": int(pid), "tid": int(tid), "time": time,
                            "period": int(period), "event": event, "frames": []})
        elif line.startswith("\t"):
            _, name, _, module = FRAME.fullmatch(line).groups()
            shown = name
            if name == "[unknown]" and module != "[unknown]":
                shown = module if module.startswith("[") else f"[{module.rsplit('/', 1)[-1]}]"
            kind = "i" if module == "inlined" else "k" if module.startswith("[kernel") else \
                "j" if JIT_MODULE.search(module) else ""
            samples[-1]["frames"].append((shown, kind))
    return samples


def names(sample):
    return [name for name, _ in sample["frames"]]


def check_folded(text, samples):
    expected = collections.Counter(
        ";".join([s["comm"], *(n.replace(";", ":") + (f"_[{k}]" if k else "") for n, k in reversed(s["frames"]))])
        for s in samples)
    lines = written(text, "folded").decode().splitlines()
    assert lines == sorted(lines, key=str.encode)
    found = dict(line.rsplit(" ", 1) for line in lines)
    assert len(found) == len(lines)
    assert {stack: int(number) for stack, number in found.items()} == expected
    for option in ("pid", "no-marks", "merge-tiers", "lines"):
        lines = written(text, "folded", option).decode().splitlines()
        assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == len(samples)


def check_jsonl(text, samples):
    schema = json.loads((ROOT / "docs/schema/perfmap.stack-1.json").read_text())
    lines = [json.loads(line) for line in written(text, "jsonl").splitlines()]
    for line, sample in zip(lines, samples, strict=True):
        check(line, schema, schema)
        assert [line[key] for key in ("comm", "pid", "tid", "time", "period", "event")] == \
            [sample[key] for key in ("comm", "pid", "tid", "time", "period", "event")]
        assert [f["inlined"] for f in line["frames"]] == [kind == "i" for _, kind in sample["frames"]]
    assert not fits({**lines[0], "more": 1}, schema, schema, "$")


def check_speedscope(text, samples):
    schema = json.loads((ROOT / "tests/schema/speedscope.json").read_text())
    file = json.loads(written(text, "speedscope"))
    check(file, schema, schema)
    frames = [frame["name"] for frame in file["shared"]["frames"]]
    found = collections.Counter()
    running = 0
    for profile in file["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"]
        for stack, weight in zip(profile["samples"], profile["weights"]):
            if stack:
                found[tuple(frames[i] for i in stack)] += 1
                running += weight if profile["unit"] == "nanoseconds" else 0
    assert found == collections.Counter(tuple(reversed(names(s))) or ("[no stack]",) for s in samples)
    assert running == sum(s["period"] for s in samples if "clock" in s["event"])


def check_indexes(shared, libs):
    """Checks that each column has the length of its table, and that its values are valid
    indexes."""
    sizes = {name: table["length"] for name, table in shared.items() if name != "stringArray"}
    sizes.update(strings=len(shared["stringArray"]), libs=len(libs))
    for name, table in shared.items():
        if name != "stringArray":
            assert all(len(column) == table["length"] for key, column in table.items() if key != "length"), name
    for table, column, target in (
            ("stackTable", "frame", "frameTable"), ("frameTable", "func", "funcTable"),
            ("frameTable", "nativeSymbol", "nativeSymbols"), ("funcTable", "name", "strings"),
            ("funcTable", "resource", "resourceTable"), ("funcTable", "source", "sources"),
            ("nativeSymbols", "libIndex", "libs"), ("nativeSymbols", "name", "strings"),
            ("resourceTable", "lib", "libs"), ("resourceTable", "name", "strings"),
            ("sources", "filename", "strings")):
        assert all(i is None or -1 <= i < sizes[target] for i in shared[table][column]), (table, column)
    assert all(step <= i for i, step in enumerate(shared["stackTable"]["prefixOffset"]))


def firefox_names(shared, stack):
    while True:
        function = shared["frameTable"]["func"][shared["stackTable"]["frame"][stack]]
        yield shared["stringArray"][shared["funcTable"]["name"][function]]
        step = shared["stackTable"]["prefixOffset"][stack]
        if step == 0:
            return
        stack -= step


def check_firefox(text, samples):
    schema = json.loads((ROOT / "tests/schema/firefox-66.json").read_text())
    file = json.loads(written(text, "firefox"))
    check(file, schema, schema)
    assert not fits({**file, "threads": [{}]}, schema, schema, "$")
    shared = file["shared"]
    check_indexes(shared, file["libs"])
    categories = file["meta"]["categories"]
    for category, sub in zip(shared["frameTable"]["category"], shared["frameTable"]["subcategory"]):
        assert sub < len(categories[category]["subcategories"])
    found = collections.Counter()
    for thread in file["threads"]:
        columns = thread["samples"]
        assert all(len(columns[key]) == columns["length"] for key in ("stack", "timeDeltas", "weight"))
        for stack in columns["stack"]:
            found[tuple(firefox_names(shared, stack)) if stack is not None else ()] += 1
    assert found == collections.Counter(tuple(names(s)) for s in samples)
    assert len({(t["pid"], t["tid"]) for t in file["threads"]}) == len(file["threads"])


def check_pprof(text, samples):
    profile = Profile(written(text, "pprof"))
    assert profile.types[0] == ("samples", "count")
    times = [i for i, (_, unit) in enumerate(profile.types) if unit == "nanoseconds"]
    assert len(times) != 1 or profile.types[times[0]][0] == "cpu"
    found = collections.Counter()
    for sample in profile.samples:
        found[tuple(sample["names"]), sample["labels"]["tid"], sample["labels"]["comm"]] += sample["values"][0]
    assert found == collections.Counter((tuple(names(s)), s["tid"], s["comm"]) for s in samples)
    assert times and sum(s["values"][i] for s in profile.samples for i in times) == sum(
        s["period"] for s in samples if "clock" in s["event"])


def of_module(path):
    return path if path.startswith("[") else f"[{path.rsplit('/', 1)[-1]}]" if path else "[unknown]"


def check_otlp(text, samples):
    data = decode(written(text, "otlp"))
    json_lines = written(text, "otlp-json").decode().splitlines()
    assert [from_json(json.loads(line)) for line in json_lines] == [data]
    profiles = Profiles(data)
    profiles.check_tables()
    clock = next((s["event"] for s in samples if "clock" in s["event"]), None)
    found, periods = collections.Counter(), 0
    for sample in profiles.samples:
        key = (tuple(name or of_module(module) for name, *_, module in sample["frames"]), sample["resource"]["process.pid"],
               sample["attributes"]["thread.id"], sample["attributes"].get("thread.name", ""), clock if sample["period_type"][0] == "cpu" else sample["period_type"][0])
        counts = sample["type"] == ("samples", "count")
        found[key] += sample["value"] if counts else 1
        periods += sample["value"] * (sample["period"] if counts else 1)
    expected = collections.Counter((tuple(names(s)), s["pid"], s["tid"], s["comm"], s["event"]) for s in samples)
    assert found == expected, (text, list((found - expected).items())[:2], list((expected - found).items())[:2])
    assert periods == sum(s["period"] for s in samples)


def check_chrome(text, samples):
    """Slices nest, and in the time before each sample its stack is open."""
    trace = json.loads(written(text, "chrome"))
    slices, tracks, names_of = collections.defaultdict(list), collections.defaultdict(list), {}
    instants = collections.Counter()
    for event in trace["traceEvents"]:
        track = event["pid"], event["tid"]
        nanoseconds = round(event["ts"] * 1000)
        if event["ph"] == "B":
            tracks[track].append(event["name"])
            slices[track].append((nanoseconds, tuple(tracks[track])))
        elif event["ph"] == "E":
            tracks[track].pop()
            slices[track].append((nanoseconds, tuple(tracks[track])))
        elif event["ph"] == "i":
            instants[track, nanoseconds, event["name"], tuple(event["args"]["stack"])] += 1
        else:
            assert event["ph"] == "M"
            names_of[event["name"], track] = event["args"]["name"]
    assert not any(tracks.values())
    for changes in slices.values():
        assert [time for time, _ in changes] == sorted(time for time, _ in changes)
    clock = next((s["event"] for s in samples if "clock" in s["event"]), None)
    expected = collections.Counter()
    for sample in samples:
        time = int(sample["time"].replace(".", ""))
        track = sample["pid"], sample["tid"]
        if "clock" not in sample["event"]:
            expected[track, time, sample["event"], tuple(names(sample))] += 1
        elif sample["event"] == clock and sample["frames"]:
            # Until its own time; slices that end there are later in the list.
            at = bisect.bisect_left(slices[track], time, key=lambda change: change[0]) - 1
            assert slices[track][at][1] == tuple(reversed(names(sample))), (text, sample)
    assert instants == expected
    assert all(names_of["thread_name", (s["pid"], s["tid"])] for s in samples if s["comm"])


def policy_hash(page, tag):
    text = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.S)[1]
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def check_html(text, samples):
    page = written(text, "html").decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    assert f"'sha256-{policy_hash(page, 'script')}'" in policy and f"'sha256-{policy_hash(page, 'style')}'" in policy
    assert not re.search(r'(src|href)="|url\(|@import', page.replace("http://www.w3.org/2000/svg", ""))
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    assert data["samples"] == sum(data["counts"]) == len(samples)
    events_of = data.get("events_of", [0] * len(data["counts"]))
    found, slot = collections.Counter(), 0
    for distance, node, event, number in zip(data["slots"], data["nodes"], events_of, data["counts"], strict=True):
        slot += distance
        path = []
        while node:
            path.append(data["frames"][node])
            assert 0 < data["parent_distances"][node] <= node
            node -= data["parent_distances"][node]
        *frames, thread, _ = path
        found[tuple(data["names"][i] for i in frames), data["labels"][thread], data["events"][event], slot] += number
    time = [int(s["time"].replace(".", "")) for s in samples]
    assert found == collections.Counter(
        (tuple(names(s)), f"{s['comm']} (tid {s['tid']})", s["event"], (at - time[0]) // data["slot"])
        for s, at in zip(samples, time))


def check_all(what, samples):
    for look in (check_folded, check_jsonl, check_speedscope, check_firefox, check_pprof, check_otlp, check_chrome,
                 check_html):
        look(what, samples)
