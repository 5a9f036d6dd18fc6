# SPDX-License-Identifier: MIT
"""The C header, the version script, the library and the C tests must name the same functions:
check_exports.py HEADER[:HEADER] SCRIPT LIBRARY TEST..."""
import re
import subprocess
import sys

script_path, library = sys.argv[2:4]
header = set(re.findall(r"PERFMAP_C_API [^;(]*?\b(perfmap_\w+)\(", "".join(open(path).read() for path in sys.argv[1].split(":"))))
used = {name for test in sys.argv[4:] for name in
        re.findall(r"\b(perfmap_\w+)\(", open(test).read())}
script = open(script_path).read()
listed = set(re.findall(r"^    (perfmap_\w+);$", script, re.M))
symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                         capture_output=True).stdout
exported = set(re.findall(r" T (perfmap_\w+)@@PERFMAP(?:_PROFILE)?_0\.1$", symbols, re.M))
versioned = [line for line in symbols.splitlines() if "@@PERFMAP" in line]
others = [line for line in versioned if "perfmap" not in line.split()[-1].split("@")[0].lower()]
problems = [f"{name}: {sorted(a ^ b)}" for name, a, b in [
    ("header against version script", header, listed),
    ("header against library", header, exported)] if a != b]
if header - used:
    problems.append(f"not used by the C test: {sorted(header - used)}")
if others:
    problems.append(f"foreign exports: {others}")
if not versioned or not header:
    problems.append("found no function")
print("\n".join(problems) or f"{len(header)} functions of C, {len(versioned)} symbols")
sys.exit(1 if problems else 0)
