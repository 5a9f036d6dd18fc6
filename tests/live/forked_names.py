# SPDX-License-Identifier: MIT
"""Compares names in recordings of processes that fork and exec with perf's, frame by frame:
forked_names.py PERFMAP INTERPRETER WORKERS

No frame that perf names may be unnamed.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from perf_record import PERF_RECORD
import recorded
from named_frames import without_doubt
from recorded import CannotRecord
from trying import require

PERFMAP, INTERPRETER, WORKERS = sys.argv[1:4]
KERNEL = 1 << 63
UNKNOWN = "[unknown]"


def record(data, command, event="cpu-clock:u", cwd=None):
    """Records with frame pointers: perf uses maps only for those call chains."""
    perf = [*PERF_RECORD, "-k", "mono", "-e", event, "-F", "2999", "-g", "-o", str(data), "--",
            *map(str, command)]
    made = subprocess.run(perf, capture_output=True, text=True, cwd=cwd, timeout=120)
    if made.returncode != 0 or not data.exists():
        raise CannotRecord(f"perf record: {(made.stderr.strip().splitlines() or ['it says nothing'])[0]}")
    return data


def frames_of(text):
    """{(pid, microseconds): [[(address, symbol)]]} of user frames, from perf script's output."""
    found = collections.defaultdict(list)
    frames = []
    for line in text.splitlines():
        if header := re.search(r"\b(\d+)/\d+\s+(?:\[\d+\]\s+)?(\d+)\.(\d{6})\d*:", line):
            frames = []
            found[int(header[1]), int(header[2] + header[3])].append(frames)
        elif line.strip():
            address, _, symbol = without_doubt(line).strip().partition(" ")
            if int(address, 16) < KERNEL:
                frames.append((int(address, 16), re.sub(r"(\+0x[0-9a-f]+)? \([^()]*\)$", "", symbol)))
    return found


def perf_frames(data):
    return frames_of(subprocess.run(["perf", "script", "-i", data, "--no-inline", "-F", "pid,tid,time,ip,sym"],
                                    capture_output=True, text=True, check=True).stdout)


def own_frames(data):
    return frames_of(subprocess.run([PERFMAP, "stacks", data, "--format", "perf-script"],
                                    capture_output=True, text=True, check=True).stdout)


def unnamed_here(theirs, ours):
    """Returns how many frames perf names, and which of them perfmap does not name."""
    named = 0
    missing = collections.Counter()
    for key, samples in theirs.items():
        assert len(samples) == len(ours[key]), (key, samples, ours[key])
        for sample, own in zip(samples, ours[key]):
            # Frames are compared by position: after an injection perf prints addresses in the ELF
            # file of the code.
            names = [name for _, name in own] + [UNKNOWN] * len(sample)
            for (_, symbol), name in zip(sample, names):
                # perf names PLT entries "_init", the function before the PLT.
                if symbol in (UNKNOWN, "_init"):
                    continue
                named += 1
                if name == UNKNOWN:
                    missing[symbol] += 1
    return named, missing


def names_by_process(frames):
    found = collections.defaultdict(collections.Counter)
    for (pid, _), samples in frames.items():
        for sample in samples:
            found[pid].update(symbol for _, symbol in sample)
    return found


def compare(name, data, ours=None):
    """Compares with perf's names, and returns our names by process."""
    theirs = perf_frames(data)
    ours = ours or own_frames(data)
    named, missing = unnamed_here(theirs, ours)
    print(f"{name}: {sum(map(len, theirs.values()))} samples, perf names {named} frames, "
          f"{missing.total()} of them are unnamed here")
    assert named > 0 and not missing, (name, missing.most_common(10))
    return names_by_process(ours)


def check_doctor(data, users):
    """The doctor lists the parent's map among the files of a process that inherited code."""
    found = json.loads(subprocess.run([PERFMAP, "doctor", data, "--format", "json"], capture_output=True, text=True,
                                      timeout=120).stdout)
    for process in found["processes"]:
        if process["pid"] not in users:
            continue
        used = {(one.get("inherited_from"), one["our_path"]) for one in process["looked_for"] if one["fate"] == "used"}
        parents = {pid for pid, _ in used if pid}
        is_first = (None, f"/tmp/perf-{process['pid']}.map") in used and not parents
        assert is_first or any((pid, f"/tmp/perf-{pid}.map") in used for pid in parents), (process, users)
    return sum(any("inherited_from" in one for one in process["looked_for"]) for process in found["processes"])


def check_shapes(place):
    program = recorded.compile_program(place, "prefork", ["-O2", "-fno-omit-frame-pointer"])
    callers = {"child": 2, "silent": 1, "chain": 2, "orphan": 1, "executed": 1, "own-map": 1, "protect": 1}
    for shape, wanted in callers.items():
        command = [program, "150", shape]
        if shape == "orphan":  # perf stops when the process that it started ends
            command = ["sh", "-c", f"{program} 150 orphan; sleep 0.5"]
        data = record(place / f"{shape}.data", command)
        by_process = compare(shape, data)
        users = {pid for pid, names in by_process.items() if names["made_by_parent"] >= 10}
        assert len(users) <= wanted, (shape, by_process)
        require(len(users) == wanted, (shape, by_process))
        assert check_doctor(data, users) > 0, shape
        if shape == "own-map":
            require(any(names["made_by_child"] >= 10 for names in by_process.values()), by_process)
        for pid in by_process:
            pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


def check_interpreter(place):
    """Its workers return to functions whose trampolines the parent compiled, and compile others."""
    for backend in ("map", "jitdump", "both"):
        work = place / backend
        work.mkdir()
        data = record(place / f"interpreter-{backend}.data", [INTERPRETER, backend, WORKERS, work], cwd=work)
        if backend == "map":
            by_process = compare(f"interpreter, {backend}", data)
        else:
            by_process = compare_injected(f"interpreter, {backend}", data)
        served = [pid for pid, names in by_process.items()
                  if any(name.startswith("lisp::serve:") for name in names)]
        handled = [pid for pid, names in by_process.items()
                   if any(name.startswith("lisp::handle:") for name in names)]
        assert len(served) <= 4 and len(handled) <= 4, (backend, by_process)
        require(len(served) == 4 and len(handled) == 4, (backend, by_process))
        for pid in by_process:
            pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


def compare_injected(name, data):
    """perf names code of dumps only after an injection, by `perf inject` or `perfmap inject`."""
    ours = own_frames(data)
    for tool, command in (("perf", ["perf", "inject", "--jit", "-i", data, "-o"]),
                          ("perfmap", [PERFMAP, "inject", data, "-o"])):
        jitted = pathlib.Path(f"{data}.{tool}")
        subprocess.run([*command, jitted], capture_output=True, check=True, cwd=data.parent)
        by_process = compare(f"{name}, injected by {tool}", jitted, ours)
    return by_process


def check_shell(place):
    """A shell that runs many short programs: samples after exec, but before the first mapping, are
    in the old image."""
    script = "i=0; while [ $i -lt 150 ]; do /bin/true; /bin/echo $i | /bin/cat; i=$((i+1)); done"
    data = record(place / "shell.data", ["sh", "-c", script], event="cpu-clock")
    by_process = compare("shell", data)
    require(len(by_process) > 100, f"samples of {len(by_process)} processes")


skipped = []
with tempfile.TemporaryDirectory() as directory:
    place = pathlib.Path(directory)
    try:
        record(place / "first.data", ["/bin/sh", "-c", "i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done"])
    except (CannotRecord, FileNotFoundError) as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    for check in (check_shapes, check_interpreter, check_shell):
        try:
            check(place)
        except CannotRecord as reason:
            skipped.append(f"{check.__name__}: {reason}")
for reason in skipped:
    print(f"skipped: {reason}")
sys.exit(77 if skipped else 0)
