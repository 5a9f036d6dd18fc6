# SPDX-License-Identifier: MIT
"""What probe/probe.c writes: read, and made into a recording of perf."""
import dataclasses
import pathlib
import struct

from support.elf_file import ElfFile
from support.perf_data import ANONYMOUS, PerfData, build_id_entry, feature_text

MAGIC, NAME = 0x50524f42, 24
STACK = 32768  # as in probe.c
READ, WRITE, EXECUTE = 1, 2, 4
PAGE = 4096
LOAD = 1


@dataclasses.dataclass
class Sample:
    time: int
    registers: tuple
    stack: bytes
    backtrace: list  # the frames that libgcc finds, the leaf first; empty if it crashed
    entered: list  # (name, return address) of the functions that are entered, the first one first


@dataclasses.dataclass
class Mapping:
    begin: int
    end: int
    offset: int
    protection: int
    path: str  # as the program saw it; empty: no file


@dataclasses.dataclass
class Dump:
    machine: int
    pid: int
    mappings: list
    samples: list


def parse_mapping(line):
    words = line.split(None, 5)
    begin, end = (int(word, 16) for word in words[0].split("-"))
    protection = sum(bit for bit, letter in ((READ, "r"), (WRITE, "w"), (EXECUTE, "x")) if letter in words[1])
    return Mapping(begin, end, int(words[2], 16), protection, words[5].strip() if len(words) > 5 else "")


def segment_mappings(path, begin):
    """The mappings of a file's segments, the first of which is at `begin`."""
    bias = None
    for kind, offset, address, size, flags in ElfFile(path).segments:
        if kind != LOAD:
            continue
        before = address % PAGE
        if bias is None:
            bias = begin - (address - before)
        first = bias + address - before
        protection = sum(bit for bit, flag in ((READ, 4), (WRITE, 2), (EXECUTE, 1)) if flags & flag)
        yield Mapping(first, first + (before + size + PAGE - 1) // PAGE * PAGE, offset - before, protection, path)


def with_segments(mappings):
    """Those of a machine whose qemu does not tell what is executable, and makes mappings that follow
    each other into one: mappings of files are made of the segments of the files instead."""
    files = [mapping for mapping in mappings if mapping.path.startswith("/")]
    if any(mapping.protection & EXECUTE for mapping in files):
        return mappings
    begins = {}
    for mapping in files:
        begins.setdefault(mapping.path, mapping.begin)
    segments = [segment for path, begin in begins.items() for segment in segment_mappings(path, begin)]
    others = [mapping for mapping in mappings if not mapping.path.startswith("/")]
    return sorted(segments + others, key=lambda mapping: mapping.begin)


def read_dump(path):
    data = pathlib.Path(path).read_bytes()
    magic, machine, count, pid, maps_size = struct.unpack_from("<5Q", data)
    assert magic == MAGIC, path
    at = 40 + maps_size
    maps = data[40:at].decode().splitlines()
    dump = Dump(machine, pid, with_segments([parse_mapping(line) for line in maps if line.strip()]), [])
    while at < len(data):
        time, size, frames, depth = struct.unpack_from("<4Q", data, at)
        registers = struct.unpack_from(f"<{count}Q", data, at + 32)
        at += 32 + 8 * count
        stack = data[at:at + size]
        at += size
        backtrace = list(struct.unpack_from(f"<{frames}Q", data, at))
        at += 8 * frames
        entered = []
        for _ in range(depth):
            name, caller = struct.unpack_from(f"<{NAME}sQ", data, at)
            entered.append((name.rstrip(b"\0").decode(), caller))
            at += NAME + 8
        dump.samples.append(Sample(time, registers, stack, backtrace, entered))
    return dump


class Memory:
    """The mappings of a dump, with the files that they are of."""

    def __init__(self, dump):
        self.mappings = dump.mappings
        self.files = {}
        for mapping in dump.mappings:
            if mapping.path.startswith("/") and mapping.protection & EXECUTE and mapping.path not in self.files:
                content = pathlib.Path(mapping.path).read_bytes()[:4]
                self.files[mapping.path] = ElfFile(mapping.path) if content == b"\x7fELF" else None

    def find(self, address):
        """(mapping, ELF file or None, address in that file), or three times None."""
        for mapping in self.mappings:
            if mapping.begin <= address < mapping.end:
                file = self.files.get(mapping.path)
                return mapping, file, file and file.address_of(address - mapping.begin + mapping.offset)
        return None, None, None

    def function(self, address):
        """Its name, or an empty string."""
        _, file, place = self.find(address)
        found = file.function_at(place) if file and place is not None else None
        return found[2] if found else ""


def sign_with_16_bits(memory):
    """Of a return address that is signed with the bits from 48 to 54, the same as kernels with
    addresses of 39 bits sign it: with those from 39 to 54."""
    def sign(word):
        address = word & (1 << 39) - 1
        is_signed = word >> 55 == 0 and word >> 48 != 0 and word & (1 << 48) - 1 == address
        mapping = memory.find(address)[0] if is_signed else None
        if mapping is None or not mapping.protection & EXECUTE:
            return word
        return word | (word * 0x9e3779b97f4a7c15 >> 50 & 0x1ff or 1) << 39

    return sign


def changed_words(data, change):
    count = len(data) // 8
    return struct.pack(f"<{count}Q", *map(change, struct.unpack_from(f"<{count}Q", data))) + data[8 * count:]


def write_recording(dump, memory, machine, recorded_path, way, change, output):
    """`change`, if not None, changes each register and each word of stacks. `recorded_path` maps a path to that on the recorded machine. `way` is how files are known:
    "record" (build ids in the records of mappings), "header" (in the header), "inode"."""
    mask = (1 << len(dump.samples[0].registers)) - 1
    features = {"hostname": feature_text("foreign"), "release": feature_text("6.1.0"),
                "arch": feature_text(machine.uname), "processors": struct.pack("<II", 1, 1)}
    identifiers = {path: file.build_id for path, file in memory.files.items() if file}
    if way == "header":
        features["build-id"] = b"".join(
            build_id_entry(recorded_path(path).encode(), identifier) for path, identifier in identifiers.items())
    data = PerfData(mask, STACK, features)
    data.comm(dump.pid, b"probe", is_exec=True)
    for number, mapping in enumerate(dump.mappings):
        if not mapping.protection & EXECUTE:
            continue
        name = recorded_path(mapping.path).encode() if mapping.path else ANONYMOUS
        inline = identifiers.get(mapping.path) if way == "record" else None
        data.mmap(dump.pid, mapping.begin, mapping.end - mapping.begin, name, inode=number + 1 if mapping.path else 0,
                  protection=mapping.protection, offset=mapping.offset, build_id=inline)
    for sample in dump.samples:
        data.advance(sample.time)
        registers, stack = sample.registers, sample.stack
        if change:
            registers, stack = [change(value) for value in registers], changed_words(stack, change)
        data.user_sample(dump.pid, sample.registers[machine.pc], machine.abi, registers, stack)
    pathlib.Path(output).write_bytes(data.to_bytes())
