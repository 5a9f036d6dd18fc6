#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""resolve --pid with real runtimes: resolve_runtimes.py PERFMAP LIBPERFMAP_CPYTHON

Compares random addresses of all executable memory with the runtime's map, and in ELF files with
elfutils.
"""
import ctypes
import json
import mmap
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from waiting import HANG, processor_time, until  # noqa: E402

PERFMAP, LIBRARY = sys.argv[1:3]
LOOP = "function hot(n){let s=0;for(let i=0;i<n;i++)s+=i%7;return s} setInterval(()=>hot(1e5),1)"
JAVA = """
public class Loop {
  static int hot(int n) { int s = 0; for (int i = 0; i < n; i++) s += i % 7; return s; }
  public static void main(String[] none) throws Exception {
    for (int sum = 0; ; sum += hot(100000)) if (sum == 1) System.out.println(sum);
  }
}
"""
chance = random.Random(5)


def code_of(pid):
    """Executable regions as (begin, end, name)."""
    regions = []
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            field = line.split(maxsplit=5)
            if "x" in field[1] and "vsyscall" not in line:
                begin, end = (int(x, 16) for x in field[0].split("-"))
                regions.append((begin, end, field[5].strip() if len(field) > 5 else ""))
    return regions


def entries_of(path):
    with open(path, errors="surrogateescape") as text:
        for line in text:
            field = line.rstrip("\n").split(" ", 2)
            if len(field) == 3 and line.endswith("\n"):
                yield int(field[0], 16), int(field[1], 16), field[2]


def plainest(entries, address):
    """The name of the last entry that covers an address, or None."""
    found = [e for e in entries if e[0] <= address < e[0] + max(e[1], 1)]
    return found[-1][2] if found else None


def ask(pid, addresses):
    text = "".join(f"{a:x}\n" for a in addresses)
    done = subprocess.run([PERFMAP, "resolve", "-", "--pid", str(pid), "--format", "jsonl", "--no-demangle"], input=text,
                          capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(addresses)
    return answers


def check_jit(what, pid, path, regions):
    """Addresses in memory that is not mapped from files: in entries, and anywhere."""
    entries = [e for e in entries_of(path) if any(b <= e[0] < end for b, end, _ in regions)]
    assert entries, f"{what}: the map names no memory of this process"
    asked = [b + chance.randrange(max(s, 1)) for b, s, _ in chance.sample(entries, min(300, len(entries)))]
    asked += [chance.randrange(b, e) for b, e, _ in regions for _ in range(100)]
    asked = [a for a in asked if any(b <= a < e for b, e, _ in regions)]
    named = 0
    for address, answer in zip(asked, ask(pid, asked)):
        wanted = plainest(entries, address)
        assert answer["name"] == wanted, f"{what}: {address:x} is {answer}, not {wanted!r}"
        assert wanted or answer["why"] == "not-covered", answer
        named += wanted is not None
    print(f"{what}: {named} of {len(asked)} addresses of JIT code have names, all as its map")


def check_files(what, pid, regions):
    """Addresses in mapped files, compared with eu-addr2line."""
    if shutil.which("eu-addr2line") is None:
        print(f"skipped in part: {what}: no eu-addr2line to ask")
        return
    asked = [chance.randrange(b, e) for b, e, _ in regions for _ in range(60)]
    theirs = subprocess.run(["eu-addr2line", "-S", "-p", str(pid)], input="".join(f"0x{a:x}\n" for a in asked),
                            capture_output=True, text=True, timeout=HANG).stdout.splitlines()[0::2]
    assert len(theirs) == len(asked), what
    compared, others = 0, []
    for other, answer in zip(theirs, ask(pid, asked)):
        name = answer["name"]
        if other == "??" or other.startswith("()") or (name or "").endswith("@plt"):
            continue  # elfutils has no names in PLTs, and few in stripped files
        offset = int(other.rsplit("+", 1)[1], 16) if "+" in other else 0
        compared += 1
        if name is None or answer["offset"] != offset:
            others.append((answer, other))
    # elfutils decides differently how far symbols without size, such as _fini, extend.
    assert len(others) <= compared / 100, f"{what}: {len(others)} of {compared}: {others[:5]}"
    print(f"{what}: {compared} of {len(asked)} addresses of its files have names, as elfutils has them, but for {len(others)}")


def check(what, pid, path):
    regions = code_of(pid)
    check_jit(what, pid, path, [r for r in regions if not r[2].startswith(("/", "[vdso"))])
    check_files(what, pid, [r for r in regions if r[2].startswith("/")])


def node(scratch):
    # V8 also writes logs to its working directory.
    with subprocess.Popen(["node", "--perf-basic-prof", "--interpreted-frames-native-stack", "-e", LOOP],
                          cwd=scratch) as process:
        path = f"/tmp/perf-{process.pid}.map"
        try:
            until(lambda: processor_time(process.pid) > 1 and os.path.exists(path) and "hot" in open(path, errors="replace").read())
            os.kill(process.pid, 19)  # SIGSTOP, so that its map continues to match its memory
            check("Node.js", process.pid, path)
        finally:
            process.kill()
            os.unlink(path)


def jvm(scratch):
    with open(f"{scratch}/Loop.java", "w") as out:
        out.write(JAVA)
    subprocess.run(["javac", "-d", scratch, f"{scratch}/Loop.java"], check=True, timeout=HANG)
    with subprocess.Popen(["java", "-cp", scratch, "Loop"]) as process:
        path = f"/tmp/perf-{process.pid}.map"
        try:
            until(lambda: processor_time(process.pid) > 2)
            done = subprocess.run(["jcmd", str(process.pid), "Compiler.perfmap"], capture_output=True, text=True, timeout=HANG)
            os.kill(process.pid, 19)
            if not os.path.exists(path):
                print("skipped in part: JVM: it wrote no map:", done.stdout.strip().replace("\n", " "))
                return
            check("JVM", process.pid, path)
        finally:
            process.kill()
            if os.path.exists(path):
                os.unlink(path)


def write_entries():
    """Names generated code with the functions of CPython's C API, in this process."""
    library = ctypes.CDLL(LIBRARY)
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    write = library.PyUnstable_WritePerfMapEntry
    write.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_char_p]
    begin = libc.mmap(None, 1 << 16, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    for i in range(0, 1 << 16, 64):
        assert write(begin + i, 48, f"py::function_{i}:/srv/app.py".encode()) == 0
    print("written", flush=True)
    sys.stdin.read()


def cpython():
    with subprocess.Popen([sys.executable, __file__, PERFMAP, LIBRARY, "write"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        path = f"/tmp/perf-{process.pid}.map"
        try:
            assert process.stdout.readline() == "written\n"
            check("CPython", process.pid, path)
        finally:
            process.kill()
            if os.path.exists(path):
                os.unlink(path)


def main():
    if sys.argv[3:] == ["write"]:
        write_entries()
        return 0
    cpython()
    for program, test in (("node", lambda: with_scratch(node)), ("jcmd", lambda: with_scratch(jvm))):
        if shutil.which(program) is None or (program == "jcmd" and shutil.which("javac") is None):
            print(f"skipped in part: no {program} here")
        else:
            test()
    return 0


def with_scratch(test):
    with tempfile.TemporaryDirectory() as scratch:
        test(scratch)


sys.exit(main())
