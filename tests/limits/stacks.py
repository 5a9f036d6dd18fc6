# SPDX-License-Identifier: MIT
"""stacks.py MEASURED PERFMAP TRACKER [--time]: what recordings with many changes of memory and many
processes cost `perfmap stacks`, `perfmap doctor` and the tracker of the C interface. Also, that
files that are missing are one line of warnings."""
import functools
import pathlib
import subprocess
import sys
import tempfile

from growth import INPUT, MAX_EXPONENT, WHAT, Growth, arguments, grown

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.perf_data import ANONYMOUS, PerfData

PAGE = 0x1000
BASE = 0x100000


def turns(data, count, name):
    """A mapping, a sample in it, and so on."""
    data.comm(7, b"c")
    for i in range(count):
        data.mmap(7, BASE + i * PAGE, PAGE, name(i), i)
        data.sample(7, BASE + i * PAGE, [BASE])


def memory(data, count):
    turns(data, count, lambda i: ANONYMOUS)


def missing_files(data, count):
    turns(data, count, lambda i: b"/nonexistent/f%d" % i)


def one_missing_file(data, count):
    turns(data, count, lambda i: b"/nonexistent/f")


def rights(data, count):
    """A runtime that takes the right to execute from a page while it writes there."""
    data.comm(7, b"c")
    for i in range(count // 2):
        data.mmap(7, BASE + i * PAGE, PAGE, ANONYMOUS, protection=3)
        data.mmap(7, BASE + i * PAGE, PAGE, ANONYMOUS)
        data.sample(7, BASE + i * PAGE, [BASE])


def overlaps(data, count):
    """Each mapping is in the middle of the one before."""
    data.comm(7, b"c")
    for i in range(count):
        data.mmap(7, BASE + i * PAGE, (2 * count - 2 * i) * PAGE, ANONYMOUS if i % 2 else b"/nonexistent/f")
        data.sample(7, BASE + i * PAGE)


def fork_chain(data, count):
    """Each process maps memory, is sampled and forks the next."""
    data.comm(7, b"c")
    for i in range(count):
        pid = 7 + i
        data.mmap(pid, BASE + i * PAGE, PAGE, ANONYMOUS)
        data.sample(pid, BASE + i * PAGE, [BASE])
        data.fork(pid + 1, pid)


def fork_fan(data, count):
    """One process maps memory and forks, each child maps memory and is sampled."""
    data.comm(7, b"c")
    for i in range(count):
        pid = 8 + i
        data.mmap(7, BASE + i * PAGE, PAGE, ANONYMOUS)
        data.fork(pid, 7)
        data.mmap(pid, BASE // 2, PAGE, ANONYMOUS)
        data.sample(pid, BASE + i * PAGE, [BASE])


def fork_fan_of_missing_files(data, count):
    """The same with a missing file for each mapping of the parent, which all children have."""
    data.comm(7, b"c")
    for i in range(count):
        pid = 8 + i
        data.mmap(7, BASE + i * PAGE, PAGE, b"/nonexistent/f%d" % i, i)
        data.fork(pid, 7)
        data.sample(pid, BASE + i * PAGE, [BASE])


def comm_storm(data, count):
    """Threads with names of their own, which change."""
    data.mmap(7, BASE, PAGE, ANONYMOUS)
    for i in range(count):
        data.comm(7, b"thread%d" % i, tid=8 + i // 2)
        data.sample(7, BASE)


def exec_storm(data, count):
    """A pid with a new name and program again and again, and the same in its child."""
    for i in range(count):
        data.comm(7, b"comm%d" % i)
        data.comm(7, b"exec%d" % i, is_exec=True)
        data.mmap(7, BASE + i * PAGE, PAGE, ANONYMOUS)
        data.sample(7, BASE + i * PAGE)


def exec_of_large(data, count):
    """Programs that have much memory, and are replaced before they map any."""
    data.comm(7, b"c")
    for i in range(count):
        data.mmap(7, BASE + i * PAGE, PAGE, ANONYMOUS)
    for i in range(count):
        data.fork(8 + i, 7)
        data.comm(8 + i, b"exec%d" % i, is_exec=True)
        data.sample(8 + i, BASE + i * PAGE)


SHAPES = {"memory": (memory, 500), "missing files": (missing_files, 400),
          "one missing file": (one_missing_file, 400), "rights": (rights, 500), "overlaps": (overlaps, 400),
          "fork chain": (fork_chain, 300), "fork fan": (fork_fan, 250),
          "fork fan of missing files": (fork_fan_of_missing_files, 250),
          "comm storm": (comm_storm, 400), "exec storm": (exec_storm, 300),
          "exec of large programs": (exec_of_large, 250)}


@functools.lru_cache(maxsize=None)  # several commands read the same
def recording(shape, count):
    data = PerfData()
    shape(data, count)
    return data.to_bytes()


class Events(PerfData):
    """The same as lines for the tracker: a letter and its numbers; a sample is a query."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def _line(self, *words):
        self.time += 1
        self.lines.append(" ".join(map(str, words)))

    def comm(self, pid, name, tid=None, is_exec=False):
        self._line("e" if is_exec else "c", pid, name.decode())

    def fork(self, pid, parent):
        self._line("f", pid, parent)

    def mmap(self, pid, begin, size, name, inode=0, protection=5, offset=0):
        self._line("m", pid, begin, size, protection, name.decode())

    def sample(self, pid, address, chain=()):
        self._line("s", pid, address)

    def to_bytes(self):
        return ("\n".join(self.lines) + "\n").encode()


def events(shape, count):
    data = Events()
    shape(data, count)
    return data.to_bytes()


def check_warnings(perfmap, growth):
    """4000 missing files are one line, and with --verbose 4000."""
    count = 4000
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place, "perf.data")
        path.write_bytes(recording(missing_files, count))
        for command in ("stacks", "doctor"):
            for options, wanted, line in (
                    ([], 1, "4000 files cannot be read: /nonexistent/f0 (No such file or directory), and 3999 "
                            "more (--verbose names them)"),
                    (["--verbose"], count, "cannot open /nonexistent/f3999: No such file or directory")):
                done = subprocess.run([perfmap, command, *options, path], capture_output=True, text=True)
                lines = [one for one in done.stderr.splitlines() if "/nonexistent/" in one]
                if len(lines) != wanted or f"perfmap: warning: {line}" not in lines:
                    growth.failures.append(f"{command} {options}: {len(lines)} lines of missing files: {lines[:2]}")


def main():
    measured, perfmap, tracker = arguments()
    growth = Growth(measured)
    if WHAT == "memory":
        check_warnings(perfmap, growth)
    # The tracker alone is fast, and with many processes its memory leaves the processor's caches between 1x and 16x.
    subjects = (("stacks", [perfmap, "stacks", "--threads", "1", INPUT], recording, 1, MAX_EXPONENT),
                ("doctor", [perfmap, "doctor", INPUT], recording, 1, MAX_EXPONENT),
                ("tracker", [tracker, INPUT], events, 2, 1.35))
    growth.run_all((f"{subject}, {title}", command, grown(functools.partial(written, shape), times * count), max_cpu)
                   for subject, command, written, times, max_cpu in subjects
                   for title, (shape, count) in SHAPES.items())
    sys.exit(growth.finish())


if __name__ == "__main__":
    main()
