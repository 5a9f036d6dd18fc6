#!/usr/bin/env python3
"""Says where a file of lib/ or apps/ includes what its layer may not see: check_layers.py [DIR...]

The rules are those of docs/design.md: a file of lib/core includes from its own folder and from
folders to its left, and so does one of lib/profile; of another library, and in apps/ and capi/, only
public headers count; some libraries are known in one folder alone.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORE = ["base", "io", "map", "jitdump", "writer", "runtimes", "answers", "pypylog", "report", "capi"]
PROFILE = ["elf", "dwarf", "module", "perfdata", "process", "unwind", "stacks", "inject",
           "diagnosis", "source", "capi"]
DOORS = [  # what is included, and the only place, or places, that may
    (re.compile(r"^nlohmann/"), "lib/core/report/"),
    (re.compile(r"^(elfutils/|gelf\.h|dwarf\.h|libelf\.h)"),
     ("lib/profile/elf/", "lib/profile/dwarf/", "lib/profile/inject/")),
    (re.compile(r"^lzma\.h"), ("lib/profile/elf/", "lib/profile/module/debug_files.cpp")),
    (re.compile(r"^zlib\.h"), ("lib/profile/elf/", "lib/profile/stacks/gzip_stream.cpp")),
    (re.compile(r"^libiberty/"), "lib/profile/elf/"),
    (re.compile(r"^zstd\.h"), "lib/profile/elf/"),
    (re.compile(r"^protozero/"), "lib/profile/stacks/"),
    (re.compile(r"^CLI/"), "apps/perfmap/command_line.cpp"),
]
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)


def complaint(path, included):
    """Why `path` (relative to the root) may not include this, or nothing."""
    for pattern, place in DOORS:
        if pattern.match(included) and not path.startswith(place):
            places = place if isinstance(place, str) else " and ".join(place)
            return f"only {places} may include {included}"
    if ".." in included.split("/"):
        return f"{included} does not name its folder"
    folder = included.split("/")[0]
    if folder not in CORE + PROFILE or "/" not in included:
        return None
    match = re.match(r"lib/(core|profile)/(\w+)/", path)
    if not match:
        return f"{included} is not public" if path.startswith(("lib/include/", "lib/cpython/", "apps/")) else None
    folders = CORE if match[1] == "core" else PROFILE
    own = match[2]
    if own not in folders:
        return f"{own} is no folder of lib/{match[1]}"
    if folder not in folders:
        return f"lib/{match[1]} sees public headers of the other library only, not {included}"
    if own == "capi" and folder != "capi":
        return f"capi sees public headers only, not {included}"
    if folders.index(folder) > folders.index(own):
        return f"{own} may not include {included}, which is to its right"
    return None


def check(paths):
    found = []
    for path in paths:
        name = str(path.resolve().relative_to(ROOT))
        for match in INCLUDE.finditer(path.read_text()):
            why = complaint(name, match[2])
            if why:
                found.append(f"{name}: {why}")
    return found


def self_test():
    assert complaint("lib/core/base/a.cpp", "map/segments.hpp")
    assert complaint("lib/core/base/a.cpp", "../map/segments.hpp")
    assert complaint("lib/core/capi/a.cpp", "base/text.hpp")
    assert complaint("apps/perfmap/a.cpp", "nlohmann/json.hpp")
    assert complaint("apps/perfmap/a.cpp", "map/segments.hpp")
    assert not complaint("lib/core/map/a.cpp", "base/text.hpp")
    assert not complaint("lib/core/report/a.cpp", "nlohmann/json.hpp")
    assert not complaint("lib/core/base/a.cpp", "perfmap/map.hpp")
    assert complaint("lib/profile/elf/a.cpp", "base/text.hpp")
    assert complaint("lib/cpython/a.cpp", "writer/engine.hpp")
    assert complaint("lib/core/report/a.cpp", "elf/elf_layout.hpp")
    assert complaint("lib/profile/perfdata/a.cpp", "stacks/writers.hpp")
    assert complaint("lib/profile/unwind/a.cpp", "libelf.h")
    assert complaint("apps/perfmap/a.cpp", "elf/elf_layout.hpp")
    assert not complaint("lib/profile/elf/a.cpp", "libelf.h")
    assert not complaint("lib/profile/unwind/a.cpp", "elf/elf_layout.hpp")
    assert not complaint("lib/profile/elf/a.cpp", "perfmap/cursor.hpp")


def main():
    self_test()
    places = [ROOT / place for place in sys.argv[1:]] or [ROOT / "lib", ROOT / "apps"]
    files = [path for place in places for path in sorted(place.rglob("*"))
             if path.suffix in (".hpp", ".cpp", ".h", ".c")]
    found = check(files)
    print("\n".join(found) or f"{len(files)} files keep to their layers")
    return 1 if found or not files else 0


sys.exit(main())
