#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the inputs of bench_lines.cpp unless they exist: prepare_lines.py DIR

A program of 40 units with about 45 MB of .debug_info (takes some minutes), and random addresses in
it.
"""
import pathlib
import subprocess
import sys

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
sys.path.insert(0, str(SUPPORT))
import frames  # noqa: E402

place = pathlib.Path(sys.argv[1])
if not (place / "program").exists():
    make = [sys.executable, SUPPORT / "make_program.py", "--heavy", place, "40"]
    subprocess.run(make, check=True)
for count in (1, 100, 200, 10000):
    addresses = frames.random_addresses(str(place / "program"), count)
    (place / f"addresses_{count}").write_text("".join(f"{address:#x}\n" for address in addresses))
