# SPDX-License-Identifier: MIT
"""What `perf record -p PID...` runs to end: recorded_time.py SECONDS. Ends when the recorded processes have used so many
seconds of processor time together. After a time of the clock, a busy machine has too few samples."""
import os
import sys
import time

from waiting import proc_file, processor_time


def recorded_pids():
    words = proc_file(os.getppid(), "cmdline").split("\0")
    return [int(pid) for option, pids in zip(words, words[1:]) if option == "-p" for pid in pids.split(",")]


def main():
    pids = recorded_pids()
    end = sum(map(processor_time, pids)) + float(sys.argv[1])
    while all(proc_file(pid, "cmdline") for pid in pids) and sum(map(processor_time, pids)) < end:
        time.sleep(0.02)


main()
