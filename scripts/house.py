#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the tree: house.py [--check] [BUILD]   (BUILD: a build directory whose binaries are measured, too)

Prints one line per figure of how hard lib and apps are to understand: the numbers of files,
translation units, lines and public headers, internal headers that at most two files include, functions
that are longer than a screen, and the amount of machine code. With --check, the exit status is 1 if the code
is larger than its budget, or a function longer than its limit.
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = (".cpp", ".hpp", ".def", ".c", ".h")
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)
MAX_CODE_LINES = 80_723  # of lib and apps. A change that adds lines removes others first; lower it with each removal.
MAX_FUNCTION_LINES = 50
BINARIES = ("lib/libperfmap.so", "lib/profile/libperfmap-profile.so", "apps/perfmap/perfmap")


def files_of(*folders):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in SOURCES)


def text_of(path):
    return path.read_text(errors="replace")


def code_lines(text):
    """The number of lines that are neither blank nor only a comment."""
    count, in_comment = 0, False
    for line in map(str.strip, text.splitlines()):
        if in_comment:
            in_comment = "*/" not in line
        elif line.startswith("/*"):
            in_comment = "*/" not in line
        elif line and not line.startswith("//"):
            count += 1
    return count


def long_functions(files):
    """(lines, name, place) of each that is longer than the limit; None without Universal Ctags."""
    if not shutil.which("ctags") or "Universal Ctags" not in subprocess.run(["ctags", "--version"], capture_output=True,
                                                                            text=True).stdout:
        return None
    tags = subprocess.run(["ctags", "-L", "-", "-f", "-", "--fields=+ne", "--c++-kinds=f"], text=True, errors="replace",
                          input="\n".join(map(str, files)), capture_output=True, check=True).stdout
    found = []
    for line in tags.splitlines():
        name, path, *rest = line.split("\t")
        fields = dict(word.split(":", 1) for word in rest if word.startswith(("line:", "end:")))
        length = int(fields.get("end", 0)) - int(fields.get("line", 0)) + 1
        if length > MAX_FUNCTION_LINES:
            found.append((length, name, f"{pathlib.Path(path).relative_to(ROOT)}:{fields['line']}"))
    return sorted(found, reverse=True)


def spelled(header):
    """The spelling in an #include."""
    name = str(header.relative_to(ROOT))
    for root in ("lib/include/", "lib/core/", "lib/profile/", "lib/", "apps/perfmap/"):
        if name.startswith(root):
            return name[len(root):]
    return name


def users(paths):
    """{spelling: files that include it}"""
    found = {}
    for path in paths:
        for name in INCLUDE.findall(text_of(path)):
            found.setdefault(name, set()).add(path)
    return found


def text_size(binary):
    """The size of its .text."""
    listed = subprocess.run(["readelf", "-SW", binary], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"\.text\s+PROGBITS\s+\w+ \w+ (\w+)", listed)[1], 16)


def main():
    files = files_of("lib", "apps")
    headers = [path for path in files if path.suffix in (".hpp", ".def", ".h")]
    public = [path for path in headers if path.is_relative_to(ROOT / "lib/include/perfmap")]
    internal = [path for path in headers if not path.is_relative_to(ROOT / "lib/include")]
    # Tests may include internals, so users are counted there, too.
    included_by = users(files + files_of("tests"))
    few = [path for path in internal if len(included_by.get(spelled(path), ())) <= 2]
    lengths = sorted(text_of(path).count("\n") for path in files)
    code = sum(code_lines(text_of(path)) for path in files)
    functions = long_functions(files)
    print(f"source files            {len(files)}")
    print(f"translation units       {len(files) - len(headers)}")
    print(f"lines                   {sum(lengths)} (median of a file: {lengths[len(lengths) // 2]})")
    print(f"public C++ headers      {len([path for path in public if path.suffix == '.hpp'])}")
    print(f"internal headers        {len(internal)}, of which {len(few)} have at most two users:")
    for path in few:
        print(f"    {path.relative_to(ROOT)}")
    print(f"code lines              {code} (at most {MAX_CODE_LINES})")
    if functions is None:
        print("long functions          not measured: no Universal Ctags")
    else:
        print(f"long functions          {len(functions)} of more than {MAX_FUNCTION_LINES} lines")
        for length, name, place in functions:
            print(f"    {place} {name}: {length} lines")
    builds = [word for word in sys.argv[1:] if word != "--check"]
    if builds:
        build = pathlib.Path(builds[0])
        sizes = [text_size(build / name) for name in BINARIES]
        print(f"machine code            {sum(sizes) / 1e6:.2f} MB (.text of {', '.join(map(str, BINARIES))})")
    too_large = code > MAX_CODE_LINES or bool(functions)
    if "--check" in sys.argv and too_large:
        print("lib and apps have too much code, or too long functions: see above")
        return 1
    return 0


sys.exit(main())
