# SPDX-License-Identifier: MIT
"""Writers of maps, jitdumps and logs of loops, at any path. Any thread may use any of them."""
from __future__ import annotations

import ctypes
import enum
from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence, TypeVar

from . import _library, _workers, process_map
from ._library import Name, StrPath
from .errors import PerfmapError, error_of
from .process_map import ForkPolicy, NamePolicy

_W = TypeVar("_W", bound="_Writer")


class _Writer(_library.Handle):
    """Several threads may use it at once, so close() ends the writing only: the handle is freed with
    the object, when no call can be using it."""

    _is_closed = False

    def __enter__(self: _W) -> _W:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _close_function(self) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        """Writes what is buffered and ends the file; any number of times. Later calls fail with
        EBADF."""
        if not self._is_closed:
            self._is_closed = True
            _library.check(self._close_function, self._handle)

    def flush_unless_closed(self) -> None:
        if not self._is_closed:
            self.flush()

    def flush(self) -> None:
        """Writes what is buffered."""


class MapWriter(_Writer):
    """Appends entries to the map at a path.

    A forked child writes on to the same file, without what its parent has buffered. The options are
    those of perfmap_writer_options in perfmap.h.
    """

    def __init__(self, path: StrPath, *, names: NamePolicy = NamePolicy.ESCAPE, own_map: bool = False,
                 buffer_bytes: int = 0, flush_after_ns: int = 0, max_bytes: int = 0,
                 on_full: Optional[Callable[[], bool]] = None, mapped: bool = False) -> None:
        library = self._library = _library.core()
        self._on_full = _library.FullCallback(on_full)
        options = _library.new(
            library, "perfmap_writer_options", names=names, own_map=own_map, buffer_bytes=buffer_bytes,
            flush_after_ns=flush_after_ns, most_bytes=max_bytes, mapped=mapped,
            on_full=self._on_full.pointer)
        super().__init__(
            _library.made(library.perfmap_writer_open, _library.to_path(path), ctypes.byref(options)),
            library.perfmap_writer_free)
        if buffer_bytes and not mapped:
            _workers.flush_at_exit(self)

    def _call(self, function: Callable[..., int], *arguments: object) -> None:
        try:
            _library.check(function, self._handle, *arguments)
        except PerfmapError:
            self._on_full.raise_pending()
            raise

    def write(self, start: int, size: int, name: Name) -> None:
        """Writes one entry."""
        data = _library.to_bytes(name)
        self._call(self._library.perfmap_writer_write, start, size, data, len(data))

    def copy(self, path: StrPath) -> None:
        """Appends the entries of another map."""
        self._call(self._library.perfmap_writer_copy, _library.to_path(path))

    def flush(self) -> None:
        """Writes what is buffered."""
        self._call(self._library.perfmap_writer_flush)

    @property
    def _close_function(self) -> Any:
        return self._library.perfmap_writer_close


@dataclass(frozen=True)
class Line:
    """The source of the code from `address` on, up to the next line or the end of the function."""

    address: int
    line: int
    file: str
    column: int = 0


@dataclass(frozen=True)
class Unwinding:
    """A function's unwinding information, as perf lays it out: see perfmap_jitdump_function.

    The class methods make it for code of `size` bytes. `mapped_size`: how many bytes after the code
    are free in the process, which perf needs.
    """

    eh_frame: bytes
    eh_frame_hdr: bytes
    mapped_size: int = 0

    @classmethod
    def frame_pointer(cls, size: int, *, mapped_size: int = 0) -> Unwinding:
        """Of code that keeps a frame pointer."""
        return cls._made("frame_pointer", 0, size, _UNWIND_ROOM, mapped_size)

    @classmethod
    def no_frame(cls, size: int, sp_offset: int, *, mapped_size: int = 0) -> Unwinding:
        """Of code that keeps its stack pointer `sp_offset` bytes below that of its caller before the
        call."""
        return cls._made("no_frame", 0, size, _UNWIND_ROOM, mapped_size, sp_offset)

    @classmethod
    def from_fde(cls, size: int, cie: bytes, fde: bytes, *, mapped_size: int = 0) -> Unwinding:
        """Of code whose compiler made these, each with its length."""
        room = len(cie) + len(fde) + _UNWIND_ROOM
        return cls._made("from_fde", 0, size, room, mapped_size, cie, len(cie), fde, len(fde))

    @classmethod
    def from_eh_frame(cls, start: int, size: int, section: bytes, address: int, *,
                      mapped_size: int = 0) -> Unwinding:
        """Of code at `start`, out of a whole section that is meant to lie at `address`."""
        return cls._made("from_eh_frame", start, size, len(section) + _UNWIND_ROOM, mapped_size, section,
                         len(section), address)

    @classmethod
    def _made(cls, how: str, start: int, size: int, room_size: int, mapped_size: int,
              *arguments: Any) -> Unwinding:
        library = _library.core()
        function = _library.new(library, "perfmap_jitdump_function", start=start, size=size)
        room = ctypes.create_string_buffer(room_size)
        status = getattr(library, "perfmap_unwind_" + how)(ctypes.byref(function), *arguments, room, room_size)
        if status:
            raise error_of(status, "cannot make unwinding information", 0, 0)
        return cls(ctypes.string_at(function.eh_frame, function.eh_frame_size),
                   ctypes.string_at(function.eh_frame_hdr, function.eh_frame_hdr_size), mapped_size)


_UNWIND_ROOM = 96
"""PERFMAP_UNWIND_ROOM."""


class Jitdump(_Writer):
    """Writes a jitdump: `Jitdump(directory="/tmp")` is the process's own, `Jitdump(path=...)` any."""

    def __init__(self, *, directory: Optional[StrPath] = None, path: Optional[StrPath] = None, pid: int = 0,
                 names: NamePolicy = NamePolicy.ESCAPE, own_dump: bool = False, marker: bool = True,
                 close_record: bool = True, state_map: bool = False, max_bytes: int = 0,
                 fork: ForkPolicy = ForkPolicy.FRESH) -> None:
        """`state_map`: each function becomes an entry of the process's own map, too."""
        if path is not None and directory is not None:
            raise ValueError("a path or a directory, not both")
        library = self._library = _library.core()
        options = _library.new(
            library, "perfmap_jitdump_options", pid=pid, names=names, own_dump=own_dump, no_marker=not marker,
            no_close_record=not close_record, state_map=state_map, most_bytes=max_bytes, fork=fork)
        where = path if path is not None else directory
        place = _library.to_path(where) if where is not None else None
        opens = library.perfmap_jitdump_open if path is not None else library.perfmap_jitdump_open_own
        super().__init__(_library.made(opens, place, ctypes.byref(options)), library.perfmap_jitdump_free)

    def load(self, start: int, name: Name, *, code: Optional[bytes] = None, size: Optional[int] = None,
             lines: Sequence[Line] = (), unwinding: Optional[Unwinding] = None, time: int = 0) -> int:
        """Writes a function, and returns its number for move().

        `code` holds its bytes. Without it, `size` bytes are read from memory at `start`: they must be
        there.
        """
        library = self._library
        if code is None and size is None:
            raise ValueError("code or its size is needed")
        if code is not None and size is not None and size != len(code):
            raise ValueError("size is not the length of code")
        length = len(code) if code is not None else int(size or 0)
        data = _library.to_bytes(name)
        line_type = library.structures["perfmap_jitdump_line"]
        files = [_library.to_c_string(line.file) for line in lines]
        table = (line_type * len(lines))(*(
            line_type(address=line.address, line=line.line, column=line.column, file=_library.address_of(file))
            for line, file in zip(lines, files)))
        function = _library.new(
            library, "perfmap_jitdump_function", start=start, size=length, name=_library.address_of(data),
            name_size=len(data), code=_library.address_of(code) if code is not None else start, time=time)
        if lines:
            function.lines, function.line_count = ctypes.addressof(table), len(lines)
        if unwinding is not None:
            function.eh_frame = _library.address_of(unwinding.eh_frame)
            function.eh_frame_size = len(unwinding.eh_frame)
            function.eh_frame_hdr = _library.address_of(unwinding.eh_frame_hdr)
            function.eh_frame_hdr_size = len(unwinding.eh_frame_hdr)
            function.mapped_size = unwinding.mapped_size
        index = ctypes.c_uint64()
        try:
            _library.check(library.perfmap_jitdump_load, self._handle, ctypes.byref(function), ctypes.byref(index))
        except PerfmapError:
            process_map.raise_pending()  # of its on_full
            raise
        return index.value

    def move(self, code_index: int, from_address: int, to_address: int, size: int) -> None:
        """The code of `code_index` has moved, now."""
        _library.check(self._library.perfmap_jitdump_move, self._handle, code_index, from_address, to_address, size)

    @property
    def _close_function(self) -> Any:
        return self._library.perfmap_jitdump_close


class Clock(enum.IntEnum):
    """The clock of a log of loops."""

    COUNTER = 0
    MONOTONIC = 1


class Jitlog(_Writer):
    """Writes a log of the loops that a tracing JIT runs; each "%d" in the path is the pid."""

    def __init__(self, path: StrPath, *, clock: Clock = Clock.COUNTER, names: NamePolicy = NamePolicy.ESCAPE,
                 own_log: bool = False, one_thread: bool = False, buffer_events: int = 0,
                 fork: ForkPolicy = ForkPolicy.FRESH) -> None:
        library = self._library = _library.core()
        options = _library.new(
            library, "perfmap_jitlog_options", clock=clock, names=names, own_log=own_log, one_thread=one_thread,
            buffer_events=buffer_events, fork=fork)
        super().__init__(
            _library.made(library.perfmap_jitlog_open, _library.to_path(path), ctypes.byref(options)),
            library.perfmap_jitlog_free)
        _workers.flush_at_exit(self)

    def loop(self, name: Name) -> int:
        """The number of the loop of that name."""
        data = _library.to_bytes(name)
        number = ctypes.c_uint32()
        _library.check(self._library.perfmap_jitlog_loop, self._handle, data, len(data), ctypes.byref(number))
        return number.value

    def enter(self, loop: int) -> None:
        """The calling thread has entered the loop."""
        self._event(self._library.perfmap_jitlog_enter, loop)

    def exit(self, loop: int) -> None:
        """The calling thread has left the loop for the interpreter."""
        self._event(self._library.perfmap_jitlog_exit, loop)

    def _event(self, function: Callable[[int, int], int], loop: int) -> None:
        # These two have no perfmap_error.
        status = function(self._handle, loop)
        if status:
            raise error_of(status, f"the log refuses this event (status {status})", 0, 0)

    def flush(self) -> None:
        """Writes what all threads have recorded."""
        _library.check(self._library.perfmap_jitlog_flush, self._handle)

    @property
    def lost(self) -> int:
        """How many events could not be written."""
        return int(self._library.perfmap_jitlog_lost(self._handle))

    @property
    def _close_function(self) -> Any:
        return self._library.perfmap_jitlog_close


__all__ = ["MapWriter", "Line", "Unwinding", "Jitdump", "Clock", "Jitlog", "ForkPolicy", "NamePolicy"]
