# SPDX-License-Identifier: MIT
"""How tests run perf record: without its list of BPF programs, for which it waits up to a second at its end."""
import pathlib
import sys

PERF_RECORD = ["perf", "record", "-q", "--no-bpf-event"]


def used(seconds):
    """The command for `perf record -p PID`: it ends when the process has used so many seconds of processor time."""
    return [sys.executable, "-B", str(pathlib.Path(__file__).resolve().parent / "recorded_time.py"), str(seconds)]
