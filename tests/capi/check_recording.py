"""The stacks that a program in C gets of a recording are those of `perfmap stacks`:
check_recording.py PERFMAP USE_RECORDING RECORDING SYMFS"""
import collections
import pathlib
import shutil
import subprocess
import sys
import tempfile

perfmap, use_recording, recording, symfs = sys.argv[1:5]


def stacks(*options):
    return subprocess.run([perfmap, "stacks", recording, "--symfs", symfs, *options], check=True,
                          capture_output=True).stdout


with tempfile.TemporaryDirectory() as work:
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
