#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes recordings as a fleet has them: make_recordings.py CORPUS DIRECTORY COUNT

CORPUS is tests/wild. Two services, in two builds each, run on COUNT / 5 hosts. A recording has its own host name, pids
and time, and a random part of the samples of a real recording; the second build of a service runs the hottest page of
its code half as often. A fifth of the hosts have no perf maps, so their JIT code has no names. DIRECTORY gets

    REC.data      recordings
    maps/         perf-PID.map of their processes
    recordings    the list for perfmap stacks --recordings: a path, and labels for the service and the build
"""
import collections
import pathlib
import random
import shutil
import struct
import sys

HOSTNAME, CLOCK_DATA = 3, 29  # features
IP, TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER = 1, 2, 4, 64, 512, 128, 1 << 16  # sample_type
MMAP, COMM, EXIT, FORK, SAMPLE, MMAP2 = 1, 3, 4, 7, 9, 10
# How many pids and tids a record begins with.
PIDS = {MMAP: 2, COMM: 2, EXIT: 4, FORK: 4, MMAP2: 2}
MINUTE = 60_000_000_000
SERVICES = [  # service, build, recording, perf map
    ("tally", "1.0", "tally/perf.data", None),
    ("tally", "1.1", "tally/perf.data", None),
    ("web", "7", "node/perf-603.data", "node/perf-603.map"),
    ("web", "8", "node/perf-603.data", "node/perf-603.map"),
]


class Recording:
    """perf.data of one event. Source: Linux, tools/perf/Documentation/perf.data-file-format.txt."""

    def __init__(self, data):
        self.head = bytearray(data[:104])
        attrs, attrs_size, begin, size = struct.unpack_from("<QQQQ", data, 24)
        self.attrs = data[104:begin]
        self.type = struct.unpack_from("<Q", data, attrs + 24)[0]
        self.records = list(split(data[begin:begin + size]))
        self.features = {}
        table = begin + size
        for feature in range(256):
            if data[72 + feature // 8] >> feature % 8 & 1:
                at, length = struct.unpack_from("<QQ", data, table)
                self.features[feature] = bytearray(data[at:at + length])
                table += 16

    def write(self, path):
        body = b"".join(self.records)
        begin = 104 + len(self.attrs)
        struct.pack_into("<QQ", self.head, 40, begin, len(body))
        at = begin + len(body) + 16 * len(self.features)
        table = b""
        for section in self.features.values():
            table += struct.pack("<QQ", at, len(section))
            at += len(section)
        path.write_bytes(self.head + self.attrs + body + table + b"".join(self.features.values()))

    def kind(self, record):
        return struct.unpack_from("<I", record)[0]

    def sample_offset(self, field):
        """Of a field at the beginning of a sample: the ip, or pid and tid."""
        return 8 + (8 if self.type & IDENTIFIER else 0) + (8 if field == TID and self.type & IP else 0)

    def trailer_size(self):
        return 8 * sum(bool(self.type & bit) for bit in (TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER))

    def processes(self):
        """Pids by their number of samples."""
        pids = collections.Counter()
        for record in self.records:
            if self.kind(record) == SAMPLE:
                pids[struct.unpack_from("<I", record, self.sample_offset(TID))[0]] += 1
        return [pid for pid, _ in pids.most_common()]

    def hottest_page(self):
        ips = collections.Counter(self.page(record) for record in self.records if self.kind(record) == SAMPLE)
        return ips.most_common(1)[0][0]

    def page(self, sample):
        return struct.unpack_from("<Q", sample, self.sample_offset(IP))[0] >> 12

    def rename(self, pids):
        """Changes pids, and tids that are equal to one, in all records."""
        self.records = [self.renamed(bytearray(record), pids) for record in self.records]

    def renamed(self, record, pids):
        kind = self.kind(record)
        offsets = [8 + 4 * i for i in range(PIDS.get(kind, 0))]
        if kind == SAMPLE:
            offsets = [self.sample_offset(TID), self.sample_offset(TID) + 4]
        elif kind < 64:
            end = len(record) - self.trailer_size()
            offsets += [end, end + 4]
        for offset in offsets:
            known = struct.unpack_from("<I", record, offset)[0]
            struct.pack_into("<I", record, offset, pids.get(known, known))
        return record

    def set_host(self, name):
        section = self.features[HOSTNAME]
        room = struct.unpack_from("<I", section)[0]
        section[4:] = name.encode().ljust(room, b"\0")

    def move(self, nanoseconds):
        """Moves the time of day."""
        section = self.features[CLOCK_DATA]
        wall = struct.unpack_from("<Q", section, 8)[0]
        struct.pack_into("<Q", section, 8, wall + nanoseconds)


def split(data):
    at = 0
    while at < len(data):
        size = struct.unpack_from("<H", data, at + 6)[0]
        yield data[at:at + size]
        at += size


def make(corpus, directory, number, hosts):
    """Writes a recording, and returns its line of the list."""
    rng = random.Random(number)
    service, build, source, perf_map = SERVICES[number % len(SERVICES)]
    host = number // len(SERVICES) % hosts
    one = Recording((corpus / source).read_bytes())
    # The processes of a recording have pids that no other recording has.
    pids = {pid: 10_000 + 16 * number + i for i, pid in enumerate(one.processes())}
    hottest = one.hottest_page()
    keep = 0.5 + rng.random() / 2
    is_second = SERVICES[number % len(SERVICES)][1] in ("1.1", "8")

    def is_kept(record):
        if one.kind(record) != SAMPLE:
            return True
        return rng.random() < keep * (0.5 if is_second and one.page(record) == hottest else 1)

    one.records = [record for record in one.records if is_kept(record)]
    one.rename(pids)
    one.set_host(f"host-{host:04}")
    one.move(number // (len(SERVICES) * hosts) * MINUTE)
    path = directory / f"{service}-{build}-{number:05}.data"
    one.write(path)
    if perf_map and host % 5 != 0:
        pid = int(perf_map.rsplit("-", 1)[1].split(".")[0])
        shutil.copy(corpus / perf_map, directory / "maps" / f"perf-{pids[pid]}.map")
    return f"{path}\tservice={service}\tbuild={build}\n"


def main():
    corpus, directory, count = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    (directory / "maps").mkdir(parents=True, exist_ok=True)
    lines = [make(corpus, directory, number, max(count // 5, 1)) for number in range(count)]
    (directory / "recordings").write_text("".join(lines))


main()
