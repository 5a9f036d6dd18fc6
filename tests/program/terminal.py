# SPDX-License-Identifier: MIT
"""Control characters in names of a map are never printed to a terminal: terminal.py PERFMAP"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.pseudo_terminal import on_terminal  # noqa: E402

NAME = b"a\x1b[31mred\xc2\x9b31m\x9b\x7f"
SHOWN = rb"a\x1b[31mred\xc2\x9b31m\x9b\x7f"
SCRIPT = b"node 42 1.0: cycles:\n\t    1008 [unknown] (/tmp/perf-42.map)\n\n"


TESTS = pathlib.Path(__file__).resolve().parent.parent


def source_lines_fit(perfmap):
    """Long source lines end with the terminal's width."""
    root = pathlib.Path(tempfile.mkdtemp())
    for name in ("tally", "tally-source"):
        shutil.copytree(TESTS / "wild" / name, root, dirs_exist_ok=True)
    source = root / "srv/tally/tally.c"
    source.write_text("\n".join(line + " // " + "é" * 200 for line in source.read_text().split("\n")))
    words = [perfmap, "annotate", "perf.data", "digits", "--symfs", ".", "--source", "-q"]
    os.chdir(root)
    text = re.sub(r"\x1b\[[0-9;]*m", "", on_terminal(words, columns=70)[0].decode())
    rows = [row for row in text.split("\n") if "//" in row]
    assert rows and all(len(row) == 70 and row.endswith("é…") for row in rows), text


def main():
    perfmap = os.path.realpath(sys.argv[1])
    source_lines_fit(perfmap)
    os.chdir(tempfile.mkdtemp())
    line = b"1000 10 " + NAME + b"\n"
    with open("a.map", "wb") as out:
        out.write(line)
    with open("b.map", "wb") as out:
        out.write(b"2000 10 other\n")
    with open("a.json", "wb") as out:
        out.write(subprocess.run([perfmap, "to-json", "a.map"], stdout=subprocess.PIPE).stdout)
    for words, stdin in [
            ("merge a.map b.map --keep", b""), ("lint a.map --diff", b""), ("lint a.map", b""),
            ("lint a.map --format gcc", b""), ("from-json a.json", b""), ("tidy a.map", b""),
            ("convert a.map --to perf-map", b""), ("resolve 1008 --map a.map", b""),
            ("resolve --perf-script --map a.map", SCRIPT), ("diff a.map b.map", b""),
            ("info a.map --by name", b""), ("to-json a.map", b""),
            ("to-json a.map --to jsonl", b""), ("resolve 1008 -m a.map --format json", b"")]:
        text, _ = on_terminal([perfmap, *words.split()], stdin)
        # Only our own colours are allowed, no other control sequences.
        for own in (b"\x1b[1;", b"\x1b[1m", b"\x1b[0m"):
            text = text.replace(own, b"")
        assert text, words
        assert not any(byte < 0x20 and byte not in b"\n\t" for byte in text), (words, text)
        assert b"\x7f" not in text and "\x9b" not in text.decode("utf-8"), (words, text)
        assert SHOWN in text or "json" in words or "gcc" in words, (words, text)
    # Output to a pipe is unchanged.
    kept = subprocess.run([perfmap, "merge", "--keep", "a.map", "b.map"], stdout=subprocess.PIPE)
    assert kept.stdout == line + b"2000 10 other\n", kept.stdout
    streamed = subprocess.Popen([perfmap, "to-json", "-", "--to", "jsonl"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for number in range(1, 4):  # each entry is printed before the next one is written
        streamed.stdin.write(b"%x000 10 entry_%d\n" % (number, number))
        streamed.stdin.flush()
        entry = json.loads(streamed.stdout.readline())
        assert entry["name"] == f"entry_{number}" and entry["line"] == number, entry
    streamed.stdin.close()
    assert streamed.wait() == 0


main()
