"""C++ blocks in docs/cpp.md, and those of C and C++ in README.md, compile. Together with examples/ they use every public header."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COMPILER = sys.argv[1]
problems = []
used = set()

page = (ROOT / "docs/cpp.md").read_text()
blocks = re.findall(r"^## (.+?)$.*?^```cpp\n(.*?)^```$", page, re.M | re.S)
if not blocks or len(blocks) != page.count("```cpp"):
    problems.append(f"{len(blocks)} sections with a block, {page.count('```cpp')} blocks")
for title, code in blocks:
    used |= set(re.findall(r"#include <(perfmap/[^>]+)>", code))
    result = subprocess.run([COMPILER, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++",
                             "-I", str(ROOT / "lib/include"), "-"], input=code, capture_output=True, text=True)
    if result.returncode != 0:
        problems.append(f"docs/cpp.md, '{title}':\n{result.stderr}")

readme = re.findall(r"^```(c|cpp)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
for language, code in readme:
    flags = ["-std=c++20", "-x", "c++"] if language == "cpp" else ["-std=c11", "-x", "c"]
    result = subprocess.run([COMPILER, *flags, "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                             "-I", str(ROOT / "lib/include"), "-"], input=code, capture_output=True, text=True)
    if result.returncode != 0:
        problems.append(f"README.md, {language}:\n{result.stderr}")
if {language for language, _ in readme} != {"c", "cpp"}:
    problems.append("README.md has no block of C, or none of C++")

for example in sorted((ROOT / "examples").rglob("*.cpp")):
    if "llvm" in example.parts:
        continue  # needs LLVM's headers; live.llvm-host compiles it
    used |= set(re.findall(r"#include <(perfmap/[^>]+)>", example.read_text()))
    result = subprocess.run([COMPILER, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                             "-I", str(ROOT / "lib/include"), str(example)], capture_output=True, text=True)
    if result.returncode != 0:
        problems.append(f"{example.name}:\n{result.stderr}")
headers = {str(path.relative_to(ROOT / "lib/include")) for path in (ROOT / "lib/include").rglob("*.hpp")}
problems += [f"neither docs/cpp.md nor examples/ use {header}" for header in sorted(headers - used)]

print("\n".join(problems) or f"{len(blocks)} blocks compile and use {len(used)} headers")
sys.exit(1 if problems else 0)
