# SPDX-License-Identifier: MIT
"""The tables of layouts say what a C compiler says about every member of every struct in the
headers: check_layouts.py CC PRINT_LAYOUTS INCLUDE"""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import c_header

compiler, print_layouts, include = sys.argv[1:4]
HEADERS = c_header.CORE + c_header.PROFILE
KIND_OF = {"i": 1, "u": 2, "p": 3}


def kind_of(declaration):
    return 4 if declaration.endswith("]") else KIND_OF[c_header.kind(declaration)[0]]


def program(structs):
    lines = ["#include <stdio.h>", *(f"#include <{name}>" for name in HEADERS), "int main(void) {"]
    for struct, members in structs.items():
        lines.append(f'printf("{struct} - 0 %zu 0\\n", sizeof({struct}));')
        for member, declaration in members:
            lines.append(f'printf("{struct} {member} %zu %zu {kind_of(declaration)}\\n", offsetof({struct}, '
                         f'{member}), sizeof((({struct}*)0)->{member}));')
    return "\n".join([*lines, "return 0;", "}"])


structs = c_header.structs(c_header.text_of(include, HEADERS))
assert len(structs) > 20, sorted(structs)
with tempfile.TemporaryDirectory() as work:
    source = pathlib.Path(work, "layouts.c")
    source.write_text(program(structs))
    subprocess.run([compiler, "-std=c99", "-I", include, source, "-o", f"{work}/layouts"], check=True)
    expected = subprocess.run([f"{work}/layouts"], check=True, text=True, capture_output=True).stdout.splitlines()
found = subprocess.run([print_layouts], check=True, text=True, capture_output=True).stdout.splitlines()
assert len(set(found)) == len(found)
for line in sorted(set(found) ^ set(expected)):
    print("only the library:" if line in found else "only the compiler:", line)
assert sorted(found) == sorted(expected)
print(f"{len(found)} rows about {len(structs)} structs")
