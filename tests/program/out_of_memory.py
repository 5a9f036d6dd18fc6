# SPDX-License-Identifier: MIT
"""Commands whose address space is limited, at every MiB: out_of_memory.py PERFMAP WILD

A command succeeds, or fails with status 2 and says that memory ended, or which file could not be mapped for that reason.
No signal ends it: an exception that passes through a function of libc would do that, because the program has its own
unwinder.
"""
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

PERFMAP = os.path.realpath(sys.argv[1])
NODE = pathlib.Path(sys.argv[2]).resolve() / "node"
MIB = 1 << 20
LIMITS = range(16, 97)
COMMANDS = [
    ["report", NODE / "perf-683.data"],
    ["stacks", NODE / "perf-683.data", "-o", "page.html"],
    ["annotate", NODE / "perf-683.data", "multiply", "-j", NODE / "jit-683-samples.dump", "--symfs", NODE],
    ["doctor", NODE / "perf-683.data"],
    ["lint", NODE / "jit-683-lines.dump"],
    ["to-json", NODE / "jit-683-lines.dump"],
]


def run(command, mib):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (mib * MIB, mib * MIB))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return subprocess.run([PERFMAP, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, preexec_fn=limit, timeout=300)


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
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
        assert ended > 0 and (ran_out > 0 or NODE / "perf-683.data" not in command), (command, ran_out, ended)
        print(f"{command[0]}: out of memory at {ran_out} of {len(LIMITS)} limits")
