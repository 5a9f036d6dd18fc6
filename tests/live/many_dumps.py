#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process has mapped thousands of jitdumps: many_dumps.py PERFMAP

Each command that reads the files of a process reads the first ones, says once that there are more, and takes
little time.
"""
import contextlib
import ctypes
import mmap
import os
import pathlib
import resource
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from trying import require

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
READ = 64  # kMaxProcessDumps
SECONDS = 3  # of processor time; most goes into a list of the mapped files
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]


def map_dumps(folder, count):
    """Each at two pages' distance, which keeps the kernel from joining them."""
    page = mmap.PAGESIZE
    base = libc.mmap(None, 2 * page * count, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    for i in range(count):
        with open(folder / f"jit-{i + 1}.dump", "w+b") as file:
            file.write(struct.pack("=4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, os.getpid(), 0, 0))
            file.flush()
            fixed = 0x10
            at = libc.mmap(base + 2 * page * i, page, mmap.PROT_READ | mmap.PROT_EXEC,
                           mmap.MAP_PRIVATE | fixed, file.fileno(), 0)
            assert at == base + 2 * page * i, os.strerror(ctypes.get_errno())


@contextlib.contextmanager
def process(folder, count):
    folder.mkdir()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        map_dumps(folder, count)
        os.write(write, b"ready")
        while True:
            signal.pause()
    os.close(write)
    with os.fdopen(read) as said:
        assert said.read(5) == "ready", "the process could not map its dumps"
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def run(*words):
    """What the command says. It must not take long."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([PERFMAP, *words], capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode in (0, 1), (words, done.returncode, done.stderr[-300:])
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    require(took < SECONDS, (words, took))  # a busy machine takes more, as programs share its caches
    return done.stdout, done.stderr


def check(work, count):
    with process(work / str(count), count) as pid:
        more = f"process {pid} has mapped {count} jitdumps: only the first {READ} are read"
        commands = {
            "resolve": ("resolve", "0x1010", "--pid", str(pid)),
            "info": ("info", str(pid)),
            "lint": ("lint", str(pid)),
            "tidy": ("tidy", str(pid)),
            "to-json": ("to-json", str(pid)),
            "snapshot": ("snapshot", str(pid), "-o", str(work / f"{count}.snapshot")),
        }
        for name, words in commands.items():
            err = run(*words)[1]
            assert err.count(more) == 1, (name, err[-500:])
        out = run("doctor", str(pid))[0]
        assert out.count(f"has mapped {count} jitdumps: only the first {READ} are read") == 1, out
        copied = [path for path in (work / f"{count}.snapshot").rglob("jit-*.dump")]
        assert len(copied) == READ, copied


def main():
    with tempfile.TemporaryDirectory() as name:
        for count in (READ + 1, 3000, 6000):
            check(pathlib.Path(name), count)


main()
