# SPDX-License-Identifier: MIT
"""Compares the names of all JIT frames that perf prints of a recording that `perfmap inject` wrote with the dump's own
records, for an image whose frames do not fit below its code: inject_names.py PERFMAP

Exit status 77: perf or node is not installed, or perf may not record.
"""
import bisect
import collections
import os
import pathlib
import re
import shutil
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from elf_file import ElfFile
from named_frames import run, skip, without_offset
from perf_record import PERF_RECORD
from trying import require_samples

perfmap = os.path.abspath(sys.argv[1])
PAGE = 4096  # where the code of an image begins
PROGRAM = """
const all = [];
for (let i = 0; i < 300; ++i) {
  all.push(eval(`(function hot${i}(n) { let s = ${i}; for (let k = 0; k < n; ++k) s = (s * 31 + k) | 0; return s; })`));
}
let sum = 0;
while (process.cpuUsage().user < 1.5e6) for (const hot of all) sum += hot(3000);
console.log(sum !== 0.5);
"""


class Names:
    """What a dump loads and moves, in the order of its records."""

    def __init__(self, path):
        content = path.read_bytes()
        self.events = []  # (time, begin, end, name)
        loaded = {}
        at = struct.unpack_from("<I", content, 8)[0]
        while at + 16 <= len(content):
            kind, size, time = struct.unpack_from("<IIQ", content, at)
            if kind == 0:
                begin, length, index = struct.unpack_from("<8x8xQQQ", content, at + 16)
                name = content[at + 56:content.index(b"\0", at + 56)].decode(errors="replace")
                loaded[index] = name
                self.events.append((time, begin, begin + length, name))
            elif kind == 1:
                begin, length, index = struct.unpack_from("<8x8x8xQQQ", content, at + 16)
                self.events.append((time, begin, begin + length, loaded.get(index)))
            at += size
        assert self.events, path
        self.events.sort(key=lambda event: event[0])
        self.times = [event[0] for event in self.events]

    def at(self, address, time):
        for _, begin, end, name in reversed(self.events[:bisect.bisect_right(self.times, time)]):
            if begin <= address < end:
                return name
        return None


def frames(recording):
    """The frames of each thread and time in nanoseconds: (address, name, file)."""
    found = {}
    text = run("perf", "script", "-f", "--no-inline", "--ns", "-i", recording, "-F", "tid,time,ip,sym,dso")
    for line in text.splitlines():
        if sample := re.match(r"\s*(\d+)\s+(\d+)\.(\d{9}):", line):
            stack = found.setdefault((int(sample[1]), int(sample[2]) * 10**9 + int(sample[3])), [])
        elif frame := re.match(r"\s+([0-9a-f]+) (.*) \(([^()]*)\)$", line):
            stack.append((int(frame[1], 16), frame[2], frame[3]))
    return found


for tool in ("perf", "node"):
    if not shutil.which(tool):
        skip(f"no {tool} here")
with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    pathlib.Path("app.js").write_text(PROGRAM)
    try:
        run(*PERF_RECORD, "-e", "cpu-clock", "-k", "mono", "-o", "probe.data", "true")
    except AssertionError:
        skip("perf may not record here")
    run(*PERF_RECORD, "-e", "cpu-clock", "-F", "499", "-k", "mono", "-g", "-o", "perf.data",
        "node", "--perf-prof", "--interpreted-frames-native-stack", "app.js")
    run(perfmap, "inject", "perf.data", "-o", "ours.data", "--any-owner")
    dump, = pathlib.Path(work).glob("jit-*.dump")
    image, = pathlib.Path(work).glob("ours.data.jitted-*")
    size = ElfFile(image).sections[".eh_frame"][3]
    assert size > PAGE, f"frames of {size} bytes fit below the code: the program needs more functions"

    names = Names(dump)
    checked = 0
    wrong = collections.Counter()
    left = []
    recorded = frames("perf.data")
    for (tid, time), stack in frames("ours.data").items():
        # Of code in files, perf prints addresses in those.
        addresses = [address for address, _, _ in recorded[tid, time]]
        assert len(addresses) == len(stack), (recorded[tid, time], stack)
        for address, (_, name, file) in zip(addresses, stack):
            # A caller's frame has its return address, which may be the first byte of the next function.
            expected = {names.at(address, time), names.at(address - 1, time)}
            if "/ours.data.jitted-" in file:
                checked += 1
                if without_offset(name) not in expected:
                    wrong[name, *sorted(map(str, expected))] += 1
            elif name == "[unknown]" and expected != {None}:
                left.append((hex(address), file, expected))
    for case, count in wrong.most_common(10):
        print(f"{count} x perf prints {case[0]!r}, the dump has {case[1:]}")
    print(f"{checked} frames of JIT code, {size} bytes of .eh_frame, {wrong.total()} frames with another name")
    assert not wrong, wrong.total()
    require_samples(checked, 200, "JIT code")
    assert not left, left[:10]
