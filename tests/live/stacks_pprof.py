# SPDX-License-Identifier: MIT
"""Go's pprof reads our profiles, with the samples and names of perf's text: stacks_pprof.py
WRITE_STACKS"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
if shutil.which("go") is None or subprocess.run(["go", "tool", "-n", "pprof"], capture_output=True).returncode:
    print("skipped: there is no `go tool pprof`")
    sys.exit(77)


def pprof(*arguments):
    with tempfile.TemporaryDirectory() as home:
        run = subprocess.run(["go", "tool", "pprof", "-symbolize=none", *arguments], capture_output=True, text=True,
                             env={**os.environ, "HOME": home, "PPROF_TMPDIR": home})
    assert run.returncode == 0, run.stderr
    return run.stdout


for path in sorted((ROOT / "tests/wild/stacks").glob("*.txt")):
    text = path.read_text()
    blocks = [block.split("\n") for block in text.split("\n\n") if block.strip()]
    with tempfile.NamedTemporaryFile(suffix=".pb.gz") as profile:
        profile.write(subprocess.run([sys.argv[1], "pprof"], input=text.encode(), capture_output=True, check=True).stdout)
        profile.flush()
        top = pprof("-top", "-nodecount=10000", "-nodefraction=0", "-sample_index=samples", profile.name)
        traces = pprof("-traces", "-sample_index=samples", profile.name)
    total = int(re.search(r"of (\d+) total", top)[1])
    assert total == len(blocks), (path, total)

    # Compares only plain names of leaves: pprof shortens templates and arguments.
    leaves = collections.Counter()
    for block in blocks:
        name = re.fullmatch(r"\t *[0-9a-f]+ (.*?)(?:\+0x[0-9a-f]+)? \(.*\)", block[1])[1] if len(block) > 1 else ""
        leaves[name] += 1
    flat = {}
    for line in top.splitlines():
        if row := re.fullmatch(r" *(\d+) +[\d.]+% +[\d.]+% +\d+ +[\d.]+% +(.*?)(?: \(inline\))?", line):
            flat[row[2]] = int(row[1])
    plain = {name: number for name, number in leaves.items() if re.fullmatch(r"\w+", name)}
    assert plain and all(flat.get(name) == number for name, number in plain.items()), (plain, flat)
    for label in ("tid:", "pid:", "comm:"):
        assert label in traces
    print(f"{path.name}: {total} samples, {len(flat)} functions")
