"""perfmap.h, the version script, the library and the C test have to name the same functions."""
import re
import subprocess
import sys

header_path, script_path, library, user_path = sys.argv[1:5]
header = set(re.findall(r"PERFMAP_C_API [^;(]*?\b(perfmap_\w+)\(", open(header_path).read()))
script = open(script_path).read()
listed = set(re.findall(r"^    (perfmap_\w+);$", script, re.M))
symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                         capture_output=True).stdout
exported = set(re.findall(r" T (perfmap_\w+)@@PERFMAP_0\.1$", symbols, re.M))
used = set(re.findall(r"\b(perfmap_\w+)\(", open(user_path).read()))
others = [line for line in symbols.splitlines()
          if "@@PERFMAP" in line and "perfmap" not in line.split()[-1].lower()]
problems = [f"{name}: {sorted(a ^ b)}" for name, a, b in [
    ("header against version script", header, listed),
    ("header against library", header, exported)] if a != b]
if header - used:
    problems.append(f"not used by the C test: {sorted(header - used)}")
if others:
    problems.append(f"foreign exports: {others}")
if not header:
    problems.append("found no function in the header")
print("\n".join(problems) or f"{len(header)} functions")
sys.exit(1 if problems else 0)
