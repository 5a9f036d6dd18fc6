# SPDX-License-Identifier: MIT
"""Writes what is buffered when a worker of multiprocessing ends.

Such a worker leaves by os._exit(), so the library's own handlers at exit do not run. It does run the
finalizers of multiprocessing.util, of which this registers one: in this process, and, because a
forked worker begins without finalizers, again in each of those. A worker that is killed, as
Pool.terminate() does it, runs none.
"""
from __future__ import annotations

import sys
import threading
import weakref
from typing import Any, Callable, Optional, Protocol


class Flushable(Protocol):
    def flush_unless_closed(self) -> None: ...


class _Registration:
    """What is flushed. Registers itself once, when there is something."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writers: "weakref.WeakSet[Any]" = weakref.WeakSet()
        self._flush_process_map: Optional[Callable[[], None]] = None
        self._is_registered = False

    def add(self, writer: Flushable) -> None:
        self._register()
        self._writers.add(writer)

    def add_process_map(self, flush: Callable[[], None]) -> None:
        self._register()
        self._flush_process_map = flush

    def _register(self) -> None:
        with self._lock:
            if self._is_registered:
                return
            self._is_registered = True
        # Not at the top: what does not buffer need not load it.
        from multiprocessing import util
        util.register_after_fork(self, _Registration._register_finalizer)
        self._register_finalizer()

    def _register_finalizer(self) -> None:
        from multiprocessing import util
        self._lock = threading.Lock()  # one that another thread of the parent held stays held
        # The lowest priority runs last: finalizers of others may still write.
        util.Finalize(None, self._flush, exitpriority=-(2**31))

    def _flush(self) -> None:
        flushes = [writer.flush_unless_closed for writer in list(self._writers)]
        if self._flush_process_map is not None:
            flushes.append(self._flush_process_map)
        for flush in flushes:
            try:
                flush()
            except Exception as error:
                print(f"perfmap: entries were lost: {error}", file=sys.stderr)


_registration = _Registration()


def flush_at_exit(writer: Flushable) -> None:
    """Flushes the writer, while it lives, when a worker ends."""
    _registration.add(writer)


def flush_process_map_at_exit(flush: Callable[[], None]) -> None:
    _registration.add_process_map(flush)
