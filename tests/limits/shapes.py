# SPDX-License-Identifier: MIT
"""shapes.py MEASURED PERFMAP [--time]: inputs made by an attacker. Their costs grow like those of ordinary ones."""
import pathlib
import struct
import sys
import tempfile

from formats import BEGIN, SteadyGrowth, in_shell, load, message, number, perf_map, shuffled, varint
from growth import INPUT, arguments, grown

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


def cases(names):
    """(title, command, generator, count at factor 1)"""
    yield "PyPy log of many threads", ["pypylog", INPUT], log_of_threads, 3000
    yield "PyPy log of many guards", ["pypylog", INPUT], log_of_guards, 10000
    yield "PyPy log of many categories", ["pypylog", INPUT, "--format", "html"], log_of_categories, 4000
    yield "PyPy log of deep sections", ["pypylog", INPUT, "--format", "folded"], log_of_depth, 4000
    yield "map of one name, diff", ["diff", names, INPUT], map_of_one_name, 10000
    yield "map of one name, lint", ["lint", INPUT], map_of_one_name, 30000
    yield "map of long names", ["info", INPUT], map_of_long_names, 10000
    yield "dump of one time", ["lint", INPUT], dump_of_one_time, 10000
    yield "dump of one time, merged", ["merge", "--to", "jitdump", "-o", "out", INPUT, INPUT], dump_of_one_time, 3000
    yield "dump of moves", ["info", INPUT], dump_of_moves, 12000
    yield "nested dump", ["info", INPUT], nested_dump, 10000
    yield "nested dump to ELF", ["convert", "--to", "elf", "-o", "out", INPUT], nested_dump, 4000
    yield "damaged dump", ["lint", INPUT], damaged_dump, 10000
    yield "JSON of a dump backwards", ["from-json", "--to", "jitdump", "-o", "out", INPUT], json_backwards, 3000
    yield "profile of many processes", ["stacks", INPUT, "-m", names], profile_of_processes, 3000
    yield "profile of ids that are alike", ["stacks", INPUT, "-m", names], profile_of_ids, 4000


def main():
    measured, perfmap = arguments()
    perfmap = str(pathlib.Path(perfmap).resolve())
    growth = SteadyGrowth(measured)
    with tempfile.TemporaryDirectory() as folder:
        names = pathlib.Path(folder) / "names.map"
        names.write_bytes(perf_map(1000))
        growth.run_all((title, [perfmap, *words], grown(shape, count)) for title, words, shape, count in cases(names))
        growth.run("perf script text of many processes",
                   in_shell(perfmap, 'exec "$@" <input', "resolve", "--perf-script"),
                   lambda factor: script_of_processes(factor * 500))
    sys.exit(growth.finish())


if __name__ == "__main__":
    main()
