"""Progress messages of long work on a terminal: progress.py PERFMAP"""
import os
import pathlib
import pty
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from pseudo_terminal import read_to_end

WIPED = "\r\x1b[K"


def shown(perfmap, *options, term="xterm", wait=1.2):
    """What `tidy -` prints to a terminal while its input is slow."""
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [perfmap, *options, "tidy", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=follower, env={"TERM": term})
    os.close(follower)
    time.sleep(wait)
    out, _ = child.communicate(b"1000 10 foo\nbad\n")
    text = read_to_end(leader)
    assert child.returncode == 0 and out == b"1000 10 foo\n", (child.returncode, out)
    return text.decode()


def main():
    perfmap = os.path.realpath(sys.argv[1])
    note = "perfmap: skipped 1 malformed line (run 'perfmap lint' for details)\r\n"
    text = shown(perfmap)
    drawn = re.findall(r"\rperfmap: reading standard input, (\d\.\d) s\x1b\[K", text)
    assert drawn and float(drawn[0]) >= 0.5, text
    assert text.endswith(WIPED + note), text
    # At most ten times per second, starting after half a second.
    assert len(drawn) <= 10 * (float(drawn[-1]) - 0.5) + 2, drawn
    for quiet in shown(perfmap, wait=0), shown(perfmap, term="dumb"):
        assert quiet == note, quiet
    assert shown(perfmap, "-q") == ""
    steps = shown(perfmap, "-v", wait=0).split("\r\n")
    for step, line in zip(["reading standard input", "indexing", "writing"], steps):
        assert re.fullmatch(f"perfmap: {step}: \\d+\\.\\d{{3}} s", line), steps


main()
