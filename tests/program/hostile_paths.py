#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Paths with control characters never reach a terminal, nor begin a line: hostile_paths.py PERFMAP

Every command is run on files whose names have escape sequences, a newline, and characters that change
the direction of text; on files that are good, damaged and missing.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.pseudo_terminal import on_terminal  # noqa: E402

PERFMAP = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
#     colour      C1 CSI      8-bit CSI  bidi override       delete  title          a line of ours
EVIL = b"x\x1b[31mred\xc2\x9b31m\x9b\xe2\x80\xaeabc\xe2\x81\xa6\x7f\x1b]0;t\x07\nperfmap: error: forged\r% a:b,c"
OWN = re.compile(rb"\x1b\[(1;3[1-6]|[012])m|\x1b\[K|\r")  # colours, and the line of progress


def check(words, stdin=b"", said=True):
    text, status = on_terminal([PERFMAP, *words], stdin, stderr_too=True)
    assert status >= 0, (words, status)
    rest = OWN.sub(b"", text)
    bad = [byte for byte in rest if (byte < 0x20 and byte not in b"\n\t") or byte == 0x7f]
    assert not bad, (words, bad, text)
    try:
        shown = rest.decode()
    except UnicodeDecodeError:
        raise AssertionError((words, text))
    assert not any("\x80" <= c <= "\x9f" or c in "\u202e\u2066" for c in shown), (words, text)
    assert not any(line.startswith("perfmap: error: forged") for line in shown.split("\n")), (words, text)
    assert text or not said, words
    return text


def evil(name):
    return name.encode() + EVIL


def make_files():
    wild = ROOT / "tests/wild"
    files = {evil("good.map"): b"1000 10 name\n1008 10 a\x1b[31m\n1000 10 name\n",
             evil("bad.map"): b"nothing\n1000 zz x\n\x00\x01\n", evil("no.dump"): b"DTiJ\x01\x00"}
    for path, text in files.items():
        pathlib.Path(os.fsdecode(path)).write_bytes(text)
    for source, name in ((next(wild.rglob("*.dump")), "jit.dump"), (next(wild.rglob("*.pypylog"), None), "log.pypylog"),
                         (ROOT / "tests/golden/inputs/other-machine.data", "perf.data"),
                         (next(iter(wild.rglob("perf.data*")), None), "perf.data")):
        if source and source.is_file():
            shutil.copy(source, os.fsdecode(evil(name)))
    os.mkdir(evil("directory"))
    return [*files, *(path for path in os.listdir(b".") if EVIL in path and path not in files), evil("missing")]


def commands(path, out):
    """Each command that takes a path, by its name."""
    yield "lint", [[b"lint", path], [b"lint", path, b"--diff"], [b"lint", path, b"--fix"],
                   *([b"lint", path, b"--format", form] for form in (b"gcc", b"json", b"jsonl", b"sarif", b"github"))]
    yield "info", [[b"info", path], [b"info", path, b"--format", b"json"], [b"info", path, b"--by", b"name"]]
    yield "tidy", [[b"tidy", path], [b"tidy", path, b"-o", out], [b"tidy", path, b"--in-place"]]
    yield "merge", [[b"merge", path, path], [b"merge", path, path, b"--check"], [b"merge", path, path, b"--keep"]]
    yield "diff", [[b"diff", path, path], [b"diff", path, b"/dev/null"]]
    yield "to-json", [[b"to-json", path], [b"to-json", path, b"--to", b"jsonl"]]
    yield "from-json", [[b"from-json", path], [b"from-json", path, b"-o", out]]
    yield "convert", [[b"convert", path, b"--to", form] for form in (b"perf-map", b"jitdump", b"json", b"jsonl")]
    yield "resolve", [[b"resolve", b"1008", b"-m", path], [b"resolve", b"1008", b"-s", path],
                      [b"resolve", b"1008", b"-m", path, b"--format", b"json"], [b"resolve", path]]
    yield "write", [[b"write", b"-o", path + b"/x", b"1", b"1", b"name"], [b"write", b"-o", b"-", b"1", b"1", EVIL],
                    [b"write", b"--to-pid", path, b"1", b"1", b"name"], [b"write", b"-o", path, b"1", b"1", b"name"]]
    yield "copy", [[b"copy", path, b"-o", out], [b"copy", path, b"-o", b"-"], [b"copy", path, b"-o", path],
                   [b"copy", path, b"-o", out, b"--strict"]]
    yield "doctor", [[b"doctor", path]]
    yield "stacks", [[b"stacks", path], [b"stacks", path, b"-o", out], [b"stacks", path, b"--symfs", path]]
    yield "annotate", [[b"annotate", path, EVIL], [b"annotate", path, b"f", b"-j", path], [b"annotate", path, b"f", b"-m", path]]
    yield "report", [[b"report", path], [b"report", path, b"-o", out], [b"report", path, b"--callers", path]]
    yield "record", [[b"record", b"--", path], [b"record", b"-o", path, b"--", b"./missing"],
                     [b"record", b"--perf", path, b"-o", b"recorded", b"--", b"true"], [b"record", b"-p", path]]
    yield "inject", [[b"inject", path, b"-o", out]]
    yield "pypylog", [[b"pypylog", path], [b"pypylog", path, b"-o", out]]
    yield "watch", [[b"watch", path]]
    yield "snapshot", [[b"snapshot", path], [b"snapshot", str(os.getpid()).encode(), b"-o", path]]
    yield "gc", [[b"gc", path]]
    yield "help", [[b"help", path]]
    yield "version", [[b"version", path]]
    yield "completions", [[b"completions", path]]


def check_commands():
    work = tempfile.mkdtemp()
    os.chdir(work)
    seen = set()
    for path in make_files():
        for name, all_words in commands(path, evil("out")):
            seen.add(name)
            for words in all_words:
                check(words, said=False)
                check([*words, b"--color", b"always", b"-v"], said=False)
    check([b"tidy", evil("good.map"), EVIL])
    check([EVIL])
    check([b"tidy", b"--" + EVIL])
    check([b"resolve", b"--perf-script", b"-m", evil("good.map")], b"node 42 1.0: cycles:\n\t 1008 [unknown] (/tmp/perf-42.map)\n\n")
    check([b"write", b"-o", evil("new"), b"-"], b"1000 10 " + EVIL, said=False)
    listed = subprocess.run([PERFMAP, "--help"], capture_output=True, text=True, check=True).stdout
    ours = set(re.findall(r"^  ([a-z][a-z-]+)  ", listed, re.M))
    assert ours and not ours - seen, ours - seen
    os.chdir("/")
    shutil.rmtree(work)


def check_pipes():
    """A path cannot begin a line of its own in text for other programs either."""
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        path = os.fsdecode(evil("good.map"))
        pathlib.Path(path).write_bytes(b"1008 10 b name\n1000 10 a name\n")
        for words, status in ((["lint", path, "--format", "github"], 1), (["lint", path, "--diff"], 1), (["info", path], 0),
                              (["lint", path], 1), (["lint", path, "--format", "gcc"], 1)):
            text = subprocess.run([PERFMAP, *words], capture_output=True).stdout
            assert text and b"\nperfmap: error: forged" not in text and b"\x1b" not in text.replace(path.encode("utf-8", "surrogateescape"), b"") or words[0] == "info", (words, text)
        text = subprocess.run([PERFMAP, "lint", path, "--format", "github"], capture_output=True).stdout
        assert all(line.startswith(b"::") for line in text.splitlines()), text
        assert b"%0Aperfmap%3A error%3A forged%0D%25 a%3Ab%2Cc,line=" in text and b"\\x1b[31m" in text, text
        diff = subprocess.run([PERFMAP, "lint", path, "--diff"], capture_output=True).stdout
        assert diff.startswith(b'--- "good.mapx\\033[31mred\\302\\23331m\\233\\342\\200\\256abc'), diff
        # patch(1) reads such a header.
        if shutil.which("patch"):
            done = subprocess.run(["patch", "-p0"], input=diff, capture_output=True)
            assert done.returncode == 0, done
            assert pathlib.Path(path).read_bytes().startswith(b"1000 "), done
        os.chdir("/")


def check_strict():
    """--strict shows how the input spells a name and how it would be written."""
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        cases = {b"a\x1b[31m": r"""the name "a\033[31m" would be written as 'a\x1b[31m'""",
                 b"ab\xff": r"""the name "ab\377" would be written as 'ab\xff'""",
                 b"b" * 100 + b"\x01c": "the name \"…" + "b" * 40 + r"""\001c" would be written as '…""" + "b" * 40 + r"""\x01c'""",
                 b"a": "the name 'a' would be written as '[a]'"}
        for name, words in cases.items():
            pathlib.Path("x.map").write_bytes(b"1000 10 " + name + b"\n")
            done = subprocess.run([PERFMAP, "copy", "x.map", "-o", "out", "--strict"], capture_output=True, text=True)
            assert done.returncode == 2 and words in done.stderr, (name, done.stderr)
        os.chdir("/")


check_commands()
check_pipes()
check_strict()
print("no path controlled the terminal")
