# SPDX-License-Identifier: MIT
"""Readers: maps, indexes of maps by address, timelines of jitdumps, and names."""
from __future__ import annotations

import contextlib
import ctypes
import enum
import itertools
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from . import _library
from ._library import Name, StrPath
from .errors import Status

_BATCH = 1024
TIME_END = 2**64 - 1


@dataclass(frozen=True)
class Entry:
    """A line of a map."""

    start: int
    size: int  #: 0: unknown; the first byte counts
    name: str  #: bytes that are not UTF-8 become surrogates ("surrogateescape")
    offset: int  #: of the line in its map, in bytes
    map_index: int = 0  #: which of an index's maps, from 0


def _entry(row: Any) -> Entry:
    return Entry(row.start, row.size, _library.to_text(row.name, row.name_size), row.offset, row.map)


class Severity(enum.IntEnum):
    INFO = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True)
class Finding:
    """What a lint rule found."""

    rule: str
    severity: Union[Severity, int]
    fixable: bool
    line: int  #: from 1
    column: int  #: in bytes, from 1
    offset: int
    message: str


class Map(_library.ClosableHandle):
    """A perf map: Map(path), Map.of_process(pid) or Map.from_bytes(data). Iterating gives its entries.

    A file that another process truncates raises SIGBUS in its reader unless a TruncationGuard lives.
    """

    def __init__(self, path: StrPath) -> None:
        self._own(_library.made(_library.core().perfmap_map_open, _library.to_path(path)))

    def _own(self, pointer: int) -> None:
        self._library = _library.core()
        super().__init__(pointer, self._library.perfmap_map_free)

    @classmethod
    def of_process(cls, pid: int) -> "Map":
        """The map of a process, also in a container."""
        made = cls.__new__(cls)
        made._own(_library.made(_library.core().perfmap_map_open_pid, pid))
        return made

    @classmethod
    def from_bytes(cls, data: bytes) -> "Map":
        made = cls.__new__(cls)
        made._own(_library.made(_library.core().perfmap_map_from_memory, data, len(data)))
        return made

    def __iter__(self) -> Iterator[Entry]:
        offset = ctypes.c_uint64()
        row = _library.new(self._library, "perfmap_entry")
        while True:
            with self._lock:
                if self._library.perfmap_map_next(self._handle, ctypes.byref(offset), ctypes.byref(row)):
                    return
                entry = _entry(row)
            yield entry

    def line_number(self, offset: int) -> int:
        """The number, from 1, of the line that begins at the offset."""
        with self._lock:
            return int(self._library.perfmap_map_line_number(self._handle, offset))

    @property
    def was_truncated(self) -> bool:
        """Whether another process has truncated the file, so that entries may be missing."""
        with self._lock:
            return bool(self._library.perfmap_map_was_truncated(self._handle))

    def lint(self, max_per_rule: int = 0) -> List[Finding]:
        """The findings, in the order of their lines; at most that many of each rule (0: all)."""
        found: List[Finding] = []
        type_ = self._library.structures["perfmap_finding"]

        def visit(finding: int, _context: Optional[int]) -> int:
            row: Any = type_.from_address(finding)
            found.append(Finding(
                _c_text(row.rule), _library.known(Severity, row.severity), bool(row.fixable), row.line,
                row.column, row.offset, _c_text(row.message)))
            return 0

        function = _library.Visit(visit)
        with self._lock:
            _library.check(self._library.perfmap_map_lint, self._handle, max_per_rule, function, None)
        return found


def _c_text(pointer: Optional[int]) -> str:
    return ctypes.string_at(pointer).decode("utf-8", "surrogateescape") if pointer else ""


class TruncationGuard(_library.ClosableHandle):
    """While it lives, bytes that a mapped file no longer has read as zeros, and raise no SIGBUS.

    It installs a signal handler for the process: make it once, before threads, and close guards in
    the reverse order.
    """

    def __init__(self) -> None:
        library = _library.core()
        super().__init__(_library.made(library.perfmap_truncation_guard_new), library.perfmap_truncation_guard_free)


class Overlap(enum.IntEnum):
    """Which entry wins where entries overlap."""

    LAST = 0
    FIRST = 1
    INNER = 2
    PERF = 3


class Index(_library.ClosableHandle):
    """Answers which entry covers an address. The maps, oldest first, may be closed afterwards."""

    def __init__(self, maps: Union[Map, Sequence[Map]], overlap: Overlap = Overlap.LAST) -> None:
        self._entry_type: Any = _library.core().structures["perfmap_entry"]
        given = [maps] if isinstance(maps, Map) else list(maps)
        self._library = library = _library.core()
        with contextlib.ExitStack() as locks:
            for one in sorted(set(given), key=id):  # in one order, so that no two threads wait for each other
                locks.enter_context(one._lock)
            handles = (ctypes.c_void_p * len(given))(*(one._handle for one in given))
            super().__init__(
                _library.made(library.perfmap_index_new, handles, len(given), overlap), library.perfmap_index_free)

    def find(self, address: int) -> Optional[Entry]:
        """The entry that covers the address."""
        row = self._entry_type(ctypes.sizeof(self._entry_type))
        with self._lock:
            status = self._library.perfmap_index_find(self._handle, address, ctypes.byref(row))
            return _entry(row) if status == Status.OK else None

    def find_all(self, addresses: Iterable[int]) -> Iterator[Optional[Entry]]:
        """The entries of many addresses, in their order."""
        rows = (self._entry_type * _BATCH)()
        numbers = (ctypes.c_uint64 * _BATCH)()
        remaining = iter(addresses)
        while batch := list(itertools.islice(remaining, _BATCH)):
            for i, address in enumerate(batch):
                numbers[i] = address
                rows[i].struct_size = ctypes.sizeof(self._entry_type)
            with self._lock:
                self._library.perfmap_index_find_batch(self._handle, numbers, len(batch), rows)
                answers = [_entry(rows[i]) if rows[i].name else None for i in range(len(batch))]
            yield from answers

    def refresh(self) -> int:
        """Takes in what was appended; 0: nothing, 1: entries, 2: the file was replaced."""
        changed = ctypes.c_int()
        with self._lock:
            _library.check(self._library.perfmap_index_refresh, self._handle, ctypes.byref(changed))
        return changed.value

    def write(self, path: StrPath) -> None:
        """Writes a map without overlaps, replacing the file at once or not at all."""
        with self._lock:
            _library.check(self._library.perfmap_index_write, self._handle, _library.to_path(path))


@dataclass(frozen=True)
class Code:
    """Code of a jitdump, as it was at an address at a time."""

    start: int
    size: int
    name: str
    since: int  #: the address belonged to it from this time on
    until: int  #: and no longer at this one; TIME_END: to the end
    offset: int  #: of its record in the dump
    index: int
    machine_code: Optional[bytes]  #: None: not in the dump


class Timeline(_library.ClosableHandle):
    """What a jitdump had at an address at a time: nanoseconds of CLOCK_MONOTONIC, or ticks."""

    def __init__(self, path: StrPath) -> None:
        self._library = library = _library.core()
        super().__init__(
            _library.made(library.perfmap_timeline_open, _library.to_path(path)), library.perfmap_timeline_free)

    def _find(self, address: int, time: int) -> Any:
        row = _library.new(self._library, "perfmap_code")
        status = self._library.perfmap_timeline_find(self._handle, address, time, ctypes.byref(row))
        return row if status == Status.OK else None

    def find(self, address: int, time: int = TIME_END) -> Optional[Code]:
        """Whose code was there at the time; without one, at the end."""
        with self._lock:
            row = self._find(address, time)
            if row is None:
                return None
            return Code(row.start, row.size, _library.to_text(row.name, row.name_size), row.since, row.until,
                        row.offset, row.index, _library.to_raw(row.bytes, row.size) if row.bytes else None)

    def line(self, address: int, time: int = TIME_END) -> Optional[Tuple[str, int]]:
        """The file and the line of the code that was there at the time."""
        file, size, line = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_int32()
        with self._lock:
            row = self._find(address, time)
            if row is None or not _library.found(
                    self._library.perfmap_timeline_line, self._handle, ctypes.byref(row), address,
                    ctypes.byref(file), ctypes.byref(size), ctypes.byref(line)):
                return None
            return _library.to_text(file.value, size.value), line.value

    def refresh(self) -> int:
        """Takes in what was appended; as Index.refresh()."""
        changed = ctypes.c_int()
        with self._lock:
            _library.check(self._library.perfmap_timeline_refresh, self._handle, ctypes.byref(changed))
        return changed.value


@dataclass(frozen=True)
class DecodedName:
    """What the name of an entry says."""

    function: str  #: "": an anonymous function
    runtime: str  #: "v8", "hotspot", …; "": unknown
    tier: str  #: "turbofan", …; "": unknown
    file: Optional[str]
    line: int  #: 0: the name has none
    column: int  #: 0: the name has none
    inlined: Tuple[str, ...]  #: functions inlined into each other, outermost first, if it is such a chain


def decode_name(name: Name) -> DecodedName:
    """Takes a raw name apart; at worst the function is the whole name."""
    library = _library.core()
    data = _library.to_bytes(name)
    row = _library.new(library, "perfmap_name")
    library.perfmap_name_decode(data, len(data), ctypes.byref(row))
    parts: Any = ()
    count = library.perfmap_name_inline_chain(data, len(data), None, 0)
    if count:
        parts = (library.structures["perfmap_name_part"] * count)()
        library.perfmap_name_inline_chain(data, len(data), parts, count)
    return DecodedName(
        _library.to_text(row.function, row.function_size), _c_text(row.runtime), _c_text(row.tier),
        _library.to_text(row.file, row.file_size) if row.file else None, row.line, row.column,
        tuple(_library.to_text(part.text, part.size) for part in parts))
