# SPDX-License-Identifier: MIT
"""Compares `resolve --overlap perf` with perf: perf_oracle.py PERFMAP

Looks up addresses in random maps, with `perf script` on a synthetic recording and with perfmap. Exit
status 77: perf is not installed, or is not perf 6.
"""
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

PID = 4194000  # hardly ever the pid of a living process
ATTR = 128


def event(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def trailer(time):
    return struct.pack("<IIQ", PID, PID, time)


def recording(addresses):
    """A perf.data in pipe mode: one process, one anonymous executable mapping, and one sample per
    address."""
    flags = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 18 | 1 << 23  # mmap comm task sample_id_all mmap2
    attr = struct.pack("<IIQQQQQ", 1, ATTR, 0, 1, 7, 0, flags).ljust(ATTR, b"\0")
    out = struct.pack("<QQ", 0x32454C4946524550, 16)
    out += event(64, 0, attr + struct.pack("<Q", 1))
    out += event(3, 0, struct.pack("<II", PID, PID) + b"jit\0\0\0\0\0" + trailer(1))
    mapping = struct.pack("<IIQQQIIQQII", PID, PID, 0, 1 << 47, 0, 0, 0, 0, 0, 5, 2)
    out += event(10, 2, mapping + b"//anon\0\0" + trailer(2))
    for number, address in enumerate(addresses):
        out += event(9, 2, struct.pack("<QIIQ", address, PID, PID, 10 + number))
    return out


def perf_answers(folder, text, addresses):
    path = f"/tmp/perf-{PID}.map"
    with open(path, "wb") as file:
        file.write(text)
    try:
        data = os.path.join(folder, "perf.data")
        with open(data, "wb") as file:
            file.write(recording(addresses))
        done = subprocess.run(["perf", "script", "-f", "-i", data, "-F", "ip,sym"],
                              capture_output=True)
        lines = [line.strip(b" ") for line in done.stdout.split(b"\n") if line.strip()]
        return [line.split(b" ", 1)[1] if b" " in line else b"[unknown]" for line in lines]
    finally:
        os.unlink(path)


def our_answers(perfmap, folder, text, addresses):
    path = os.path.join(folder, "x.map")
    with open(path, "wb") as file:
        file.write(text)
    done = subprocess.run([perfmap, "resolve", "-", "--overlap", "perf", "-m", path],
                          input="\n".join(f"{a:x}" for a in addresses).encode(),
                          capture_output=True, check=True)
    return [re.sub(rb"(\+0x[0-9a-f]+)? \([^()]*\)$", b"", line.split(b" ", 1)[1])
            for line in done.stdout.split(b"\n") if line]


def random_map(rng):
    lines = []
    for i in range(rng.randrange(1, 30)):
        start = 0x10000 + rng.randrange(64)
        size = rng.choice([0, 1, 4, 8, 16, 40])
        name = rng.choice(["f", "ab", "abc", "long_name", "with blank"]) + (str(i) if i % 3 else "")
        form = rng.choice(["{:x} {:x} {}", "0x{:x} 0x{:x} {}", " {:x} {:X} {}", "{:x}\t{:x} {}"])
        lines.append(form.format(start, size, name))
    return "\n".join(lines).encode() + rng.choice([b"\n", b""])


def main():
    version = subprocess.run(["perf", "--version"], capture_output=True, text=True).stdout \
        if shutil.which("perf") else ""
    if not version.startswith("perf version 6."):
        print(f"skipped: no perf 6 here ({version.strip() or 'no perf'})")
        return 77
    rng = random.Random(1)
    addresses = [0x10000 + i for i in range(110)]
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(40):
            text = random_map(rng)
            theirs = perf_answers(folder, text, addresses)
            if len(theirs) != len(addresses):
                print("skipped: this perf does not read the made-up recording")
                return 77
            ours = our_answers(sys.argv[1], folder, text, addresses)
            for address, a, b in zip(addresses, theirs, ours):
                compared += 1
                if a.strip() != b.strip():
                    print(f"{address:x}: perf says {a!r}, we say {b!r}, in\n{text.decode()}")
                    return 1
    print(f"{compared} addresses as {version.strip()} answers them")
    return 0


sys.exit(main())
