# SPDX-License-Identifier: MIT
"""The stacks that a program in C gets of a recording are those of `perfmap stacks`:
check_recording.py PERFMAP USE_RECORDING RECORDING SYMFS NODE

NODE: a directory with a recording of Node.js, perf-603.data, and its perf map."""
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

perfmap, use_recording, recording, symfs, node = sys.argv[1:6]


def stacks(*options):
    return subprocess.run([perfmap, "stacks", recording, "--symfs", symfs, *options], check=True,
                          capture_output=True).stdout


def check_directory(directory, recorded, description, files):
    """A recording directory alone leads to its maps and to its copies of ELF files."""
    directory.mkdir()
    shutil.copy(recorded, directory / "perf.data")
    for name, original in files.items():
        shutil.copy(original, directory / name)
    (directory / "recording.json").write_text(json.dumps({"schema": "perfmap.recording/1", **description}))
    folded = directory.with_suffix(".folded")
    subprocess.run([use_recording, directory, folded], check=True)
    expected = subprocess.run([perfmap, "stacks", directory], check=True, capture_output=True).stdout
    assert folded.read_bytes() == expected, (folded.read_bytes()[:2000], expected[:2000])
    return expected.decode()


def build_id_of(elf):
    notes = subprocess.run(["readelf", "-n", elf], check=True, capture_output=True, text=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


with tempfile.TemporaryDirectory() as work:
    shapes = pathlib.Path(symfs, "tmp/tiny/shapes")
    copied = {"path": "elf-" + build_id_of(shapes), "source": "/tmp/tiny/shapes", "build_id": build_id_of(shapes),
              "size": shapes.stat().st_size}
    text = check_directory(pathlib.Path(work, "copies"), recording, {"files": [], "modules": [copied]},
                           {copied["path"]: shapes})
    assert ";run;recursive;" in text, text
    listed = {"kind": "map", "path": "perf-603.map", "source": "/tmp/perf-603.map", "pid": 603,
              "size": pathlib.Path(node, "perf-603.map").stat().st_size}
    text = check_directory(pathlib.Path(work, "maps"), pathlib.Path(node, "perf-603.data"), {"files": [listed]},
                           {"perf-603.map": pathlib.Path(node, "perf-603.map")})
    assert re.search(r"JS:\*?\w+", text), text[:2000]
    folded, script = pathlib.Path(work, "folded"), pathlib.Path(work, "script")
    # A copy, because the program tries to overwrite it.
    copied = shutil.copy(recording, work)
    out = subprocess.run([use_recording, copied, symfs, folded, script], check=True, cwd=work,
                         capture_output=True).stdout
    lines, written = out.split(b"\n-\n")
    lines = lines.splitlines()
    expected = stacks()
    assert written == expected, written
    assert pathlib.Path(copied).read_bytes() == pathlib.Path(recording).read_bytes()
    counted = collections.Counter(lines)
    assert b"".join(b"%s %d\n" % row for row in sorted(counted.items())) == expected, lines
    assert folded.read_bytes() == expected
    assert script.read_bytes() == stacks("--addresses", "--format", "perf-script")
print(f"{len(lines)} stacks, {len(counted)} distinct")
