# SPDX-License-Identifier: MIT
"""Compares frames of programs and runtimes that are recorded now with perf's: return_addresses.py
PERFMAP

Return addresses that no call has pushed, code that is written while it runs, and copies of stacks
that end at a page boundary.
"""
import collections
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
import recorded
from named_frames import without_doubt
from recorded import CannotRecord
from trying import require_samples

PERFMAP = sys.argv[1]
FRAME = re.compile(r"\t *([0-9a-f]+) (.*?)(?:\+0x[0-9a-f]+)? \(([^()]*)\)")
FLAGS = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]
ERLANG = """
-module(load).
-export([main/0]).
fib(N) when N < 2 -> N;
fib(N) -> fib(N-1) + fib(N-2).
spin(T) ->
  case element(1, statistics(runtime)) < T of
    true -> fib(15), lists:map(fun(X) -> X * 2 end, lists:seq(1, 200)), spin(T);
    false -> ok
  end.
main() ->
  Self = self(),
  Until = element(1, statistics(runtime)) + 600,
  [spawn(fun() -> spin(Until), Self ! done end) || _ <- lists:seq(1, 4)],
  [receive done -> ok end || _ <- lists:seq(1, 4)],
  halt().
"""
RUBY = """
def fib(n) n < 2 ? n : fib(n - 1) + fib(n - 2) end
def made(i)
  eval "def made#{i}(x); y = (x + #{i}) * 2; y > 100 ? y - 1 : y + 1; end"
  40.times { |k| send(:"made#{i}", k) }
end
start = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
i = 0
while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - start < 1.0
  fib(10)
  made(i += 1)
end
"""


def stacks_of(text):
    """{(tid, time): [(address, name, file)]} of all samples, from the output of either program."""
    found, frames = {}, None
    for line in text.splitlines():
        if frame := FRAME.fullmatch(without_doubt(line)):
            if frames is not None and frame[3] != "inlined":
                # Erlang's map has a "$" before each name, but its dump has none.
                frames.append((int(frame[1], 16), frame[2].removeprefix("$"), frame[3]))
        elif header := re.fullmatch(r".*? +(\d+) .*?(\d+\.\d{6})\d*: .*", line):
            frames = found.setdefault((int(header[1]), header[2]), [])
    return found


def script(data):
    perf = ["perf", "script", "-i", data, "--ns", "--no-inline", "-F", "comm,tid,time,ip,sym,symoff,dso,event"]
    theirs = subprocess.run(perf, capture_output=True, text=True, check=True, timeout=300).stdout
    ours = subprocess.run([PERFMAP, "stacks", data, "--format", "perf-script"], capture_output=True, text=True,
                          check=True).stdout
    return stacks_of(theirs), stacks_of(re.sub(r"(?m)^(\S.*?) +\d+/(\d+) ", r"\1 \2 ", ours))


def plain(name):
    """Without parameters and a symbol's version."""
    return name.split("(")[0].split("@")[0]


def loads(dump):
    """(begin, end, time in seconds) of each LOAD of a jitdump."""
    content = dump.read_bytes()
    at, = struct.unpack_from("<I", content, 8)
    found = []
    while at + 16 <= len(content):
        kind, size, time = struct.unpack_from("<IIQ", content, at)
        if kind == 0 and at + 56 <= len(content):
            begin, code_size = struct.unpack_from("<QQ", content, at + 32)
            found.append((begin, begin + code_size, time / 1e9))
        if size < 16:
            break
        at += size
    return found


def was_loaded(code, address, seconds):
    return any(begin <= address < end and loaded <= seconds for begin, end, loaded in code)


def compare(name, data, code=None):
    """Checks that we name all frames that perf names. Returns both stacks, and frames that are
    named differently.

    A map has no times, so perf also names addresses by code that was loaded later. With `code` such
    names are ignored.
    """
    theirs, ours = script(data)
    require_samples(len(theirs), 20, name)
    assert set(theirs) <= set(ours), f"{name}: samples are missing"
    counts = collections.Counter()
    unnamed, other = collections.Counter(), collections.Counter()
    for key, stack in theirs.items():
        for (address, their_name, their_file), frame in zip(stack, ours[key]):
            counts["frames"] += 1
            if their_name == "[unknown]":
                continue
            counts["named"] += 1
            if frame[1] == "[unknown]":
                if code is None or was_loaded(code, address, float(key[1])):
                    unnamed[their_name, their_file] += 1
            elif plain(frame[1]) == plain(their_name):
                counts["alike"] += 1
            else:
                other[their_name, frame[1]] += 1
        # Frames of perf beyond the end of our stack.
        for address, their_name, their_file in stack[len(ours[key]):]:
            if their_name != "[unknown]":
                unnamed[their_name, their_file] += 1
    print(f"{name}: {len(theirs)} samples, {counts['frames']} frames, {counts['named']} named by perf, "
          f"{counts['alike']} alike; otherwise named: {other.most_common(4)}")
    assert not unnamed, (name, unnamed.most_common(9))
    return theirs, ours, other


def names(stacks, name):
    return sum(frame[1] == name for stack in stacks.values() for frame in stack)


def ends(data):
    command = [PERFMAP, "stacks", data, "--stats", "--format", "jsonl"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return json.loads(said[-1])["ends"]


def check_continuations(place):
    program = recorded.compile_program(place, "continuations", FLAGS)
    for call_graph in ("fp", "dwarf,4096"):
        data = recorded.record(place / f"continuations-{call_graph}.data", [program, "500"], call_graph=call_graph)
        if call_graph == "fp":
            _, ours, other = compare("continuations, -g", data)
            assert not other, other
        else:
            _, ours = script(data)  # perf looks up the address before the return address
        assert names(ours, "decoy") == 0, call_graph
        require_samples(names(ours, "continuation"), 20, f"continuation, {call_graph}")
        for stack in ours.values():
            called = [frame[1] for frame in stack]
            if called[:1] == ["step"] and len(called) > 2:
                assert called[1:3] == ["continuation", "main"], (call_graph, called)


def check_signals(place):
    program = recorded.compile_program(place, "signals", FLAGS)
    data = recorded.record(place / "signals.data", [program, "500"], call_graph="fp")
    theirs, ours, other = compare("signals, -g", data)
    if names(theirs, "__restore_rt") == 0:
        print("skipped in part: libc has no symbols here (package libc6-dbg)")
        return
    assert names(ours, "__restore_rt") == names(theirs, "__restore_rt"), other


def check_erlang(place):
    for needed in ("erl", "erlc"):
        if not shutil.which(needed):
            raise CannotRecord(f"there is no {needed} (package erlang-base)")
    (place / "load.erl").write_text(ERLANG)
    subprocess.run(["erlc", "load.erl"], cwd=place, check=True)
    program = ["sh", "-c", "echo $$ > pid; exec erl +JPperf true +S 1:1 -noshell -noinput -s load main"]
    files = []
    try:
        data = recorded.record(place / "erlang.data", program, call_graph="fp", cwd=place, frequency=499)
        pid = int((place / "pid").read_text())
        dump = pathlib.Path(f"/tmp/jit-{pid}.dump")
        files = [pathlib.Path(f"/tmp/perf-{pid}.map"), dump]
        theirs, ours, other = compare("Erlang, -g", data, loads(dump))
        root = "erts_beamasm:normal_exit/0"
        require_samples(names(theirs, root), 20, "roots of Erlang's processes")
        assert names(ours, root) == names(theirs, root), (names(ours, root), names(theirs, root), other)
    finally:
        for path in files:
            path.unlink(missing_ok=True)


def check_ruby(place):
    """Memory is not executable while Ruby's YJIT writes to it."""
    said = subprocess.run(["ruby", "--yjit", "-v"], capture_output=True, text=True) if shutil.which("ruby") else None
    if said is None or said.returncode != 0 or "YJIT" not in said.stdout:
        raise CannotRecord("there is no ruby with --yjit (package ruby)")
    (place / "load.rb").write_text(RUBY)
    data = recorded.record(place / "ruby.data", ["ruby", "--yjit", "--yjit-call-threshold=2", place / "load.rb"],
                           frequency=1999)
    compare("Ruby YJIT, dwarf", data)
    found = ends(data)
    print(f"Ruby YJIT: stacks end {found}")
    assert found["bad-memory"] == 0, found


def check_java(place):
    """The kernel ends copies of the JVM's stacks at pages that it cannot read at that time."""
    for needed in ("java", "javac"):
        if not shutil.which(needed):
            raise CannotRecord(f"there is no {needed} (package openjdk-17-jdk-headless)")
    subprocess.run(["javac", "-d", place, recorded.SOURCES / "Work.java"], check=True, capture_output=True)
    command = ["java", "-XX:+PreserveFramePointer", "-cp", place, "Work", "1500"]
    data = recorded.record(place / "java.data", command, cwd=place, stack=65528, frequency=499)
    found = ends(data)
    print(f"JVM, dwarf: stacks end {found}")
    assert found["bad-memory"] == 0, found
    require_samples(found["root"], 20, "whole stacks of the JVM")


def main():
    skipped = []
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        for check in (check_continuations, check_signals, check_erlang, check_ruby, check_java):
            try:
                check(place)
            except CannotRecord as reason:
                skipped.append(f"{check.__name__}: {reason}")
    for reason in skipped:
        print(f"skipped: {reason}")
    if len(skipped) == 5:
        sys.exit(77)


main()
