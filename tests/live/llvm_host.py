#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records an LLVM ORC host with perf: llvm_host.py PERFMAP LIBRARY INCLUDE [LINK_OPTION...]

Compares names of JIT code frame by frame. With a jitdump, `perfmap stacks` must print the names of
`perf inject --jit` and `perf script -v` (-v prints parameters too). With a perf map, whose names perf
does not demangle, it must print the names of `c++filt`.

Exit status 77: LLVM, clang, perf or c++filt is not installed, or perf may not record.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
from perf_record import PERF_RECORD
import stack_checks  # noqa: E402
from trying import require, require_samples  # noqa: E402

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/llvm"
perfmap, library, include = (os.path.abspath(path) for path in sys.argv[1:4])
link_flags = sys.argv[4:]  # for the library's sanitizer
maps = []
FUNCTIONS = ["outer", "unsigned long work::middle<unsigned long>(unsigned long, int)",
             "work::leaf(unsigned long)", "work::Totals::Totals(unsigned long)"]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300)
    assert result.returncode == 0, (command, result.returncode, result.stdout[-2000:],
                                    result.stderr[-2000:])
    return result.stdout


def tool(*names):
    found = next((path for name in names if (path := shutil.which(name))), None)
    return found or skip(f"no {names[0]} here")


def build_host():
    config = tool("llvm-config-14", "llvm-config-15", "llvm-config-16", "llvm-config")
    version = run(config, "--version").split(".")[0]
    flags = run(config, "--cppflags", "--ldflags", "--libs").split()
    if not (pathlib.Path(run(config, "--includedir").strip()) / "llvm/IR/Module.h").exists():
        skip("no headers of LLVM here (llvm-dev)")
    run(os.environ.get("CXX", "g++"), "-std=c++17", "-O1", EXAMPLE / "host.cpp", f"-I{include}",
        *flags, *link_flags, library, f"-Wl,-rpath,{os.path.dirname(library)}", "-o", "host")
    clang = tool(f"clang-{version}", "clang")
    run(clang, "-std=c++20", "-O1", "-g", "-fno-omit-frame-pointer", "-emit-llvm", "-c",
        EXAMPLE / "work.cpp", "-o", "work.bc")


def record(kind):
    """Returns the samples of perf script, our samples, and the text of the latter."""
    data = f"{kind}.data"
    said = run(*PERF_RECORD, "-k", "mono", "-e", "cpu-clock", "-F", "499", "-g", "-o", data,
               "./host", "work.bc", kind, "3", ".")
    maps.append(pathlib.Path(f"/tmp/perf-{said.split()[0]}.map"))
    theirs = data
    if kind == "j":
        theirs = "injected.data"
        run("perf", "inject", "--jit", "-i", data, "-o", theirs)
    fields = "comm,pid,tid,time,period,event,ip,sym,symoff,dso"
    perf = run("perf", "script", "-v", "-i", theirs, "--ns", "--no-inline", "-F", fields)
    ours = run(perfmap, "stacks", data, "--format", "perf-script")
    return stack_checks.read_script(perf), stack_checks.read_script(ours), ours


def jit_names(sample):
    return [name for name, kind in sample["frames"] if kind == "j"]


def compare(kind):
    theirs, ours, text = record(kind)
    assert len(theirs) == len(ours), (len(theirs), len(ours))
    require_samples(len(ours), 20, kind)
    frames = 0
    for their, our in zip(theirs, ours):
        expected = jit_names(their)
        if kind == "m" and expected:
            expected = subprocess.run(["c++filt"], input="\n".join(expected), text=True,
                                      capture_output=True, check=True).stdout.split("\n")
        assert jit_names(our) == expected, (their, our)
        frames += len(expected)
        assert not any(name.startswith("_Z") for name in jit_names(our)), our
    require_samples(frames, 50, f"{kind}: frames of JIT code")
    for function in FUNCTIONS:
        require(function in text, f"{kind}: no sample in {function}")
    raw = run(perfmap, "stacks", f"{kind}.data", "--format", "perf-script", "--no-demangle")
    assert "_ZN4work4leafEm" in raw and "work::" not in raw
    print(f"{frames} frames of JIT code in {len(ours)} samples are named as perf names them ({kind})")


for name in ("perf", "c++filt"):
    tool(name)
listener = (EXAMPLE / "perfmap_listener.hpp").read_text()
lines = [line for line in listener[listener.index("class"):].splitlines() if line.strip()]
assert 5 < len(lines) < 40, len(lines)
print(f"perfmap_listener.hpp: {len(lines)} lines")
with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    probe = subprocess.run([*PERF_RECORD, "-e", "cpu-clock", "-k", "mono", "-o",
                            "probe.data", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        skip(f"perf may not record here: {probe.stderr.splitlines()[:1]}")
    build_host()
    try:
        for kind in "jm":
            compare(kind)
    finally:
        for path in maps:
            path.unlink(missing_ok=True)
