# SPDX-License-Identifier: MIT
"""Commands whose address space is limited, at every second MiB: out_of_memory.py PERFMAP WILD

The dump of a recording of Node.js is made longer by 60 000 names, so that memory ends on every machine at some limit. A
command succeeds, or fails with status 2 and says that memory ended, or which file could not be mapped for that reason.
No signal ends it: an exception that passes through a function of libc would do that, because the program has its own
unwinder.
"""
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import tempfile

PERFMAP = os.path.realpath(sys.argv[1])
NODE = pathlib.Path(sys.argv[2]).resolve() / "node"
MIB = 1 << 20
LIMITS = range(16, 97, 2)
DUMP = "jit-683.dump"
SOURCES = ["-j", DUMP, "--symfs", NODE]
COMMANDS = [
    ["report", NODE / "perf-683.data", *SOURCES],
    ["stacks", NODE / "perf-683.data", "-o", "page.html", *SOURCES],
    ["annotate", NODE / "perf-683.data", "multiply", *SOURCES],
    ["doctor", NODE / "perf-683.data", "--map-dir", ".", "--symfs", NODE],
    ["lint", DUMP],
    ["to-json", DUMP],
]


def code_load(i):
    text = b"function %d " % i + b"x" * 200 + b"\0"
    at = 0x600000000000 + 16 * i
    return struct.pack("<IIQIIQQQQ", 0, 57 + len(text), 0, 683, 683, at, at, 1, 1_000_000 + i) + text + b"\xc3"


def run(command, mib):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (mib * MIB, mib * MIB))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return subprocess.run([PERFMAP, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, preexec_fn=limit, timeout=300)


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    pathlib.Path(DUMP).write_bytes((NODE / "jit-683-samples.dump").read_bytes() + b"".join(map(code_load, range(60_000))))
    for command in COMMANDS:
        ran_out, ended = 0, 0
        for mib in LIMITS:
            result = run(command, mib)
            where = (command, mib, result.returncode, result.stderr[-300:])
            assert 0 <= result.returncode <= 2, where
            is_out = result.returncode == 2
            assert not is_out or re.search("out of memory|Cannot allocate memory", result.stderr), where
            ran_out += is_out
            ended += not is_out
        is_stream = command[0] in ("lint", "to-json")  # they may need less than the first limit
        assert ended > 0 and (ran_out > 0 or is_stream), (command, ran_out, ended)
        print(f"{command[0]}: out of memory at {ran_out} of {len(LIMITS)} limits")
