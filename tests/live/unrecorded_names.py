# SPDX-License-Identifier: MIT
"""Names of code in memory whose mappings were not recorded: unrecorded_names.py PERFMAP

Compares names with perf's, frame by frame: no frame that perf names may be unnamed, and names
without a time are marked.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
import recorded
from chance import is_at_least
from named_frames import compare, run, skip
from recorded import CannotRecord
from trying import require, require_samples

PERFMAP = sys.argv[1]
MADE = r"made_"
MARK = "(?unrecorded-memory)"
# perf does not record mappings that mremap() has moved or created.
UNRECORDED = ("moved", "second")
SHAPES = ("plain", "late", "memfd", "shm", "deleted", *UNRECORDED)


def record(place, program, shape, source, call_graph, options=()):
    """Records a run of the program in its own directory, which also contains the dump."""
    work = pathlib.Path(tempfile.mkdtemp(dir=place))
    return recorded.record(work / "perf.data", [program, "200", shape, source], call_graph=call_graph, cwd=work,
                           options=options)


def injected(data, *command):
    made = data.with_name(f"by-{pathlib.Path(command[0]).name}.data")
    done = subprocess.run([*command, "-o", made], capture_output=True, text=True, cwd=data.parent, timeout=120)
    assert done.returncode == 0, (command, done.stderr)
    return made


def own_lines(data, name):
    text = run(PERFMAP, "stacks", data, "--format", "perf-script", "--verbose")
    return [line for line in text.splitlines() if re.search(rf"\b{name}\b", line)]


def check_stacks(data, shape, source):
    """Stacks of the generated code, and of functions that it calls, reach the root."""
    stacks = [json.loads(line) for line in run(PERFMAP, "stacks", data, "--format", "jsonl").splitlines()]
    names = [{frame.get("name") for frame in stack["frames"]} for stack in stacks]
    called = [stack for stack in names if stack & {"made_loop", "spin"}]
    whole = [stack for stack in called if {"made_caller", "main"} <= stack]
    # Frame pointers miss the caller until a function has saved its frame pointer.
    require_samples(len(called), 20, f"{shape}, {source}")
    assert is_at_least(len(whole), len(called), 0.95), (shape, source, len(whole), len(called))
    require(all(any(name in stack for stack in whole) for name in ("made_loop", "spin")), (shape, source))
    lines = own_lines(data, "made_caller") + own_lines(data, "made_loop")
    marked = [line for line in lines if MARK in line]
    wanted = len(lines) if shape in UNRECORDED and source == "map" else 0
    assert len(marked) == wanted, (shape, source, len(marked), wanted, lines[:2])


def check_doctor(data, what):
    text = subprocess.run([PERFMAP, "doctor", data, "--format", "json"], capture_output=True, text=True,
                          timeout=120).stdout
    found = json.loads(text)
    process = max(found["processes"], key=lambda one: one["samples"])
    require_samples(process["jit_frames"], 1, what)
    assert process["unnamed_jit_frames"] == 0, (what, process)
    findings = [one for one in found["findings"] if one["id"] != "perf-ignores-region" and one["severity"] != "info"]
    assert not findings, (what, findings)


def check_lost_names(data):
    """Without its map, the code is reported as a finding."""
    with tempfile.TemporaryDirectory() as empty:
        text = subprocess.run([PERFMAP, "doctor", data, "--map-dir", empty, "--format", "json"],
                              capture_output=True, text=True, timeout=120)
    ids = [one["id"] for one in json.loads(text.stdout)["findings"]]
    assert text.returncode == 1 and "unrecorded-code" in ids, text


def check(place, program, shape, source, call_graph, options=()):
    data = record(place, program, shape, source, call_graph, options)
    try:
        what = f"{shape}, {source}, {call_graph}{' -d' if options else ''}"
        if source == "map":
            compare(PERFMAP, what, data, 20)
        else:
            theirs = injected(data, "perf", "inject", "--jit", "-i", data)
            compare(PERFMAP, what, data, 20, theirs=theirs, wanted=MADE)
            ours = injected(data, PERFMAP, "inject", data)
            compare(PERFMAP, f"{what}, injected by perfmap", data, 20, theirs=ours, wanted=MADE)
        check_stacks(data, shape, source)
        check_doctor(data, what)
        if shape in UNRECORDED and source == "map":
            check_lost_names(data)
    finally:
        clean(data)


def clean(data):
    """Removes maps and code that the program has left in shared directories."""
    for pid in {json.loads(line)["pid"] for line in run(PERFMAP, "stacks", data, "--format", "jsonl").splitlines()}:
        for path in (f"/tmp/perf-{pid}.map", f"/dev/shm/code-{pid}"):
            pathlib.Path(path).unlink(missing_ok=True)


with tempfile.TemporaryDirectory() as directory:
    place = pathlib.Path(directory)
    try:
        program = recorded.compile_program(place, "unrecorded", ["-O2", "-fno-omit-frame-pointer"])
        clean(record(place, program, "plain", "map", "fp"))
    except CannotRecord as reason:
        skip(reason)
    for shape in SHAPES:
        for source in ("map", "dump"):
            for call_graph in ("fp", "dwarf,4096"):
                check(place, program, shape, source, call_graph)
    for source in ("map", "dump"):
        check(place, program, "moved", source, "fp", options=("-d",))
