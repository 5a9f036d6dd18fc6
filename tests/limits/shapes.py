# SPDX-License-Identifier: MIT
"""shapes.py MEASURED PERFMAP [--time]: inputs made by an attacker. Their costs grow like those of ordinary ones. Each
reader has deep, wide and repeated inputs: what it reads is nested, is different everywhere, or is the same again and
again. docs/limits.md has the figures of those that have a maximum of bytes a byte."""
import pathlib
import struct
import sys
import tempfile

import formats
from formats import BEGIN, SteadyGrowth, in_shell, load, message, number, perf_map, shuffled, varint
from growth import INPUT, MAX_EXPONENT, arguments, grown

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.perf_data import ANONYMOUS, PerfData

# Numbers that have one remainder in hash tables of many sizes.
ALIKE = 1056323


def log_of_threads(count):
    """A section in each thread, none of which ends."""
    return "".join(f"{i}# [{i + 16:x}] {{jit-log-opt-loop\n{i}# # Loop {i} (f;/t.py:8-10~#12 X) : loop with 4 ops\n"
                   for i in range(count)).encode()


def log_of_guards(count):
    return ("[1] {jit-log-opt-loop\n# Loop 1 (f) : loop with 4 ops\n" +
            "".join(f"+{i}: guard_value(i1, 1, descr=<Guard0x{i * ALIKE:x}>) [p0]\n" for i in range(count)) +
            "[2] jit-log-opt-loop}\n").encode()


def log_of_categories(count):
    return "".join(f"[{2 * i:x}] {{c{i}\n[{2 * i + 1:x}] c{i}}}\n" for i in range(count)).encode()


def log_of_depth(count):
    """Sections that are opened, and others that are closed."""
    return "".join(f"[{i:x}] {{c\n" for i in range(count)).encode() + b"[fffffff] x}\n" * count


def map_of_one_name(count):
    return "".join(f"{BEGIN + i * 32:x} 10 same name\n" for i in shuffled(count)).encode()


def map_of_long_names(count):
    return b"".join(b"%x 10 %s\n" % (BEGIN + i * 32, b"n" * 4000) for i in range(count // 40))


HEADER = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 7, 1, 0)


def dump_of_one_time(count):
    return HEADER + b"".join(load(i, 5, b"f", b"\x90" * 16, BEGIN + i % 7 * 8) for i in range(count))


def dump_of_moves(count):
    """One function that moves on and on."""
    return HEADER + load(1, 1, b"f", b"\x90" * 16, BEGIN) + b"".join(
        struct.pack("<IIQIIQQQQQ", 1, 64, i + 2, 7, 7, BEGIN, BEGIN + i * 8, BEGIN + i * 8 + 8, 16, 1)
        for i in range(count))


def nested_dump(count):
    """Functions without code bytes, each inside the one before."""
    return HEADER + b"".join(
        struct.pack("<IIQIIQQQQ", 0, 58, i, 7, 7, BEGIN + i, BEGIN + i, 2 * (count - i), i) + b"f\0"
        for i in range(count))


def damaged_dump(count):
    return HEADER + b"".join(load(i, 5, b"f", b"\x90" * 16, BEGIN + i * 16) + b"\xff" * 24 for i in range(count))


def json_backwards(count):
    """Records whose order in the dump is the reverse."""
    return (b'{"source":{"kind":"jitdump"},"header":{"order":"little"},"entries":[' +
            b",".join(b'{"start":"0x%x","size":1,"name":"n","offset":%d}' % (i, count - i) for i in range(count)) + b"]}")


def profile_of_processes(count):
    parts = [message(6, text) for text in (b"", b"pid")] + [message(4, number(1, 1) + number(3, 0x1000))]
    return b"".join(parts + [message(2, message(1, b"\1") + message(3, number(1, 1) + number(3, i + 1)))
                             for i in range(count)])


def profile_of_ids(count):
    parts = [message(6, text) for text in (b"", b"pid")]
    parts += [message(4, number(1, (i + 1) * ALIKE) + number(3, i)) for i in range(count)]
    return b"".join(parts + [message(2, message(1, varint((i + 1) * ALIKE))) for i in range(count)])


def script_of_processes(count):
    return "".join(f"c {i}/{i} {i}.0: 1 e: \n\t {i + 4096:x} [unknown] (/tmp/perf-{i}.map)\n\n"
                   for i in range(count)).encode()


def script_of_stacks(depth):
    """Stacks of `depth` frames, each the same."""
    frames = "".join(f"\t{BEGIN + 16 * i:16x} [unknown] (/tmp/perf-7.map)\n" for i in range(depth))
    return lambda count: f"c 7/7 1.0: 1 e: \n{frames}\n".encode() * count


def deep_json(count):
    """Deeper is refused."""
    return (b'{"entries":[' + b",".join([b'{"start":"0x1","size":1,"name":"n","x":' + b"[" * 60 + b"]" * 60 + b"}"] * count)
            + b"]}")


def equal_json(count):
    return b'{"entries":[' + b",".join([b'{"start":"0x1000","size":16,"name":"n"}'] * count) + b"]}"


def log_of_one_loop(count):
    return b"[1] {jit-log-opt-loop\n# Loop 1 (f) : loop with 4 ops\n[2] jit-log-opt-loop}\n" * count


def profile_of_stacks(depth):
    """Samples of one stack of `depth` locations."""
    parts = [message(6, text) for text in (b"", b"pid")]
    parts += [message(4, number(1, i + 1) + number(3, BEGIN + i)) for i in range(depth)]
    stack = message(2, message(1, b"".join(varint(i + 1) for i in range(depth))))
    return lambda count: b"".join(parts) + stack * count


def recording_of(sampled):
    """Samples in the memory of a runtime; sampled(i) is the callchain of the sample with that number."""
    def shape(count):
        data = PerfData()
        data.comm(7, b"node")
        data.mmap(7, BEGIN, 1 << 40, ANONYMOUS)
        for i in range(count):
            data.sample(7, BEGIN + 4, sampled(i))
        return data.to_bytes()
    return shape


# As many addresses as a record has room for, and the same with addresses of their own.
LONGEST = [BEGIN + 16 * i + 8 for i in range(8000)]
same_deep_stack = recording_of(lambda i: LONGEST)
deep_stacks = recording_of(lambda i: [pc + i * (8000 * 16) for pc in LONGEST])
distinct_stacks = recording_of(lambda i: [BEGIN + 16 * (20 * i + j) + 8 for j in range(20)])
same_stack = recording_of(lambda i: LONGEST[:20])


def versions(is_moved):
    """(dump, recording): versions of one name, each with a sample where it was loaded or moved."""
    def shape(count):
        data = PerfData()
        data.comm(7, b"node")
        data.mmap(7, BEGIN, 1 << 30, ANONYMOUS)
        dump = [HEADER]
        for i in range(count):
            at = BEGIN + 64 * i
            first = at + (1 << 29) if is_moved else at
            dump.append(load(i + 1, i, b"f", b"\x90" * 31 + b"\xc3", first))
            if is_moved:
                dump.append(struct.pack("<IIQIIQQQQQ", 1, 64, i, 7, 7, at, first, at, 32, i + 1))
            data.sample(7, at + 4)
        return b"".join(dump), data.to_bytes()
    return shape


def filled(head, unit, tail, size):
    return (head + unit * max(0, (size - len(head) - len(tail)) // len(unit)) + tail).encode()


RECORDING, MANIFEST = '{"schema":"perfmap.recording/1",', '{"schema":"perfmap.snapshot/1","pid":7,'
# Of recording.json and manifest.json: (shape, generator of a text of that many bytes).
DESCRIPTIONS = {
    "recording": (("deep", lambda size: filled("", "[", "", size)),
                  ("wide", lambda size: filled(RECORDING + '"modules":[],"files":[{}', ",{}", "]}", size)),
                  ("repeated", lambda size: filled(RECORDING + '"x":[[]', ",[]", "]}", size))),
    "snapshot": (("deep", lambda size: filled("", "[", "", size)),
                 ("wide", lambda size: filled(MANIFEST + '"modules":[{}', ",{}", "]}", size)),
                 ("repeated", lambda size: filled(MANIFEST + '"x":[{}', ",{}", "]}", size))),
}

def readers(names):
    """(reader, shape, what, command, generator, count at factor 1, most bytes a byte or None)"""
    lint, info = ["lint", INPUT], ["info", INPUT]
    yield "map", "deep", "nested ranges, lint", lint, formats.nested_map, 8000, None
    yield "map", "wide", "long names, info", info, map_of_long_names, 10000, None
    yield "map", "repeated", "one name, lint", lint, map_of_one_name, 30000, None
    yield "map", "repeated", "one name, diff", ["diff", names, INPUT], map_of_one_name, 10000, None
    yield "jitdump", "deep", "nested functions, info", info, nested_dump, 10000, None
    yield "jitdump", "deep", "nested functions, ELF", ["convert", "--to", "elf", "-o", "out", INPUT], nested_dump, 4000, None
    yield "jitdump", "wide", "damage between records, lint", lint, damaged_dump, 10000, None
    yield "jitdump", "repeated", "one time, lint", lint, dump_of_one_time, 10000, None
    yield ("jitdump", "repeated", "one time, merge", ["merge", "--to", "jitdump", "-o", "out", INPUT, INPUT],
           dump_of_one_time, 3000, None)
    yield "jitdump", "repeated", "moves of one function, info", info, dump_of_moves, 12000, None
    yield "JSON", "deep", "arrays, from-json", ["from-json", INPUT], deep_json, 2000, None
    yield ("JSON", "wide", "a dump backwards, from-json", ["from-json", "--to", "jitdump", "-o", "out", INPUT],
           json_backwards, 3000, None)
    yield "JSON", "repeated", "equal entries, from-json", ["from-json", INPUT], equal_json, 6000, None
    yield "PyPy log", "deep", "sections, folded", ["pypylog", INPUT, "--format", "folded"], log_of_depth, 4000, None
    yield "PyPy log", "wide", "threads", ["pypylog", INPUT], log_of_threads, 3000, None
    yield "PyPy log", "wide", "guards", ["pypylog", INPUT], log_of_guards, 10000, None
    yield "PyPy log", "wide", "categories, html", ["pypylog", INPUT, "--format", "html"], log_of_categories, 4000, None
    yield "PyPy log", "repeated", "one loop", ["pypylog", INPUT], log_of_one_loop, 6000, None
    yield "pprof", "deep", "stacks of 8000 locations", ["report", INPUT], profile_of_stacks(8000), 12, None
    yield "pprof", "wide", "processes", ["stacks", INPUT, "-m", names], profile_of_processes, 3000, None
    yield "pprof", "wide", "ids that are alike", ["stacks", INPUT, "-m", names], profile_of_ids, 4000, None
    yield "pprof", "repeated", "one stack", ["report", INPUT], profile_of_stacks(20), 3000, None
    for command in ("report", "stacks", "doctor"):
        yield "perf.data", "deep", f"one stack of 8000 frames, {command}", [command, INPUT], same_deep_stack, 31, 8
        yield "perf.data", "wide", f"distinct stacks, {command}", [command, INPUT], distinct_stacks, 500, None
        yield "perf.data", "repeated", f"one stack, {command}", [command, INPUT], same_stack, 3000, 8
    yield "perf.data", "wide", "distinct stacks of 8000 frames, report", ["report", INPUT], deep_stacks, 4, None


def scripts():
    """The same for commands that read standard input."""
    words = ["resolve", "--perf-script"]
    yield "perf script", "deep", "stacks of 8000 frames", words, script_of_stacks(8000), 1, None
    yield "perf script", "wide", "processes", words, script_of_processes, 500, None
    yield "perf script", "repeated", "one stack", words, script_of_stacks(20), 500, None


def annotations():
    """(shape, what, generator, count at factor 1)"""
    yield "repeated", "versions of one name, annotate", versions(False), 1000
    yield "repeated", "versions of one name that were moved, annotate", versions(True), 1000


def title(reader, shape, what):
    return f"{reader}, {shape}: {what}"


DESCRIBED = {"recording": ("recording.json", "report"), "snapshot": ("manifest.json", "info")}


def titles():
    """Of those that docs/limits.md has rows of."""
    made = {title(*case[:3]) for case in readers("names") if case[6] is not None}
    made |= {title("perf.data", *case[:2]) for case in annotations()}
    return made | {title(file, shape, command) for kind, (file, command) in DESCRIBED.items()
                   for shape, _ in DESCRIPTIONS[kind]}


def run_annotations(growth, perfmap, place):
    """The dump is a part of the input."""
    for shape, what, generator, count in annotations():
        def both(factor, generator=generator, count=count):
            dump, data = generator(count * factor or 1)
            (place / "versions.dump").write_bytes(dump)
            return data

        growth.run(title("perf.data", shape, what),
                   [perfmap, "annotate", INPUT, "f", "-q", "-j", place / "versions.dump"], both, max_bytes=40)


def run_descriptions(growth, perfmap, place):
    """Texts that are refused need no more than others."""
    (place / "recording").mkdir()
    (place / "recording/perf.data").write_bytes(formats.recording(10))
    kept = {"recording": place / "recording", "snapshot": formats.snapshot(place)}
    for kind, (file, command) in DESCRIBED.items():
        script = f"cp -r {kept[kind]}/. . && " + '"$@" || [ $? = 2 ]'
        for shape, made in DESCRIPTIONS[kind]:
            growth.run(title(file, shape, command), in_shell(perfmap, script, command, "."),
                       lambda factor, made=made: made(max(200, factor * 200_000)), name=file, max_bytes=24)


def check_shapes():
    shapes = {}
    for reader, shape, *_ in (*readers("names"), *scripts()):
        shapes.setdefault(reader, set()).add(shape)
    for kind, (file, _) in DESCRIBED.items():
        shapes[file] = {shape for shape, _ in DESCRIPTIONS[kind]}
    for reader, found in shapes.items():
        assert found == {"deep", "wide", "repeated"}, (reader, found)


def main():
    check_shapes()
    measured, perfmap = arguments()
    perfmap = str(pathlib.Path(perfmap).resolve())
    growth = SteadyGrowth(measured)
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        names = place / "names.map"
        names.write_bytes(perf_map(1000))
        growth.run_all((title(*case[:3]), [perfmap, *case[3]], grown(*case[4:6]), MAX_EXPONENT, case[6])
                       for case in readers(names))
        growth.run_all((title(*case[:3]), in_shell(perfmap, 'exec "$@" <input', *case[3]), grown(*case[4:6]))
                       for case in scripts())
        run_annotations(growth, perfmap, place)
        run_descriptions(growth, perfmap, place)
    sys.exit(growth.finish())


if __name__ == "__main__":
    main()
