# SPDX-License-Identifier: MIT
"""C++ blocks in docs/cpp.md, and those of C in docs/writing.md, compile. Together with examples/ they use every public
header. Public headers compile on their own: check_snippets.py COMPILER"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INCLUDES = ROOT / "lib/include"
HEADERS = {str(path.relative_to(INCLUDES)) for path in INCLUDES.rglob("*.hpp")}
CPP, C = ["-std=c++20", "-x", "c++"], ["-std=c11", "-x", "c"]
problems = []
used = set()
alone = set()  # headers that were the first of a translation unit


def check(title, code, language=CPP):
    """Compiles the code. One of its headers comes first, so that it is compiled on its own, too."""
    own = [name for name in re.findall(r"#include <(perfmap/[^>]+)>", code) if name in HEADERS]
    used.update(own)
    first = next((name for name in own if name not in alone), None)
    alone.add(first)
    before = ["-include", INCLUDES / first] if first else []
    result = subprocess.run([sys.argv[1], *language, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", INCLUDES,
                             *before, "-"], input=code, capture_output=True, text=True)
    if result.returncode != 0:
        problems.append(f"{title}:\n{result.stderr}")


page = (ROOT / "docs/cpp.md").read_text()
blocks = re.findall(r"^## (.+?)$.*?^```cpp\n(.*?)^```$", page, re.M | re.S)
if not blocks or len(blocks) != page.count("```cpp"):
    problems.append(f"{len(blocks)} sections with a block, {page.count('```cpp')} blocks")
for title, code in blocks:
    check(f"docs/cpp.md, '{title}'", code)

c_blocks = re.findall(r"^```c\n(.*?)^```$", (ROOT / "docs/writing.md").read_text(), re.M | re.S)
for code in c_blocks:
    check("docs/writing.md", code, C)
if not c_blocks:
    problems.append("docs/writing.md has no block of C")

for example in sorted((ROOT / "examples").rglob("*.cpp")):
    if "llvm" not in example.parts:  # needs LLVM's headers; live.llvm-host compiles it
        check(example.name, example.read_text())
problems += [f"neither docs/cpp.md nor examples/ use {header}" for header in sorted(HEADERS - used)]

for header in sorted(HEADERS - alone):
    check(f"{header} on its own", f"#include <{header}>\n")

print("\n".join(problems) or f"{len(blocks) + len(c_blocks)} blocks compile and use {len(used)} headers")
sys.exit(1 if problems else 0)
