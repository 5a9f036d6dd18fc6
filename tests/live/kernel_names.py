#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares names of kernel frames, without --kallsyms, with perf script: kernel_names.py PERFMAP

Exit status 77: perf is not installed or may not record the kernel, or /proc/kallsyms shows no
addresses.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import stack_checks  # noqa: E402
from trying import require_samples  # noqa: E402

perfmap = os.path.abspath(sys.argv[1])


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)


def kernel_frames(text):
    return [[name for name, kind in sample["frames"] if kind == "k"]
            for sample in stack_checks.read_script(text)]


def addresses_of_symbols():
    """{name: addresses}, because a name may occur several times."""
    found = {}
    for line in pathlib.Path("/proc/kallsyms").read_text().splitlines():
        address, _, name, *_ = line.split()
        found.setdefault(name, set()).add(address)
    return found


def check_names(recording):
    fields = "comm,pid,tid,time,period,event,ip,sym,symoff,dso"
    perf = run("perf", "script", "-i", recording, "--ns", "-F", fields)
    ours = run(perfmap, "stacks", recording, "--format", "perf-script")
    assert ours.returncode == 0 and "kernel" not in ours.stderr, ours.stderr
    theirs, found = kernel_frames(perf.stdout), kernel_frames(ours.stdout)
    assert len(theirs) == len(found), (len(theirs), len(found))
    require_samples(len(found), 20, recording)
    pairs = [pair for one, other in zip(theirs, found) for pair in zip(one, other, strict=True)]
    require_samples(len(pairs), 100, "frames of the kernel")
    # Which of several symbols at an address perf selects depends on the kernel.
    places = addresses_of_symbols()
    different = [(their, our) for their, our in pairs
                 if their != our and not places.get(their, set()) & places.get(our, set())]
    unnamed = [their for their, our in different if our.startswith("[")]
    assert not unnamed, unnamed
    assert len(different) * 50 <= len(pairs), different[:10]
    print(f"{len(pairs) - len(different)} of {len(pairs)} frames of the kernel are named as perf does")


def check_other_boot(recording):
    """The recording, changed to another address of the kernel, or to another build id."""
    content = pathlib.Path(recording).read_bytes()
    at = content.index(b"[kernel.kallsyms]_")
    # PERF_RECORD_MMAP: header, pid, tid, address, size, offset, name.
    offset = int.from_bytes(content[at - 8:at], "little")
    moved = content[:at - 8] + (offset + 0x200000).to_bytes(8, "little") + content[at:]
    build_id = pathlib.Path("/sys/kernel/notes").read_bytes()
    build_id = build_id[build_id.index(b"GNU\0") + 4:][:20]
    assert build_id in content
    other = content.replace(build_id, bytes(20))
    for bytes_, why in ((moved, "was rebooted after"), (other, "is from another kernel")):
        pathlib.Path("other.data").write_bytes(bytes_)
        result = run(perfmap, "stacks", "other.data", "--format", "perf-script")
        assert result.returncode == 0
        notes = [line for line in result.stderr.splitlines() if "kernel" in line]
        assert len(notes) == 1 and why in notes[0] and "--kallsyms" in notes[0], result.stderr
        assert all(name.startswith("[") for names in kernel_frames(result.stdout) for name in names)
    named = run(perfmap, "stacks", "other.data", "--format", "perf-script", "--kallsyms",
                "/proc/kallsyms")
    assert "[unknown] ([kernel.kallsyms])" not in named.stdout and "kernel" not in named.stderr, named.stderr


if not shutil.which("perf"):
    skip("no perf here")
with open("/proc/kallsyms", encoding="ascii") as kallsyms:
    if int(next(line for line in kallsyms if line.split()[2] == "_text").split()[0], 16) == 0:
        skip("/proc/kallsyms shows no addresses (not root)")
with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    probe = run("perf", "record", "-q", "-e", "cpu-clock", "-F", "999", "-g", "-o", "perf.data", "--",
                "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=500000")
    if probe.returncode != 0 or not run("perf", "script", "-i", "perf.data", "-F", "ip").stdout.strip():
        skip(f"perf may not record the kernel here: {probe.stderr.splitlines()[:1]}")
    check_names("perf.data")
    check_other_boot("perf.data")
