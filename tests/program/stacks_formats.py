# SPDX-License-Identifier: MIT
"""All formats of stacks contain the same samples as perf's text: stacks_formats.py WRITE_STACKS"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
import stack_checks


def written(text, *arguments):
    return subprocess.run([sys.argv[1], *arguments], input=text, capture_output=True, check=True).stdout


stack_checks.written = written
count = 0
for path in sorted((ROOT / "tests/wild/stacks").glob("*.txt")):
    text = path.read_bytes()
    samples = stack_checks.read_script(text.decode())
    assert written(text, "perf-script") == text, path
    stack_checks.check_all(text, samples)
    count += len(samples)
assert count > 50
print(f"{count} samples are in every format")
