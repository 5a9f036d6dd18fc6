# SPDX-License-Identifier: MIT
"""No entry of a worker of multiprocessing is lost: each start method, each mode of writing."""
import collections
import concurrent.futures
import multiprocessing
import os
import pathlib
import subprocess
import sys
import threading
import unittest

import perfmap
from perfmap import ForkPolicy, process_map
from support import Scratch, entries

METHODS = ("fork", "spawn", "forkserver")
MODES = {"plain": {}, "buffered": {"buffer_bytes": 65536}, "mapped": {"mapped": True}}
ENTRIES = 50
TASKS = 8
writer = None  # of this process


def configure(directory, mode, method, policy):
    # A forked worker has its parent's options.
    if method != "fork" or multiprocessing.parent_process() is None:
        process_map.configure(directory=directory, fork=policy, **MODES[mode])


def names_of(what):
    return [f"{what} {i}" for i in range(ENTRIES)]


def burst(what):
    for i, name in enumerate(names_of(what)):
        process_map.write(0x1000 + 16 * i, 16, name)


def task(number):
    burst(f"task {number}")
    return os.getpid(), number


def open_writer(path):
    global writer
    writer = perfmap.MapWriter(f"{path}-{os.getpid()}", buffer_bytes=65536)


def task_of_writer(number):
    for i, name in enumerate(names_of(f"task {number}")):
        writer.write(0x1000 + 16 * i, 16, name)
    return os.getpid(), number


def task_that_forks(directory):
    """A worker that has a worker itself."""
    burst("outer")
    inner = multiprocessing.get_context("fork").Process(target=burst, args=("inner",))
    inner.start()
    inner.join()
    pathlib.Path(directory, "pids").write_text(f"{os.getpid()} {inner.pid}")


def pool(directory, mode, method, policy):
    """A pool whose workers write into maps of their own, while threads of this process do."""
    configure(directory, mode, method, ForkPolicy[policy])
    burst("main")
    threads = [threading.Thread(target=burst, args=(f"thread {i}",)) for i in range(2)]
    for thread in threads:
        thread.start()
    context = multiprocessing.get_context(method)
    with context.Pool(2, configure, (directory, mode, method, ForkPolicy[policy]), maxtasksperchild=2) as workers:
        done = workers.map(task, range(TASKS), chunksize=1)
        workers.close()
        workers.join()
    for thread in threads:
        thread.join()
    process_map.close()
    for pid, number in done:
        print("worker", pid, number)
    print("main", os.getpid(), 0)


def executor(directory, mode, method, policy):
    """The same with concurrent.futures."""
    configure(directory, mode, method, ForkPolicy[policy])
    burst("main")
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(
            2, context, configure, (directory, mode, method, ForkPolicy[policy])) as workers:
        for pid, number in workers.map(task, range(TASKS)):
            print("worker", pid, number)


def writers(directory, _mode, method, _policy):
    """Workers with writers of their own, which are never closed."""
    with multiprocessing.get_context(method).Pool(2, open_writer, (f"{directory}/map",)) as workers:
        done = workers.map(task_of_writer, range(TASKS), chunksize=1)
        workers.close()
        workers.join()
    for pid, number in done:
        print("worker", pid, number)


def nested(directory, mode, method, policy):
    configure(directory, mode, method, ForkPolicy[policy])
    burst("main")
    worker = multiprocessing.get_context(method).Process(target=task_that_forks, args=(directory,))
    worker.start()
    worker.join()


class Workers(Scratch):
    def run_host(self, shape, mode, method, policy="FRESH"):
        """Runs one of the functions above in a program; returns {pid: [number of task]}."""
        run = subprocess.run([sys.executable, "-B", __file__, shape, self.directory, mode, method, policy],
                             capture_output=True, text=True, timeout=120)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        tasks = collections.defaultdict(list)
        self.main = None
        for line in run.stdout.splitlines():
            what, pid, number = line.split()
            if what == "main":
                self.main = int(pid)
            else:
                tasks[int(pid)].append(int(number))
        return tasks

    def names(self, pid):
        return collections.Counter(entries(self.directory / f"perf-{pid}.map"))

    def check(self, tasks, inherited=()):
        self.assertEqual(sorted(sum(tasks.values(), [])), list(range(TASKS)))
        for pid, numbers in tasks.items():
            expected = collections.Counter(name for number in numbers for name in names_of(f"task {number}"))
            # What threads of the parent write meanwhile is inherited or not.
            found = collections.Counter({name: count for name, count in self.names(pid).items()
                                         if not name.startswith("thread")})
            self.assertEqual(found, expected + collections.Counter(inherited))

    def test_pools(self):
        for method in METHODS:
            for mode in MODES:
                with self.subTest(method=method, mode=mode):
                    self.check(self.run_host("pool", mode, method))
                    everything = [name for what in ("main", "thread 0", "thread 1") for name in names_of(what)]
                    self.assertEqual(self.names(self.main), collections.Counter(everything))

    def test_forked_workers_may_inherit(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                self.check(self.run_host("pool", mode, "fork", "INHERIT"), names_of("main"))

    def test_executors(self):
        for method in METHODS:
            with self.subTest(method=method):
                self.check(self.run_host("executor", "buffered", method))

    def test_writers_of_workers(self):
        for method in METHODS:
            with self.subTest(method=method):
                tasks = self.run_host("writers", "plain", method)
                for pid, numbers in tasks.items():
                    self.assertEqual(entries(self.directory / f"map-{pid}"),
                                     [name for number in numbers for name in names_of(f"task {number}")])

    def test_workers_of_workers(self):
        self.run_host("nested", "buffered", "fork")
        outer, inner = self.text("pids").split()
        self.assertEqual(self.names(outer), collections.Counter(names_of("outer")))
        self.assertEqual(self.names(inner), collections.Counter(names_of("inner")))


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in ("pool", "executor", "writers", "nested"):
        globals()[sys.argv[1]](*sys.argv[2:])
    else:
        unittest.main()
