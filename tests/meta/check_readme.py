"""Runs the commands of README.md's console blocks in tests/wild/node and compares what they print.
With UPDATE_README=1 in the environment the outputs are rewritten instead."""
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
README = ROOT / "README.md"
perfmap = pathlib.Path(sys.argv[1]).resolve()
count = 0


def rerun(block):
    global count
    lines = []
    for command in re.findall(r"^\$ perfmap (.*)$", block[1], re.M):
        count += 1
        done = subprocess.run([perfmap, *shlex.split(command)], cwd=ROOT / "tests/wild/node",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines.append(f"$ perfmap {command}\n{done.stdout}")
    return "```console\n" + "".join(lines) + "```"


text = README.read_text()
fresh = re.sub(r"(?s)```console\n(.*?)```", rerun, text)
if os.environ.get("UPDATE_README"):
    README.write_text(fresh)
elif fresh != text or count == 0:
    print("README.md does not show what the program prints; UPDATE_README=1 rewrites it")
    sys.exit(1)
print(f"{count} commands print what README.md shows")
