#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Source lines of compressed and packaged debug information: lines_packed.py PRINT_FRAMES

The results for random addresses of a generated program (tests/support/make_program.py) do not
change if objcopy(1) compresses its sections with zstd, or if a package replaces its .dwo files: from
dwp(1) for DWARF 4, from llvm-dwp(1) for DWARF 5, both with type units, which the reader ignores
(dwarf/dwarf_file.hpp). For packages, the places of the whole inlined chain are also compared with
llvm-symbolizer's: they are equal for 99.5 % of the addresses.

Parts whose tools (objcopy with zstd, dwp, clang, llvm-dwp) are not installed are skipped; exit
status 77 if all are.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import frames  # noqa: E402

COUNT = 2000
MAKER = pathlib.Path(__file__).parent.parent / "support/make_program.py"
print_frames = os.path.abspath(sys.argv[1])


def make(place, *flags, compiler="g++"):
    subprocess.run([sys.executable, MAKER, place, "1", *flags], check=True,
                   env={**os.environ, "CXX": compiler})
    return frames.random_addresses(f"{place}/program", COUNT)


def check_equal(what, one, other):
    different = [address for address in one if one[address] != other[address]]
    for address in different[:3]:
        print(f"{what}: {address:#x}:\n  {one[address]}\n  {other[address]}")
    assert not different, f"{what}: {len(different)} of {len(one)} addresses differ"
    named = sum(chain[0][0] != "??" for chain in one.values())
    assert named * 10 >= len(one) * 9, f"{what}: only {named} of {len(one)} have a function"
    print(f"{what}: {len(one)} addresses, {named} of them with a function, are equal")


def check_llvm(what, program, ours):
    if not shutil.which("llvm-symbolizer"):
        return
    theirs = frames.llvm_answers(program, ours)
    other = [address for address in ours
             if [place for _, place in ours[address]] != [place for _, place in theirs[address]]
             and not all(place.endswith(":0:0") for _, place in ours[address])]
    print(f"{what}: {len(other)} of {len(ours)} places are other ones than llvm-symbolizer's")
    assert len(other) * 200 <= len(ours), [(ours[at], theirs[at]) for at in other[:3]]


def check_zstd(scratch):
    addresses = make(scratch, "-O2", "-g")
    packed = subprocess.run(["objcopy", "--compress-debug-sections=zstd", f"{scratch}/program",
                             f"{scratch}/packed"], capture_output=True, text=True)
    if packed.returncode != 0:
        print("skipped in part: objcopy knows no zstd here")
        return False
    plain = frames.answers([print_frames, f"{scratch}/program"], addresses)
    check_equal("zstd", plain, frames.answers([print_frames, f"{scratch}/packed"], addresses))
    return True


def check_package(scratch, dwp, *flags, compiler="g++"):
    missing = [tool for tool in (dwp, compiler) if not shutil.which(tool)]
    if missing:
        print(f"skipped in part: no {missing[0]} here")
        return False
    addresses = make(scratch, "-O2", "-g", "-gsplit-dwarf", *flags, compiler=compiler)
    program, package = f"{scratch}/program", f"{scratch}/program.dwp"
    split = frames.answers([print_frames, program, "--split"], addresses)
    # The .dwo files are in the directory of the linked file.
    subprocess.run([dwp, "-e", "program", "-o", "program.dwp"], cwd=scratch, check=True, timeout=120)
    for path in pathlib.Path(scratch).glob("*.dwo"):
        path.unlink()
    packed = frames.answers([print_frames, program, "--split", "--package", package], addresses)
    check_equal(f"{dwp} {flags}", split, packed)
    check_llvm(f"{dwp} {flags}", program, packed)
    return True


clang = next(filter(shutil.which, ("clang++", "clang++-16", "clang++-14")), "clang++")
with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two, \
        tempfile.TemporaryDirectory() as three:
    done = [check_zstd(one),
            check_package(two, "dwp", "-gdwarf-4", "-fdebug-types-section"),
            check_package(three, "llvm-dwp", "-gdwarf-5", "-fdebug-types-section", compiler=clang)]
sys.exit(0 if any(done) else 77)
