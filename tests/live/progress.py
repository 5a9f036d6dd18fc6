# SPDX-License-Identifier: MIT
"""Progress messages of long work on a terminal: progress.py PERFMAP"""
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import tempfile
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


def on_terminal(arguments, meanwhile):
    """What `arguments` print to a terminal while meanwhile(child) runs, and their status."""
    leader, follower = pty.openpty()
    child = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                             stderr=follower, env={"TERM": "xterm"})
    os.close(follower)
    meanwhile(child)
    status = child.wait()
    child.stdin.close()
    return read_to_end(leader).decode(), status


def pause_in_the_middle(child, size):
    """Stops the process for a while when it has read half of `size` bytes."""
    io = pathlib.Path(f"/proc/{child.pid}/io")
    while child.poll() is None and int(re.match(r"rchar: (\d+)", io.read_text())[1]) < size / 2:
        pass
    child.send_signal(signal.SIGSTOP)
    time.sleep(0.8)
    child.send_signal(signal.SIGCONT)


def check_share(perfmap):
    """A step whose size is known has its share and the time left."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "big.log")
        with log.open("w") as out:
            for begin in range(0x1000000, 0x9000000, 1 << 17):
                out.write("".join(f"[{time:x}] {{jit-backend\n[{time + 5:x}] jit-backend}}\n"
                                  for time in range(begin, begin + (1 << 17), 64)))
        size = log.stat().st_size
        text, status = on_terminal([perfmap, "pypylog", str(log)],
                                   lambda child: pause_in_the_middle(child, size))
    shares = re.findall(r"\rperfmap: reading (\S+), (\d+) %, (\d+\.\d) s(, \d+ s left)?\x1b\[K", text)
    assert status == 0 and shares, (status, text[:500])
    assert all(name == str(log) for name, *_ in shares), shares
    percents = [int(percent) for _, percent, *_ in shares]
    # Half was read before the pause, so the line after it has more. On a slow machine, lines before
    # the pause have less.
    assert percents == sorted(percents) and 40 <= percents[-1] <= 100, percents
    assert all(left for _, percent, _, left in shares), shares


def check_interrupt(perfmap):
    """Ctrl-C wipes the line, and ends the program as if there were no handler."""
    def interrupt(child):
        time.sleep(1.2)
        child.send_signal(signal.SIGINT)

    text, status = on_terminal([perfmap, "tidy", "-"], interrupt)
    assert status == -signal.SIGINT, status
    assert "reading standard input" in text and text.endswith(WIPED), text


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
    for step, line in zip(["reading standard input", "indexing -", "writing standard output"], steps):
        assert re.fullmatch(f"perfmap: {step}: \\d+\\.\\d{{3}} s", line), steps
    check_share(perfmap)
    check_interrupt(perfmap)


main()
