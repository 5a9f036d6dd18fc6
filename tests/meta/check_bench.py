#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the benchmarks compile, because test runs do not build them: check_bench.py COMPILER"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BENCH = ROOT / "tests/bench"
# Paths that CMake passes in, such as PERFMAP_LINES_DIR.
macros = set(re.findall(r"\b(PERFMAP_[A-Z_]+)=", (BENCH / "CMakeLists.txt").read_text()))
problems = []
for source in sorted(BENCH.glob("*.cpp")):
    result = subprocess.run(
        [sys.argv[1], "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
         *(f'-D{macro}=""' for macro in macros),
         *(f"-I{ROOT / folder}" for folder in ("tests", "lib/profile", "lib", "lib/include")), str(source)],
        capture_output=True, text=True)
    if result.returncode != 0:
        problems.append(f"{source.name}: {result.stderr.strip()}")
print("\n".join(problems) or f"{len(list(BENCH.glob('*.cpp')))} files compile")
sys.exit(1 if problems else 0)
