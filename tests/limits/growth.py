# SPDX-License-Identifier: MIT
"""How memory, or processor time, of a command grows with its input.

    growth = Growth(measured)
    found = growth.exponents([perfmap, "stacks", INPUT], make_input)
    growth.check("stacks: forks", found)
    sys.exit(growth.finish())

make_input(factor) returns the bytes of an input that is `factor` times as long as that of factor 1;
make_input(0) is the smallest valid input. What the command uses for that one is the base: only what
it uses above the base counts.

A script checks memory, which is the same on a busy machine, and everything but time. With --time as its last word, it
checks only processor time, which other programs on the same processor lengthen: what grows too fast then is tried again.
"""
import collections
import concurrent.futures
import functools
import math
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from trying import try_again

WHAT = "cpu" if sys.argv[-1] == "--time" else "memory"
FACTORS = (1, 2, 4, 8, 16) if WHAT == "cpu" else (1, 4, 16)
MAX_EXPONENT = 1.2
# Less than this is noise, and counts as this.
LEAST_MEMORY = 512 << 10
LEAST_CPU = 2_000_000
# A command that uses more is not run with longer inputs.
MAX_MEMORY = 1 << 30
MAX_SECONDS = 300
# So many commands run at the same time.
JOBS = min(2, os.cpu_count() or 1)
# What grows too fast is measured again so often, unless it takes longer than that.
AGAIN = 5
MAX_CPU_AGAIN = 5_000_000_000
INPUT = object()  # in a command: the path of the input


def arguments():
    """Those of the script, without --time."""
    return [word for word in sys.argv[1:] if word != "--time"]


Use = collections.namedtuple("Use", "factor input_bytes memory cpu")  # bytes, bytes, ns
Exponents = collections.namedtuple("Exponents", "memory cpu uses base")


class Broken(Exception):
    """Has the reason as its message."""


@functools.lru_cache(maxsize=64)  # several commands read the same
def made(shape, count):
    return shape(count)


def grown(shape, count):
    """make_input() for inputs of shape(count) at factor 1."""
    return lambda factor: made(shape, factor * count)


def exponent(values, factors, least):
    """Of values that grow with their factors: 1 is linear, 2 quadratic."""
    first, last = (max(value, least) for value in (values[0], values[-1]))
    return math.log(last / first) / math.log(factors[-1] / factors[0])


class Growth:
    """`measured` is the path of the program built from measured.c. Memory and time are the least of
    `runs` runs for the base and for the first factor: if one is too large, growth is not seen. One run of the others is
    enough: what grows too fast is measured again, as other programs disturb."""

    def __init__(self, measured, factors=FACTORS, runs=2, statuses=(0, 1)):
        self.measured = str(pathlib.Path(measured).resolve())
        self.factors, self.runs, self.statuses = factors, runs, statuses
        self.failures, self.late = [], []

    def measure(self, command, runs=1, cwd=None):
        """The least memory in bytes and the least processor time in nanoseconds."""
        words = [str(pathlib.Path(command[0]).resolve()), *map(str, command[1:])]
        least = (None, None)
        with tempfile.NamedTemporaryFile("r") as result:
            for _ in range(runs):
                subprocess.run([self.measured, result.name, *words], check=True, cwd=cwd,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, timeout=MAX_SECONDS)
                result.seek(0)
                status, memory, cpu = map(int, result.read().split())
                if status & 0x7f or status >> 8 not in self.statuses:
                    raise Broken(f"{' '.join(words)} ends with status {status:#x}")
                least = (memory, cpu) if least[0] is None else (min(least[0], memory), min(least[1], cpu))
        return least

    def exponents(self, command, make_input, name="input"):
        """The file of the input gets `name`."""
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / name

            def use(factor, runs):
                path.write_bytes(make_input(factor))
                words = [path if word is INPUT else word for word in command]
                return Use(factor, path.stat().st_size, *self.measure(words, runs, place))

            def least(one, other):
                return one._replace(memory=min(one.memory, other.memory), cpu=min(one.cpu, other.cpu))

            base = use(0, self.runs)
            uses = []
            for factor in self.factors:
                uses.append(use(factor, self.runs if factor == self.factors[0] else 1))
                if uses[-1].memory > MAX_MEMORY:
                    break
            if len(uses) == 1:
                raise Broken(f"needs {uses[0].memory} bytes for {uses[0].input_bytes}")
            found = self._exponents(uses, base)
            for _ in range(AGAIN):
                if not self.too_fast(found) or uses[-1].cpu > MAX_CPU_AGAIN:
                    break
                # The base as well: one that is too large makes the first use too small.
                base = least(base, use(0, self.runs))
                for at in (0, -1):
                    uses[at] = least(uses[at], use(uses[at].factor, self.runs))
                found = self._exponents(uses, base)
        return found

    @staticmethod
    def _exponents(uses, base):
        above = [one._replace(memory=one.memory - base.memory, cpu=one.cpu - base.cpu) for one in uses]
        factors = [one.factor for one in above]
        return Exponents(exponent([one.memory for one in above], factors, LEAST_MEMORY),
                         exponent([one.cpu for one in above], factors, LEAST_CPU), above, base)

    @staticmethod
    def too_fast(found, max_cpu=MAX_EXPONENT):
        return found.cpu > max_cpu if WHAT == "cpu" else found.memory > MAX_EXPONENT

    def check(self, title, found, max_cpu=MAX_EXPONENT, max_bytes=None):
        """Prints a line, and notes a failure if memory grows faster than MAX_EXPONENT, or time than `max_cpu`; also if
        the longest input takes more than `max_bytes` of memory a byte."""
        last = found.uses[-1]
        added = max(1, last.input_bytes - found.base.input_bytes)
        print(f"{title}: memory n^{found.memory:.2f}, {last.memory / added:.1f} bytes a byte; "
              f"cpu n^{found.cpu:.2f}, {last.cpu / added:.0f} ns a byte; "
              f"{last.input_bytes} bytes at {last.factor}x", flush=True)
        if self.too_fast(found, max_cpu):
            (self.late if WHAT == "cpu" else self.failures).append(f"{title}: {WHAT} grows as n^{getattr(found, WHAT):.2f}")
            for use in found.uses:
                print(f"  {use.factor:2}x: {use.input_bytes:9} bytes of input, "
                      f"{use.memory / 1e6:8.2f} MB, {use.cpu / 1e6:9.2f} ms")
        if WHAT == "memory" and max_bytes is not None and last.memory > max_bytes * added:
            self.failures.append(f"{title}: {last.memory / added:.1f} bytes of memory a byte, more than {max_bytes}")

    def run(self, title, command, make_input, max_cpu=MAX_EXPONENT, max_bytes=None, **options):
        """exponents() and check(). What grows too fast is measured again: other work may have disturbed it."""
        try:
            found = self.exponents(command, make_input, **options)
            if self.too_fast(found, max_cpu):
                found = self.exponents(command, make_input, **options)
            self.check(title, found, max_cpu, max_bytes)
        except (Broken, subprocess.TimeoutExpired) as error:
            print(f"{title}: {error}", flush=True)
            self.failures.append(f"{title}: {error}")

    def run_all(self, cases):
        """run() of the words of each case, several at a time. They disturb each other, so each that grows too fast
        is measured again when no other one runs."""
        def first(case):
            title, command, make_input, *limits = case
            try:
                found = self.exponents(command, make_input)
            except (Broken, subprocess.TimeoutExpired):
                return None
            return None if self.too_fast(found, *limits[:1]) else found

        cases = list(cases)
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            results = list(pool.map(first, cases))
        for (title, *words), found in zip(cases, results):
            if found is None:
                self.run(title, *words)
            else:
                self.check(title, found, *words[2:])

    def finish(self):
        """The status for sys.exit()."""
        for failure in self.failures + self.late:
            print(f"FAILED: {failure}", file=sys.stderr)
        if self.late and not self.failures:
            try_again(self.late[0])
        return 1 if self.failures else 0
