# SPDX-License-Identifier: MIT
"""The calling process's own map, /tmp/perf-PID.map.

There is one for each process. Any thread may call any of these functions at any time.

    from perfmap import process_map
    process_map.configure(buffer_bytes=65536)
    process_map.write(address, size, "jit::add")

What is buffered is written by flush() and close(), at the exit of the process, and at the exit of
workers of multiprocessing. It is lost by os._exit(), exec and signals that kill.
"""
from __future__ import annotations

import contextlib
import ctypes
import enum
import os
from typing import Any, Callable, Iterator, Optional, Union

from . import _library, _workers
from ._library import Name, StrPath
from .errors import Status


class ForkPolicy(enum.IntEnum):
    """What a forked child's map begins with."""

    FRESH = 0  #: nothing
    INHERIT = 1  #: the parent's entries
    OFF = 2  #: children write nothing


class NamePolicy(enum.IntEnum):
    """What happens to a name that readers would misread."""

    ESCAPE = 0
    REFUSE = 1


class StartState(enum.IntEnum):
    """What the map that is open began with."""

    NONE = 0
    MADE = 1
    EMPTIED = 2
    INHERITED = 3
    APPENDED = 4
    APPENDED_KEPT = 5
    APPENDED_IN_USE = 6


_on_full = _library.FullCallback(None)  # kept while the library may call it


def raise_pending() -> None:
    """Raises what on_full has raised in this thread, in a call of another writer."""
    _on_full.raise_pending()


def _done(answer: int) -> None:
    if answer != 0:
        errno = ctypes.get_errno()
        _on_full.raise_pending()
        library = _library.core()
        error = _library.new(library, "perfmap_error")
        status = library.perfmap_state_last_error(ctypes.byref(error)) or Status.IO
        error.sys_errno = error.sys_errno or errno
        raise _library.error_from(status, error)


def configure(*, directory: Optional[StrPath] = None, fork: ForkPolicy = ForkPolicy.FRESH,
              names: NamePolicy = NamePolicy.ESCAPE, buffer_bytes: int = 0, flush_after_ns: int = 0,
              max_bytes: int = 0, keep_stale: bool = False, mapped: bool = False,
              on_full: Optional[Callable[[], bool]] = None) -> None:
    """Sets the options; before the first entry, or after close(): else EBUSY.

    `on_full` is called when the file has no room below `max_bytes`; true means that it has made
    room. The members of perfmap_state_options in perfmap.h have the details.
    """
    global _on_full
    callback = _library.FullCallback(on_full)
    where = _library.to_path(directory) if directory is not None else None
    library = _library.core()
    options = _library.new(
        library, "perfmap_state_options", directory=_library.address_of(where), fork=fork, names=names,
        buffer_bytes=buffer_bytes, flush_after_ns=flush_after_ns, most_bytes=max_bytes,
        keep_stale=keep_stale, mapped=mapped, on_full=callback.pointer)
    _done(library.perfmap_state_configure(ctypes.byref(options)))
    _on_full = callback
    if buffer_bytes and not mapped:
        _workers.flush_process_map_at_exit(flush)


@contextlib.contextmanager
def opened(**options: Any) -> Iterator[None]:
    """Configures and opens the map, and closes it at the end of the with statement."""
    configure(**options)
    open_map()
    try:
        yield
    finally:
        close()


def set_fork_policy(policy: ForkPolicy) -> None:
    """Changes the policy for children to come."""
    _done(_library.core().perfmap_state_set_fork(policy))


def open_map() -> None:
    """Opens the map unless it is open; write() does so by itself."""
    _done(_library.core().perfmap_state_init())


def began_with() -> Union[StartState, int]:
    """What the map that is open began with."""
    return _library.known(StartState, _library.core().perfmap_state_began_with())


def write(address: int, size: int, name: Name) -> None:
    """Writes one entry."""
    _done(_library.core().perfmap_state_write_entry(_library.u64(address), _library.u64(size), _library.to_c_string(name)))


def copy(path: StrPath) -> None:
    """Appends the entries that another process's map holds now."""
    _done(_library.core().perfmap_state_copy_file(_library.to_path(path)))


def flush() -> None:
    """Writes what is buffered."""
    _done(_library.core().perfmap_state_flush())


def close() -> None:
    """Writes what is buffered and closes the map; the next entry opens it again."""
    _done(_library.core().perfmap_state_fini())
