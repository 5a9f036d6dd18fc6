# SPDX-License-Identifier: MIT
"""Tests `perfmap write --jitdump`: write_jitdump.py PERFMAP

Parses the dumps by the format's specification, without our reader.
"""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from waiting import proc_file, until

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())


def run(*arguments, stdin=b"", expected=0):
    done = subprocess.run([PERFMAP, "write", "--jitdump", *arguments], input=stdin,
                          capture_output=True, env={**os.environ, "PERFMAP_TMPDIR": "."})
    assert done.returncode == expected, done
    return done.stdout


def loads(data, pid):
    """(address, size, index, name, code) of each record; all of them are LOADs."""
    magic, version, size, _, _, header_pid, _, flags = struct.unpack_from("=IIIIIIQQ", data)
    assert (magic, version, size, header_pid, flags) == (0x4A695444, 1, 40, pid, 0), data[:40]
    at, last, found = 40, 0, []
    while at < len(data):
        kind, total, when, record_pid, tid, vma, address, size, index = struct.unpack_from(
            "=IIQIIQQQQ", data, at)
        assert kind == 0 and (record_pid, tid, vma) == (pid, pid, address)
        assert last <= when <= time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        name, code = data[at + 56:at + total].split(b"\0", 1)
        assert len(code) == size
        found.append((address, size, index, name, code))
        at, last = at + total, when
    assert at == len(data)
    return found


with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    pathlib.Path("code.bin").write_bytes(b"\xc3\0\xc3")
    run("--to-pid", "77", "1000", "3", "with code", "--code", "code.bin")
    dump = pathlib.Path("jit-77.dump")
    assert dump.stat().st_mode & 0o7777 == 0o600
    run("--to-pid", "77", "2000", "10", "without")
    run("--to-pid", "77", stdin=b'3000 4 line\n{"start":"0x4000","size":2,"name":"f"}\n')
    run("--to-pid", "77", "5000", "0", "of no size")
    assert loads(dump.read_bytes(), 77) == [
        (0x1000, 3, 1, b"with code", b"\xc3\0\xc3"), (0x2000, 16, 2, b"without", bytes(16)),
        (0x3000, 4, 3, b"line", bytes(4)), (0x4000, 2, 4, b"[f]", bytes(2)),
        (0x5000, 0, 5, b"of no size", b"")]

    # jit-N.dump belongs to process N; an incomplete record at the end is cut off.
    run("-o", "jit-9.dump", "1000", "1", "first")
    torn = pathlib.Path("jit-9.dump")
    torn.write_bytes(torn.read_bytes() + b"\0\0\0\0\x50\0\0\0torn")
    run("-o", "jit-9.dump", "1000", "1", "second")
    assert [load[3] for load in loads(torn.read_bytes(), 9)] == [b"first", b"second"]
    piped = run("-o", "-", stdin=b"1000 1 piped\n")
    assert piped[60:].find(b"piped\0") > 0 and piped[:4] == torn.read_bytes()[:4]

    os.symlink("code.bin", "jit-5.dump")
    run("--to-pid", "5", "1000", "1", "refused", expected=2)
    run("-o", "/dev/full", "1000", "1", "refused", expected=2)
    assert pathlib.Path("code.bin").read_bytes() == b"\xc3\0\xc3"

with tempfile.TemporaryDirectory() as scratch:
    # The program that creates a dump keeps no descriptor that others would take for a writer.
    os.chdir(scratch)
    waiting = subprocess.Popen([PERFMAP, "write", "--jitdump", "-o", "jit-6.dump"],
                               stdin=subprocess.PIPE)
    waiting.stdin.write(b"1000 10 f\n")
    waiting.stdin.flush()
    # The header has 40 bytes. When there is a record, the dump has been created; then it sleeps until the next line.
    until(lambda: os.path.exists("jit-6.dump") and os.stat("jit-6.dump").st_size > 40, "a record")
    until(lambda: "\nState:\tS" in proc_file(waiting.pid, "status"), "it waits for a line")
    links = [entry.path for entry in os.scandir(f"/proc/{waiting.pid}/fd")
             if os.stat(entry.path).st_ino == os.stat("jit-6.dump").st_ino]
    modes = [int(pathlib.Path(link.replace("/fd/", "/fdinfo/")).read_text().split("flags:")[1]
                 .split()[0], 8) for link in links]
    assert [mode & os.O_ACCMODE != os.O_RDONLY for mode in modes].count(True) == 1, modes
    waiting.communicate(b"2000 10 g\n")
    assert waiting.returncode == 0
    assert [load[0] for load in loads(pathlib.Path("jit-6.dump").read_bytes(), 6)] == [0x1000, 0x2000]

with tempfile.TemporaryDirectory() as scratch:
    # Concurrent writers wait for each other: no record is lost, and indices are unique.
    os.chdir(scratch)
    pathlib.Path("code.bin").write_bytes(b"\xc3" * (1 << 20))
    command = [PERFMAP, "write", "--jitdump", "-o", "jit-7.dump", "--code", "code.bin"]
    several = [subprocess.Popen([*command, f"{i}000000", "100000", f"function {i}"])
               for i in range(1, 9)]
    assert [one.wait() for one in several] == [0] * 8
    written = loads(pathlib.Path("jit-7.dump").read_bytes(), 7)
    assert sorted(load[2] for load in written) == list(range(1, 9))
    assert {load[3] for load in written} == {b"function %d" % i for i in range(1, 9)}

    # Refused if another program has the dump open for writing: it has its own buffer or position.
    with open("jit-7.dump", "r+b"):
        run("-o", "jit-7.dump", "1000", "1", "refused", expected=2)
    assert len(loads(pathlib.Path("jit-7.dump").read_bytes(), 7)) == 8
print("dumps written from the shell hold what was asked for")
