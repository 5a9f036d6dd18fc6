# SPDX-License-Identifier: MIT
"""Compares `perfmap annotate` with `perf annotate --stdio` of the injected recording of a Node.js
process and of a C++ program, and checks it without Zydis: annotate.py PERFMAP

Exit status 77: perf or objdump is not installed.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support import recorded  # noqa: E402
from support.trying import require_samples  # noqa: E402

perfmap = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NODE = ROOT / "tests/wild/node"
TALLY = ROOT / "tests/wild/tally"
RECORDED = b"/tmp/corpus-work/out/node/"  # the directory of the dump in the recording
IN_NODE = ("Builtin:", "BytecodeHandler:")  # named by the file of node, if that has symbols for them


def run(*command, status=0, **more):
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, **more)
    assert result.returncode == status, (command, result.returncode, result.stdout[-2000:], result.stderr[-2000:])
    return result.stdout, result.stderr


def place_of_dump(work):
    """A directory with a path as long as the recorded one, so that records keep their sizes."""
    room = len(RECORDED) - 1 - len(work) - 1
    assert room > 0, work
    place = pathlib.Path(work) / ("d" * room)
    place.mkdir()
    return place


def by_perf(recording, module):
    """{function: [{offset: samples}]} of a file, one for each version with samples, by `perf annotate --stdio -n`. Its
    exit status is not 0 for symbols of a kernel that is not here."""
    text = subprocess.run(["perf", "annotate", "--stdio", "-n", "-i", recording], capture_output=True, text=True,
                          errors="replace", timeout=300, env=os.environ | {"HOME": os.getcwd()}).stdout
    found = collections.defaultdict(list)
    for part in re.split(r"(?m)^ Samples \|", text)[1:]:
        if not re.search(f"Disassembly of {module} for", part.splitlines()[0]):
            continue
        head = re.search(r"(?m)^[ \d.:]* ([0-9a-f]{16}) <(.*)>:$", part)
        begin = int(head[1], 16)
        counts = {}
        for count, address in re.findall(r"(?m)^ +(\d+) : +(?:\d+ +)?([0-9a-f]+): ", part):
            if int(count):
                counts[int(address, 16) - begin] = int(count)
        if not head[2].startswith(IN_NODE):
            found[head[2]].append(counts)
    return found


def by_perfmap(recording, function, file):
    """The same for one function, of files with such a name: several may have one with its name, such as in their PLT."""
    text, _ = run(perfmap, "annotate", recording, function, "--any-owner", "--asm", "--format", "json")
    versions = json.loads(text)["versions"]
    assert all(version["name"] == function and not version["no_code"] for version in versions), text[:500]
    return [{one["offset"]: one["self"] for one in version["instructions"] if one["self"]} for version in versions
            if version["self"] and re.search(file, version["module"])]


def compare_with_perf(work):
    place = place_of_dump(work)
    shutil.copy(NODE / "jit-683-samples.dump", place / "jit-683.dump")
    data = (NODE / "perf-683.data").read_bytes()
    assert RECORDED in data
    pathlib.Path("perf.data").write_bytes(data.replace(RECORDED, f"{place}/".encode()))
    run("perf", "inject", "--jit", "-i", "perf.data", "-o", "injected.data", env=os.environ | {"HOME": work})
    compare(by_perf("injected.data", r"jitted-\d+-\d+\.so"), "perf.data", r"jit-683\.dump$", least=100)


def compare(theirs, recording, file, least):
    samples = 0
    for function, versions in theirs.items():
        ours = by_perfmap(recording, function, file)
        key = lambda counts: sorted(counts.items())  # noqa: E731
        assert sorted(ours, key=key) == sorted(versions, key=key), (function, ours, versions)
        samples += sum(sum(version.values()) for version in versions)
    require_samples(samples, least, recording)
    print(f"{len(theirs)} functions of {recording} have their {samples} samples where perf annotate has them")


def compare_native(work):
    try:
        program = recorded.compile_program(work, "tree", ["-O2", "-g"])
        recorded.record("tree.data", [program])
    except recorded.CannotRecord as why:
        print(f"skipped in part: {why}")
        return
    theirs = by_perf("tree.data", "tree")
    compare(theirs, "tree.data", "/tree$", least=10)
    hottest = max(theirs, key=lambda name: sum(theirs[name][0].values()))
    shown, said = run(perfmap, "annotate", "tree.data", hottest, "--source")
    assert re.search(r"(?m)^ +[\d.]+% .*\| +\d+ +\S", shown), (shown, said)


def check_without_zydis(work):
    """The library cannot be loaded: a file without its contents comes first."""
    pathlib.Path(work, "lib").mkdir()
    for version in ("4.0", "4.1", "5.0"):
        pathlib.Path(work, f"lib/libZydis.so.{version}").write_text("no library\n" * 100)
    words = [perfmap, "annotate", TALLY / "perf.data", "digits", "--symfs", TALLY]
    env = os.environ | {"LD_LIBRARY_PATH": f"{work}/lib"}
    for option in ("--asm", "--both"):
        out, err = run(*words, option, status=2, env=env)
        assert out == "" and re.search(r"error: cannot load libZydis\.so\.[\d.]+: is libzydis[\d.]+ installed", err), err
    out, err = run(*words, env=env)
    assert "warning: instructions have no text: cannot load libZydis" in err, err
    assert re.search(r"(?m)^  43\.8%       7       7 \|      3b  -$", out), out
    assert run(*words, "--source", env=env)[0] == run(*words, "--source")[0]
    run(perfmap, "--version", env=env)


with tempfile.TemporaryDirectory(prefix="a", dir="/tmp") as work:
    os.chdir(work)
    check_without_zydis(work)
    missing = [tool for tool in ("perf", "objdump") if not shutil.which(tool)]
    if missing:
        print(f"skipped: no {missing[0]} here")
        sys.exit(77)
    compare_with_perf(work)
    compare_native(work)
