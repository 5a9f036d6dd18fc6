# SPDX-License-Identifier: MIT
"""Checks stacks of programs that perf records now: stacks_recorded.py PERFMAP

Stacks reach the root, callers are those in the source, and frames that perf finds are among ours.
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
import recorded
from chance import is_at_least
from pprof import Profile
from recorded import CannotRecord
from trying import require, require_samples

PERFMAP = sys.argv[1]
CALLERS = {
    "busy": {"in_frame_of_any_size", "in_aligned_frame", "in_handler", "interrupted", "thrower"},
    "in_frame_of_any_size": {"in_aligned_frame"}, "in_aligned_frame": {"all_shapes"},
    "interrupted": {"all_shapes"}, "in_vdso": {"all_shapes"}, "thrower": {"catcher"},
    "catcher": {"all_shapes"}, "called_back": {"all_shapes"}, "all_shapes": {"many"},
}
VARIANTS = {
    "pie": ("g++", ["-O2", "-pie", "-fPIE"]),
    "no-pie": ("g++", ["-O2", "-no-pie"]),
    "static": ("g++", ["-O2", "-static"]),
    "lld": ("g++", ["-O2", "-fuse-ld=lld"]),
    "unoptimised": ("g++", ["-O0"]),
    "clang": ("clang++", ["-O2"]),
    "i386": ("g++-12", [*recorded.FLAGS_OF_I386, "-O2"]),
    "i386 no-pie": ("g++-12", [*recorded.FLAGS_OF_I386, "-O2", "-no-pie", "-fno-pie"]),
    "i386 unoptimised": ("g++-12", [*recorded.FLAGS_OF_I386, "-O0"]),
}
skipped = []


def stacks(data, *options):
    return subprocess.run([PERFMAP, "stacks", data, *options], capture_output=True, text=True, check=True).stdout


def samples_of(data, *options):
    lines = [json.loads(line) for line in stacks(data, "--format", "jsonl", *options).splitlines()]
    return [line for line in lines if "frames" in line]


def total_of(data, *options):
    return json.loads(stacks(data, "--stats", "--format", "jsonl", *options).splitlines()[-1])


def check_rooted(name, data, reach):
    total = total_of(data)
    whole = total["samples"] - total["full_copies"]
    share = min(total["ends"]["root"], whole) / max(whole, 1)
    print(f"{name}: {total['samples']} samples, {total['full_copies']} with a full copy; "
          f"{100 * share:.2f} % of the others reach the root")
    require_samples(whole, 20, name)
    assert is_at_least(min(total["ends"]["root"], whole), whole, reach), (name, total)


def check_threads(name, data):
    one = stacks(data, "--format", "perf-script", "--threads", "1")
    for threads in ("2", "8"):
        assert stacks(data, "--format", "perf-script", "--threads", threads) == one, (name, threads)


def check_pprof(data):
    """Each address is in its mapping, although processes map a file at different addresses."""
    command = [PERFMAP, "stacks", data, "--format", "pprof"]
    profile = Profile(subprocess.run(command, capture_output=True, check=True).stdout)
    assert len(profile.mappings) > 1, data
    require_samples(len(profile.samples), 20, data)


def check_callers(name, data):
    """Checks callers of functions in the source; functions of libraries may be in between."""
    seen = collections.Counter()
    for sample in samples_of(data):
        frames = [(frame["name"] or "").split("(")[0] for frame in sample["frames"]]
        # The unwinder of exceptions overwrites its own return address before it jumps.
        if sample["end"] != "root" or any(frame.startswith("_Unwind_") for frame in frames):
            continue
        own = [frame for frame in frames if frame in CALLERS or frame in ("in_handler", "many", "main")]
        if sample["pid"] == sample["tid"] and "many" in own:
            assert own[-1] == "main", (name, sample)
        for callee, caller in zip(own, own[1:]):
            if callee in CALLERS:
                assert caller in CALLERS[callee], (name, callee, caller, sample)
            if callee == "in_handler":
                assert caller == "interrupted", (name, sample)
            seen[callee] += 1
    missing = (set(CALLERS) | {"in_handler"}) - set(seen)
    require(len(missing) <= 1, (name, missing))  # short functions get few samples


def addresses(text):
    """{(tid, time): addresses}, from the output of perf script -F tid,time,ip or from ours."""
    found = {}
    frames = None
    for line in text.splitlines():
        if not line.strip():
            frames = None
        elif frames is None:
            words = line.split()
            at = next(i for i, word in enumerate(words) if word.endswith(":"))
            tid = next(word for word in reversed(words[:at]) if not word.startswith("[")).split("/")[-1]
            frames = found.setdefault((int(tid), words[at].rstrip(":").split(".")[0],
                                       words[at].rstrip(":").split(".")[1][:6]), [])
        else:
            frames.append(int(line.split()[0], 16))
    return found


def compare_with_perf(data):
    """How many frames perf has, how many of them we have at the same position, and how many of our
    stacks are longer and shorter."""
    perf = subprocess.run(["perf", "script", "-i", data, "-F", "tid,time,ip", "--no-inline"],
                          capture_output=True, text=True, check=True).stdout
    theirs = addresses(perf)
    ours = addresses(stacks(data, "--addresses", "--format", "perf-script"))
    assert set(theirs) <= set(ours), "samples are missing"
    total = same = longer = shorter = 0
    for key, stack in theirs.items():
        stack = [ip for ip in stack if ip < 0xffff_ffff_ffff_f000]  # where perf ran out of the copy
        own = ours[key]
        # The trampoline of a signal was not called, but perf prints the address before it.
        same += sum(a == b or a + 1 == b for a, b in zip(stack, own))
        total += len(stack)
        longer += len(own) > len(stack)
        shorter += len(own) < len(stack)
    return total, same, longer, shorter


def check_against_perf(name, data):
    total, same, longer, shorter = compare_with_perf(data)
    print(f"{name}: {100 * same / total:.3f} % of perf's {total} frames; {longer} stacks longer, {shorter} shorter")
    assert is_at_least(same, total, 0.999), name
    return longer


def check_native(place):
    for name, (compiler, flags) in VARIANTS.items():
        try:
            program = recorded.compile_program(place, "shapes", flags, f"shapes-{name}", compiler)
            data = recorded.record(place / f"{name}.data", [program, "1000"], frequency=1999)
        except CannotRecord as reason:
            skipped.append(f"{name}: {reason}")
            continue
        check_rooted(name, data, 0.99)
        check_callers(name, data)
        check_threads(name, data)
        if not name.startswith("i386"):  # perf unwinds no programs of 32 bits
            check_against_perf(name, data)


def check_without_build_ids(place):
    """A recording of this machine without the build id of the vdso."""
    program = recorded.compile_program(place, "shapes", ["-O2"])
    data = recorded.record(place / "no-build-ids.data", [program, "1000"], frequency=1999, options=["-B"])
    in_vdso = [frame for sample in samples_of(data) for frame in sample["frames"] if frame["module"] == "[vdso]"]
    if not in_vdso:
        raise CannotRecord("no sample lies in the vdso")
    # Some kernels' vdso has a function without a symbol, which those with symbols call.
    callers = [frame for frame in in_vdso if frame["source"] != "sampled"]
    assert any(frame["name"] for frame in in_vdso) and all(frame["name"] for frame in callers), in_vdso[:3]
    check_rooted("no-build-ids", data, 0.99)


def check_processes(place):
    """A shell's children inherit its memory, and lose it at exec, which perf does not handle."""
    program = recorded.compile_program(place, "tree", ["-O2"])
    loop = f"for i in 1 2 3 4 5 6; do {program} 3; done; ({program} 3 & {program} 3; wait)"
    data = recorded.record(place / "processes.data", ["sh", "-c", loop], frequency=1999)
    check_rooted("processes", data, 0.98)
    check_threads("processes", data)
    check_pprof(data)
    total, same, longer, _ = compare_with_perf(data)
    print(f"processes: {longer} stacks longer than perf's; {100 * same / total:.1f} % of its {total} frames")
    rooted = collections.Counter()
    for sample in samples_of(data):
        names = [frame["name"] or "" for frame in sample["frames"]]
        if sample["end"] == "root" and any(name.startswith("(anonymous namespace)::deep") for name in names):
            assert "main" in names, sample
            rooted[sample["pid"]] += 1
    assert len(rooted) <= 8, rooted
    require(len(rooted) == 8, rooted)


def check_node(place):
    script = recorded.SOURCES / "load.js"
    for name, flag in (("node-dump", "--perf-prof"), ("node-map", "--perf-basic-prof")):
        work = place / name
        work.mkdir()
        flags = ["--interpreted-frames-native-stack", flag]
        data = recorded.record(place / f"{name}.data", ["node", *flags, script, "1200"], cwd=work, stack=32768)
        check_rooted(name, data, 0.98)
        check_threads(name, data)
        check_pprof(data)
        named = collections.Counter()
        for sample in samples_of(data):
            named.update({found[1] for frame in sample["frames"]
                          if (found := re.match(r"(?:JS:|LazyCompile:)?[~*^+]*(round|fib)\b", frame["name"] or ""))})
        require_samples(named["round"], 20, f"round, {name}")
        require_samples(named["fib"], 10, f"fib, {name}")


def check_java(place):
    work = place / "java"
    work.mkdir()
    made = subprocess.run(["javac", "-d", work, recorded.SOURCES / "Work.java"], capture_output=True, text=True)
    if made.returncode != 0:
        raise CannotRecord(f"javac: {made.stderr}")
    command = ["java", "-XX:+PreserveFramePointer", "-cp", work, "Work", "2000"]
    data = recorded.record(place / "java.data", command, cwd=work, stack=65528)
    check_rooted("java", data, 0.98)
    check_threads("java", data)


def attempt(what, check, place):
    try:
        check(place)
    except (CannotRecord, FileNotFoundError) as reason:
        skipped.append(f"{what}: {reason}")


with tempfile.TemporaryDirectory() as directory:
    place = pathlib.Path(directory)
    try:
        recorded.record(place / "first.data", ["/bin/true"])
    except CannotRecord as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    check_native(place)
    for what, check in (("no build-ids", check_without_build_ids), ("processes", check_processes),
                        ("node", check_node), ("java", check_java)):
        attempt(what, check, place)
for reason in skipped:
    print(f"skipped in part: {reason}")
