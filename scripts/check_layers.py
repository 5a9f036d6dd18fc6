#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reports files of lib/ and apps/ with includes that their layer must not use: check_layers.py
[DIR...]

The rules are those of docs/design.md. A file of lib/core includes from its own folder and from
folders to its left, and the same holds for lib/profile. lib/base and lib/writer, which need libc
alone, are below both, and see only the public headers of "format". A public header has an owner, and including
it counts as including that folder. The second library sees only public headers of the first, and so
do apps/ and capi/. Some third-party libraries may be used in one folder only.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORE = ["format", "base", "io", "runtimes", "map", "jitdump", "resolve", "writer", "lint", "pypylog", "report", "capi"]
PROFILE = ["elf", "archive", "dwarf", "module", "process", "unwind", "perfdata", "stacks", "report",
           "inject", "annotate", "doctor", "source", "record", "capi"]
LIBC_ALONE = ("lib/base/", "lib/writer/")  # but for what lib/base has for both shared libraries
WITH_LIBSTDCXX = ("lib/base/c_border.hpp", "lib/base/found_file.hpp", "lib/base/hex_bytes.hpp",
                  "lib/base/html.hpp", "lib/base/lazy.hpp", "lib/base/parallel.hpp",
                  "lib/base/typed_name.hpp")
OWNERS = {  # folder: its public headers, below perfmap/ (core) or perfmap/profile/ (profile)
    "format": ["address", "jit_format", "writer_options"],
    "base": ["types", "diagnostic", "text"],
    "io": ["input", "output_file", "jit_paths", "process_rights"],
    "runtimes": ["runtimes"],
    "map": ["map", "index", "merge", "info", "image_list"],
    "jitdump": ["jitdump", "timeline"],
    "resolve": ["resolver"],
    "writer": ["writer"],
    "lint": ["lint"],
    "pypylog": ["pypylog"],
    "report": ["json", "report", "profile/report", "profile/report_comparison",
               "profile/stack_comparison"],
    "elf": ["profile/module"],
    "archive": ["profile/archive"],
    "dwarf": ["profile/debug_index"],
    "process": ["profile/" + name for name in
                ("process", "process_tracker", "symbolizer", "process_watch", "snapshot", "garbage")],
    "unwind": ["profile/unwinder"],
    "perfdata": ["profile/recording"],
    "stacks": ["profile/stacks", "profile/stack_writer", "profile/merged_stacks"],
    "inject": ["profile/inject"],
    "annotate": ["profile/annotate"],
    "doctor": ["profile/doctor"],
    "source": ["profile/source"],
    "record": ["profile/record"],
}
OWNER = {f"perfmap/{name}.hpp": folder for folder, names in OWNERS.items() for name in names}
DOORS = [  # what is included: the only place, or places, that may include it
    (re.compile(r"^nlohmann/"), "lib/core/report/"),
    (re.compile(r"^dwarf\.h"), ("lib/profile/dwarf/", "lib/profile/inject/")),
    (re.compile(r"^(elfutils/|gelf\.h|libelf\.h)"), "lib/profile/inject/"),
    (re.compile(r"^lzma\.h"), ("lib/profile/elf/", "lib/profile/module/module.cpp")),
    (re.compile(r"^zlib\.h"), ("lib/profile/elf/", "lib/profile/stacks/gzip_stream.cpp")),
    (re.compile(r"^libiberty/"), "lib/profile/elf/"),
    (re.compile(r"^zstd\.h"), ("lib/profile/elf/", "lib/profile/archive/archive_writer.cpp")),
    (re.compile(r"^protozero/"), "lib/profile/stacks/"),
    (re.compile(r"^(Zydis|capstone)/"), "lib/profile/annotate/disassembler.cpp"),
    (re.compile(r"^CLI/"), "apps/perfmap/command_line.cpp"),
]
STD_OF_LIBSTDCXX = re.compile(r"^(string|vector|map|unordered_map|memory|functional|thread|mutex|deque|iostream|"
                              r"filesystem|tl/.*)$")
# The only files that may catch exceptions; docs/design.md has the reasons.
CATCHERS = ("lib/base/c_border.hpp", "lib/base/parallel.hpp", "lib/core/report/json_fields.cpp",
            "apps/perfmap/main.cpp", "apps/perfmap/command_line.cpp")
CATCH = re.compile(r"\bcatch \(")
# What a runtime does is a member of its row in lib/core/runtimes: other code does not ask which one it is.
RUNTIMES = ("lib/core/runtimes/", "lib/include/perfmap/runtimes.hpp")
COMMENT = re.compile(r"//.*")
BRANCH = re.compile(r"\bRuntime::(?!unknown\b)\w+")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)


def complaint(path, included):
    """Why `path` (relative to the root) must not include this, or None."""
    for pattern, place in DOORS:
        if pattern.match(included) and not path.startswith(place):
            places = place if isinstance(place, str) else " and ".join(place)
            return f"only {places} may include {included}"
    if path.startswith(LIBC_ALONE) and path not in WITH_LIBSTDCXX:
        return complaint_of_libc_alone(included)
    if ".." in included.split("/"):
        return f"{included} does not name its folder"
    if included.startswith("perfmap/") and included.endswith(".hpp") and included not in OWNER:
        return f"{included} has no owner in {pathlib.Path(__file__).name}"
    is_public = included in OWNER
    folder = OWNER.get(included) or (included.split("/")[0] if "/" in included else "")
    if folder not in CORE + PROFILE:
        return None
    own, folders = place_of(path)
    if folder == "base" and (ROOT / "lib" / included).exists():
        return None  # in both libraries
    if folder == "writer" and (ROOT / "lib" / included).exists():
        return None if path.startswith("lib/core/") else f"{included} belongs to the first library"
    if own is None:
        return None if is_public else f"{included} is not public"
    if own not in folders:
        return f"{own} is no folder of it"
    # Both libraries have a folder "report".
    library = folders if not is_public else PROFILE if "/profile/" in included else CORE
    if library is not folders or folder not in folders:
        if is_public and folders is PROFILE:
            return None
        return f"{included} belongs to the other library"
    if own == "capi" and folder != "capi" and not is_public:
        return f"capi sees public headers only, not {included}"
    if folders.index(folder) > folders.index(own):
        return f"{own} may not include {included} of {folder}, which is to its right"
    return None


def complaint_of_libc_alone(included):
    if STD_OF_LIBSTDCXX.match(included):
        return f"{included} needs libstdc++"
    if included in OWNER:
        return None if OWNER[included] == "format" else f"{included} needs libstdc++"
    if included.endswith(".hpp") and not included.startswith(("base/", "writer/")):
        return f"{included} is not below it"
    return None if included != "perfmap.h" else f"only perfmap_writer.h is below it"


def place_of(path):
    """The folder that a file belongs to, and the folders of its library; (None, None) outside
    both."""
    if path.startswith("lib/base/"):
        return "base", CORE
    if match := re.match(r"lib/(core|profile)/(\w+)/", path):
        return match[2], CORE if match[1] == "core" else PROFILE
    header = path.removeprefix("lib/include/")
    if header in OWNER:
        return OWNER[header], CORE if OWNER[header] in CORE and "/profile/" not in header else PROFILE
    return None, None


def check(paths):
    found = []
    for path in paths:
        name = str(path.resolve().relative_to(ROOT))
        for match in INCLUDE.finditer(path.read_text()):
            why = complaint(name, match[2])
            if why:
                found.append(f"{name}: {why}")
        found += [f"{name}: {why}" for why in complaints_of_text(name, path.read_text())]
    return found


def complaints_of_text(path, text):
    """What the code itself must not do here."""
    code = COMMENT.sub("", text)
    if CATCH.search(code) and path not in CATCHERS:
        yield "only the files in CATCHERS may catch"
    if (branch := BRANCH.search(code)) and not path.startswith(RUNTIMES):
        yield f"{branch[0]}: a member of the runtime's row says what it does"


def self_test():
    assert list(complaints_of_text("lib/core/map/a.cpp", "try {\n} catch (...) {\n}"))
    assert not list(complaints_of_text("apps/perfmap/main.cpp", "try {\n} catch (...) {\n}"))
    assert not list(complaints_of_text("lib/core/map/a.cpp", "// catch (...) Runtime::v8\n"))
    assert list(complaints_of_text("apps/perfmap/a.cpp", "if (one == Runtime::v8) return;"))
    assert not list(complaints_of_text("apps/perfmap/a.cpp", "if (one == Runtime::unknown) return;"))
    assert complaint("lib/core/base/a.cpp", "map/segments.hpp")
    assert complaint("lib/core/base/a.cpp", "../map/segments.hpp")
    assert complaint("lib/core/capi/a.cpp", "base/text.hpp")
    assert complaint("apps/perfmap/a.cpp", "nlohmann/json.hpp")
    assert complaint("apps/perfmap/a.cpp", "map/segments.hpp")
    assert not complaint("lib/core/map/a.cpp", "base/text.hpp")
    assert not complaint("lib/core/report/a.cpp", "nlohmann/json.hpp")
    assert complaint("lib/core/base/a.cpp", "perfmap/map.hpp")
    assert complaint("lib/core/map/a.cpp", "perfmap/profile/stacks.hpp")
    assert complaint("lib/include/perfmap/map.hpp", "perfmap/jitdump.hpp")
    assert complaint("lib/core/map/a.cpp", "perfmap/unheard_of.hpp")
    assert not complaint("lib/core/map/a.cpp", "perfmap/types.hpp")
    assert not complaint("lib/profile/elf/a.cpp", "perfmap/json.hpp")
    assert not complaint("apps/perfmap/a.cpp", "perfmap/profile/stacks.hpp")
    assert complaint("lib/core/capi/a.cpp", "perfmap/profile/report.hpp")
    assert complaint("lib/profile/stacks/a.cpp", "perfmap/profile/report.hpp")
    assert not complaint("lib/profile/report/a.cpp", "stacks/writers.hpp")
    assert complaint("lib/profile/elf/a.cpp", "base/text.hpp")
    assert complaint("lib/cpython/a.cpp", "writer/engines.hpp")
    assert complaint("lib/core/report/a.cpp", "elf/elf_layout.hpp")
    assert complaint("lib/profile/perfdata/a.cpp", "stacks/writers.hpp")
    assert complaint("lib/profile/dwarf/a.cpp", "libelf.h")
    assert complaint("apps/perfmap/a.cpp", "elf/elf_layout.hpp")
    assert not complaint("lib/profile/inject/a.cpp", "libelf.h")
    assert not complaint("lib/profile/unwind/a.cpp", "elf/elf_layout.hpp")
    assert not complaint("lib/profile/elf/a.cpp", "perfmap/text.hpp")
    assert not complaint("lib/core/io/a.cpp", "writer/find_writer.hpp")
    assert complaint("lib/profile/elf/a.cpp", "writer/find_writer.hpp")
    assert complaint("lib/writer/a.cpp", "perfmap/types.hpp")
    assert complaint("lib/writer/a.cpp", "string")
    assert complaint("lib/writer/a.cpp", "io/mapping.hpp")
    assert not complaint("lib/writer/a.cpp", "perfmap/writer_options.hpp")


def main():
    self_test()
    places = [ROOT / place for place in sys.argv[1:]] or [ROOT / "lib", ROOT / "apps"]
    files = [path for place in places for path in sorted(place.rglob("*"))
             if path.suffix in (".hpp", ".cpp", ".h", ".c")]
    found = check(files)
    headers = {str(path.relative_to(ROOT / "lib/include")) for path in (ROOT / "lib/include").rglob("*.hpp")}
    found += [f"{name} has an owner, and is not there" for name in sorted(set(OWNER) - headers)]
    print("\n".join(found) or f"{len(files)} files keep to their layers")
    return 1 if found or not files else 0


sys.exit(main())
