# SPDX-License-Identifier: MIT
"""libperfmap-writer needs libc alone, and is small: check_writer.py SHARED STATIC CC"""
import pathlib
import re
import subprocess
import sys
import tempfile

MAX_TEXT = 160 << 10
MAIN = """
#include <perfmap_writer.h>
#include <stddef.h>
int main(void) { return perfmap_state_write_entry((void*)16, 16, NULL) == -1 ? 0 : 1; }
"""


def run(*command):
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


def main():
    shared, static, compiler, include = sys.argv[1:]
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", shared))
    foreign = [name for name in needed if not re.match(r"(libc\.|ld-|libpthread\.)", name)]
    assert not foreign, foreign
    text = sum(int(row.split()[0]) for row in run("size", shared).splitlines()[1:])
    assert 10_000 < text <= MAX_TEXT, text
    wanted = {line.split()[-1] for line in run("nm", "-u", static).splitlines() if " U " in line}
    defined = {line.split()[-1] for line in run("nm", "--defined-only", static).splitlines() if " " in line}
    cxx = [name for name in wanted - defined if re.match(r"_Z|__cxa_(?!atexit)|_Unwind|__gxx", name)]
    assert not cxx, cxx
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch, "main.c")
        source.write_text(MAIN)
        program = source.with_suffix("")
        run(compiler, "-I", include, source, "-o", program, static)
        run(program)
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", program))
        assert all(re.match(r"libc\.|ld-", name) for name in needed), needed
    print(f"{text} bytes of text, needs {', '.join(needed)}")


main()
