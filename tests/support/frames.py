# SPDX-License-Identifier: MIT
"""Common to tests of source lines: addresses of a program, and the frames that tools print for
them."""
import random
import subprocess


def run(command, text=""):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def text_section(program):
    """Address and size of .text."""
    for line in run(["readelf", "-SW", program]).splitlines():
        words = line.replace("[ ", "[").split()
        if len(words) > 5 and words[1] == ".text":
            return int(words[3], 16), int(words[5], 16)
    raise SystemExit(f"{program} has no .text")


def random_addresses(program, count, seed=1):
    begin, size = text_section(program)
    pick = random.Random(seed)
    return sorted({begin + pick.randrange(size) for _ in range(count)})


def answers(command, addresses):
    """For each address: [(function, "file:line:column")], innermost first."""
    text = run(command, "".join(f"{address:#x}\n" for address in addresses))
    found = {}
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        found[int(lines[0], 16)] = list(zip(lines[1::2], lines[2::2]))
    return found


def llvm_answers(program, addresses):
    # llvm 14 has no other option to print addresses and undecorated names together.
    return answers(["llvm-symbolizer", "--no-demangle", "--addresses", "--inlines",
                    f"--obj={program}"], addresses)
