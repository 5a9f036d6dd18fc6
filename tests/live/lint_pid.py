#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs `perfmap lint PID` on living processes: lint_pid.py PERFMAP

Compares only findings of the rules about processes. Each run must end within five seconds of processor time.
"""
import ctypes
import json
import mmap
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from other_user import copy_for_all  # noqa: E402
from waiting import HANG, costs_at_most, until  # noqa: E402

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
RULES = "PM060,PM062,PM063,PM064,PM065,PM066,PM09,PM111,PM112,JD110,XF003"
skipped = []


def lint(pid, *options):
    """Returns the findings and the exit status."""
    run = subprocess.run([PERFMAP, "lint", str(pid), "--format", "json", "--select", RULES, *options],
                         capture_output=True, text=True, timeout=HANG, preexec_fn=costs_at_most(5))
    assert run.returncode in (0, 1), (run.returncode, run.stderr)
    return json.loads(run.stdout)["findings"], run.returncode


def expect(what, pid, rules, *options):
    found, status = lint(pid, *options)
    got = [one["rule"] for one in found]
    assert got == rules, f"{what}: {found}"
    bad = any(one["severity"] != "info" for one in found)
    assert status == (1 if bad else 0), f"{what}: exit {status}"
    return found


class Process:
    """A fork of this program that runs `body`, reports its result as `reported`, and waits."""

    def __init__(self, body):
        read, write = os.pipe()
        self.ended = False
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.write(write, str(body()).encode() + b"\n")
                os.close(write)
                while True:
                    signal.pause()
            finally:
                os._exit(1)
        os.close(write)
        with os.fdopen(read) as report:
            self.reported = report.readline().strip()
        assert self.reported, "the child did not come so far"

    def __enter__(self):
        return self

    def end(self):
        if not self.ended:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.ended = True

    def __exit__(self, *ignored):
        self.end()
        for name in (f"perf-{self.pid}.map", f"jit-{self.pid}.dump"):
            pathlib.Path("/tmp", name).unlink(missing_ok=True)


kept = []


def map_code():
    """Maps a page of executable memory for the rest of the process, and returns its address."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    kept.append(code)
    return ctypes.addressof(ctypes.c_char.from_buffer(code))


def write_map(pid, text):
    path = pathlib.Path(f"/tmp/perf-{pid}.map")
    path.write_text(text)
    return path


def check_map():
    with Process(map_code) as process:
        code = int(process.reported)
        path = write_map(process.pid, f"{code:x} 10 first function\n")
        expect("a clean map", process.pid, [])
        path.write_text(f"{code:x} 10 first function\n{code + 0x800:x} 1000 over the end\n20000 10 stale\n")
        found = expect("entries outside", process.pid, ["PM111", "PM111"])
        assert [one["line"] for one in found] == [2, 3]
        expect("not for perf", process.pid, [], "--reader", "perf")

        path.write_text(f"{code:x} 10 first function\n")
        os.utime(path, (1e9, 1e9))
        expect("an old map", process.pid, ["PM064"])
        os.utime(path)
        if os.geteuid() == 0:
            os.chown(path, 12345, 12345)
            found = expect("a foreign map", process.pid, ["PM060"])
            assert "not read" in found[0]["message"]
            expect("a foreign map that is believed", process.pid, ["PM060"], "--any-owner")

        path.unlink()
        path.symlink_to("/etc/passwd")
        expect("a link", process.pid, ["PM062"])
        path.unlink()
        os.mkfifo(path)
        expect("a FIFO", process.pid, ["PM062"])
        path.unlink()
        path.write_text(f"{code:x} 10 first function\n")
        process.end()
        expect("a map that was left behind", process.pid, ["PM065"])
        path.unlink()


def check_another_user():
    """A user who may read neither the process's memory nor its map."""
    if os.geteuid() != 0:
        skipped.append("PM063: only root can be another user")
        return
    with Process(map_code) as process, tempfile.TemporaryDirectory() as work:
        path = write_map(process.pid, f"{int(process.reported):x} 10 first function\n")
        path.chmod(0o600)
        program, environment = copy_for_all(PERFMAP, work)
        run = subprocess.run([program, "lint", str(process.pid), "--format", "json"],
                             capture_output=True, text=True, timeout=HANG, preexec_fn=costs_at_most(5), user=12345,
                             group=12345, env=environment)
        assert run.returncode == 1, (run.returncode, run.stderr)
        rules = [one["rule"] for one in json.loads(run.stdout)["findings"]]
        assert rules == ["PM063"], run.stdout
        assert f"cannot check process {process.pid}: " in run.stderr, run.stderr


def check_over_elf():
    """An entry that overlaps a function of the C library."""
    libc = ctypes.CDLL(None)
    address = ctypes.cast(libc.qsort, ctypes.c_void_p).value
    with Process(lambda: 1) as process:
        write_map(process.pid, f"{address:x} 4 builtin\n")
        found = expect("over libc", process.pid, ["PM112"])
        assert "qsort" in found[0]["message"], found


def check_marker():
    """A dump that is not mapped, and one that is."""
    header = (b"DTiJ" + (1).to_bytes(4, "little") + (40).to_bytes(4, "little") +
              (62).to_bytes(4, "little") + bytes(4))

    def dump(is_mapped):
        path = f"/tmp/jit-{os.getpid()}.dump"
        with open(path, "wb") as file:
            file.write(header + os.getpid().to_bytes(4, "little") + bytes(16))
        if is_mapped:
            with open(path, "rb") as file:
                kept.append(mmap.mmap(file.fileno(), 40, flags=mmap.MAP_PRIVATE,
                                      prot=mmap.PROT_READ | mmap.PROT_EXEC))
        return 1

    with Process(lambda: dump(False)) as process:
        expect("a dump without a marker", process.pid, ["JD110"])
    with Process(lambda: dump(True)) as process:
        expect("a dump with one", process.pid, [])


def check_python_fork():
    if not any("python3" in line.rsplit("/", 1)[-1] for line in open("/proc/self/maps")):
        skipped.append("PM094: this is no python3")
        return
    own = write_map(os.getpid(), "1000 b py::main:/a.py\n")
    try:
        with Process(lambda: 1) as process:
            expect("a fork without a map", process.pid, ["PM094"])
    finally:
        own.unlink()


def check_pid_namespace():
    """A process with another pid in its own namespace, which uses our /tmp."""
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newpid = 0x20000000

    def outer():
        if libc.unshare(clone_newpid) != 0:
            return -1
        inner = os.fork()
        if inner == 0:
            libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            while True:
                signal.pause()
        return inner

    with Process(outer) as process:
        if int(process.reported) < 0:
            skipped.append("PM066: no pid namespace may be made here")
            return
        pid = int(process.reported)
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        inner = next(line for line in status.splitlines() if line.startswith("NStgid")).split()[-1]
        own = pathlib.Path(f"/tmp/perf-{inner}.map")
        if own.exists() or int(inner) == pid:
            skipped.append(f"PM066: there is a {own}")
            return
        path = write_map(pid, "")
        try:
            expect("named by our pid", pid, ["PM066"])
            own.write_text("")
            expect("named by its own, and by ours", pid, ["XF003"])
            path.unlink()
            expect("named by its own", pid, [])
        finally:
            own.unlink(missing_ok=True)
            path.unlink(missing_ok=True)


def check_node():
    if not shutil.which("node"):
        skipped.append("node: it is not here")
        return
    with tempfile.TemporaryDirectory() as work:
        script = "function hot(n){let s=0;for(let i=0;i<n;i++)s+=i%7;return s} setInterval(()=>hot(1e5),5)"
        node = subprocess.Popen(["node", "--perf-basic-prof", "--perf-prof", "-e", script], cwd=work)
        path = pathlib.Path(f"/tmp/perf-{node.pid}.map")
        try:
            until(lambda: path.exists() and "*hot" in path.read_text(errors="replace"))
            found, _ = lint(node.pid, "--max-findings", "0")
            rules = {one["rule"] for one in found}
            assert rules <= {"PM111", "PM112"}, rules  # of freed code and builtins
            builtins = [one for one in found if "Builtins_" in one["message"]]
            files = {line.split()[-1] for line in open(f"/proc/{node.pid}/maps") if "node" in line}
            has_symbols = any(b"Builtins_" in open(file, "rb").read() for file in files)
            assert (len(builtins) > 500) == has_symbols, (len(builtins), files)
            entries = path.read_text(errors="replace").count("\n")
            outside = sum(one["rule"] == "PM111" for one in found)
            assert outside * 10 < entries, f"{outside} of {entries}"
        finally:
            node.kill()
            node.wait()
            path.unlink(missing_ok=True)


def check_java():
    if not shutil.which("java") or not shutil.which("jcmd"):
        skipped.append("java: it is not here, or has no jcmd")
        return
    with tempfile.TemporaryDirectory() as work:
        source = pathlib.Path(work, "Main.java")
        source.write_text("public class Main { public static void main(String[] a) throws Exception"
                          " { System.out.println(1); Thread.sleep(600000); } }")
        java = subprocess.Popen(["java", "-Xshare:auto", str(source)], stdout=subprocess.PIPE)
        path = pathlib.Path(f"/tmp/perf-{java.pid}.map")
        try:
            java.stdout.readline()
            subprocess.run(["jcmd", str(java.pid), "Compiler.perfmap"], stdout=subprocess.DEVNULL,
                           check=True, timeout=HANG)
            expect("a JVM", java.pid, ["PM091"])
            os.utime(path, (time.time() - 100, time.time() - 100))
            found, _ = lint(java.pid)
            assert {one["rule"] for one in found} >= {"PM091", "PM092"}, found
        finally:
            java.kill()
            java.wait()
            path.unlink(missing_ok=True)


for check in (check_map, check_another_user, check_over_elf, check_marker, check_python_fork, check_pid_namespace,
              check_node, check_java):
    check()
print("\n".join(f"skipped in part: {why}" for why in skipped) or "all looks were right")
