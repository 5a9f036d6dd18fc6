# SPDX-License-Identifier: MIT
"""Real output of to-json, info, diff, doctor, resolve and stacks, and each JSON output of the golden
cases, conforms to docs/schema. The check itself refuses what does not conform."""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/golden")]
from case_file import cases_below
from json_schema import check, fits, load

MAP, INFO, DIFF = load("perfmap.map-1"), load("perfmap.info-1"), load("perfmap.diff-1")


def refuses(value, schema):
    return not fits(value, schema, schema, "$")


def text(*arguments, given=b""):
    run = subprocess.run([sys.argv[1], "-q", *arguments], capture_output=True, input=given)
    assert run.returncode in (0, 1), run.stderr
    return run.stdout


def output(*arguments, given=b""):
    return json.loads(text(*arguments, given=given))


def lines(*arguments):
    """JSON lines: each one is an entry of the schema."""
    found = [json.loads(line) for line in text(*arguments, "--to", "jsonl").splitlines()]
    for line in found:
        check(line, {"$ref": "#/$defs/entry"}, MAP)
    return found


count = 0
maps = [*sorted((ROOT / "tests/wild").glob("*/*.map")), ROOT / "tests/fuzz/corpus/map/odd"]
for path in maps:
    document = output("to-json", path)
    check(document, MAP, MAP)
    count += len(document["entries"])
    assert document["entries"] and refuses({**document, "schema": "other"}, MAP)
    assert lines("to-json", path) == document["entries"]
    effective = output("to-json", path, "--effective")
    check(effective, MAP, MAP)
    assert lines("to-json", path, "--effective") == effective["entries"]
    again = output("to-json", "-", given=json.dumps(document).encode())
    check(again, MAP, MAP)
    assert len(again["entries"]) == len(document["entries"])
    assert refuses({**document, "entries": [{**document["entries"][0], "start": 4096}]}, MAP)
    for by in ([], ["--by", "name"], ["--by", "tier"]):
        document = output("info", path, "--format", "json", *by)
        check(document, INFO, INFO)
        assert refuses({**document, "entry": 1}, INFO)
    document = output("diff", path, maps[0], "--format", "json")
    check(document, DIFF, DIFF)
    assert (document["changes"] != []) == (path != maps[0])

dumps = [*sorted((ROOT / "tests/wild").glob("*/*.dump")), ROOT / "tests/golden/inputs/two-versions.dump"]
for path in dumps:
    for options in ([], ["--code"], ["--effective"]):
        document = output("to-json", path, *options)
        check(document, MAP, MAP)
        count += len(document["entries"])
        assert refuses({**document, "header": {}}, MAP)
        assert refuses({**document, "entries": [{**document["entries"][0], "time": 1}]}, MAP)
    first, *rest = [json.loads(line) for line in
                    text("to-json", path, "--to", "jsonl").splitlines()]
    check(first["header"], {"$ref": "#/$defs/header"}, MAP)
    for line in rest:
        check(line, {"$ref": "#/$defs/record" if "kind" in line else "#/$defs/load"}, MAP)
    document = output("info", path, "--format", "json")
    check(document, INFO, INFO)
    assert document["lost_bytes"] == 0

RESOLVE = load("perfmap.resolve-1")
with open(f"/proc/{os.getpid()}/maps") as regions:
    code = [line.split("-")[0] for line in regions if " r-xp " in line]
for options in ([], ["--lines", "--inlines"], ["--no-demangle"]):
    document = output("resolve", *code, "10", "--pid", str(os.getpid()), "--format", "json", *options)
    check(document, RESOLVE, RESOLVE)
    assert len(document["answers"]) == len(code) + 1 and document["answers"][-1]["why"] == "unmapped"
    assert ("inlined" in document["answers"][0]) == ("--inlines" in options)
    assert refuses({**document, "answers": [{"address": "10", "name": None}]}, RESOLVE)

STACK, STATS = load("perfmap.stack-1"), load("perfmap.stack-stats-1")


def check_counts(options):
    """--stats counts the frames that are printed, including inlined ones."""
    stacks = [json.loads(line)["frames"] for line in text("stacks", *options).splitlines()]
    frames = [frame for stack in stacks for frame in stack]
    counts = json.loads(text("stacks", *options, "--stats").splitlines()[-1])
    doubts = [doubt for frame in frames for doubt in frame.get("doubts", [])]
    assert counts["frames"] == len(frames), options
    assert counts["unnamed_frames"] == sum(frame["name"] is None for frame in frames), options
    assert counts["doubtful_frames"] == sum("doubts" in frame for frame in frames), options
    assert counts["doubts"] == {kind: doubts.count(kind) for kind in counts["doubts"]}, options
    assert sum(counts["sources"].values()) == len(frames), options


recordings = [*sorted((ROOT / "tests/wild/tally").glob("*.data")),
              *sorted((ROOT / "tests/wild/recordings").glob("*/perf.data")),
              *sorted((ROOT / "tests/wild/node").glob("*.data"))]
for path in recordings:
    options = [path, "--format", "jsonl", "--symfs", ROOT / "tests/wild/tally",
               "--map-dir", ROOT / "tests/wild/node"]
    if path.name == "perf-683.data":
        options += ["--jitdump", ROOT / "tests/wild/node/jit-683-samples.dump"]
    samples = [json.loads(line) for line in text("stacks", *options, "--inlines").splitlines()]
    for sample in samples:
        check(sample, STACK, STACK)
    stats = [json.loads(line) for line in text("stacks", *options, "--stats").splitlines()]
    for process in stats:
        check(process, STATS, STATS)
    assert samples and sum(one["samples"] for one in stats[:-1]) == len(samples) == stats[-1]["samples"]
    frames = [frame for sample in samples for frame in sample["frames"] if not frame["inlined"]]
    assert len(frames) == stats[-1]["frames"]
    check_counts([*options, "--inlines", "--stitch"])
    assert stats[-1]["pid"] is None and refuses({**stats[0], "ends": {}}, STATS)
    assert refuses({**samples[0], "time": 1}, STACK) and refuses({**samples[0], "more": 1}, STACK)

RECORDING = load("perfmap.doctor-recording-1")
for name in ("two-events", "cut-dwarf"):
    document = output("doctor", str(ROOT / f"tests/wild/recordings/{name}/perf.data"), "--format", "json",
                      "--symfs", str(ROOT / "tests/wild"))
    check(document, RECORDING, RECORDING)
assert refuses({**document, "findings": [{"id": "clock"}]}, RECORDING)

DOCTOR = load("perfmap.doctor-1")
with subprocess.Popen(["sleep", "600"]) as sleeper:
    for pid in (os.getpid(), sleeper.pid):
        document = output("doctor", str(pid), "--format", "json")
        check(document, DOCTOR, DOCTOR)
        assert refuses({**document, "runtime": "cobol"}, DOCTOR)
        assert refuses({**document, "findings": [{"id": "no-map"}]}, DOCTOR)
        assert document["runtime"] == ("cpython" if pid == os.getpid() else None)
    sleeper.kill()
runtimes = output("doctor", "--runtimes", "--format", "json")
check(runtimes, load("perfmap.runtimes-1"), load("perfmap.runtimes-1"))
assert len(runtimes["runtimes"]) > 10

# ---- Golden cases ----

# The schema of a line, by command; stacks has other ones with these options.
OF_LINES = {"lint": "lint-line-1", "resolve": "resolve-line-1", "stacks": "stack-1", "stacks --stats": "stack-stats-1",
            "stacks --baseline": "stack-comparison-1", "stacks --recordings": "stack-count-1", "watch": "watch-1", "convert": "map-line-1", "to-json": "map-line-1"}
# Formats of others: their own schemas are checked elsewhere, or they have none.
FOREIGN = {"sarif", "speedscope", "firefox", "chrome", "otlp-json"}


def objects_in(name, data, words):
    """(object, name of its schema) for each JSON object that a case expects in a file."""
    text = data.decode(errors="replace")
    if not text.startswith("{") or FOREIGN & set(words):
        return
    is_lines = name.endswith(".jsonl") or "jsonl" in words
    if not is_lines:
        document = json.loads(text)
        yield document, document["schema"].replace("/", "-")
        return
    command = next(word for word in words if not word.startswith("-"))
    if command == "stacks":
        command += "".join(f" {option}" for option in ("--stats", "--baseline", "--recordings") if option in words)
    for line in text.splitlines():
        yield json.loads(line), f"perfmap.{OF_LINES[command]}"


used, outputs = set(), 0
for case in cases_below(ROOT / "tests/golden"):
    texts = {"stdout": case.stream("stdout"),
             **{file: data for file, data in case.named("output").items() if ".json" in file}}
    for file, data in texts.items():
        for value, name in objects_in(file, data, case.command):
            try:
                check(value, load(name), load(name))
            except (ValueError, KeyError) as error:
                raise SystemExit(f"{case.name}: {file}: {name}: {error}")
            # Members that the schema does not know are refused.
            assert refuses({**value, "not in the schema": 1}, load(name)), name
            used.add(name)
            outputs += 1
schemas = {path.stem for path in (ROOT / "docs/schema").glob("*.json")}
others = {"perfmap.doctor-1", "perfmap.runtimes-1",  # above
          "perfmap.watch-1", "perfmap.snapshot-1", "perfmap.recording-1"}  # in live tests
assert used | others >= schemas, f"no golden case has {schemas - used - others}"


def objects_without_limit(schema, path):
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "additionalProperties" not in schema:
            yield path
        for key, value in schema.items():
            yield from objects_without_limit(value, f"{path}/{key}")
    elif isinstance(schema, list):
        for i, value in enumerate(schema):
            yield from objects_without_limit(value, f"{path}/{i}")


for name in schemas:
    assert [*objects_without_limit(load(name), name)] == []

print(f"{outputs} golden outputs, {count} entries of {len(maps)} maps, {len(dumps)} dumps and {len(recordings)} recordings fit the schemas")
