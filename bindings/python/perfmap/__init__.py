# SPDX-License-Identifier: MIT
"""Writes, reads and queries perf maps and jitdumps, and names addresses and stacks of processes.

perfmap.process_map    the calling process's own map
perfmap.writer         MapWriter, Jitdump, Jitlog
perfmap.reader         Map, Index, Timeline, decode_name
perfmap.resolve()      names of addresses in a living process
perfmap.profile        Tracker: processes by events and by /proc
perfmap.stacks         call stacks from samples
perfmap.recording      call stacks of perf.data, by the program perfmap

The libraries are looked for in the directories of PERFMAP_LIBRARY_PATH, in this package, and where
the loader looks.
"""
from . import process_map
from ._library import core as _core
from .errors import LibraryNotFound, PerfmapError, PerfmapOSError, Reason, Status
from .process_map import ForkPolicy, NamePolicy, StartState
from .profile import resolve
from .reader import (Code, DecodedName, Entry, Finding, Index, Map, Overlap, Severity, Timeline, TruncationGuard,
                     decode_name)
from .writer import Clock, Jitdump, Jitlog, Line, MapWriter, Unwinding

__version__ = "0.1.0"


def library_version() -> str:
    """The version of the library that is loaded."""
    return str(_core().perfmap_version().decode())


__all__ = [
    "Clock", "Code", "DecodedName", "Entry", "Finding", "ForkPolicy", "Index", "Jitdump", "Jitlog",
    "LibraryNotFound", "Line", "Map", "MapWriter", "NamePolicy", "Overlap", "PerfmapError", "PerfmapOSError",
    "Reason", "Severity", "StartState", "Status", "Timeline", "TruncationGuard", "Unwinding", "decode_name",
    "library_version", "process_map", "resolve",
]
