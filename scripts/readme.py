#!/usr/bin/env python3
"""Runs the tour of README.md, prints it, and fails if a line differs: readme.py PERFMAP

The commands of the console blocks run in a copy of tests/wild/node. With UPDATE_README=1 in the
environment the outputs in README.md are rewritten instead.
"""
import difflib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(?s)```console\n(.*?)```")


def copy_inputs(place):
    """Copies the input files with fixed modes, whatever the umask was: lint reports maps that
    others may write."""
    for folder in ("node", "tally", "pypy"):
        shutil.copytree(ROOT / "tests/wild" / folder, place / folder, symlinks=True)
    for path in (place, *place.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    return place / "node"


def output_of(perfmap, command, folder):
    words = shlex.split(command)
    assert words[0] == "perfmap", command
    return subprocess.run([perfmap, *words[1:]], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True).stdout


def tour(perfmap, text, folder):
    """(text before a block, the block in README.md, the block as it is now) of each."""
    for block in BLOCK.finditer(text):
        before = text[:block.start()].rstrip()
        lead = before[before.rfind("\n\n") + 2:]
        fresh = "".join(f"$ {command}\n{output_of(perfmap, command, folder)}"
                        for command in re.findall(r"^\$ (.*)$", block[1], re.M))
        yield lead, block[1], fresh


def main():
    perfmap = pathlib.Path(sys.argv[1]).resolve()
    text = README.read_text()
    fresh_blocks, differences, commands = [], 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        for lead, shown, fresh in tour(perfmap, text, copy_inputs(pathlib.Path(scratch))):
            fresh_blocks.append(fresh)
            commands += len(re.findall(r"^\$ ", fresh, re.M))
            print(re.sub(r"(?m)^", "# ", lead) + f"\n\n{fresh}", flush=True)
            if fresh != shown:
                differences += 1
                print("".join(difflib.unified_diff(shown.splitlines(True), fresh.splitlines(True),
                                                   "README.md", "printed")))
    if os.environ.get("UPDATE_README"):
        fresh_text = iter(fresh_blocks)
        README.write_text(BLOCK.sub(lambda _: f"```console\n{next(fresh_text)}```", text))
        return 0
    if differences or not commands:
        print("README.md does not show what the program prints (see above); UPDATE_README=1 rewrites it")
        return 1
    print(f"{commands} commands print what README.md shows")
    return 0


sys.exit(main())
