# SPDX-License-Identifier: MIT
"""formats.py MEASURED PERFMAP [--time]: what each reader and each output costs on ordinary input. docs/limits.md has
the figures."""
import base64
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

import growth as measuring
from growth import FACTORS, INPUT, WHAT, Growth, arguments, grown

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.perf_data import ANONYMOUS, PerfData

BEGIN = 0x7F0000000000
STEP = 0x140
NAMES = ("LazyCompile:~parse /srv/app/lib/module_%d.js:12", "Function:*render_%d", "py::handle_%d:/srv/app/views.py",
         "Builtin:Call_%d", "void app.Main::work%d(int)[PreStub]")


def name(i):
    return NAMES[i % len(NAMES)] % (i * 7919 % 100003)


def address(i):
    return BEGIN + i * STEP


def shuffled(count):
    """The same order in each run; runtimes do not write by address."""
    order = list(range(count))
    random.Random(1).shuffle(order)
    return order


def perf_map(count):
    return "".join(f"{address(i):x} {STEP - 16:x} {name(i)}\n" for i in shuffled(count)).encode()


def overlapping_map(count):
    """Code that was replaced: each range is in three others."""
    return "".join(f"{address(i // 4) + i % 4 * 16:x} {STEP * 2:x} {name(i)}\n" for i in shuffled(count)).encode()


def nested_map(count):
    """Each range is inside the one before."""
    return "".join(f"{BEGIN + i:x} {2 * (count - i):x} {name(i)}\n" for i in range(count)).encode()


def same_map(count):
    return b"1000 10 the same\n" * count


def torn_map(count):
    return "".join(f"{address(i):x} torn\n" for i in range(count)).encode()


def load(i, time, text, code, at):
    body = struct.pack("<IIQQQQ", 7, 7, at, at, len(code), i) + text + b"\0" + code
    return struct.pack("<IIQ", 0, 16 + len(body), time) + body


def jitdump(count):
    """Functions with lines and unwinding information; every eighth is moved, every fourth replaces another."""
    parts = [struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 7, 1, 0)]
    for i in range(count):
        at, time = address(i - 2 if i % 4 == 3 else i), 1000 + 10 * i
        lines = b"".join(struct.pack("<Qii", at + 8 * j, j + 1, 1) + b"/srv/app/module_%d.js\0" % (i % 50)
                         for j in range(4))
        parts.append(struct.pack("<IIQQQ", 2, 32 + len(lines), time, at, 4) + lines)
        parts.append(load(i + 1, time, name(i).encode(), b"\x55\x48\x89\xe5\xc9\xc3" * 20, at))
        if i % 8 == 7:
            parts.append(struct.pack("<IIQIIQQQQQ", 1, 64, time + 1, 7, 7, at + (1 << 40), at, at + (1 << 40), 120,
                                     i + 1))
    return b"".join(parts)


def dump_json(count):
    entries = [{"start": hex(address(i)), "size": 12, "name": name(i), "time": f"0.{1000 + i:09}", "pid": 7, "tid": 7,
                "index": i + 1, "code": base64.b64encode(b"\x90" * 12).decode()} for i in range(count)]
    return json.dumps({"source": {"kind": "jitdump"}, "header": {"order": "little", "pid": 7}, "entries": entries,
                       "records": []}).encode()


def map_json(count):
    return json.dumps({"schema": "perfmap.map/1", "entries": [
        {"start": hex(address(i)), "size": 16, "name": name(i), "line": i + 1} for i in range(count)]}).encode()


def map_lines(count):
    return "".join(json.dumps({"start": hex(address(i)), "size": 16, "name": name(i)}) + "\n"
                   for i in range(count)).encode()


def pypy_log(count):
    """Loops with operations, and events in them."""
    lines, tick = [], 0x1000

    def section(category, *inside):
        nonlocal tick
        lines.extend((f"[{tick:x}] {{{category}", *inside, f"[{tick + 40:x}] {category}}}"))
        tick += 100

    loop = "Loop %d (handle_%d;/srv/app/views.py:%d-%d~#12 FOR_ITER)"
    for i in range(count):
        if i % 8 == 0:
            title = loop % ((i,) * 4)
            begin = BEGIN + i * 512
            section("jit-backend-dump", "BACKEND x86_64", "SYS_EXECUTABLE python",
                    f"CODE_DUMP @{begin:x} +0  " + "4889E5" * 40)
            section("jit-backend-addr", f"{title} has address 0x{begin:x} to 0x{begin + 100:x} (bootstrap 0x{begin:x})")
            section("jit-log-opt-loop", f"# {title} : loop with 4 ops", "[p0, p1]",
                    *(f"+{8 * j}: guard_value(i{j}, {j}, descr=<Guard0x{begin + j:x}>) [p0, i{j}]" for j in range(4)),
                    "+64: --end of the loop--")
        section("jit-profile-enter", loop % ((i // 8 * 8,) * 4))
        section("gc-minor")
        section("jit-profile-exit", loop % ((i // 8 * 8,) * 4))
    return "".join(line + "\n" for line in lines).encode()


def perf_script(count):
    """Stacks of five frames, as perf script prints them, with unknown JIT frames."""
    lines = []
    for i in range(count):
        lines.append(f"node 7/7 [000] {i // 1000}.{i % 1000:03}000: 1 cycles: ")
        lines += [f"\t{address(i * 31 % 1000 + j) + 5:16x} [unknown] (/tmp/perf-7.map)" for j in range(3)]
        lines += ["\t    55d0c0ffee10 main+0x10 (/usr/bin/node)", "\t    7fb0c0ffee10 __libc_start_main+0x1 (/lib/libc.so)", ""]
    return ("\n".join(lines) + "\n").encode()


def addresses(count):
    return "".join(f"{address(i % 1000) + 3:x}\n" for i in shuffled(count)).encode()


def recording(count, least=0):
    """Samples with stacks of 12 frames in the code of a map, after `least` samples in its first function."""
    data = PerfData()
    data.comm(7, b"node")
    data.mmap(7, BEGIN, 1 << 30, ANONYMOUS)
    for _ in range(least):
        data.sample(7, address(0) + 4)
    chooser = random.Random(1)
    for _ in range(count):
        outer = chooser.randrange(40)
        chain = [address(outer * 5 + j) + 8 for j in range(9)] + [address(chooser.randrange(1000)) + 8 for _ in range(2)]
        data.sample(7, address(chooser.randrange(1000)) + 4, chain[::-1])
    return data.to_bytes()


def varint(value):
    out = b""
    while value > 127:
        out += bytes((value & 127 | 128,))
        value >>= 7
    return out + bytes((value,))


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, body):
    return varint(field << 3 | 2) + varint(len(body)) + body


def pprof(count):
    """Samples of 20 frames; half of the locations are unnamed JIT code."""
    chooser = random.Random(1)
    locations = max(1, count // 4)
    parts = [message(6, text) for text in (b"", b"pid", b"//anon", b"known")]
    parts.append(message(1, number(1, 3) + number(2, 3)))
    parts.append(message(3, number(1, 1) + number(2, BEGIN) + number(3, BEGIN + (1 << 32)) + number(5, 2)))
    parts.append(message(5, number(1, 1) + number(2, 3)))
    for i in range(1, locations + 1):
        parts.append(message(4, number(1, i) + number(2, 1) + number(3, address(i % 1000)) +
                             (message(4, number(1, 1)) if i % 2 else b"")))
    label = message(3, number(1, 1) + number(3, 7))
    for _ in range(count):
        ids = b"".join(varint(chooser.randrange(1, locations + 1)) for _ in range(20))
        parts.append(message(2, message(1, ids) + message(2, b"\1") + label))
    return b"".join(parts)


def elf(count):
    """An image with code, symbols, lines and call frame information, from the assembler's output of a C compiler."""
    source = "".join(f"int work_{i}(int a, int b) {{\n  int c = a * {i};\n  if (b > c) c += b;\n  return c;\n}}\n"
                     for i in range(count + 1))
    with tempfile.TemporaryDirectory() as place:
        made = pathlib.Path(place, "image.so")
        subprocess.run(["gcc", "-x", "c", "-g", "-O0", "-shared", "-fPIC", "-o", made, "-"], input=source.encode(),
                       check=True)
        return made.read_bytes()


def recording_in(path, image):
    """Samples everywhere in the code of that image."""
    data = PerfData()
    data.comm(7, b"app")
    headers, = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    for at in range(headers, headers + size * count, size):
        kind, flags, offset, begin, _, bytes_there = struct.unpack_from("<IIQQQQ", image, at)
        if kind != 1 or not flags & 1:
            continue
        data.mmap(7, BEGIN + begin, (bytes_there + 4095) // 4096 * 4096, path, inode=1, offset=offset)
        for place in range(256, bytes_there - 64, 48):
            data.sample(7, BEGIN + begin + place)
    return data.to_bytes()


def manifest(count):
    modules = [{"path": f"/usr/lib/lib{i}.so", "build_id": f"{i:040x}", "size": 1000 + i, "deleted": False}
               for i in range(count)]
    return json.dumps({"schema": "perfmap.snapshot/1", "pid": 7, "namespace_pids": [7], "comm": "node",
                       "executable": "/usr/bin/node", "uid": 0, "start": 100, "boot": "1700000000.000000000",
                       "taken": "1700000100.000000000", "kernel": "6.1.0", "machine": "x86_64",
                       "files": [{"kind": "map", "path": "tmp/perf-7.map", "source": "/tmp/perf-7.map", "owner": 0,
                                  "mtime": "1700000050.000000000", "size": 16, "cut": 0}],
                       "left_out": [], "modules": modules}).encode()


def snapshot(place):
    """All but the manifest."""
    made = place / "snapshot"
    for path, text in (("tmp/perf-7.map", "1000 10 name\n"), ("proc/stat", "btime 1700000000\n"), ("proc/7/maps", ""),
                       ("proc/7/status", "Name:\tnode\nTgid:\t7\nPid:\t7\nUid:\t0\t0\t0\t0\nNStgid:\t7\n"),
                       ("proc/7/stat", "7 (node) S 1 7 7 0 -1" + " 0" * 15 + " 100" + " 0" * 30 + "\n")):
        file = made / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return made


def in_shell(perfmap, script, *words):
    return ["/bin/sh", "-c", script, "sh", perfmap, *words]


def readers(names):
    """(title, command, generator, count at factor 1)"""
    query = hex(address(3))
    for title, shape, count in (("map", perf_map, 10000), ("map, overlaps", overlapping_map, 10000),
                                ("map, nested", nested_map, 8000), ("map, same range", same_map, 60000)):
        yield f"{title}: resolve", ["resolve", query, "--map", INPUT], shape, count
        yield f"{title}: lint", ["lint", INPUT], shape, count
    yield "map, malformed: lint", ["lint", INPUT], torn_map, 20000
    yield "jitdump: resolve", ["resolve", query, "--jitdump", INPUT], jitdump, 1500
    yield "jitdump: lint", ["lint", INPUT], jitdump, 1500
    yield "jitdump: info", ["info", INPUT], jitdump, 1500
    yield "JSON of a map: from-json", ["from-json", INPUT], map_json, 4000
    yield "JSON lines of a map: from-json", ["from-json", INPUT], map_lines, 4000
    yield "JSON of a jitdump: from-json", ["from-json", INPUT, "--to", "jitdump", "-o", "out.dump"], dump_json, 1000
    yield "pprof: names", ["stacks", INPUT, "-m", names], pprof, 3000
    yield "pprof: report", ["report", INPUT], pprof, 3000
    yield "recording: inject", ["inject", INPUT, "-o", "out.data"], recording, 2500


def outputs(names):
    for to in ("perf-map", "jitdump", "json", "jsonl"):
        yield f"map: convert --to {to}", ["convert", INPUT, "--to", to, "-o", "out"], perf_map, 8000
    for to in ("perf-map", "jitdump", "json", "jsonl", "elf"):
        yield f"jitdump: convert --to {to}", ["convert", INPUT, "--to", to, "-o", "out"], jitdump, 1000
    for to in ("perf-map", "jitdump", "json"):
        yield f"map: merge --to {to}", ["merge", names, INPUT, "--to", to, "-o", "out"], overlapping_map, 6000
    yield "map: tidy", ["tidy", INPUT], overlapping_map, 6000
    yield "map: copy", ["copy", INPUT, "-o", "out"], perf_map, 8000
    for form in ("text", "json"):
        yield f"map: info --format {form}", ["info", INPUT, "--format", form], perf_map, 8000
        yield f"map: diff --format {form}", ["diff", names, INPUT, "--format", form], perf_map, 6000
    for form in ("pretty", "gcc", "json", "jsonl", "sarif", "github"):
        yield f"map: lint --format {form}", ["lint", INPUT, "--format", form, "--max-findings", "0"], torn_map, 3000
    for form in ("folded", "perf-script", "speedscope", "firefox", "pprof", "html", "jsonl", "chrome", "otlp",
                 "otlp-json"):
        yield (f"recording: stacks --format {form}",
               ["stacks", INPUT, "-m", names, "--threads", "1", "--format", form, "-o", "out"], recording, 3000)
    for form in ("text", "json", "csv"):
        yield (f"recording: report --format {form}",
               ["report", INPUT, "-m", names, "--threads", "1", "--format", form, "-o", "out"], recording, 3000)
    for form in ("text", "json", "html"):
        yield (f"recording: annotate --format {form}",
               ["annotate", INPUT, name(0), "-m", names, "--format", form],
               lambda count: recording(count, least=1), 3000)
    for form in ("text", "json", "speedscope", "folded", "flame-graph", "html"):
        yield f"PyPy log: --format {form}", ["pypylog", INPUT, "--format", form], pypy_log, 600
    for to in ("perf-map", "jitdump"):
        yield f"PyPy log: --to {to}", ["pypylog", INPUT, "--to", to, "-o", "out"], pypy_log, 600


def filters(names):
    """The same for commands that read standard input line by line."""
    yield "perf script text: resolve --perf-script", ["resolve", "--perf-script", "-m", names], perf_script, 1500
    for form in ("text", "json", "jsonl"):
        yield f"addresses: resolve --format {form}", ["resolve", "-", "-m", names, "--format", form], addresses, 10000
    yield "map: write", ["write", "-o", "out"], perf_map, 8000
    yield "map in a pipe: to-json --to jsonl", ["to-json", "-", "--to", "jsonl"], perf_map, 8000


OTHERS = ("snapshot: info", "ELF: symbols", "ELF and DWARF: lines", "ELF and DWARF: inlined functions")
MERGED = ("recordings: stacks --format folded", "recordings: stacks --format jsonl", "recordings: report")


def titles():
    """Of everything that is measured, for the table in docs/limits.md."""
    return {*OTHERS, *MERGED, *(case[0] for cases in (readers, outputs, filters) for case in cases("names"))}


class SteadyGrowth(Growth):
    """For inputs of megabytes, with every second factor. What grows too fast is measured again, because another program
    may have disturbed it."""

    def __init__(self, measured):
        # A huge page and what starting a program takes.
        measuring.LEAST_MEMORY, measuring.LEAST_CPU = 2 << 20, 5_000_000
        super().__init__(measured, (FACTORS[0], 4, FACTORS[-1]), runs=3 if WHAT == "cpu" else 2)

    def exponents(self, *words, **options):
        found = super().exponents(*words, **options)
        if not self.too_fast(found):
            return found
        again = super().exponents(*words, **options)
        return min(found, again, key=lambda one: getattr(one, WHAT))


def merged(growth, perfmap, place):
    """Recordings with the same stacks: memory is that of the stacks, however many recordings there are."""
    few, many = 16, 256
    (place / "0.data").write_bytes(recording(1000))
    size = (place / "0.data").stat().st_size
    (place / "maps").mkdir()
    (place / "maps/perf-7.map").write_bytes(perf_map(1000))
    for i in range(1, many):
        (place / f"{i}.data").hardlink_to(place / "0.data")
    for title in MERGED:
        def use(count):
            (place / "list").write_text("".join(f"{i}.data\n" for i in range(count)))
            words = [perfmap, *title.split()[1:], "--recordings", "list", "--map-dir", place / "maps", "--threads", "1"]
            return measuring.Use(count, count * size, *growth.measure(words, growth.runs, place))

        first, last = use(few), use(many)
        added = last.input_bytes - first.input_bytes
        print(f"{title}: {few} recordings {first.memory / 1e6:.1f} MB, {many} {last.memory / 1e6:.1f} MB of memory; "
              f"{(last.cpu - first.cpu) / added:.1f} ns a byte", flush=True)
        if WHAT == "memory" and last.memory > first.memory + (1 << 20):
            growth.failures.append(f"{title}: memory grows with the number of recordings")
        if WHAT == "cpu" and last.cpu > 1.5 * many / few * first.cpu:
            growth.late.append(f"{title}: time grows faster than the number of recordings")


def main():
    measured, perfmap = arguments()
    perfmap = str(pathlib.Path(perfmap).resolve())
    growth = SteadyGrowth(measured)
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        names = place / "names.map"
        names.write_bytes(perf_map(1000))
        growth.run_all((title, [perfmap, *words], grown(shape, count))
                       for cases in (readers, outputs) for title, words, shape, count in cases(names))
        growth.run_all((title, in_shell(perfmap, 'exec "$@" <input', *words), grown(shape, count))
                       for title, words, shape, count in filters(names))
        merged(growth, perfmap, place)
        growth.run(OTHERS[0], in_shell(perfmap, f"cp -r {snapshot(place)}/. . && " + 'exec "$@"', "info", "."),
                   lambda factor: manifest(factor * 500), name="manifest.json")
        if shutil.which("gcc"):
            data = place / "image.data"
            images = {factor: elf(factor * 400) for factor in (0, *growth.factors)}

            def image(factor):
                data.write_bytes(recording_in(b"/image.so", images[factor]))
                return images[factor]

            for title, option in zip(OTHERS[1:], ([], ["--lines"], ["--inlines"])):
                growth.run(title, [perfmap, "stacks", data, "--symfs", ".", *option], image, name="image.so")
        else:
            print("skipped in part: there is no gcc")
    sys.exit(growth.finish())


if __name__ == "__main__":
    main()
