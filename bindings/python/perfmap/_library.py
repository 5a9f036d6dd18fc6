# SPDX-License-Identifier: MIT
"""Finds the libraries, loads them, and calls their C functions.

The structures are made from the tables of the loaded library (perfmap_layouts()), so that they fit
whichever release it is: members that this package does not know are 0.
"""
from __future__ import annotations

import ctypes
import enum
import os
import threading
from ctypes import (POINTER, c_char, c_char_p, c_int, c_int8, c_int16, c_int32, c_int64, c_size_t, c_uint8,
                    c_uint16, c_uint32, c_uint64, c_void_p)
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Type, TypeVar, Union

from .errors import LibraryNotFound, PerfmapError, Status, error_of

ENVIRONMENT = "PERFMAP_LIBRARY_PATH"
"""Directories, with ':' between them, in which the libraries are looked for first."""

Name = Union[str, bytes]
StrPath = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

OnFull = ctypes.CFUNCTYPE(c_int, c_void_p)
TakeFrame = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
Visit = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)

_P, _U64, _SIZE, _I32 = c_void_p, c_uint64, c_size_t, c_int32

# Result, parameters. A test compares them with the headers.
CORE: Dict[str, Tuple[Any, ...]] = {
    "perfmap_version": (c_char_p,),
    "perfmap_writer_layouts": (_P, _P),
    "perfmap_layouts": (_P, _P),
    "perfmap_state_configure": (c_int, _P),
    "perfmap_state_set_fork": (c_int, _I32),
    "perfmap_state_init": (c_int,),
    "perfmap_state_began_with": (c_int,),
    "perfmap_state_write_entry": (c_int, _P, _SIZE, c_char_p),
    "perfmap_state_copy_file": (c_int, c_char_p),
    "perfmap_state_flush": (c_int,),
    "perfmap_state_last_error": (c_int, _P),
    "perfmap_state_fini": (c_int,),
    "perfmap_writer_open": (c_int, c_char_p, _P, _P, _P),
    "perfmap_writer_write": (c_int, _P, _U64, _U64, c_char_p, _SIZE, _P),
    "perfmap_writer_copy": (c_int, _P, c_char_p, _P),
    "perfmap_writer_flush": (c_int, _P, _P),
    "perfmap_writer_close": (c_int, _P, _P),
    "perfmap_writer_free": (None, _P),
    "perfmap_jitdump_open_own": (c_int, c_char_p, _P, _P, _P),
    "perfmap_jitdump_open": (c_int, c_char_p, _P, _P, _P),
    "perfmap_jitdump_load": (c_int, _P, _P, _P, _P),
    "perfmap_jitdump_move": (c_int, _P, _U64, _U64, _U64, _U64, _P),
    "perfmap_jitdump_close": (c_int, _P, _P),
    "perfmap_jitdump_free": (None, _P),
    "perfmap_unwind_frame_pointer": (c_int, _P, _P, _SIZE),
    "perfmap_unwind_no_frame": (c_int, _P, c_uint32, _P, _SIZE),
    "perfmap_unwind_from_fde": (c_int, _P, _P, _SIZE, _P, _SIZE, _P, _SIZE),
    "perfmap_unwind_from_eh_frame": (c_int, _P, _P, _SIZE, _U64, _P, _SIZE),
    "perfmap_jitlog_open": (c_int, c_char_p, _P, _P, _P),
    "perfmap_jitlog_loop": (c_int, _P, c_char_p, _SIZE, _P, _P),
    "perfmap_jitlog_enter": (c_int, _P, c_uint32),
    "perfmap_jitlog_exit": (c_int, _P, c_uint32),
    "perfmap_jitlog_flush": (c_int, _P, _P),
    "perfmap_jitlog_close": (c_int, _P, _P),
    "perfmap_jitlog_lost": (_U64, _P),
    "perfmap_jitlog_free": (None, _P),
    "perfmap_map_open": (c_int, c_char_p, _P, _P),
    "perfmap_map_open_pid": (c_int, _I32, _P, _P),
    "perfmap_map_from_memory": (c_int, c_char_p, _SIZE, _P, _P),
    "perfmap_map_free": (None, _P),
    "perfmap_map_next": (c_int, _P, _P, _P),
    "perfmap_map_line_number": (_U64, _P, _U64),
    "perfmap_map_was_truncated": (c_int, _P),
    "perfmap_map_lint": (c_int, _P, _SIZE, _P, _P, _P),
    "perfmap_truncation_guard_new": (c_int, _P, _P),
    "perfmap_truncation_guard_free": (None, _P),
    "perfmap_index_new": (c_int, _P, _SIZE, _I32, _P, _P),
    "perfmap_index_free": (None, _P),
    "perfmap_index_find": (c_int, _P, _U64, _P),
    "perfmap_index_find_batch": (_SIZE, _P, _P, _SIZE, _P),
    "perfmap_index_refresh": (c_int, _P, _P, _P),
    "perfmap_index_write": (c_int, _P, c_char_p, _P),
    "perfmap_timeline_open": (c_int, c_char_p, _P, _P),
    "perfmap_timeline_free": (None, _P),
    "perfmap_timeline_find": (c_int, _P, _U64, _U64, _P),
    "perfmap_timeline_line": (c_int, _P, _P, _U64, _P, _P, _P, _P),
    "perfmap_timeline_refresh": (c_int, _P, _P, _P),
    "perfmap_name_decode": (None, c_char_p, _SIZE, _P),
    "perfmap_name_inline_chain": (_SIZE, c_char_p, _SIZE, _P, _SIZE),
}
PROFILE: Dict[str, Tuple[Any, ...]] = {
    "perfmap_profile_layouts": (_P, _P),
    "perfmap_tracker_begin": (c_int, _P, _P, _P),
    "perfmap_tracker_end": (None, _P),
    "perfmap_tracker_find_pid": (c_int, _P, _I32, _P, _P, _P, _P),
    "perfmap_tracker_import": (c_int, _P, _I32, _U64, _P, _P),
    "perfmap_tracker_on_mmap": (c_int, _P, _P, _P),
    "perfmap_tracker_on_unmap": (c_int, _P, _I32, _U64, _U64, _U64, _P),
    "perfmap_tracker_on_fork": (c_int, _P, _I32, _I32, _I32, _U64, _P),
    "perfmap_tracker_on_comm": (c_int, _P, _I32, _I32, _U64, c_char_p, _SIZE, _I32, _P),
    "perfmap_tracker_on_exit": (c_int, _P, _I32, _I32, _U64, _P),
    "perfmap_tracker_refresh_jit": (c_int, _P, _I32, _P),
    "perfmap_tracker_find_jit": (c_int, _P, _I32, _U64, _U64, _U64, _P, _P),
    "perfmap_tracker_find_elf": (c_int, _P, _I32, _U64, _U64, _P, _P, _P),
    "perfmap_tracker_name": (c_int, _P, _I32, _U64, _U64, _U64, _I32, _P, _P),
    "perfmap_space_begin_with_tracker": (c_int, _P, _I32, _U64, _P, _P),
    "perfmap_space_end": (None, _P),
    "perfmap_space_process": (None, _P, _P),
    "perfmap_space_find": (c_int, _P, _U64, _P),
    "perfmap_space_size": (_SIZE, _P),
    "perfmap_space_region": (None, _P, _SIZE, _P),
    "perfmap_module_cache_begin": (c_int, _P, _P, _P),
    "perfmap_module_cache_end": (None, _P),
    "perfmap_module_cache_opened": (_U64, _P),
    "perfmap_module_end": (None, _P),
    "perfmap_module_get_facts": (None, _P, _P),
    "perfmap_module_find_symbol": (c_int, _P, _U64, _P, _P),
    "perfmap_preferred_regs_mask": (_U64, c_uint32),
    "perfmap_unwind_attach": (c_int, _P, _I32, _U64, _P, _P),
    "perfmap_unwind_detach": (None, _P),
    "perfmap_unwinder_begin": (c_int, _P, _P, _P),
    "perfmap_unwinder_end": (None, _P),
    "perfmap_unwind_sample": (c_int, _P, _P, _P, _P, _P, _P, _P),
    "perfmap_tracker_forget_before": (c_int, _P, _U64, _P),
    "perfmap_kernel_begin": (c_int, c_char_p, _P, _P),
    "perfmap_kernel_name": (c_int, _P, c_uint64, _P, _P),
    "perfmap_kernel_end": (None, _P),
    "perfmap_machine_get": (c_int, c_uint32, _P),
    "perfmap_machine_from_uname": (c_uint32, c_char_p),
    "perfmap_register_place": (_I32, _U64, _I32),
    "perfmap_frame_source_name": (c_char_p, _I32),
    "perfmap_stack_end_name": (c_char_p, _I32),
    "perfmap_unwinder_get_statistics": (None, _P, _P),
    "perfmap_stitcher_begin": (c_int, _P, _P, _P),
    "perfmap_stitcher_end": (None, _P),
    "perfmap_stitcher_learn": (c_int, _P, _U64, _I32, _U64, _P, _SIZE, _I32, _P),
    "perfmap_stitcher_repair": (c_int, _P, _U64, _I32, _U64, _P, _P, _SIZE, _P, _P),
    "perfmap_stitcher_forget_before": (None, _P, _U64),
    "perfmap_module_id": (_U64, _P),
    "perfmap_module_copy": (c_int, _P, _P, _P),
    "perfmap_module_open": (c_int, _P, c_char_p, _P, _P),
    "perfmap_module_open_descriptor": (c_int, _P, c_int, c_char_p, _P, _P),
    "perfmap_module_from_memory": (c_int, _P, _P, _SIZE, c_char_p, _P, _P),
    "perfmap_module_find_build_id": (c_int, _P, _P, _SIZE, _P, _P),
    "perfmap_recording_open": (c_int, c_char_p, _P, _P),
    "perfmap_recording_end": (None, _P),
    "perfmap_recording_get_facts": (None, _P, _P),
    "perfmap_recording_get_event": (c_int, _P, _SIZE, _P),
    "perfmap_recording_read": (c_int, _P, _P, _P, _P),
    "perfmap_recording_get_sample": (c_int, _P, _P, _P, _P, _P),
    "perfmap_tracker_on_record": (c_int, _P, _P, _P),
    "perfmap_stacks_begin": (c_int, _P, _P, _P, _P),
    "perfmap_stacks_end": (None, _P),
    "perfmap_stacks_read": (c_int, _P, _P, _P, _P),
    "perfmap_stacks_frame": (c_int, _P, _SIZE, _P),
    "perfmap_stacks_write": (c_int, _P, c_char_p, c_char_p, _P, _P),
    "perfmap_stacks_processes": (_SIZE, _P),
    "perfmap_stacks_get_counts": (c_int, _P, _SIZE, _P),
    "perfmap_stacks_get_losses": (None, _P, _P),
    "perfmap_stacks_get_failure": (c_int, _P, _SIZE, _P),
}


class _Layout(ctypes.Structure):
    """perfmap_layout, which will not grow."""

    _fields_ = [("record", c_char_p), ("member", c_char_p), ("offset", c_size_t), ("size", c_size_t),
                ("kind", c_int32)]


_INTEGERS: Dict[Tuple[int, int], Any] = {
    (1, 1): c_int8, (1, 2): c_int16, (1, 4): c_int32, (1, 8): c_int64,
    (2, 1): c_uint8, (2, 2): c_uint16, (2, 4): c_uint32, (2, 8): c_uint64,
}


def _member_type(kind: int, size: int) -> Any:
    if kind == 3:
        return c_void_p
    return c_char * size if kind == 4 else _INTEGERS[kind, size]


def _structures(rows: Iterator[_Layout]) -> Dict[str, Type[ctypes.Structure]]:
    """The structures by their C names. Fails if ctypes would lay one out in another way."""
    members: Dict[str, List[Tuple[str, Any]]] = {}
    places: Dict[str, List[Tuple[int, int]]] = {}
    for row in rows:
        record = row.record.decode()
        if row.kind != 0:
            members.setdefault(record, []).append((row.member.decode(), _member_type(row.kind, row.size)))
        places.setdefault(record, []).append((row.offset, row.size))
    made = {}
    for record, fields in members.items():
        made[record] = type(record, (ctypes.Structure,), {"_fields_": fields})
        here = [(0, ctypes.sizeof(made[record]))]
        here += [(getattr(made[record], name).offset, getattr(made[record], name).size) for name, _ in fields]
        if here != places[record]:
            raise PerfmapError(Status.UNSUPPORTED, f"{record} is laid out in a way that ctypes does not know")
    return made


class Library:
    """One shared library. Its functions are attributes, with argument types."""

    name: str
    structures: Dict[str, Type[ctypes.Structure]]

    def __init__(self, loaded: ctypes.CDLL, prototypes: Dict[str, Tuple[Any, ...]], *layouts: str) -> None:
        self._loaded = loaded
        self._prototypes = prototypes
        self.name = loaded._name
        self.structures = {}
        for getter in layouts:
            count = c_size_t()
            rows = ctypes.cast(getattr(self, getter)(ctypes.byref(count)), POINTER(_Layout))
            self.structures.update(_structures(rows[i] for i in range(count.value)))

    def __getattr__(self, name: str) -> Any:
        if name not in self._prototypes:
            raise AttributeError(name)
        try:
            function = getattr(self._loaded, name)
        except AttributeError:
            raise PerfmapError(Status.UNSUPPORTED, f"{self.name} has no {name}") from None
        function.restype, *function.argtypes = self._prototypes[name]
        setattr(self, name, function)
        return function


def _places(file: str) -> Iterator[str]:
    for directory in filter(None, os.environ.get(ENVIRONMENT, "").split(":")):
        yield os.path.join(directory, file)
    yield os.path.join(os.path.dirname(os.path.abspath(__file__)), file)


def _load(*files: str) -> ctypes.CDLL:
    """The first file of these that is there."""
    # RTLD_GLOBAL is not needed for libperfmap-profile to find libperfmap: the loader goes by its
    # soname, and it has to be one copy, because the engine has state of the process.
    for file in files:
        for path in _places(file):
            if os.path.exists(path):
                return ctypes.CDLL(path, use_errno=True)
    reasons = []
    for file in files:
        try:
            return ctypes.CDLL(file, use_errno=True)
        except OSError as error:
            reasons.append(str(error))
    raise LibraryNotFound(f"no {' and no '.join(files)} in {ENVIRONMENT} or in the package, and the loader says: "
                          f"{'; '.join(reasons)}")


_lock = threading.Lock()
_core: Optional[Library] = None
_profile: Optional[Library] = None


def core() -> Library:
    """libperfmap; where only libperfmap-writer is, that: it has all that writes, and no reader."""
    global _core
    if _core is None:
        with _lock:
            if _core is None:
                loaded = _load("libperfmap.so.0", "libperfmap-writer.so.0")
                layouts = [name for name in ("perfmap_writer_layouts", "perfmap_layouts") if hasattr(loaded, name)]
                _core = Library(loaded, CORE, *layouts)
    return _core


def profile() -> Library:
    """libperfmap-profile."""
    global _profile
    if _profile is None:
        core()
        with _lock:
            if _profile is None:
                _profile = Library(_load("libperfmap-profile.so.0"), PROFILE, "perfmap_profile_layouts")
    return _profile


def new(library: Library, record: str, **members: Any) -> Any:
    """A structure with these members, struct_size set, the rest 0."""
    type_ = library.structures.get(record)
    if type_ is None:
        raise PerfmapError(Status.UNSUPPORTED, f"{library.name} has no {record}")
    made = type_()
    if hasattr(type_, "struct_size"):
        made.struct_size = ctypes.sizeof(type_)
    for name, value in members.items():
        if not hasattr(type_, name):  # ctypes would set it on the Python object only
            raise PerfmapError(Status.UNSUPPORTED, f"this release of the library has no {record}.{name}")
        setattr(made, name, value)
    return made


def error_from(status: int, error: Any) -> PerfmapError:
    """The exception for a perfmap_error. An older library has no reason and no path."""
    return error_of(status, error.message.decode("utf-8", "replace"), error.sys_errno, error.offset,
                    getattr(error, "reason", 0), getattr(error, "path", b""))


def check(function: Callable[..., int], *arguments: Any) -> None:
    """Calls a function whose last parameter is a perfmap_error*."""
    type_: Any = core().structures["perfmap_error"]
    error = type_(ctypes.sizeof(type_))
    status = function(*arguments, ctypes.byref(error))
    if status:
        raise error_from(status, error)


def found(function: Callable[..., int], *arguments: Any) -> bool:
    """The same, where NOT_FOUND is an answer."""
    try:
        check(function, *arguments)
    except PerfmapError as error:
        if error.status == Status.NOT_FOUND:
            return False
        raise
    return True


def made(function: Callable[..., int], *arguments: Any) -> int:
    """Calls a function that makes a handle."""
    out = c_void_p()
    check(function, *arguments, ctypes.byref(out))
    assert out.value is not None
    return out.value


def u64(value: int) -> int:
    """The value, unless ctypes would cut it."""
    if not 0 <= value < 1 << 64:
        raise OverflowError(f"{value} does not fit into 64 bits")
    return value


def address_of(data: Optional[bytes]) -> Optional[int]:
    """Where the bytes are; valid as long as `data` is referenced."""
    return ctypes.cast(c_char_p(data), c_void_p).value if data is not None else None


def to_bytes(text: Name) -> bytes:
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text)


def to_c_string(text: Name) -> bytes:
    data = to_bytes(text)
    if b"\0" in data:
        raise ValueError("embedded null byte")
    return data


def to_path(path: StrPath) -> bytes:
    return to_c_string(os.fsencode(path))


def to_text(pointer: Optional[int], size: int) -> str:
    """Bytes of the library, which need not be UTF-8: surrogateescape keeps them."""
    return to_raw(pointer, size).decode("utf-8", "surrogateescape")


def to_raw(pointer: Optional[int], size: int) -> bytes:
    return ctypes.string_at(pointer, size) if pointer and size else b""


_Enum = TypeVar("_Enum", bound=enum.IntEnum)


def known(type_: Type[_Enum], value: int) -> Union[_Enum, int]:
    """The enumerator, or the number where a later release has more of them."""
    try:
        return type_(value)
    except ValueError:
        return value


class Handle:
    """Owns a handle of the library. One call at a time: the library wants it, and Python's lock is
    not held during a call."""

    def __init__(self, pointer: int, free: Callable[[int], None]) -> None:
        self._lock = threading.RLock()
        self._free = free
        self._pointer: Optional[int] = pointer

    @property
    def _handle(self) -> int:
        if self._pointer is None:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._pointer

    def _release(self) -> None:
        with self._lock:
            pointer, self._pointer = self._pointer, None
        if pointer is not None:
            self._free(pointer)

    def __del__(self) -> None:
        if getattr(self, "_pointer", None) is not None:
            self._release()


_H = TypeVar("_H", bound="ClosableHandle")


class ClosableHandle(Handle):
    """A handle that ends early by close(), or at the end of a with statement."""

    def close(self) -> None:
        """Releases it; any number of times."""
        self._release()

    def __enter__(self: _H) -> _H:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FullCallback:
    """A function that makes room, as the C function that the library calls.

    The library calls it in the thread whose entry has no room, within the call that writes the
    entry. An exception counts as 0, and is raised when that call returns.
    """

    def __init__(self, on_full: Optional[Callable[[], bool]]) -> None:
        self._raised = threading.local()
        self._on_full = on_full
        self.function = OnFull(self._call) if on_full is not None else None

    @property
    def pointer(self) -> Optional[int]:
        return ctypes.cast(self.function, c_void_p).value if self.function is not None else None

    def _call(self, _context: Optional[int]) -> int:
        assert self._on_full is not None
        try:
            return 1 if self._on_full() else 0
        except BaseException as error:
            self._raised.error = error
            return 0

    def raise_pending(self) -> None:
        error = getattr(self._raised, "error", None)
        if error is not None:
            self._raised.error = None
            raise error
