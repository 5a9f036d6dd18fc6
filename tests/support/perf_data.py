# SPDX-License-Identifier: MIT
"""Recordings of perf made from records, as tests need them: perf never writes most of these."""
import struct

IP, TID, TIME, CALLCHAIN, PERIOD = 1, 2, 4, 32, 256
REGS_USER, STACK_USER = 1 << 12, 1 << 13
USER, EXEC, HAS_BUILD_ID, HAS_SIZE = 2, 0x2000, 0x4000, 0x8000
FEATURES = {"build-id": 2, "hostname": 3, "release": 4, "arch": 6, "processors": 7}
USER_CONTEXT = 2**64 - 512
ANONYMOUS = b"//anon"


def padded(text):
    return text + b"\0" * (8 - len(text) % 8)


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def feature_text(text):
    data = text.encode() + b"\0"
    return struct.pack("<I", -(-len(data) // 64) * 64) + data.ljust(-(-len(data) // 64) * 64, b"\0")


def build_id_entry(name, build_id):
    """An entry of the feature build-id: a file of user space, for all processes."""
    body = struct.pack("<i", -1) + build_id.ljust(20, b"\0") + struct.pack("<BBH", len(build_id), 0, 0)
    return record(67, USER | HAS_SIZE, body + name + b"\0" * (64 - len(name) % 64))


class PerfData:
    """Records in the order of the calls; each gets the next time. `registers` and `stack` are the
    mask of registers and the bytes of the stack that each sample has; `features` is {word of
    FEATURES: bytes}. With registers, times are those of CLOCK_MONOTONIC."""

    def __init__(self, registers=0, stack=0, features=None):
        self.records = []
        self.time = 0
        self.registers = registers
        self.stack = stack
        self.features = features or {}
        self.has_build_ids = False

    def advance(self, time):
        """The next record has this time, if that is later than the last one's."""
        self.time = max(self.time, time - 1)

    def _add(self, kind, misc, pid, tid, body):
        sample_id = struct.pack("<IIQ", pid, tid, self.time)
        self.records.append(record(kind, misc, body + sample_id))

    def comm(self, pid, name, tid=None, is_exec=False):
        self.time += 1
        tid = pid if tid is None else tid
        self._add(3, EXEC if is_exec else 0, pid, tid, struct.pack("<II", pid, tid) + padded(name))

    def fork(self, pid, parent):
        self.time += 1
        self._add(7, 0, pid, pid, struct.pack("<IIIIQ", pid, parent, pid, parent, self.time))

    def exit(self, pid, parent=0):
        self.time += 1
        self._add(4, 0, pid, pid, struct.pack("<IIIIQ", pid, parent, pid, parent, self.time))

    def mmap(self, pid, begin, size, name, inode=0, protection=5, offset=0, build_id=None):
        """A file with a build id, which may be at most 20 bytes, has no inode."""
        self.time += 1
        misc = USER | (HAS_BUILD_ID if build_id else 0)
        self.has_build_ids |= build_id is not None
        file = (struct.pack("<BBH", len(build_id), 0, 0) + build_id.ljust(20, b"\0") if build_id else
                struct.pack("<IIQQ", 8, 1, inode, 0))
        self._add(10, misc, pid, pid, struct.pack("<IIQQQ", pid, pid, begin, size, offset) + file
                  + struct.pack("<II", protection, 2) + padded(name))

    def user_sample(self, pid, address, abi, registers, stack):
        """A sample without a callchain. `abi` is 1 for addresses of 32 bits, 2 for 64; `registers`
        are those of the mask in its order; of a stack that is too long, the rest is left out."""
        self.time += 1
        copied = stack[:self.stack]
        body = struct.pack("<QIIQQQQ", address, pid, pid, self.time, 1, 0, abi)
        body += struct.pack(f"<{len(registers)}Q", *registers)
        body += struct.pack("<Q", self.stack) + copied.ljust(self.stack, b"\0") + struct.pack("<Q", len(copied))
        self.records.append(record(9, USER, body))

    def sample(self, pid, address, chain=()):
        self.time += 1
        chain = (USER_CONTEXT, address, *chain)
        body = struct.pack("<QIIQQQ", address, pid, pid, self.time, 1, len(chain))
        self.records.append(record(9, USER, body + struct.pack(f"<{len(chain)}Q", *chain)))

    def to_bytes(self):
        header_size, attribute_size = 104, 128
        # disabled, mmap, comm, task, sample_id_all, mmap2, comm_exec
        flags = 1 | 1 << 8 | 1 << 9 | 1 << 13 | 1 << 18 | 1 << 23 | 1 << 24
        kind = IP | TID | TIME | CALLCHAIN | PERIOD
        if self.registers:
            kind |= REGS_USER | STACK_USER
            flags |= 1 << 22 | 1 << 25  # exclude_callchain_user, use_clockid
        if self.has_build_ids:
            flags |= 1 << 34
        attribute = struct.pack("<IIQQQQQ", 0, attribute_size, 0, 1000, kind, 0, flags).ljust(80, b"\0")
        clock = 1 if self.registers else 0  # CLOCK_MONOTONIC
        attribute += struct.pack("<QIi", self.registers, self.stack, clock)
        attribute = attribute.ljust(attribute_size, b"\0") + bytes(16)
        data = b"".join(self.records)
        at = header_size + len(attribute)
        bits, table, contents = 0, b"", b""
        features = sorted((FEATURES[word], content) for word, content in self.features.items())
        place = at + len(data) + 16 * len(features)
        for number, content in features:
            bits |= 1 << number
            table += struct.pack("<QQ", place + len(contents), len(content))
            contents += content
        return (b"PERFILE2" + struct.pack("<8Q", header_size, len(attribute), header_size, len(attribute),
                                          at, len(data), 0, 0)
                + struct.pack("<4Q", bits, 0, 0, 0) + attribute + data + table + contents)
