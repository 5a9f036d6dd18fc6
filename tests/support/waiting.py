# SPDX-License-Identifier: MIT
"""Waiting for what a busy machine does late: conditions in place of times, and the state of processes in /proc."""
import contextlib
import os
import pathlib
import resource
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from trying import require

HANG = 200  # seconds, after which something hangs


def until(condition, what="a state that was waited for"):
    """The first true value of the condition. `what` is the state, for the message; may be a function. A state that is not
    reached is tried again: a condition asserts what must hold meanwhile, such as that the process goes on. A command that
    does not end is another thing: subprocess.TimeoutExpired, which fails at once."""
    end = time.monotonic() + HANG
    while not (found := condition()):
        require(time.monotonic() < end, f"{what() if callable(what) else what}: not reached in {HANG} s")
        time.sleep(0.01)
    return found


@contextlib.contextmanager
def running(command, **options):
    """The process, which is killed at the end."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def proc_file(pid, name):
    """A file of the process in /proc; empty if the process has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children_of(pid):
    return [int(child) for child in proc_file(pid, f"task/{pid}/children").split()]


def open_files(pid):
    """The targets of the process's descriptors. It may open and close others meanwhile."""
    found = []
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(link))
        except FileNotFoundError:
            continue
    return found


def processor_time(pid):
    """Seconds that the process has run."""
    fields = proc_file(pid, "stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else 0


def has_pending(pid, signal):
    """Whether the process has not yet taken the signal. A second one would be the same for the kernel."""
    masks = [int(line.split()[1], 16) for line in proc_file(pid, "status").splitlines() if line.startswith(("SigPnd:", "ShdPnd:"))]
    return any(mask >> signal - 1 & 1 for mask in masks)


def tracer_of(pid):
    return next((int(line.split()[1]) for line in proc_file(pid, "status").splitlines() if line.startswith("TracerPid:")), 0)


def costs_at_most(seconds):
    """A preexec_fn: the command is killed when it has used so much processor time, however busy the machine is."""
    return lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
