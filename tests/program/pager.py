# SPDX-License-Identifier: MIT
"""`perfmap report` on a terminal: colours, the width, and the pager: pager.py PERFMAP"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.pseudo_terminal import on_terminal  # noqa: E402

TALLY = pathlib.Path(__file__).resolve().parent.parent / "wild/tally"
NODE = pathlib.Path(__file__).resolve().parent.parent / "wild/node"
perfmap = os.path.realpath(sys.argv[1])
report = [perfmap, "report", TALLY / "perf.data", "--symfs", TALLY]
plain = subprocess.run(report, capture_output=True, check=True).stdout
assert plain and b"\x1b" not in plain


def shown(command=report, **options):
    text, status = on_terminal(command, **options)
    assert status == 0, (options, status)
    return text


def without_colors(text):
    return re.sub(rb"\x1b\[[\d;]*m", b"", text)


# In the pager, with colours.
text = shown(environment={"PAGER": "sed s/^/page:/"})
assert b"\x1b[1;31m" in text
assert without_colors(text) == b"".join(b"page:" + line for line in plain.splitlines(keepends=True)), text
assert shown(environment={"PAGER": "echo $LESS; cat >/dev/null"}) == b"FRX\n"
assert shown(environment={"PAGER": "echo $LESS; cat >/dev/null", "LESS": "S"}) == b"S\n"
if shutil.which("less"):
    # It also controls the keypad and erases to the end of lines.
    assert re.sub(rb"\x1b[\[?;\d]*[a-zA-Z=>]|\r", b"", shown(columns=100, environment={"PAGER": None})) == plain

# Without one.
for environment in ({"PAGER": "cat"}, {"PAGER": ""}, {"PAGER": "no-such-pager"}):
    text = shown(environment=environment)
    assert b"\x1b[1;31m" in text and without_colors(text) == plain, (environment, text)
for environment in ({"TERM": "dumb", "PAGER": "echo wrong"}, {"PAGER": "cat", "NO_COLOR": "1"}):
    assert shown(environment=environment) == plain, environment
for form in ("json", "csv"):
    command = [*report, "--format", form]
    piped = subprocess.run(command, capture_output=True, check=True).stdout
    assert shown(command, environment={"PAGER": "echo wrong"}).split() == piped.split(), form

# A pager that ends early is not an error.
assert shown(environment={"PAGER": "true"}) == b""
assert shown(environment={"PAGER": "head -n 1"}) == plain.splitlines(keepends=True)[0]

# Names continue below themselves.
names = [perfmap, "report", NODE / "perf-603.data", NODE / "perf-603.map", "--symfs", NODE, "--top", "5"]
whole = subprocess.run(names, capture_output=True, check=True).stdout.decode()
narrow = without_colors(shown(names, columns=60, environment={"PAGER": "cat"})).decode()
assert max(map(len, whole.splitlines())) > 60 >= max(map(len, narrow.splitlines())), narrow
joined = re.sub(r"\n {30}", "", narrow)
assert joined == whole, (joined, whole)
print("the report is shown in the pager, and without one")
