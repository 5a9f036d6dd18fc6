# SPDX-License-Identifier: MIT
"""What tests have to know of an ELF file: sections, functions, build id, and which code has
unwinding rules. Little-endian files only; files are those of a compiler, so nothing is checked."""
import bisect
import pathlib
import struct


class ElfFile:
    def __init__(self, path):
        self.bytes = pathlib.Path(path).read_bytes()
        assert self.bytes[:4] == b"\x7fELF" and self.bytes[5] == 1, path
        self.is_64 = self.bytes[4] == 2
        self.machine = self._read("<H", 18)[0]
        header = self._read("<QQQ" if self.is_64 else "<III", 24)
        self.entry, self._segments_at, self._sections_at = header
        sizes = self._read("<6H", 52 if self.is_64 else 40)
        self.segments = [self._segment(self._segments_at + i * sizes[1]) for i in range(sizes[2])]
        self.sections = self._sections(sizes[3], sizes[4], sizes[5])
        self.functions = sorted(self._functions())
        self._rules = None

    def _read(self, form, at):
        return struct.unpack_from(form, self.bytes, at)

    def _segment(self, at):
        """(type, offset, address, size in the file, flags)"""
        if self.is_64:
            kind, flags, offset, address, _, size = self._read("<IIQQQQ", at)
        else:
            kind, offset, address, _, size, _, flags = self._read("<7I", at)
        return kind, offset, address, size, flags

    def _sections(self, size, count, names):
        """{name: (type, address, offset, size, link)}"""
        form = "<IIQQQQI" if self.is_64 else "<IIIIIII"
        rows = [self._read(form, self._sections_at + i * size) for i in range(count)]
        strings = rows[names][4] if rows else 0
        self._rows = rows
        found = {}
        for name, kind, _, address, offset, length, link in rows:
            found[self._text(strings + name)] = (kind, address, offset, length, link)
        return found

    def _text(self, at):
        return self.bytes[at:self.bytes.index(b"\0", at)].decode()

    def _functions(self):
        """(address, size, name); of Thumb code without the lowest bit."""
        for _, kind, _, _, offset, size, link in self._rows:
            if kind not in (2, 11):  # SHT_SYMTAB, SHT_DYNSYM
                continue
            strings = self._rows[link][4]
            for at in range(offset, offset + size, 24 if self.is_64 else 16):
                if self.is_64:
                    name, info, _, section, value, length = self._read("<IBBHQQ", at)
                else:
                    name, value, length, info, _, section = self._read("<IIIBBH", at)
                if info & 15 == 2 and section != 0:
                    yield (value & ~1 if self.machine == 40 else value), length, self._text(strings + name)

    @property
    def build_id(self):
        _, _, offset, size, _ = self.sections.get(".note.gnu.build-id", (0, 0, 0, 0, 0))
        return self.bytes[offset + 16:offset + size]

    def address_of(self, offset):
        for kind, begin, address, size, _ in self.segments:
            if kind == 1 and begin <= offset < begin + size:
                return address + offset - begin
        return None

    def section_at(self, address):
        for name, (_, begin, _, size, _) in self.sections.items():
            if begin and begin <= address < begin + size:
                return name
        return None

    def function_at(self, address):
        """(address, size, name) or None."""
        i = bisect.bisect_right(self.functions, (address, 1 << 64, "")) - 1
        if i >= 0 and address < self.functions[i][0] + max(1, self.functions[i][1]):
            return self.functions[i]
        return None

    def has_rules(self, address):
        if self._rules is None:
            self._rules = self.rule_ranges()
        i = bisect.bisect_right(self._rules, (address, 1 << 64)) - 1
        return i >= 0 and address < self._rules[i][1]

    def rule_ranges(self):
        """[(begin, end)], by address"""
        return sorted(self._eh_frame() if self.machine != 40 else self._exidx())

    def _eh_frame(self):
        """The ranges of FDEs. Their addresses are pc-relative, in words of 4 or 8 bytes."""
        _, begin, offset, size, _ = self.sections.get(".eh_frame", (0, 0, 0, 0, 0))
        at = offset
        while at + 8 <= offset + size:
            length, cie = self._read("<II", at)
            if length == 0:
                return
            if cie != 0:
                form = "<qQ" if self._encoding(at + 4 - cie) & 15 == 0 else "<iI"
                relative, count = self._read(form, at + 8)
                first = begin + at + 8 - offset + relative
                yield first, first + count
            at += 4 + length

    def _encoding(self, cie):
        """Of a CIE with R in its augmentation, whose data is then last; numbers before are a byte each."""
        augmentation_end = self.bytes.index(b"\0", cie + 9)
        size = augmentation_end + 4
        return self.bytes[size + self.bytes[size]]

    def _exidx(self):
        """The ranges of .ARM.exidx that can be unwound."""
        _, begin, offset, size, _ = self.sections.get(".ARM.exidx", (0, 0, 0, 0, 0))
        rows = []
        for at in range(offset, offset + size, 8):
            relative, content = self._read("<II", at)
            relative -= (relative & 1 << 30) << 1
            rows.append(((begin + at - offset + relative) & 0xffffffff, content != 1))
        for (first, is_known), (end, _) in zip(rows, [*rows[1:], (1 << 32, False)]):
            if is_known:
                yield first, end
