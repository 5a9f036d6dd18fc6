# SPDX-License-Identifier: MIT
"""Compares the lists of docs/design.md, "Five operations, file by file", with the files that execute.

check_operations.py BUILD PROGRAM RESOLVE RESOLVE_AT RUNTIME: a build with line tables (-g1) of the libraries, and in
it the program and three examples. Each operation runs once; a
source file of ours whose code executes must be in its list, or in the first list, of what they all
share; and every file of a list must execute. A header may stand in for its .cpp file, and the other way
round: they are read together. The number of .cpp files of a list, and of headers without one, must not
exceed the limit that stands beside the operation here.
"""
import os
import pathlib
import re
import shutil
import sys
import tempfile

from executed_files import executed_files

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# The folder of each public header.
OWNERS = eval(re.search(r"^OWNERS = (\{.*?^\})", (ROOT / "scripts/check_layers.py").read_text(), re.M | re.S)[1])
LIMITS = {  # files to read
    "An address becomes a printed answer": 12,
    "A line of a map becomes a part of the index": 8,
    "A record of a jitdump becomes an answer at a time": 10,
    "A sample of perf becomes a folded line": 30,
    "perfmap_state_write_entry() becomes a write(2)": 8,
}
SHARED = "What all of them share"
MAP = "1000 20 first\n1020 20 second\n3000 10 third\n"


def lists_of_design():
    """{title: [set of paths of an item]}, in the order of the page."""
    text = (ROOT / "docs/design.md").read_text()
    section = re.search(r"^## Five operations, file by file$(.*?)^## ", text, re.M | re.S)[1]
    found = {}
    for part in re.split(r"^### ", section, flags=re.M)[1:]:
        title, body = part.split("\n", 1)
        items = re.split(r"^(?:\d+\.|\*) ", body, flags=re.M)[1:]
        found[title] = [path for item in items for path in re.findall(r"`((?:lib|apps)/[^`]+)`", item)]
    return found


def stem(path):
    """The same for a header and its .cpp file, which are read together."""
    if path.startswith("lib/include/"):
        name = path.removeprefix("lib/include/perfmap/").removesuffix(".hpp")
        library = "profile" if name.startswith("profile/") else "core"
        folders = [folder for folder, headers in OWNERS.items() if name in headers]
        sources = [f"lib/{library}/{folder}/{pathlib.Path(name).name}" for folder in folders]
        sources += [str(found.relative_to(ROOT))[:-4] for found in ROOT.glob(f"lib/{library}/*/{pathlib.Path(name).name}.cpp")]
        path = next((f"{source}.cpp" for source in sources if (ROOT / f"{source}.cpp").exists()), path)
    return path.rsplit(".", 1)[0]


def bad_lists(lists, limits):
    """What the page alone shows, without a run."""
    bad = [f"docs/design.md has no list '{title}'" for title in (*limits, SHARED) if not lists.get(title)]
    bad += [f"docs/design.md: there is no {path}" for paths in lists.values() for path in paths
            if not (ROOT / path).is_file()]
    return bad + [f"{title}: {len(lists[title])} files to read, at most {limit} wanted"
                  for title, limit in limits.items() if len(lists.get(title, ())) > limit]


def operations(program, resolve, resolve_at, runtime, scratch):
    map_file = f"{scratch}/perf-42.map"
    pathlib.Path(map_file).write_text(MAP)
    dump = str(ROOT / "tests/wild/node/jit-683-samples.dump")
    recording = str(ROOT / "tests/wild/tally/perf.data")
    return {
        "An address becomes a printed answer": [program, "resolve", "1028", "--map", map_file],
        "A line of a map becomes a part of the index": [resolve, map_file, "1028"],
        "A record of a jitdump becomes an answer at a time": [resolve_at, dump, *at_of(dump)],
        "A sample of perf becomes a folded line":
            [program, "stacks", recording, "--symfs", str(ROOT / "tests/wild/tally"), "--format", "folded"],
        "perfmap_state_write_entry() becomes a write(2)": [runtime],
    }


def at_of(dump):
    """The address and the time of the first LOAD of a dump, in the forms that the example takes."""
    data = pathlib.Path(dump).read_bytes()
    at = int.from_bytes(data[8:12], "little")
    while int.from_bytes(data[at:at + 4], "little") != 0:
        at += int.from_bytes(data[at + 4:at + 8], "little")
    time = int.from_bytes(data[at + 8:at + 16], "little")
    address = int.from_bytes(data[at + 32:at + 40], "little")
    return f"{address + 1:x}", str(time + 1)


def check(build, programs):
    lists = lists_of_design()
    shared = {stem(path) for path in lists[SHARED]}
    bad, used = bad_lists(lists, LIMITS), set()
    libraries = [str(path) for path in pathlib.Path(build).glob("lib/**/*.so")]
    with tempfile.TemporaryDirectory() as scratch:
        for title, command in operations(*programs, scratch).items():
            files, status, pid = executed_files(command, [command[0], *libraries], ROOT)
            pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)  # of examples/runtime.c
            files = {path for path in files if path.startswith(("lib/", "apps/"))}
            if status != 0:
                bad.append(f"{title}: exit status {status}")
            executed = {stem(path) for path in files}
            listed = [stem(path) for path in lists.get(title, ())]
            used |= executed & shared
            bad += [f"{title}: executes {path}, which its list does not have"
                    for path in sorted(files) if stem(path) not in shared and stem(path) not in listed]
            bad += [f"{title}: lists {path}, which does not execute" for path in listed if path not in executed]
            print(f"{title}: {len(listed)} files (at most {LIMITS[title]}); {len(executed & shared)} shared ones execute, too")
    bad += [f"{SHARED}: {path} does not execute" for path in sorted(shared - used)]
    print("\n".join(bad))
    return 1 if bad else 0


def main():
    if len(sys.argv) == 1:
        bad = bad_lists(lists_of_design(), LIMITS)
        print("\n".join(bad) or "the lists name files of the tree, and are short")
        return 1 if bad else 0
    if shutil.which("llvm-dwarfdump-16") is None or os.uname().machine != "x86_64":
        print("skipped: it needs llvm-dwarfdump-16 and x86-64")
        return 77
    try:
        return check(sys.argv[1], sys.argv[2:])
    except PermissionError as error:
        print(f"skipped: programs cannot be traced here: {error}")
        return 77


sys.exit(main())
