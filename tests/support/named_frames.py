# SPDX-License-Identifier: MIT
"""Compares the frames of a recording that have names: in perf script, and in perfmap stacks."""
import re
import subprocess
import sys

from chance import is_at_most
from trying import require_samples


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command, **more):
    made = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, **more)
    assert made.returncode == 0, (command, made.returncode, made.stdout[-2000:], made.stderr[-2000:])
    return made.stdout


def without_doubt(line):
    """The line of a frame without the mark of doubtful frames."""
    return re.sub(r"\t\(\?[a-z,-]*\)$", "", line)


def frames(text):
    """Frames by (tid, microseconds), each as (address, name or None, file), from perf script's text
    or ours."""
    found = {}
    stack = None
    for line in text.splitlines():
        if not line.strip():
            stack = None
        elif stack is None:
            at = re.search(r"(?:^|\s|/)(\d+)\s+(?:\[\d+\]\s+)?(\d+)\.(\d{6})\d*:", line)
            stack = found.setdefault((int(at[1]), int(at[2]), int(at[3])), [])
        else:
            address, name = without_doubt(line).split(None, 1)
            name, module = re.match(r"(.*) (\([^()]*(?:\([^()]*\)[^()]*)*\))$", name).groups()
            stack.append((int(address, 16), None if name.startswith("[unknown]") else name, module))
    return found


def without_offset(name):
    return re.sub(r"\+0x[0-9a-f]+$", "", name)


def is_data(name):
    """With `perf record -d`, perf names addresses of data, to which wrong frame pointers lead."""
    return name.startswith(("typeinfo ", "vtable ", "VTT ", "guard variable "))


def compare(perfmap, what, data, least, *options, theirs=None, wanted=""):
    """Fails if a frame that perf names has no name in our output. `least`: the minimum number of
    frames that perf names. `wanted`: a regular expression for the names that count."""
    script = ["perf", "script", "-f", "--no-inline", "-i", theirs or data, "-F", "tid,time,ip,sym,dso"]
    perf = frames(run(*script))
    ours = frames(run(perfmap, "stacks", data, "--format", "perf-script", *options))
    compiled = {name for stack in perf.values() for _, name, module in stack if name and
                re.search(r"/perf-\d+\.map|/jitted-", module)}
    named = spurious = 0
    missing = []
    for key, stack in perf.items():
        own = ours.get(key, [])
        known = {address: name for address, name, _ in own if name is not None}
        unmapped = {address for address, _, module in own if module == "([unknown])"}
        for address, name, _ in stack:
            if name is None or not re.match(wanted, name) or is_data(name):
                continue
            named += 1
            # A wrong frame pointer may lead to an unmapped address, for which perf uses a library
            # by its file layout.
            if address in unmapped and name not in compiled:
                spurious += 1
                continue
            # For files that perf inject makes, perf prints addresses within the file.
            if address not in known and without_offset(name) not in map(without_offset, known.values()):
                missing.append((key, hex(address), name))
    total = sum(len(stack) for stack in ours.values())
    have = sum(name is not None for stack in ours.values() for _, name, _ in stack)
    print(f"{what}: perf names {named} of {sum(map(len, perf.values()))} frames; here {have} of {total} have names, "
          f"{len(missing)} of perf's are missing")
    for key, address, name in missing[:10]:
        print(key, address, name, "perf:", perf[key], "here:", ours.get(key))
    assert not missing, missing[:10]
    assert is_at_most(spurious, named, 0.001), (what, spurious)
    require_samples(named, least, f"{what}: frames that perf names")
    return ours
