# SPDX-License-Identifier: MIT
"""Tests the commands watch, snapshot and gc: watch_command.py PERFMAP SCHEMAS

End of the process, signals, closed pipes, cost, and output.
"""
import json
import os
import pathlib
import re
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PERFMAP = os.path.realpath(sys.argv[1])
SCHEMAS = pathlib.Path(sys.argv[2])
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "support"))
from json_schema import check
from trying import require
from waiting import HANG, proc_file, processor_time, until


def sleeper():
    return subprocess.Popen(["sleep", "600"])


def start(*arguments, tmp, **options):
    return subprocess.Popen([PERFMAP, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env={**os.environ, "PERFMAP_TMPDIR": tmp}, **options)


def run(*arguments, tmp):
    child = start(*arguments, tmp=tmp)
    out, said = child.communicate(timeout=HANG)
    return child.returncode, out, said


def sleeps_of(pid):
    """How often the process has waited, as watch does between its rounds."""
    found = re.search(r"(?m)^voluntary_ctxt_switches:\t(\d+)", proc_file(pid, "status"))
    return int(found[1]) if found else 0


def append(path, text):
    with open(path, "a") as file:
        file.write(text)


def watch_prints_entries_until_the_process_ends(tmp):
    process = sleeper()
    path = f"{tmp}/perf-{process.pid}.map"
    watch = start("watch", str(process.pid), tmp=tmp)
    until(lambda: sleeps_of(watch.pid) > 4, "watch looks for a map")
    append(path, "1000 10 one\n")
    assert watch.stdout.readline() == "1000 10 one\n"
    delays = []
    for number in range(10):
        began = time.monotonic()
        append(path, f"{number + 2}000 10 more\n")
        assert watch.stdout.readline() == f"{number + 2}000 10 more\n"
        delays.append(time.monotonic() - began)
        time.sleep(0.03)  # so that entries come at several moments of a round of the watch
    append(path, "f000 10 last\n")
    process.kill()
    process.wait()
    out, said = watch.communicate(timeout=HANG)
    assert watch.returncode == 0 and out == "f000 10 last\n", (watch.returncode, out)
    assert "12 entries (" in said and "192 bytes of code" in said, said
    usual = statistics.median(delays)
    print(f"an entry came after {usual * 1000:.0f} ms, and after {max(delays) * 1000:.0f} ms at the latest")
    require(usual < 1, delays)  # 50 ms on an idle machine; a busy one may be late a few times


def a_signal_ends_watch_with_totals(tmp):
    process = sleeper()
    append(f"{tmp}/perf-{process.pid}.map", "1000 10 one\n")
    for number in (signal.SIGINT, signal.SIGTERM):
        watch = start("watch", str(process.pid), tmp=tmp)
        assert watch.stdout.readline() == "1000 10 one\n"
        watch.send_signal(number)
        _, said = watch.communicate(timeout=HANG)
        assert watch.returncode == 0 and "1 entry (" in said, (watch.returncode, said)
    process.kill()
    process.wait()


def a_closed_pipe_ends_watch(tmp):
    process = sleeper()
    append(f"{tmp}/perf-{process.pid}.map", "1000 10 one\n")
    watch = start("watch", str(process.pid), tmp=tmp)
    assert watch.stdout.readline() == "1000 10 one\n"
    watch.stdout.close()
    assert watch.wait(timeout=HANG) in (0, -signal.SIGPIPE)
    watch.stderr.close()
    process.kill()
    process.wait()


def idle_watch_costs_little(tmp):
    process = sleeper()
    append(f"{tmp}/perf-{process.pid}.map",
           "".join(f"{number:x}000 10 function {number}\n" for number in range(1, 100_000)))
    watch = start("watch", "--new-only", str(process.pid), tmp=tmp)
    # It has read the map when it prints what is appended.
    added = 0

    def prints_new():
        nonlocal added
        added += 1
        append(f"{tmp}/perf-{process.pid}.map", f"{added:x} 10 new\n")
        return select.select([watch.stdout], [], [], 0.05)[0]

    until(prints_new, "a new entry")
    while watch.stdout.readline() != f"{added:x} 10 new\n":
        assert watch.poll() is None
    before = processor_time(watch.pid)
    time.sleep(3)
    used = processor_time(watch.pid) - before
    watch.send_signal(signal.SIGINT)
    out, _ = watch.communicate(timeout=HANG)
    print(f"3 s of nothing cost {used * 1000:.0f} ms")
    assert out == "", out
    assert used < 0.3, used  # also with sanitizers and on a busy machine
    process.kill()
    process.wait()


def json_matches_its_schemas(tmp):
    process = sleeper()
    append(f"{tmp}/perf-{process.pid}.map", "1000 10 one \udcff\n".encode(
        errors="surrogateescape").decode("latin-1"))
    dump = ROOT / "golden/inputs/snapshot/bundle/proc/42/root/opt/jit-3.dump"
    pathlib.Path(f"{tmp}/jit-{process.pid}.dump").write_bytes(dump.read_bytes())
    watch = start("watch", "--format", "jsonl", str(process.pid), tmp=tmp)
    events = []
    while not {"found", "entry", "load"} <= {event["event"] for event in events}:
        line = watch.stdout.readline()
        assert line, events
        events.append(json.loads(line))
    code, _, said = run("snapshot", str(process.pid), "-o", f"{tmp}/bundle", tmp=tmp)
    assert code == 0 and f"took a snapshot of process {process.pid} (sleep)" in said, said
    check_schema(json.loads(pathlib.Path(f"{tmp}/bundle/manifest.json").read_text()), "snapshot")
    process.kill()
    process.wait()
    out, _ = watch.communicate(timeout=HANG)
    for event in events + [json.loads(line) for line in out.splitlines()]:
        check_schema(event, "watch")
    code, out, _ = run("tidy", f"{tmp}/bundle", tmp=tmp)
    assert code == 0 and " loaded\n" in out and " one " in out, out
    code, out, _ = run("resolve", "1004", "-s", f"{tmp}/bundle", "--format", "jsonl", tmp=tmp)
    assert code == 0 and json.loads(out)["why"] == "unmapped", out  # sleep(1) has no code there
    append(f"{tmp}/perf-{os.getpid()}.map", "")
    code, out, said = run("gc", "--dry-run", "--one-namespace", "--format", "json", tmp=tmp)
    found = json.loads(out)
    check_schema(found, "gc")
    assert code == 0 and found["removed"] >= 2 and found["kept"] >= 1, found
    code, out, said = run("gc", "--one-namespace", tmp=tmp)
    assert code == 0 and f"/perf-{process.pid}.map: no process {process.pid}\n" in out, out
    assert not os.path.exists(f"{tmp}/perf-{process.pid}.map")
    assert os.path.exists(f"{tmp}/perf-{os.getpid()}.map")
    assert os.path.exists(f"{tmp}/bundle/tmp/perf-{process.pid}.map")


def text_has_demangled_names(tmp):
    process = sleeper()
    append(f"{tmp}/perf-{process.pid}.map", "1000 10 _Z3fooi\n")
    wanted = {(): "1000 10 foo(int)\n", ("--no-demangle",): "1000 10 _Z3fooi\n"}
    for options, line in wanted.items():
        watch = start("watch", *options, str(process.pid), tmp=tmp)
        assert watch.stdout.readline() == line, options
        watch.kill()
        watch.communicate()
    watch = start("watch", "--format", "jsonl", str(process.pid), tmp=tmp)
    assert json.loads(watch.stdout.readline())["event"] == "found"
    assert json.loads(watch.stdout.readline())["name"] == "_Z3fooi"
    process.kill()
    process.wait()
    watch.communicate(timeout=HANG)


FORKED = """
import ctypes, mmap, os, sys, time
code = mmap.mmap(-1, 8192, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
with open(f"{sys.argv[1]}/perf-{os.getpid()}.map", "w") as file:
    file.write(f"{at:x} 10 inherited\\n")
child = os.fork()
if child:
    print(at, child, flush=True)
time.sleep(600)
"""


def a_child_keeps_its_parents_names(tmp):
    parent = subprocess.Popen([sys.executable, "-c", FORKED, tmp], stdout=subprocess.PIPE, text=True)
    at, child = map(int, parent.stdout.readline().split())
    watch = start("watch", "--format", "jsonl", str(child), tmp=tmp)
    events = [json.loads(watch.stdout.readline()) for _ in range(2)]
    assert [event["event"] for event in events] == ["found", "entry"], events
    assert all(event["inherited_from"] == parent.pid for event in events), events
    for event in events:
        check_schema(event, "watch")
    code, _, said = run("snapshot", str(child), "-o", f"{tmp}/child", tmp=tmp)
    assert code == 0 and "left out" not in said, said
    manifest = json.loads(pathlib.Path(f"{tmp}/child/manifest.json").read_text())
    check_schema(manifest, "snapshot")
    assert manifest["parents"] == [parent.pid], manifest
    os.kill(child, signal.SIGKILL)
    parent.kill()
    parent.wait()
    _, said = watch.communicate(timeout=HANG)
    assert f"perf-{parent.pid}.map of process {parent.pid}, which forked this process" in said, said
    os.unlink(f"{tmp}/perf-{parent.pid}.map")
    code, out, said = run("resolve", f"{at + 4:x}", "-s", f"{tmp}/child", tmp=tmp)
    assert code == 0 and "inherited+0x4" in out, (out, said)
    _, out, _ = run("doctor", f"{tmp}/child", tmp=tmp)
    assert f"for memory inherited from process {parent.pid}" in out, out


def check_schema(value, name):
    schema = json.loads((SCHEMAS / f"perfmap.{name}-1.json").read_text())
    check(value, schema, schema)


def main():
    for test in (watch_prints_entries_until_the_process_ends, a_signal_ends_watch_with_totals,
                 a_closed_pipe_ends_watch, idle_watch_costs_little,
                 text_has_demangled_names, a_child_keeps_its_parents_names):
        with tempfile.TemporaryDirectory() as tmp:
            test(tmp)
    with tempfile.TemporaryDirectory() as tmp:
        json_matches_its_schemas(tmp)


main()
