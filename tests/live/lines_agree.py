#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares source lines with those of llvm-symbolizer: lines_agree.py PRINT_FRAMES [PROGRAM]

Takes random addresses of a generated program (tests/support/make_program.py), or of PROGRAM. For
99.5 % of them, names and places of the whole inlined chain are equal. Exceptions:

* The file of code without lines, such as the C runtime's: llvm-symbolizer prints the file in the
  symbol table (crtstuff.c); DWARF has none, so we print none.
* The outermost name is not compared: llvm-symbolizer uses the symbol's, but DWARF has no clones
  (.cold, .isra.0), one constructor for C1, C2 and C4, or no linkage name.

Results do not depend on the number of threads, nor on the memory limit of the index. Exit status
77: llvm-symbolizer is not installed.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import frames  # noqa: E402

COUNT = 3000


def places(chain):
    return [place for _, place in chain]


def is_without_line(chain):
    return all(place.endswith(":0:0") for _, place in chain)


def agrees(ours, theirs):
    if places(ours) != places(theirs):
        return False
    return [name for name, _ in ours[:-1]] == [name for name, _ in theirs[:-1]]


def compare(print_frames, program):
    addresses = frames.random_addresses(program, COUNT)
    ours = frames.answers([print_frames, program], addresses)
    theirs = frames.llvm_answers(program, addresses)
    other = [address for address in addresses if not agrees(ours[address], theirs[address])]
    unexplained = [address for address in other
                   if not (is_without_line(ours[address]) and is_without_line(theirs[address]))]
    for address in unexplained[:5]:
        print(f"{address:#x}:\n  {ours[address]}\n  {theirs[address]}")
    print(f"{program}: {len(addresses)} addresses, {len(other)} differ, {len(unexplained)} of them "
          "have a line")
    return len(unexplained) * 200 <= len(addresses)


def is_invariant(print_frames, program):
    text = "".join(f"{address:#x}\n" for address in frames.random_addresses(program, 300, seed=2))
    plain = frames.run([print_frames, program], text)
    ways = (["--threads", "2"], ["--threads", "8"], ["--one-by-one"],
            ["--one-by-one", "--bytes", "3000000"])
    unequal = [way for way in ways if frames.run([print_frames, program, *way], text) != plain]
    if unequal:
        print(f"{program}: other answers with {unequal}")
    return not unequal


def main():
    if not shutil.which("llvm-symbolizer"):
        print("skipped: no llvm-symbolizer here")
        return 77
    if len(sys.argv) > 2:
        return 0 if compare(*sys.argv[1:3]) and is_invariant(*sys.argv[1:3]) else 1
    good = True
    maker = pathlib.Path(__file__).parent.parent / "support/make_program.py"
    with tempfile.TemporaryDirectory() as scratch:
        for units, flags in (("4", ["-O2", "-g"]), ("1", ["-O0", "-g", "-gdwarf-4"])):
            subprocess.run([sys.executable, maker, scratch, units, *flags], check=True)
            program = f"{scratch}/program"
            good = compare(sys.argv[1], program) and is_invariant(sys.argv[1], program) and good
    return 0 if good else 1


sys.exit(main())
