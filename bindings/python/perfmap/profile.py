# SPDX-License-Identifier: MIT
"""For profilers: what was mapped where, when, in which process, and what addresses are called.

Needs libperfmap-profile. Times are nanoseconds of any one clock; events are those of perf, in the
order of their times for each process.
"""
from __future__ import annotations

import ctypes
import enum
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, Optional, Tuple, Union

from . import _library
from ._library import Name, StrPath
from .errors import PerfmapError, Status

NOW = 2**64 - 1  #: later than every event


class ProcessBegin(enum.IntEnum):
    SEEN = 0
    FORKED = 1
    EXECUTED = 2
    IMPORTED = 3


class Imported(enum.IntEnum):
    VANISHED = 0
    UNCHANGED = 1
    CHANGED = 2
    BEGAN = 3


class Access(enum.IntFlag):
    NONE = 0
    READ = 1
    WRITE = 2
    EXECUTE = 4
    SHARED = 8


class RegionKind(enum.IntEnum):
    ANONYMOUS = 0
    NAMED_ANONYMOUS = 1
    HEAP = 2
    STACK = 3
    FILE = 4
    DELETED_FILE = 5
    MEMFD = 6
    HUGE_PAGES = 7
    SHARED_MEMORY = 8
    DEVICE = 9
    VDSO = 10
    SPECIAL = 11
    INODE = 12


class JitRoom(enum.IntEnum):
    """Whether a region may hold code of a JIT."""

    NONE = 0
    UNLESS_ELF = 1
    LIKELY = 2


class Doubt(enum.IntFlag):
    """Reasons to doubt a name."""

    NONE = 0
    DAMAGED_RECORD = 1
    CLAMPED_RANGE = 2
    REUSED_ADDRESS = 4
    GUESSED_OWNER = 8
    GUESSED_CALL = 16
    SCANNED_FRAME = 32
    STITCHED_FRAME = 64
    REMAPPED_MEMORY = 128
    UNRECORDED_MEMORY = 256


class Detail(enum.IntEnum):
    SYMBOLS = 0
    LINES = 1
    INLINES = 2
    ADDRESSES = 3  #: no names: only for stacks of recordings


class NoName(enum.IntEnum):
    """Why an address has no name."""

    GONE = 0
    UNMAPPED = 1
    NO_SOURCE = 2
    NOT_COVERED = 3
    BEFORE_LOAD = 4
    NO_SYMBOL = 5
    UNREADABLE = 6


@dataclass(frozen=True)
class Process:
    pid: int
    generation: int  #: of that pid; from 1
    began: Union[ProcessBegin, int]
    parent: int  #: 0: not known
    since: int
    until: int  #: NOW: it goes on
    start_ticks: int  #: field 22 of /proc/PID/stat; 0 if that was not read
    comm: str


def _process(row: Any) -> Process:
    return Process(row.pid, row.generation, _library.known(ProcessBegin, row.began), row.parent, row.since,
                   row.until, row.start_ticks, _library.to_text(row.comm, row.comm_size))


@dataclass(frozen=True)
class Region:
    begin: int
    size: int
    offset: int  #: of begin in the file
    access: Access
    kind: Union[RegionKind, int]
    jit: Union[JitRoom, int]
    device: Tuple[int, int]
    inode: int
    name: str
    build_id: bytes


def _region(row: Any) -> Region:
    return Region(row.begin, row.size, row.offset, Access(row.access), _library.known(RegionKind, row.kind),
                  _library.known(JitRoom, row.jit), (row.device_major, row.device_minor), row.inode,
                  _library.to_text(row.name, row.name_size), _library.to_raw(row.build_id, row.build_id_size))


class Space(_library.Handle):
    """What one process had mapped at one moment. Never changes; threads may share it. Iterating gives
    its regions, ascending."""

    def __init__(self, pointer: int) -> None:
        self._library = _library.profile()
        super().__init__(pointer, self._library.perfmap_space_end)

    @property
    def process(self) -> Process:
        row = _library.new(self._library, "perfmap_process")
        self._library.perfmap_space_process(self._handle, ctypes.byref(row))
        return _process(row)

    def find(self, address: int) -> Optional[Region]:
        row = _library.new(self._library, "perfmap_region")
        status = self._library.perfmap_space_find(self._handle, address, ctypes.byref(row))
        return _region(row) if status == Status.OK else None

    def __len__(self) -> int:
        return int(self._library.perfmap_space_size(self._handle))

    def __iter__(self) -> Iterator[Region]:
        for index in range(len(self)):
            row = _library.new(self._library, "perfmap_region")
            self._library.perfmap_space_region(self._handle, index, ctypes.byref(row))
            yield _region(row)


@dataclass(frozen=True)
class Symbol:
    begin: int  #: before relocation
    size: int
    name: str
    demangled: str


class Module(_library.Handle):
    """An ELF file. Never changes; threads may share it."""

    def __init__(self, pointer: int) -> None:
        self._library = _library.profile()
        super().__init__(pointer, self._library.perfmap_module_end)
        facts = _library.new(self._library, "perfmap_module_facts")
        self._library.perfmap_module_get_facts(pointer, ctypes.byref(facts))
        self.path: str = _library.to_text(facts.path, facts.path_size)
        self.build_id: bytes = _library.to_raw(facts.build_id, facts.build_id_size)
        self.machine: int = facts.machine  #: EM_...
        self.type: int = facts.type  #: ET_...

    def find_symbol(self, vaddr: int) -> Optional[Symbol]:
        """The function at an address before relocation."""
        row = _library.new(self._library, "perfmap_symbol")
        if not _library.found(self._library.perfmap_module_find_symbol, self._handle, vaddr, ctypes.byref(row)):
            return None
        return Symbol(row.begin, row.size, _library.to_text(row.name, row.name_size),
                      _library.to_text(row.demangled, row.demangled_size))


class ModuleCache(_library.Handle):
    """ELF files, each opened once; several trackers and threads may share it."""

    def __init__(self, *, max_bytes: int = 0, debug_directories: Optional[str] = "/usr/lib/debug") -> None:
        self._library = library = _library.profile()
        directories = _library.to_c_string(debug_directories) if debug_directories is not None else None
        options = _library.new(library, "perfmap_module_cache_options", most_bytes=max_bytes,
                               debug_directories=_library.address_of(directories))
        super().__init__(_library.made(library.perfmap_module_cache_begin, ctypes.byref(options)),
                         library.perfmap_module_cache_end)

    @property
    def opened(self) -> int:
        """How many files were read so far."""
        return int(self._library.perfmap_module_cache_opened(self._handle))


@dataclass(frozen=True)
class JitCode:
    begin: int
    size: int
    name: str
    room: Union[JitRoom, int]
    doubts: Doubt


@dataclass(frozen=True)
class SourceFrame:
    function: str
    file: str
    line: int  #: 0: not known
    column: int  #: 0: not known


@dataclass(frozen=True)
class AddressName:
    """What an address is called."""

    address: int
    name: Optional[str]  #: demangled; None: see `why`
    why: Union[NoName, int, None]  #: why it has no name
    begin: int = 0  #: of the function; 0 where only debug information names it
    size: int = 0
    source: str = ""  #: the ELF file, map or dump that has the name, or would have it
    is_jit: bool = False  #: the name is a map's or a dump's
    doubts: Doubt = Doubt.NONE
    frames: Tuple[SourceFrame, ...] = ()  #: the innermost first; the last is the function itself

    @property
    def offset(self) -> int:
        return self.address - self.begin if self.begin else 0


class UnwindSpace(_library.Handle):
    """A process made ready for unwinding. Never changes; threads may share it."""

    def __init__(self, pointer: int) -> None:
        super().__init__(pointer, _library.profile().perfmap_unwind_detach)


class Tracker(_library.ClosableHandle):
    """Follows processes, by events, by /proc, or by both."""

    def __init__(self, *, proc: Optional[StrPath] = None, tmp: Optional[StrPath] = None, any_owner: bool = False,
                 modules: Optional[ModuleCache] = None) -> None:
        """Without `modules`, it has a cache of its own; `any_owner` also uses maps and dumps of other
        users."""
        self._library = library = _library.profile()
        self.modules = modules if modules is not None else ModuleCache()
        places = [_library.to_path(path) if path is not None else None for path in (proc, tmp)]
        options = _library.new(
            library, "perfmap_tracker_options", proc=_library.address_of(places[0]),
            tmp=_library.address_of(places[1]), any_owner=any_owner, modules=self.modules._handle)
        cache = self.modules  # has to outlive the tracker

        def free(pointer: int, end: Callable[[int], None] = library.perfmap_tracker_end, _cache: Any = cache) -> None:
            end(pointer)

        super().__init__(_library.made(library.perfmap_tracker_begin, ctypes.byref(options)), free)

    def _call(self, function: Callable[..., int], *arguments: Any) -> None:
        with self._lock:
            _library.check(function, self._handle, *arguments)

    def find_process(self, pid: int) -> Optional[Process]:
        """Who has the pid now, as far as events and imports say."""
        row = _library.new(self._library, "perfmap_process")
        with self._lock:
            if not _library.found(self._library.perfmap_tracker_find_pid, self._handle, pid, None, None,
                                  ctypes.byref(row)):
                return None
            return _process(row)

    def import_process(self, pid: int, time: int = NOW) -> Union[Imported, int]:
        """Reads /proc/PID."""
        imported = ctypes.c_int32()
        self._call(self._library.perfmap_tracker_import, pid, time, ctypes.byref(imported))
        return _library.known(Imported, imported.value)

    def on_mmap(self, pid: int, time: int, begin: int, size: int, offset: int, name: Name, *,
                access: Access = Access.READ | Access.EXECUTE, device: Tuple[int, int] = (0, 0), inode: int = 0,
                inode_generation: int = 0, build_id: bytes = b"") -> None:
        """PERF_RECORD_MMAP and MMAP2."""
        data = _library.to_bytes(name)
        event = _library.new(
            self._library, "perfmap_mmap_event", pid=pid, access=access, time=time, begin=begin, size=size,
            offset=offset, name=_library.address_of(data), name_size=len(data), device_major=device[0],
            device_minor=device[1], inode=inode, inode_generation=inode_generation,
            build_id=_library.address_of(build_id) if build_id else None, build_id_size=len(build_id))
        self._call(self._library.perfmap_tracker_on_mmap, ctypes.byref(event))

    def on_unmap(self, pid: int, time: int, begin: int, size: int) -> None:
        self._call(self._library.perfmap_tracker_on_unmap, pid, time, begin, size)

    def on_fork(self, pid: int, tid: int, parent: int, time: int) -> None:
        """A new process, or, if `pid` is `parent`, a new thread."""
        self._call(self._library.perfmap_tracker_on_fork, pid, tid, parent, time)

    def on_comm(self, pid: int, tid: int, time: int, comm: Name, *, exec: bool = False) -> None:
        data = _library.to_bytes(comm)
        self._call(self._library.perfmap_tracker_on_comm, pid, tid, time, data, len(data), int(exec))

    def on_exit(self, pid: int, tid: int, time: int) -> None:
        self._call(self._library.perfmap_tracker_on_exit, pid, tid, time)

    def space(self, pid: int, time: int = NOW) -> Optional[Space]:
        """The memory of the process that had the pid then."""
        out = ctypes.c_void_p()
        with self._lock:
            has = _library.found(self._library.perfmap_space_begin_with_tracker, self._handle, pid, time,
                                 ctypes.byref(out))
        return Space(out.value) if has and out.value is not None else None

    def refresh_jit(self, pid: int) -> bool:
        """Reads what the living process's map and dumps have gained. False: it has none."""
        with self._lock:
            return _library.found(self._library.perfmap_tracker_refresh_jit, self._handle, pid)

    def find_jit(self, pid: int, address: int, time: int = NOW, source_time: int = NOW) -> Optional[JitCode]:
        """Code of a JIT at an address. `source_time` is in the clock of dumps, CLOCK_MONOTONIC."""
        row = _library.new(self._library, "perfmap_jit_code")
        with self._lock:
            if not _library.found(self._library.perfmap_tracker_find_jit, self._handle, pid, address, time,
                                  source_time, ctypes.byref(row)):
                return None
            return JitCode(row.begin, row.size, _library.to_text(row.name, row.name_size),
                           _library.known(JitRoom, row.room), Doubt(row.doubts))

    def find_elf(self, pid: int, address: int, time: int = NOW) -> Optional[Tuple[Module, int]]:
        """The ELF file that was mapped there, and the address before relocation."""
        out, vaddr = ctypes.c_void_p(), ctypes.c_uint64()
        with self._lock:
            has = _library.found(self._library.perfmap_tracker_find_elf, self._handle, pid, address, time,
                                 ctypes.byref(out), ctypes.byref(vaddr))
        return (Module(out.value), vaddr.value) if has and out.value is not None else None

    def name(self, pid: int, address: int, time: int = NOW, source_time: int = NOW,
             detail: Detail = Detail.SYMBOLS) -> AddressName:
        """What the address is called: by its ELF file, or by the map and the dumps that refresh_jit()
        found."""
        row = _library.new(self._library, "perfmap_address_name")
        with self._lock:
            has = _library.found(self._library.perfmap_tracker_name, self._handle, pid, address, time, source_time,
                                 detail, ctypes.byref(row))
            source = _library.to_text(row.source, row.source_size)
            if not has:
                return AddressName(address, None, _library.known(NoName, row.why), source=source)
            return AddressName(address, _library.to_text(row.name, row.name_size), None, row.begin, row.size,
                               source, bool(row.is_jit), Doubt(row.doubts), tuple(self._frames(row)))

    def _frames(self, row: Any) -> Iterator[SourceFrame]:
        if not row.frame_count:
            return
        type_ = self._library.structures["perfmap_source_frame"]
        frames: Any = (type_ * row.frame_count).from_address(row.frames)
        for frame in frames:
            yield SourceFrame(_library.to_text(frame.function, frame.function_size),
                              _library.to_text(frame.file, frame.file_size), frame.line, frame.column)

    def unwind_space(self, pid: int, time: int = NOW) -> Optional[UnwindSpace]:
        """The process made ready for Unwinder; of a living one, make it anew when it has mapped
        something, and after refresh_jit()."""
        out = ctypes.c_void_p()
        with self._lock:
            has = _library.found(self._library.perfmap_unwind_attach, self._handle, pid, time, ctypes.byref(out))
        return UnwindSpace(out.value) if has and out.value is not None else None


def living_tracker(pid: int, **options: Any) -> Tracker:
    """A tracker that knows one living process, with its map and its dumps."""
    tracker = Tracker(**options)
    if tracker.import_process(pid) == Imported.VANISHED:
        raise PerfmapError(Status.NOT_FOUND, f"no process {pid}")
    tracker.refresh_jit(pid)
    return tracker


def resolve(pid: int, addresses: Iterable[int], *, detail: Detail = Detail.SYMBOLS, **options: Any
            ) -> Iterator[AddressName]:
    """What addresses of a living process are called, in their order. `options` are those of Tracker.

    The process is read once, before the first name.
    """
    with living_tracker(pid, **options) as tracker:
        for address in addresses:
            yield tracker.name(pid, address, NOW, NOW, detail)
