#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tour of docs/tour.md, prints it, and fails if a line differs: tour.py PERFMAP [PAGE]

The commands of the console blocks, `$ COMMAND`, run in a copy of tests/wild/node; lines that begin
with # are comments. A line `$ COMMAND &` starts a process, whose pid is $! in later lines, and 4242
in what the page shows. With PAGE, the flame graph page of the tour is copied there. With
UPDATE_TOUR=1 in the environment the outputs in docs/tour.md are rewritten instead.
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

from console_blocks import console_blocks, with_blocks

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOUR = ROOT / "docs/tour.md"
SHOWN_PID = "4242"


def copy_inputs(place):
    """Copies the input files with fixed modes, whatever the umask was: lint reports maps that
    others may write."""
    shutil.copytree(ROOT / "tests/wild/node", place / "node", symlinks=True)
    for path in (place, *place.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    (place / "tmp").mkdir()
    return place / "node"


class Shell:
    """Runs commands of perfmap in a folder, and other programs as processes that they look at."""

    def __init__(self, perfmap, folder):
        self.perfmap, self.folder, self.process = perfmap, folder, None
        self.tmp = folder.parent / "tmp"

    def run(self, command):
        """What the command prints."""
        if command.endswith("&"):
            self.close()
            self.process = subprocess.Popen(shlex.split(command[:-1]))
            return ""
        pid = str(self.process.pid) if self.process else ""
        words = shlex.split(command.replace("$!", pid))
        assert words[0] == "perfmap", command
        printed = subprocess.run([self.perfmap, *words[1:]], cwd=self.folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True,
                                 env={**os.environ, "PERFMAP_TMPDIR": str(self.tmp)}).stdout
        printed = printed.replace(str(self.tmp), "/tmp")
        return re.sub(rf"\b{pid}\b", SHOWN_PID, printed) if pid else printed

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()


def tour(shell, text):
    """(text before a block, the block in docs/tour.md, the block as it is now) of each."""
    for start, shown, lines in console_blocks(text):
        before = text[:start].rstrip()
        lead = before[before.rfind("\n\n") + 2:]
        yield lead, shown, "".join(f"{kind} {line}\n" + (shell.run(line) if kind == "$" else "")
                                   for kind, line, _ in lines)


def main():
    perfmap = pathlib.Path(sys.argv[1]).resolve()
    text = TOUR.read_text()
    fresh_blocks, differences, commands = [], 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        shell = Shell(perfmap, copy_inputs(pathlib.Path(scratch).resolve()))
        for lead, shown, fresh in tour(shell, text):
            fresh_blocks.append(fresh)
            commands += len(re.findall(r"^\$ ", fresh, re.M))
            print(re.sub(r"(?m)^", "# ", lead) + f"\n\n{fresh}", flush=True)
            if fresh != shown:
                differences += 1
                print("".join(difflib.unified_diff(shown.splitlines(True), fresh.splitlines(True),
                                                   "docs/tour.md", "printed")))
        shell.close()
        page = shell.folder / "flame.html"
        if not page.exists():
            differences += 1
            print("the tour makes no flame.html")
        elif len(sys.argv) > 2:
            shutil.copy(page, sys.argv[2])
            print(f"the flame graph page: {pathlib.Path(sys.argv[2]).resolve()}\n")
    if os.environ.get("UPDATE_TOUR"):
        TOUR.write_text(with_blocks(text, fresh_blocks))
        return 0
    if differences or not commands:
        print("docs/tour.md does not show what the program prints (see above); UPDATE_TOUR=1 rewrites it")
        return 1
    print(f"{commands} commands print what docs/tour.md shows")
    return 0


sys.exit(main())
