# SPDX-License-Identifier: MIT
"""Stitching completes truncated stacks correctly: stacks_stitched.py STITCH_CHECK"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import recorded
from chance import is_at_least, is_at_most
from trying import require


def misses(said):
    """Lines with more wrong or too short stacks than allowed."""
    for line in said.splitlines():
        size, cut, exact, short, wrong = map(int, re.findall(r"\d+", line))
        # 8 KiB leave little to distinguish stacks; few stacks are truncated at 32 KiB.
        if not is_at_most(wrong, cut, 0.015 if size == 8 else 0.005):
            yield line
        elif size >= 16 and cut >= 50 and not is_at_least(exact, cut, 0.8):
            yield line


def record_and_check(place):
    # A compiler has deep stacks, whose outer frames stay for a while.
    compiler = next((name for name in ("clang++-16", "clang++", "g++") if shutil.which(name)), "g++")
    command = [compiler, "-std=c++17", "-O2", "-c", recorded.SOURCES / "tree.cpp", "-o", place / "tree.o"]
    data = recorded.record(place / "compiler.data", command, frequency=1999, stack=65528)
    return subprocess.run([sys.argv[1], data, "8", "16", "32"], capture_output=True, text=True, check=True).stdout


with tempfile.TemporaryDirectory() as directory:
    try:
        said = record_and_check(pathlib.Path(directory))
    except recorded.CannotRecord as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    print(said, end="")
    found = list(misses(said))
    require(not found, found)  # on a busy machine, a recording may contain mostly noise
