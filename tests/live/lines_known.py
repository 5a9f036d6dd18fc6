#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks print_frames where the correct result is known: lines_known.py PRINT_FRAMES

A program of two units has labels in inlined code; the line of each is known from the source. The
result must be the same for all compilers, versions of DWARF, and ways to store it.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import frames  # noqa: E402

SOURCE = """\
extern volatile int sink;
namespace place_LABEL {
inline __attribute__((always_inline)) int innermost(int x) {
  asm volatile(".globl LABEL_deep\\nLABEL_deep: nop");  // line 4
  sink = x;
  return x + 1;
}
inline __attribute__((always_inline)) int middle(int x) {
  return innermost(x) * 2;  // line 9
}
__attribute__((noinline)) int outer(int x) {
  asm volatile(".globl LABEL_flat\\nLABEL_flat: nop");  // line 12
  return middle(x) + 3;  // line 13
}
}
extern "C" __attribute__((noinline)) int plain_LABEL(int x) {
  asm volatile(".globl LABEL_plain\\nLABEL_plain: nop");  // line 17
  return place_LABEL::outer(x);
}
extern "C" int unused_LABEL(int x) { return x / 7; }
"""
MAIN = """\
volatile int sink;
extern "C" int plain_one(int x);
extern "C" int plain_two(int x);
int main(int count, char**) { return plain_one(count) + plain_two(count); }
"""


def expected(label):
    inner, middle, outer = (f"_ZN{len(label) + 6}place_{label}{len(name)}{name}Ei"
                            for name in ("innermost", "middle", "outer"))
    return {f"{label}_deep": [(inner, 4), (middle, 9), (outer, 13)],
            f"{label}_flat": [(outer, 12)],
            f"{label}_plain": [(f"plain_{label}", 17)]}


def build(place, compiler, flags):
    for label in ("one", "two"):
        (place / f"{label}.cpp").write_text(SOURCE.replace("LABEL", label))
    (place / "main.cpp").write_text(MAIN)
    for name in ("one", "two", "main"):
        subprocess.run([compiler, *(flag for flag in flags if not flag.startswith("-Wl,")), "-c",
                        f"{name}.cpp", "-o", f"{name}.o"], cwd=place, check=True)
    subprocess.run([compiler, *flags, "one.o", "two.o", "main.o", "-o", "program"], cwd=place,
                   check=True)


def symbols(program):
    lines = map(str.split, frames.run(["nm", program]).splitlines())
    return {words[2]: int(words[0], 16) for words in lines if len(words) == 3}


def check(command, program, where):
    """Errors in the output of `command` for the labels of the program."""
    at = symbols(program)
    wanted = {name: chain for label in ("one", "two") for name, chain in expected(label).items()}
    given = frames.answers(command, [at[name] for name in wanted])
    complaints = []
    for name, chain in wanted.items():
        source = str(where / f"{name.split('_')[0]}.cpp")
        lines = [(function, f"{source}:{line}") for function, line in chain]
        got = [(function, place.rpartition(":")[0]) for function, place in given[at[name]]]
        if got != lines:
            complaints.append(f"{name}: {got} and not {lines}")
    return complaints


def forms():
    for compiler in ("g++", "clang++"):
        if not shutil.which(compiler):
            print(f"skipped in part: no {compiler} here")
            continue
        for version in ("-gdwarf-4", "-gdwarf-5"):
            for more in ("-O2", "-O0", "-O2 -gsplit-dwarf", "-O2 -gz",
                         "-O2 -ffunction-sections -Wl,--gc-sections", "-O2 -flto"):
                if "-flto" in more and (compiler, version) != ("g++", "-gdwarf-5"):
                    continue
                yield compiler, ["-g", version, *more.split()]
    yield "g++", ["-g", "-O2", "-gz=zlib-gnu"]
    yield "g++", ["-g", "-O2", "-gdwarf64"]
    yield "g++", ["-g", "-O2", "-gdwarf-3", "-gstrict-dwarf"]
    if shutil.which("clang++") and shutil.which("ld.lld"):
        yield "clang++", ["-g", "-O2", "-fuse-ld=lld", "-Wno-unused-command-line-argument"]


def check_dwz(place, print_frames):
    """Two programs whose common DIEs dwz has moved to a third file."""
    build(place, "g++", ["-g", "-O2", "-gdwarf-4"])
    shutil.copy(place / "program", place / "other")
    subprocess.run(["dwz", "-m", "common", "program", "other"], cwd=place, check=True)
    return check([print_frames, str(place / "program"), "--alternate", str(place / "common")],
                 str(place / "program"), place)


def main():
    print_frames = sys.argv[1]
    complaints, count = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for compiler, flags in forms():
            place = pathlib.Path(scratch) / str(count)
            place.mkdir()
            build(place, compiler, flags)
            program = str(place / "program")
            found = check([print_frames, program, "--split"], program, place)
            found += check([print_frames, program, "--split", "--one-by-one"], program, place)
            complaints += [f"{compiler} {' '.join(flags)}: {text}" for text in found]
            count += 1
        if shutil.which("dwz"):
            place = pathlib.Path(scratch) / "dwz"
            place.mkdir()
            complaints += [f"dwz: {text}" for text in check_dwz(place, print_frames)]
        else:
            print("skipped in part: no dwz here")
    print("\n".join(complaints) or f"{count} ways to build")
    return 1 if complaints or count < 8 else 0


os.environ["LC_ALL"] = "C"
sys.exit(main())
