#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares symbols of real ELF files with readelf and addr2line:
module_symbols.py SYMBOLS_OF FILE...

The first address of each function must have a name that readelf prints for it, and random addresses
the symbol that a linear search finds.
"""
import collections
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

DEBUG = "/usr/lib/debug"
Symbol = collections.namedtuple("Symbol", "begin size name")


def output(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, errors="surrogateescape",
                          env={**os.environ, "LC_ALL": "C"}).stdout


def code_of(path):
    """Executable sections as (address, size)."""
    pattern = re.compile(r"\s*\[\s*\d+\]\s+\S+\s+\S+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)\s+\S+\s+(\w*)")
    found = [pattern.match(line) for line in output("readelf", "-SW", path).splitlines()]
    return [(int(m[1], 16), int(m[2], 16)) for m in found if m and "X" in m[3]]


def symbols_of(path, code):
    """Functions and labels in code, by address."""
    symbols = []
    for line in output("readelf", "-sW", path).splitlines():
        word = line.split()
        if len(word) < 8 or word[3] not in ("FUNC", "IFUNC", "NOTYPE") or word[6] in ("UND", "ABS"):
            continue
        begin, size, name = int(word[1], 16), int(word[2], 0), word[7].split("@")[0]
        room = max((b + s - begin for b, s in code if b <= begin < b + s), default=0)
        if room and not name.startswith((".L", "$")):
            symbols.append(Symbol(begin, min(size, room), name))
    return sorted(symbols)


def debug_file(path):
    found = re.search(r"Build ID: ([0-9a-f]+)", output("readelf", "-nW", path))
    name = found and f"{DEBUG}/.build-id/{found[1][:2]}/{found[1][2:]}.debug"
    return name if name and os.path.exists(name) else None


def ask(program, path, debug, addresses):
    text = output(program, path, debug, text="".join(f"{a:x}\n" for a in addresses))
    answers = [line.split(" ", 3) for line in text.splitlines()]
    assert [int(a[0], 16) for a in answers] == list(addresses), f"{path}: answers are missing"
    return [Symbol(int(a[1], 16), int(a[2], 16), a[3].split("@")[0]) if len(a) > 1 else None
            for a in answers]


def owner(sized, address):
    """The highest begin of the symbols that cover the address."""
    return max((s.begin for s in sized if s.begin <= address < s.begin + s.size), default=None)


def check(program, path, debug):
    code = code_of(path)
    symbols = symbols_of(path, code)
    if debug != "/nonexistent":
        symbols = sorted(symbols + symbols_of(debug_file(path), code))
    names = collections.defaultdict(set)
    for symbol in symbols:
        names[symbol.begin].add(symbol.name)
    sized = [s for s in symbols if s.size]
    wrong = []
    begins = sorted(names)
    for address, answer in zip(begins, ask(program, path, debug, begins)):
        here = [s for s in symbols if s.begin == address]
        covered = not any(s.size for s in here) and owner(sized, address) is not None
        if answer is None or (answer.name not in names[answer.begin]) or \
           (not covered and answer.begin != address):
            wrong.append((f"{address:x}", answer, names[address]))
    random.seed(7)
    inside = [b + random.randrange(s) for b, s in code for _ in range(min(s, 300))]
    answers = ask(program, path, debug, inside)
    for address, answer in zip(inside, answers):
        expected = owner(sized, address)
        if expected is not None and (answer is None or answer.begin != expected):
            wrong.append((f"{address:x}", answer, f"{expected:x}"))
        if answer and not answer.begin <= address < answer.begin + answer.size:
            wrong.append((f"{address:x}", answer))
    assert not wrong, f"{path}: {len(wrong)} wrong: {wrong[:5]}"
    return len(begins), agreement(path, debug, names, inside, answers) if names else (0, 0)


def agreement(path, debug, names, addresses, answers):
    """How many of our results are also addr2line's, for files without debug information."""
    if debug != "/nonexistent" or debug_file(path) or ".debug_info" in output("readelf", "-SW", path):
        return 0, 0
    ours = [(a, s) for a, s in zip(addresses, answers) if s and not s.name.endswith("@plt")]
    lines = output("addr2line", "-f", "-e", path, *(hex(a) for a, _ in ours)).splitlines()[::2]
    known = [(theirs.split("@")[0], s) for theirs, (_, s) in zip(lines, ours) if theirs != "??"]
    return sum(theirs in names[s.begin] for theirs, s in known), len(known)


def without_section_headers(program, path):
    """Without section headers, dynamic symbols are found by the dynamic segment."""
    dynamic = {(int(word[1], 16), word[7].split("@")[0])
               for word in map(str.split, output("readelf", "--dyn-syms", "-W", path).splitlines())
               if len(word) > 7 and word[3] == "FUNC" and word[6] not in ("UND", "ABS") and int(word[2], 0)}
    with open(path, "rb") as file:
        bytes_ = bytearray(file.read())
    if bytes_[4:6] != b"\x02\x01":
        return
    bytes_[0x28:0x30] = bytes(8)  # e_shoff
    bytes_[0x3c:0x40] = bytes(4)  # e_shnum, e_shstrndx
    with tempfile.NamedTemporaryFile(suffix=".so") as stripped:
        stripped.write(bytes_)
        stripped.flush()
        begins = sorted({begin for begin, _ in dynamic})
        answers = ask(program, stripped.name, "/nonexistent", begins)
    wrong = [(f"{b:x}", a) for b, a in zip(begins, answers) if a is None or (b, a.name) not in dynamic]
    assert begins and not wrong, f"{path} without section headers: {len(wrong)} of {len(begins)} wrong: {wrong[:5]}"
    print(f"{path}: {len(begins)} dynamic symbols without section headers")


def main():
    program, *files = sys.argv[1:]
    if not shutil.which("readelf") or not shutil.which("addr2line"):
        print("skipped: no readelf or no addr2line here")
        return 77
    for pattern in ("/lib*/ld-linux*.so.*", "/lib/*/libc.so.6", "/usr/lib/*/libstdc++.so.6",
                    "/usr/bin/python3", "/bin/bash"):
        files += sorted(glob.glob(pattern))[:1]
    same = all_of_them = 0
    for path in files:
        path = os.path.realpath(path)
        count, (agreed, asked) = check(program, path, "/nonexistent")
        print(f"{path}: {count} symbols, addr2line agrees on {agreed} of {asked}")
        if "libc.so" in path or "libstdc++" in path:
            without_section_headers(program, path)
        same, all_of_them = same + agreed, all_of_them + asked
        if debug_file(path):
            print(f"{path}: {check(program, path, DEBUG)[0]} symbols with its debug file")
    assert same >= 0.98 * all_of_them, "addr2line disagrees"
    return 0


sys.exit(main())
