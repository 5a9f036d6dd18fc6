# SPDX-License-Identifier: MIT
"""bounds.py MEASURED PERFMAP [--time]: inputs that try to make a command use memory and time without end, each with the
most that it may use. Valid streams of the same formats give the same output as files."""
import concurrent.futures
import gzip
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import threading

import formats
import shapes
from growth import JOBS, WHAT, Growth, arguments
from trying import try_again

MIB = 1 << 20
SECOND = 1_000_000_000


class Bounds:
    def __init__(self, measured, perfmap, place):
        self.measured, self.perfmap, self.place = measured, perfmap, place
        self.failures, self.late = [], []
        small = place / "small.map"
        small.write_bytes(b"1000 10 name\n")
        self.base = Growth(measured, runs=3).measure([perfmap, "lint", small])[0]

    def run(self, title, words, says, memory, cpu=5 * SECOND, status=2, stdin=subprocess.DEVNULL, max_output=None):
        """`says` is a regular expression for standard error; `memory` is above that of a small input."""
        with tempfile.NamedTemporaryFile("r") as result, tempfile.TemporaryFile() as output:
            done = subprocess.run([self.measured, result.name, self.perfmap, *words], stdin=stdin, stdout=output,
                                  stderr=subprocess.PIPE, cwd=self.place, text=True, errors="replace")
            ended, used, time = map(int, result.read().split())
            size = os.fstat(output.fileno()).st_size
        used -= self.base
        print(f"{title}: {used / MIB:.1f} MiB, {time / SECOND:.2f} s, {size} bytes of output", flush=True)
        if WHAT == "cpu":
            self.late += [f"{title}: takes {time} ns"] * (time > cpu)
            return
        for wrong in ([f"ends with {ended:#x}"] * (ended != status << 8) + [f"uses {used} bytes"] * (used > memory) +
                      [f"prints {size} bytes"] * (max_output is not None and size > max_output) +
                      [f"says {done.stderr[:300]}"] * (not re.search(says, done.stderr))):
            self.failures.append(f"{title}: {wrong}")

    def piped(self, title, words, writer, says, memory, **options):
        """With a pipe that `writer`, a command, fills for ever as standard input."""
        source = subprocess.Popen(writer, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self.run(title, words, says, memory, stdin=source.stdout, **options)
        finally:
            source.stdout.close()
            source.kill()
            source.wait()

    def same_as_file(self, title, words, data):
        """The output for a file, for standard input and for a FIFO."""
        file, fifo = self.place / "whole", self.place / "fifo"
        file.write_bytes(data)
        fifo.unlink(missing_ok=True)
        os.mkfifo(fifo)
        outputs = []
        for source, stdin in (("whole", subprocess.DEVNULL), ("-", subprocess.PIPE), ("fifo", subprocess.DEVNULL)):
            command = [self.perfmap, *(source if word is formats.INPUT else word for word in words)]
            if source == "fifo":
                threading.Thread(target=fifo.write_bytes, args=(data,), daemon=True).start()
            with subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  cwd=self.place) as process:
                out, err = process.communicate(data if source == "-" else None)
            outputs.append((process.returncode, out.replace(b"whole", b"SOURCE").replace(b"fifo", b"SOURCE")
                            .replace(b"(-)", b"(SOURCE)")))
        if outputs[0][0] not in (0, 1) or not outputs[0][1]:
            self.failures.append(f"{title}: status {outputs[0][0]} {err[:300]}")
        for other, how in zip(outputs[1:], ("standard input", "a FIFO")):
            if other != outputs[0]:
                self.failures.append(f"{title}: {how} gives another output: {other[1][:200]}")


def profile_of(unit, count):
    return gzip.compress(b"\x32\x00" + unit * count, 9)


def pprof_bounds(bounds):
    """64 MiB of empty messages in 65 KB; each becomes an object."""
    for field, title in ((2, "samples"), (3, "mappings"), (4, "locations"), (5, "functions"), (6, "strings")):
        (bounds.place / "empty.pb.gz").write_bytes(profile_of(bytes((field << 3 | 2, 0)), (32 << 20) - 16))
        bounds.run(f"pprof of empty {title}", ["stacks", "empty.pb.gz", "-o", "out"], "more than 64 MiB of memory",
                   300 * MIB)


def made_dump_bounds(bounds):
    """Sizes that stand for more zeros than a dump may have."""
    count = 40_000
    nested = "".join(f"{0x10000000 + i:x} {0x8000 + i % 7:x} name{i}\n" for i in range(count))
    (bounds.place / "nested.map").write_text(nested)
    entries = "".join(f'{{"start":"0x{i * 9:x}","size":33554432,"name":"n{i}"}}\n' for i in range(count // 10))
    (bounds.place / "nested.json").write_text('{"header":{"order":"little"},"source":{"kind":"jitdump"}}\n' + entries)
    (bounds.place / "nested.log").write_text("[1] {jit-backend-addr\n" + "".join(
        f"Loop {i} (f;/t.py:8-10~#12 FOR_ITER) has address 0x{i + 4096:x} to 0x{i + 0x1f00000:x} (bootstrap 0x{i + 4096:x})\n"
        for i in range(count // 10)) + "[2] jit-backend-addr}\n")
    for file in ("nested.map", "nested.json", "nested.log"):
        bounds.run(f"convert {file}", ["convert", file, "--to", "jitdump", "-o", "out"], "the jitdump would have more than 1 GiB",
                   32 * MIB)
    bounds.run("merge of nested maps", ["merge", "nested.map", "nested.map", "--to", "jitdump", "-o", "out"],
               "the jitdump would have more than 1 GiB", 32 * MIB)
    bounds.run("pypylog nested.log", ["pypylog", "nested.log", "--to", "jitdump", "-o", "out"],
               "the jitdump would have more than 1 GiB", 32 * MIB)


def pypylog_bounds(bounds):
    """Each event has a stack of 4000 open sections."""
    depth, events = 4000, 20_000
    lines = [f"[{i:x}] {{a" for i in range(depth)]
    for i in range(events):
        lines += [f"[{depth + 2 * i:x}] {{b{i % 50}", f"[{depth + 2 * i + 1:x}] b{i % 50}}}"]
    log = "\n".join(lines) + "\n"
    (bounds.place / "deep.log").write_text(log)
    for form in ("speedscope", "folded"):
        bounds.run(f"pypylog --format {form} of deep sections", ["pypylog", "deep.log", "--format", form],
                   r"left out \d+ of \d+ stacks", 32 * MIB, status=0, max_output=40 * len(log))


# Not /dev/urandom, one of whose 128 first bytes begins JSON, of which 1 GiB is read.
NOISE = """import random, sys
noise = random.Random(1).randbytes(1 << 20)
while True: sys.stdout.buffer.write(noise)"""

FILES = (["lint"], ["info"], ["tidy"], ["to-json"], ["to-json", "--effective"], ["from-json"], ["merge"],
         ["convert", "--to", "elf"], ["convert", "--to", "jitdump"], ["diff", "small.map"], ["stacks"],
         ["stacks", "--stats"], ["report"], ["doctor"], ["inject"], ["pypylog"], ["pypylog", "--to", "perf-map"],
         ["pypylog", "--format", "html"], ["pypylog", "small.log", "--perf-data"], ["resolve", "1000", "--map"],
         ["resolve", "1000", "--jitdump"], ["stacks", "small.data", "-m"], ["stacks", "small.data", "-j"],
         ["annotate", "small.data", "parse", "-j"],
         ["stacks", "small.data", "--kallsyms"], ["inject", "small.data", "--jitdump"], ["copy", "-o", "out"],
         ["write", "1000", "10", "f", "--jitdump", "--code"])


def one_search_of_processes(bounds):
    """The descriptors of all processes are searched once, not for each map."""
    maps = [f"perf-{4_000_000 + i}.map" for i in range(300)]
    for name in maps:
        (bounds.place / name).write_text("1000 10 name\n")
    held = [open(bounds.place / maps[0]) for _ in range(min(3000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100))]

    def lint(count):
        return Growth(bounds.measured).measure([bounds.perfmap, "lint", *maps[:count]], 2, bounds.place)[1]

    one, all_maps = lint(1), lint(len(maps))
    for file in held:
        file.close()
    without = lint(len(maps))
    print(f"lint beside {len(held)} descriptors: {one / 1e6:.1f} ms for 1 map, {all_maps / 1e6:.1f} ms for {len(maps)}, "
          f"{without / 1e6:.1f} ms without them")
    if all_maps > without + 20 * one:
        bounds.late.append("lint searches all processes for each map")


def device_bounds(bounds):
    (bounds.place / "small.log").write_text("[1] {gc\n[2] gc}\n")
    (bounds.place / "small.data").write_bytes(formats.recording(3))
    for words in FILES:
        needs_output = words[0] in ("inject", "write", "convert")
        after = ["-o", "out"] if needs_output else []
        # A log is read line by line, and a line may have 64 MiB.
        memory = 192 * MIB if words == ["pypylog"] else 48 * MIB
        bounds.run(f"{' '.join(words)} /dev/zero", [*words, "/dev/zero", *after], "error: ", memory, cpu=2 * SECOND)
        bounds.piped(f"{' '.join(words)} of noise", [*words, "/dev/stdin", *after], [sys.executable, "-c", NOISE], "error: ",
                     memory, cpu=2 * SECOND)
    for kind in ("perf-map", "jitdump", "pypylog", "json"):
        bounds.run(f"to-json --kind {kind} /dev/zero", ["to-json", "--kind", kind, "/dev/zero"], "error: ", 48 * MIB,
                   cpu=2 * SECOND)


def pipe_bounds(bounds):
    for words in (["lint", "-"], ["to-json", "-"], ["stacks", "-"], ["pypylog", "-"], ["merge", "-", "small.map"]):
        bounds.piped(f"endless text: {' '.join(words)}", words, ["yes"], "error: ", 48 * MIB, cpu=2 * SECOND)
    for words in (["to-json", "--to", "jsonl", "-"], ["resolve", "-", "-m", "small.map"], ["write", "-o", "out"]):
        bounds.piped(f"endless line: {' '.join(words)}", words, ["cat", "/dev/zero"], "error: ", 192 * MIB)
    bounds.piped("endless map: info -", ["info", "-"], ["yes", "1000 10 name"], "more than 1024 MiB", 1100 * MIB,
                 cpu=20 * SECOND)


def description_bounds(bounds):
    """Texts of nearly 64 MiB. Members that a reader does not know take no memory."""
    for kind, (file, command) in shapes.DESCRIBED.items():
        for shape, made in shapes.DESCRIPTIONS[kind]:
            place = bounds.place / f"{kind}-{shape}"
            place.mkdir()
            if kind == "recording":
                (place / "perf.data").write_bytes(formats.recording(10))
            folder = place if kind == "recording" else formats.snapshot(place)
            (folder / file).write_bytes(made(60 * MIB))
            is_refused = shape == "deep" or (kind, shape) == ("snapshot", "wide")
            bounds.run(f"{file}, {shape}", [command, folder], "more than" if is_refused else "", 150 * MIB,
                       status=2 if is_refused else 0)
            (folder / file).unlink()


def same_as_files(bounds):
    source = formats.INPUT
    for title, words, data in (("map", ["tidy", source], formats.perf_map(3000)),
                               ("large map", ["tidy", source], formats.perf_map(200_000)),
                               ("jitdump", ["resolve", "7f0000000004", "--jitdump", source], formats.jitdump(300)),
                               ("JSON", ["from-json", source], formats.map_json(300)),
                               ("compressed map", ["tidy", source], gzip.compress(formats.perf_map(3000))),
                               ("PyPy log", ["pypylog", source], formats.pypy_log(300)),
                               ("PyPy log, twice", ["pypylog", source, "--format", "folded"], formats.pypy_log(300)),
                               ("recording", ["stacks", source, "--threads", "1"], formats.recording(300)),
                               ("profile", ["stacks", source, "--format", "pprof"], formats.pprof(300)),
                               ("compressed profile", ["stacks", source, "--format", "pprof"],
                                gzip.compress(formats.pprof(300))),
                               ("short map", ["tidy", source], b"1000 10 name\n")):
        bounds.same_as_file(title, words, data)


def main():
    measured, perfmap = arguments()
    with tempfile.TemporaryDirectory() as folder:
        bounds = Bounds(str(pathlib.Path(measured).resolve()), str(pathlib.Path(perfmap).resolve()), pathlib.Path(folder))
        parts = [description_bounds, pipe_bounds, device_bounds, pprof_bounds, made_dump_bounds, pypylog_bounds]
        parts += [same_as_files] if WHAT == "memory" else []
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            list(pool.map(lambda part: part(bounds), parts))
        if WHAT == "cpu":
            one_search_of_processes(bounds)  # alone
    for failure in bounds.failures + bounds.late:
        print(f"FAILED: {failure}", file=sys.stderr)
    if bounds.late and not bounds.failures:
        try_again(bounds.late[0])
    sys.exit(1 if bounds.failures else 0)


if __name__ == "__main__":
    main()
