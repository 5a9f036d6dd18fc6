#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the tree: house.py [BUILD]   (BUILD: a build directory whose binaries are measured, too)

Prints one line per figure of how hard lib and apps are to understand: the numbers of files,
translation units, lines and public headers, internal headers that at most two files include, and
the amount of machine code.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = (".cpp", ".hpp", ".def", ".c", ".h")
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)
BINARIES = ("lib/libperfmap.so", "lib/profile/libperfmap-profile.so", "apps/perfmap/perfmap")


def files_of(*folders):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in SOURCES)


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
        for name in INCLUDE.findall(path.read_text()):
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
    lengths = sorted(path.read_text().count("\n") for path in files)
    print(f"source files            {len(files)}")
    print(f"translation units       {len(files) - len(headers)}")
    print(f"lines                   {sum(lengths)} (median of a file: {lengths[len(lengths) // 2]})")
    print(f"public C++ headers      {len([path for path in public if path.suffix == '.hpp'])}")
    print(f"internal headers        {len(internal)}, of which {len(few)} have at most two users:")
    for path in few:
        print(f"    {path.relative_to(ROOT)}")
    if len(sys.argv) > 1:
        build = pathlib.Path(sys.argv[1])
        sizes = [text_size(build / name) for name in BINARIES]
        print(f"machine code            {sum(sizes) / 1e6:.2f} MB (.text of {', '.join(map(str, BINARIES))})")


main()
