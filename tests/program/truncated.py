# SPDX-License-Identifier: MIT
"""A map that another process truncates while it is read: truncated.py PERFMAP

Every command prints no wrong name, ends, and reports the truncation in one line.
"""
import os
import random
import subprocess
import sys
import tempfile

PERFMAP = os.path.realpath(sys.argv[1])
CUT = "perfmap: error: t.map was truncated while it was read\n"
rows = random.Random(1)
BIG = "".join(
    f"{0x7f0000000000 + rows.randrange(1 << 24):x} {rows.randrange(1, 400):x} JS:*f{i} /a/b/c.js:{i}:1\n"
    for i in range(200_000))
# The stream tests query these entries, because overlapped ones would be doubtful.
BIG += "7f0002000000 10 JS:*alone /a/b/c.js:1:1\n7f0002001000 10 JS:*last /a/b/c.js:1:1\n"


def write_map():
    with open("t.map", "w") as out:
        out.write(BIG)


def run(*arguments, **options):
    return subprocess.Popen([PERFMAP, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


def check_blocked_on_output(*arguments):
    """Truncates the map while the command is blocked because its output is not read."""
    write_map()
    with run(*arguments) as child:
        child.stdout.read(4000)
        os.truncate("t.map", 1000)
        rest, err = child.communicate(timeout=200)
        assert child.returncode == 2 and err == CUT, (arguments, child.returncode, err[-300:])
        return rest


def check_stream():
    """After the truncation, addresses have no name."""
    write_map()
    with run("resolve", "-", "--map", "t.map") as child:
        start, _, name = BIG.splitlines()[-1].split(" ", 2)
        child.stdin.write(start + "\n")
        child.stdin.flush()
        assert child.stdout.readline() == f"{start} {name}+0x0 (t.map)\n"
        os.truncate("t.map", 1000)
        start = BIG.splitlines()[-2].split(" ")[0]
        rest, err = child.communicate(start + "\n", timeout=200)
        assert rest == f"{start} [unknown] ([unknown])\n", rest
        assert child.returncode == 2 and err == CUT, (child.returncode, err)


def check_script():
    write_map()
    sample = "node 1/1 1.0: cycles:\n\t{} [unknown] (//anon)\n"
    with run("resolve", "--perf-script", "--map", "t.map") as child:
        start, _, name = BIG.splitlines()[-1].split(" ", 2)
        child.stdin.write(sample.format(start) + "\n")
        child.stdin.flush()
        child.stdout.readline()
        assert name in child.stdout.readline()
        child.stdout.readline()
        os.truncate("t.map", 1000)
        text = sample.format(BIG.splitlines()[-2].split(" ")[0])
        rest, err = child.communicate(text, timeout=200)
        assert rest == text, rest
        assert child.returncode == 2 and err == CUT, (child.returncode, err)


with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    for command in ("tidy t.map", "merge t.map t.map", "merge --keep t.map t.map",
                    "to-json t.map", "to-json --to jsonl t.map", "to-json --effective t.map",
                    "merge --check t.map t.map"):
        check_blocked_on_output(*command.split())
    copied = check_blocked_on_output("copy", "t.map", "-o", "-")
    assert copied.endswith("\n"), copied[-100:]
    check_stream()
    check_script()
