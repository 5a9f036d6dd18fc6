# SPDX-License-Identifier: MIT
"""Progress messages of long work on a terminal: progress.py PERFMAP"""
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from pseudo_terminal import read_to_end
from waiting import proc_file, until

WIPED = "\r\x1b[K"
READING = re.compile(r"\rperfmap: reading standard input, (\d+\.\d) s\x1b\[K")


def shown_until(leader, is_enough):
    """What the terminal shows until the condition is true of it."""
    text = b""

    def read():
        nonlocal text
        if select.select([leader], [], [], 0)[0]:
            text += os.read(leader, 65536)
        return is_enough(text.decode())

    until(read, lambda: text)
    return text.decode()


def shown(perfmap, *options, term="xterm", lines=0, wait=0):
    """What `tidy -` prints to a terminal. Its input comes when it has drawn so many lines, and after so many seconds."""
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [perfmap, *options, "tidy", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=follower, env={"TERM": term})
    os.close(follower)
    text = shown_until(leader, lambda text: len(READING.findall(text)) >= lines)
    time.sleep(wait)
    out, _ = child.communicate(b"1000 10 foo\nbad\n")
    text += read_to_end(leader).decode()
    assert child.returncode == 0 and out == b"1000 10 foo\n", (child.returncode, out)
    return text


def without_late_lines(text):
    """The text without what is drawn of a step that takes half a second, as reading nothing does on a busy machine."""
    assert all(float(time) >= 0.5 for time in READING.findall(text)), text
    return READING.sub("", text).replace(WIPED, "")


def on_terminal(arguments, meanwhile):
    """What `arguments` print to a terminal while meanwhile(child, leader) runs, which returns what it has read of that,
    and their status."""
    leader, follower = pty.openpty()
    child = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                             stderr=follower, env={"TERM": "xterm"})
    os.close(follower)
    text = meanwhile(child, leader)
    status = child.wait()
    child.stdin.close()
    return text + read_to_end(leader).decode(), status


def pause_in_the_middle(child, size):
    """Stops the process for a while when it has read half of `size` bytes. Returns whether it had then not read much more."""
    def has_read():
        return int(re.match(r"rchar: (\d+)", proc_file(child.pid, "io") or f"rchar: {size}")[1])

    while has_read() < size / 2:
        pass
    child.send_signal(signal.SIGSTOP)
    until(lambda: re.search(r"State:\t[TZ]", proc_file(child.pid, "status")))
    in_time = has_read() < 0.7 * size
    time.sleep(0.8)
    child.send_signal(signal.SIGCONT)
    return in_time


def check_share(perfmap):
    """A step whose size is known has its share and the time left."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "big.log")
        with log.open("w") as out:
            for begin in range(0x1000000, 0x9000000, 1 << 17):
                out.write("".join(f"[{time:x}] {{jit-backend\n[{time + 5:x}] jit-backend}}\n"
                                  for time in range(begin, begin + (1 << 17), 64)))
        size = log.stat().st_size
        in_time = False

        def pause(child, _):
            nonlocal in_time
            in_time = pause_in_the_middle(child, size)
            return ""

        while not in_time:  # on a busy machine, it may have read all
            text, status = on_terminal([perfmap, "pypylog", str(log)], pause)
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
    def interrupt(child, leader):
        text = shown_until(leader, READING.search)
        child.send_signal(signal.SIGINT)
        return text

    text, status = on_terminal([perfmap, "tidy", "-"], interrupt)
    assert status == -signal.SIGINT, status
    assert "reading standard input" in text and text.endswith(WIPED), text


def main():
    perfmap = os.path.realpath(sys.argv[1])
    note = "perfmap: skipped 1 malformed line (run 'perfmap lint' for details)\r\n"
    text = shown(perfmap, lines=5)
    drawn = READING.findall(text)
    assert drawn and float(drawn[0]) >= 0.5, text
    assert text.endswith(WIPED + note), text
    # At most ten times per second, starting after half a second.
    assert len(drawn) <= 10 * (float(drawn[-1]) - 0.5) + 2, drawn
    assert without_late_lines(shown(perfmap)) == note
    assert shown(perfmap, term="dumb", wait=1.2) == note
    assert shown(perfmap, "-q", wait=1.2) == ""
    steps = without_late_lines(shown(perfmap, "-v")).split("\r\n")
    for step, line in zip(["reading standard input", "indexing -", "writing standard output"], steps):
        assert re.fullmatch(f"perfmap: {step}: \\d+\\.\\d{{3}} s", line), steps
    check_share(perfmap)
    check_interrupt(perfmap)


main()
